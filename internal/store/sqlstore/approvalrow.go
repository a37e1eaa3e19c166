package sqlstore

import (
	"cmp"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
)

const (
	approvalColumns = "id, call, call_digest, grant_digest, principal, session, tool, descriptor, effect, policy, attachment, origin, arguments_digest, " +
		"export, provider, sensitivity, summary, arguments, cut, created, expires, state, decision, decider, decided, until, reason, spent_by, evidence"
	sqlDeleteApproval = `DELETE FROM approval WHERE id = $1`
	sqlApproval       = `SELECT ` + approvalColumns + ` FROM approval WHERE id = $1`
	sqlApprovals      = `SELECT ` + approvalColumns + ` FROM approval ORDER BY created, id`
)

var sqlUpsertApproval = upsertSQL("approval", approvalColumns, 1)

func approvalValues(r *approval.Request) []driver.Value {
	cut := int64(0)
	if r.Cut {
		cut = 1
	}
	return []driver.Value{
		string(r.ID), string(r.CallID), r.CallDigest[:], r.GrantDigest[:], r.Principal, r.Session, string(r.Tool), r.Descriptor[:], r.Effect.String(),
		r.Policy[:], r.Attachment, r.Origin[:], r.ArgumentsDigest[:], r.Export, r.Provider, r.Sensitivity.String(), r.Summary, r.Arguments, cut,
		nanoseconds(r.Created), nanoseconds(r.Expires), r.State.String(), r.Decision.String(), r.Decider, nanoseconds(r.Decided), nanoseconds(r.Until),
		r.Reason, string(r.SpentBy), r.Evidence,
	}
}

func scanApproval(from interface{ Scan(...any) error }) (r approval.Request, err error) {
	var id, callID, tool, effect, sensitivity, state, decision, spentBy string
	var callDigest, grantDigest, descriptor, policy, origin, arguments []byte
	var cut, created, expires, decided, until int64
	if err := from.Scan(&id, &callID, &callDigest, &grantDigest, &r.Principal, &r.Session, &tool, &descriptor, &effect, &policy, &r.Attachment,
		&origin, &arguments, &r.Export, &r.Provider, &sensitivity, &r.Summary, &r.Arguments, &cut, &created, &expires, &state, &decision,
		&r.Decider, &decided, &until, &r.Reason, &spentBy, &r.Evidence); err != nil {
		return r, err
	}
	r.ID, r.CallID, r.Tool, r.SpentBy, r.Cut = approval.ID(id), call.ID(callID), call.ToolID(tool), call.ID(spentBy), cut != 0
	r.Created, r.Expires, r.Decided, r.Until = instant(created), instant(expires), instant(decided), instant(until)
	r.Effect, err = call.ParseEffectClass(effect)
	err = errors.Join(err, r.Sensitivity.UnmarshalText([]byte(sensitivity)), r.State.UnmarshalText([]byte(state)), r.Decision.UnmarshalText([]byte(decision)),
		digests(digestColumn{&r.CallDigest, callDigest}, digestColumn{&r.GrantDigest, grantDigest}, digestColumn{&r.Descriptor, descriptor},
			digestColumn{&r.Policy, policy}, digestColumn{&r.Origin, origin}, digestColumn{&r.ArgumentsDigest, arguments}))
	if err != nil {
		return r, fmt.Errorf("%w: approval %q: %w", ErrDamaged, id, err)
	}
	return r, nil
}

type digestColumn struct {
	to   *call.Digest
	from []byte
}

func digests(columns ...digestColumn) error {
	for _, c := range columns {
		if len(c.from) != len(c.to) {
			return errors.New("a digest has a wrong length")
		}
		copy(c.to[:], c.from)
	}
	return nil
}

func (t *tx) PutApproval(r approval.Request) error {
	if t.s == nil {
		return errOver
	}
	if r.ID == "" {
		return errors.New("put approval: it has no id")
	}
	t.s.kept.putApproval(r.ID, &r)
	return nil
}

func (t *tx) Approval(id approval.ID) (approval.Request, bool, error) {
	if t.s == nil {
		return approval.Request{}, false, errOver
	}
	r, ok := t.s.kept.approvals[id]
	return r, ok, nil
}

func (t *tx) ApprovalsUnder(d call.Digest) ([]approval.Request, error) {
	if t.s == nil {
		return nil, errOver
	}
	ids := t.s.kept.under[d]
	out := make([]approval.Request, len(ids))
	for i, id := range ids {
		out[i] = t.s.kept.approvals[id]
	}
	slices.SortFunc(out, func(a, b approval.Request) int {
		return cmp.Or(cmp.Compare(nanoseconds(a.Created), nanoseconds(b.Created)), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

func (t *tx) EachApproval(yield func(approval.Request) bool) error {
	if t.s == nil {
		return errOver
	}
	for _, r := range t.s.kept.approvals {
		if !yield(r) {
			break
		}
	}
	return nil
}

func (t *tx) DeleteApproval(id approval.ID) error {
	if t.s == nil {
		return errOver
	}
	if _, ok := t.s.kept.approvals[id]; ok {
		t.s.kept.putApproval(id, nil)
	}
	return nil
}

func (v *view) Approval(id approval.ID) (approval.Request, bool, error) {
	r, err := scanApproval(v.tx.QueryRowContext(v.ctx, sqlApproval, string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return approval.Request{}, false, nil
	}
	return r, err == nil, v.rowError("read approval", err)
}

func (v *view) EachApproval(yield func(approval.Request) bool) error {
	return v.each("read approvals", sqlApprovals, nil, func(rows *sql.Rows) (bool, error) {
		r, err := scanApproval(rows)
		return err == nil && yield(r), err
	})
}

// each walks the rows of a query until one says that it is the last.
func (v *view) each(what, query string, args []any, row func(*sql.Rows) (bool, error)) error {
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return readError(v.ctx, what, err)
	}
	defer rows.Close()
	for rows.Next() {
		if more, err := row(rows); err != nil || !more {
			return v.rowError(what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return readError(v.ctx, what, err)
	}
	return nil
}

// rowError keeps a damaged row apart from a fault of the database.
func (v *view) rowError(what string, err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	return readError(v.ctx, what, err)
}
