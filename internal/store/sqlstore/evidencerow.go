package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
)

const (
	evidenceColumns = `id, call, session, principal, provider, tool, direction, verdict, reasons, sensitivity, excerpt, sha256, size, created, expires,
		kept, state, decision, decider, decided, reason, purger, purged, purge_reason, claim, outcome, delivered_to, delivered`
	sqlInsertEvidence = `INSERT INTO evidence (seq, ` + evidenceColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)`
	sqlDecideEvidence = `UPDATE evidence SET excerpt = $2, kept = $3, state = $4, decision = $5, decider = $6, decided = $7, reason = $8,
		purger = $9, purged = $10, purge_reason = $11, delivered_to = $12, delivered = $13 WHERE id = $1`
	sqlInsertSealed = `INSERT INTO evidence_payload (id, sealed) VALUES ($1, $2)`
	sqlDeleteSealed = `DELETE FROM evidence_payload WHERE id = $1`

	sqlEvidence    = `SELECT ` + evidenceColumns + ` FROM evidence WHERE id = $1`
	sqlSealed      = `SELECT sealed FROM evidence_payload WHERE id = $1`
	sqlEvidenceSeq = `SELECT coalesce(max(seq), 0) FROM evidence`

	sqlEvidenceShares = `SELECT provider, sum(kept), sum(CASE WHEN direction = 'EVENT' THEN kept ELSE 0 END) FROM evidence WHERE state <> 'PURGED' GROUP BY provider`
)

// held writes one item.
func (c *conn) held(row *heldRow) error {
	i := &row.item
	d, p := &i.Decision, &i.Purge
	decision := ""
	if d.By != "" {
		decision = d.To.String()
	}
	if row.seq == 0 {
		err := c.decideEvidence.exec(string(i.ID), i.Excerpt, row.kept, i.State.String(), decision, d.By, nanoseconds(d.At), d.Reason,
			p.By, nanoseconds(p.At), p.Reason, string(i.Delivery.To), nanoseconds(i.Delivery.At))
		if err == nil && i.State == evidence.Purged {
			err = c.deleteSealed.exec(string(i.ID))
		}
		return err
	}
	reasons, err := json.Marshal(i.Reasons)
	if err != nil {
		return err
	}
	claim, outcome := []byte{}, []byte{}
	if !i.Claim.IsZero() {
		claim = i.Claim[:]
		if outcome, err = json.Marshal(i.Outcome); err != nil {
			return err
		}
	}
	err = c.insertEvidence.exec(row.seq, string(i.ID), string(i.CallID), i.Session, i.Principal, i.Provider, string(i.Tool), i.Direction.String(),
		i.Verdict, string(reasons), i.Sensitivity, i.Excerpt, i.SHA256[:], i.Size, nanoseconds(i.Created), nanoseconds(i.Expires),
		row.kept, i.State.String(), decision, d.By, nanoseconds(d.At), d.Reason, p.By, nanoseconds(p.At), p.Reason,
		claim, string(outcome), string(i.Delivery.To), nanoseconds(i.Delivery.At))
	if err == nil && row.sealed != nil {
		err = c.insertSealed.exec(string(i.ID), row.sealed)
	}
	return err
}

// scanHeld reads one item as held has written it.
func scanHeld(from interface{ Scan(...any) error }, row *heldRow) error {
	i := &row.item
	d, p := &i.Decision, &i.Purge
	var id, callID, tool, direction, reasons, state, decision, outcome, to string
	var hash, claim []byte
	var created, expires, decided, purged, delivered int64
	if err := from.Scan(&id, &callID, &i.Session, &i.Principal, &i.Provider, &tool, &direction, &i.Verdict, &reasons, &i.Sensitivity, &i.Excerpt,
		&hash, &i.Size, &created, &expires, &row.kept, &state, &decision, &d.By, &decided, &d.Reason, &p.By, &purged, &p.Reason,
		&claim, &outcome, &to, &delivered); err != nil {
		return err
	}
	i.ID, i.CallID, i.Tool = evidence.ID(id), call.ID(callID), call.ToolID(tool)
	i.Created, i.Expires, d.At, p.At = instant(created), instant(expires), instant(decided), instant(purged)
	err := errors.Join(i.State.UnmarshalText([]byte(state)), i.Direction.UnmarshalText([]byte(direction)), json.Unmarshal([]byte(reasons), &i.Reasons))
	if decision != "" {
		err = errors.Join(err, d.To.UnmarshalText([]byte(decision)))
	}
	if p.By != "" {
		p.To = evidence.Purged
	}
	i.Delivery = evidence.Delivery{To: call.ID(to), At: instant(delivered)}
	if len(claim) > 0 {
		err = errors.Join(err, digests(digestColumn{&i.Claim, claim}), json.Unmarshal([]byte(outcome), &i.Outcome))
	}
	if err == nil && len(hash) != len(i.SHA256) {
		err = errors.New("its hash has a wrong length")
	}
	if err != nil {
		return fmt.Errorf("%w: evidence %q: %w", ErrDamaged, id, err)
	}
	i.SHA256 = evidence.Hash(hash)
	return nil
}

// nanoseconds is how a time is stored; 0 is no time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

func (v *view) Evidence(id evidence.ID) (evidence.Item, bool, error) {
	var row heldRow
	err := scanHeld(v.tx.QueryRowContext(v.ctx, sqlEvidence, string(id)), &row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return evidence.Item{}, false, nil
	case errors.Is(err, ErrDamaged):
		return evidence.Item{}, false, err
	case err != nil:
		return evidence.Item{}, false, readError(v.ctx, "read evidence", err)
	}
	return row.item, true, nil
}

func (v *view) SealedEvidence(id evidence.ID) ([]byte, bool, error) {
	var b []byte
	err := v.tx.QueryRowContext(v.ctx, sqlSealed, string(id)).Scan(&b)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, readError(v.ctx, "read sealed evidence", err)
	}
	return b, true, nil
}

func (v *view) ListEvidence(f evidence.Filter) ([]evidence.Item, error) {
	query, args := evidenceQuery(f)
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return nil, readError(v.ctx, "list evidence", err)
	}
	defer rows.Close()
	var items []evidence.Item
	for rows.Next() {
		var row heldRow
		if err := scanHeld(rows, &row); errors.Is(err, ErrDamaged) {
			return nil, err
		} else if err != nil {
			return nil, readError(v.ctx, "list evidence", err)
		}
		items = append(items, row.item)
	}
	if err := rows.Err(); err != nil {
		return nil, readError(v.ctx, "list evidence", err)
	}
	return items, nil
}

// evidenceQuery is the SQL of a filter.
func evidenceQuery(f evidence.Filter) (string, []any) {
	var where []string
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	if f.CallID != "" {
		where = append(where, "call = "+arg(string(f.CallID))+" AND call <> ''")
	}
	if f.Provider != "" {
		where = append(where, "provider = "+arg(f.Provider))
	}
	if len(f.States) > 0 {
		names := make([]string, len(f.States))
		for n, s := range f.States {
			names[n] = arg(s.String())
		}
		where = append(where, "state IN ("+strings.Join(names, ", ")+")")
	}
	order := "seq"
	if !f.ExpiredAt.IsZero() {
		where = append(where, "state <> 'PURGED' AND expires <= "+arg(f.ExpiredAt.UnixNano()))
		order = "+seq" // else SQLite walks all items in their order to find the few whose time is over
	}
	if f.Before != "" {
		where = append(where, "seq < (SELECT seq FROM evidence WHERE id = "+arg(string(f.Before))+")")
	}
	query := "SELECT " + evidenceColumns + " FROM evidence"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	return query + " ORDER BY " + order + " DESC LIMIT " + arg(f.Page()), args
}
