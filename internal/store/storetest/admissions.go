package storetest

import (
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/store"
)

// Pin is a pin with something in every field.
func Pin(provider, name string, d byte) admission.Pin {
	return admission.Pin{Provider: provider, RawName: name, DescriptorDigest: call.Digest{d, 1}, SchemaDigest: call.Digest{d, 2}, Definition: []byte("{\"name\":\"\xff\"}"),
		Findings: []string{"hidden text", "override"}, State: admission.Refused, FirstSeen: clock.Add(-time.Duration(d)), Decider: "bob", Decided: clock, Reason: "no"}
}

func pins(t *testing.T, s store.Store, provider string) (view, tx []admission.Pin) {
	t.Helper()
	if err := s.View(t.Context(), func(v store.View) (err error) {
		view, err = v.Pins(provider)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(x store.Tx) (err error) {
		tx, err = x.Pins(provider)
		return err
	})
	return view, tx
}

func testPins(t *testing.T, s store.Store) {
	a, a2, b := Pin("files", "a", 1), Pin("files", "a", 2), Pin("files", "b\x00\u202e", 1)
	self, other := Pin("files", "", 1), Pin("apps", "z", 1)
	self.Findings, self.Decided, self.State, self.SchemaDigest = nil, time.Time{}, admission.Waiting, call.Digest{}
	def := append([]byte(nil), a.Definition...)
	update(t, s, func(tx store.Tx) error {
		p := a
		p.Definition = def
		err := errors.Join(tx.PutPin(b), tx.PutPin(p), tx.PutPin(a2), tx.PutPin(self), tx.PutPin(other))
		copy(def, "XXXXXXX")
		return err
	})
	want := []admission.Pin{self, a2, a, b} // of a name, what was seen first
	view, tx := pins(t, s, "files")
	if !gocmp.Equal(view, want) || !gocmp.Equal(tx, want) {
		t.Errorf("view: %s\ntransaction: %s", gocmp.Diff(want, view), gocmp.Diff(want, tx))
	}
	if all, _ := pins(t, s, ""); len(all) != 5 || all[0].Provider != "apps" {
		t.Errorf("%d pins of all providers", len(all))
	}
	a.State, a.Findings = admission.Admitted, nil
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.PutPin(a), tx.DeletePin(a2.Key()), tx.DeletePin(admission.Key{Provider: "none"}))
	})
	want = []admission.Pin{self, a, b}
	if view, tx := pins(t, s, "files"); !gocmp.Equal(view, want) || !gocmp.Equal(tx, want) {
		t.Errorf("view: %s\ntransaction: %s", gocmp.Diff(want, view), gocmp.Diff(want, tx))
	}
	for _, bad := range []admission.Pin{{}, {Provider: "files", Definition: []byte("1")}, {Provider: "files", DescriptorDigest: call.Digest{1}}} {
		if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutPin(bad) }); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func quarantines(t *testing.T, s store.Store) (view, tx []admission.Quarantine) {
	t.Helper()
	if err := s.View(t.Context(), func(v store.View) (err error) {
		view, err = v.Quarantines()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(x store.Tx) (err error) {
		tx, err = x.Quarantines()
		return err
	})
	return view, tx
}

func testQuarantines(t *testing.T, s store.Store) {
	whole := admission.Quarantine{Provider: "files", Reason: admission.InstructionsChanged, Detail: "changed", Since: clock, By: "bob"}
	one := admission.Quarantine{Provider: "files", Tool: "a", Reason: admission.SchemaDrift, Since: clock}
	update(t, s, func(tx store.Tx) error { return errors.Join(tx.PutQuarantine(one), tx.PutQuarantine(whole)) })
	want := []admission.Quarantine{whole, one}
	if view, tx := quarantines(t, s); !gocmp.Equal(view, want) || !gocmp.Equal(tx, want) {
		t.Errorf("view: %s\ntransaction: %s", gocmp.Diff(want, view), gocmp.Diff(want, tx))
	}
	one.Detail = "again"
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.PutQuarantine(one), tx.DeleteQuarantine("files", ""), tx.DeleteQuarantine("files", "none"))
	})
	want = []admission.Quarantine{one}
	if view, tx := quarantines(t, s); !gocmp.Equal(view, want) || !gocmp.Equal(tx, want) {
		t.Errorf("view: %s\ntransaction: %s", gocmp.Diff(want, view), gocmp.Diff(want, tx))
	}
}

func testAdmissionIsUndone(t *testing.T, s store.Store) {
	no := errors.New("no")
	a := Pin("files", "a", 1)
	q := admission.Quarantine{Provider: "files", Reason: admission.ByOperator, Since: clock}
	update(t, s, func(tx store.Tx) error { return errors.Join(tx.PutPin(a), tx.PutQuarantine(q)) })
	changed := a
	changed.State = admission.Admitted
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.PutPin(changed), tx.PutPin(Pin("files", "b", 1)), tx.DeletePin(a.Key()), tx.DeleteQuarantine("files", ""),
			tx.PutQuarantine(admission.Quarantine{Provider: "files", Tool: "x", Since: clock}), no)
	}); !errors.Is(err, no) {
		t.Fatal(err)
	}
	if view, tx := pins(t, s, "files"); !gocmp.Equal(view, []admission.Pin{a}) || !gocmp.Equal(tx, view) {
		t.Errorf("pins: %s", gocmp.Diff(view, tx))
	}
	if view, tx := quarantines(t, s); !gocmp.Equal(view, []admission.Quarantine{q}) || !gocmp.Equal(tx, view) {
		t.Errorf("quarantine: %s", gocmp.Diff(view, tx))
	}
}
