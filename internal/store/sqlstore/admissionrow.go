package sqlstore

import (
	"bytes"
	"cmp"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ostiary/ostiary/internal/admission"
)

const (
	pinColumns   = "provider, name, descriptor, input, definition, findings, state, first_seen, decider, decided, reason"
	sqlDeletePin = `DELETE FROM pin WHERE provider = $1 AND name = $2 AND descriptor = $3`
	pinOrder     = ` ORDER BY provider, name, first_seen, descriptor`
	sqlPins      = `SELECT ` + pinColumns + ` FROM pin` + pinOrder
	sqlPinsOf    = `SELECT ` + pinColumns + ` FROM pin WHERE provider = $1` + pinOrder

	quarantineColumns   = "provider, name, reason, detail, since, author"
	sqlDeleteQuarantine = `DELETE FROM quarantine WHERE provider = $1 AND name = $2`
	sqlQuarantines      = `SELECT ` + quarantineColumns + ` FROM quarantine ORDER BY provider, name`
)

var (
	sqlUpsertPin        = upsertSQL("pin", pinColumns, 3)
	sqlUpsertQuarantine = upsertSQL("quarantine", quarantineColumns, 2)
)

func pinValues(p *admission.Pin) ([]driver.Value, error) {
	findings, err := json.Marshal(p.Findings)
	if err != nil {
		return nil, err
	}
	return []driver.Value{p.Provider, p.RawName, p.DescriptorDigest[:], p.SchemaDigest[:], p.Definition, string(findings), p.State.String(),
		nanoseconds(p.FirstSeen), p.Decider, nanoseconds(p.Decided), p.Reason}, nil
}

func scanPin(rows *sql.Rows) (p admission.Pin, err error) {
	var descriptor, input []byte
	var findings, state string
	var seen, decided int64
	if err := rows.Scan(&p.Provider, &p.RawName, &descriptor, &input, &p.Definition, &findings, &state, &seen, &p.Decider, &decided, &p.Reason); err != nil {
		return p, err
	}
	p.FirstSeen, p.Decided = instant(seen), instant(decided)
	if err := errors.Join(p.State.UnmarshalText([]byte(state)), json.Unmarshal([]byte(findings), &p.Findings),
		digests(digestColumn{&p.DescriptorDigest, descriptor}, digestColumn{&p.SchemaDigest, input})); err != nil {
		return p, fmt.Errorf("%w: pin %q of %q: %w", ErrDamaged, p.RawName, p.Provider, err)
	}
	return p, nil
}

func quarantineValues(q *admission.Quarantine) []driver.Value {
	return []driver.Value{q.Provider, q.Tool, string(q.Reason), q.Detail, nanoseconds(q.Since), q.By}
}

func (t *tx) PutPin(p admission.Pin) error {
	if t.s == nil {
		return errOver
	}
	if p.Provider == "" || p.DescriptorDigest.IsZero() || len(p.Definition) == 0 {
		return errors.New("put pin: it has no provider, digest or definition")
	}
	p.Definition, p.Findings = bytes.Clone(p.Definition), slices.Clone(p.Findings) // the caller's may change
	t.s.kept.putPin(p.Key(), &p)
	return nil
}

func (t *tx) DeletePin(k admission.Key) error {
	if t.s == nil {
		return errOver
	}
	if _, ok := t.s.kept.pins[k]; ok {
		t.s.kept.putPin(k, nil)
	}
	return nil
}

func (t *tx) Pins(provider string) ([]admission.Pin, error) {
	if t.s == nil {
		return nil, errOver
	}
	var out []admission.Pin
	for k, p := range t.s.kept.pins {
		if k.Provider == provider {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b admission.Pin) int {
		return cmp.Or(cmp.Compare(a.RawName, b.RawName), cmp.Compare(nanoseconds(a.FirstSeen), nanoseconds(b.FirstSeen)),
			bytes.Compare(a.DescriptorDigest[:], b.DescriptorDigest[:]))
	})
	return out, nil
}

func (t *tx) PutQuarantine(q admission.Quarantine) error {
	if t.s == nil {
		return errOver
	}
	if q.Provider == "" {
		return errors.New("put quarantine: it has no provider")
	}
	t.s.kept.putQuarantine(quarantineKey{q.Provider, q.Tool}, &q)
	return nil
}

func (t *tx) DeleteQuarantine(provider, tool string) error {
	if t.s == nil {
		return errOver
	}
	k := quarantineKey{provider, tool}
	if _, ok := t.s.kept.quarantines[k]; ok {
		t.s.kept.putQuarantine(k, nil)
	}
	return nil
}

func (t *tx) Quarantines() ([]admission.Quarantine, error) {
	if t.s == nil {
		return nil, errOver
	}
	out := make([]admission.Quarantine, 0, len(t.s.kept.quarantines))
	for _, q := range t.s.kept.quarantines {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b admission.Quarantine) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Tool, b.Tool))
	})
	return out, nil
}

func (v *view) Pins(provider string) (out []admission.Pin, err error) {
	query, args := sqlPins, []any(nil)
	if provider != "" {
		query, args = sqlPinsOf, []any{provider}
	}
	err = v.each("read pins", query, args, func(rows *sql.Rows) (bool, error) {
		p, err := scanPin(rows)
		out = append(out, p)
		return true, err
	})
	return out, err
}

func (v *view) Quarantines() (out []admission.Quarantine, err error) {
	err = v.each("read quarantine", sqlQuarantines, nil, func(rows *sql.Rows) (bool, error) {
		var q admission.Quarantine
		var reason string
		var since int64
		err := rows.Scan(&q.Provider, &q.Tool, &reason, &q.Detail, &since, &q.By)
		q.Reason, q.Since = admission.Reason(reason), instant(since)
		out = append(out, q)
		return true, err
	})
	return out, err
}
