package ostiary

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/sqlstore"
)

// Ledger reads the ledger of a data directory. A gateway may be running on it.
type Ledger struct {
	dir    string
	reader *sqlstore.Reader
}

// LedgerRecord is one record, as it is shown and exported.
type LedgerRecord struct {
	Seq       int64     `json:"seq"`
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`
	Call      string    `json:"call,omitempty"`
	Session   string    `json:"session,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Body      JSON      `json:"body"` // null if it was pruned
	Hash      string    `json:"hash"`
	Pruned    int64     `json:"pruned,omitempty"` // the record that took the content away; there is neither body, session nor principal then
}

// LedgerReport is what a verification found.
type LedgerReport struct {
	OK          bool   `json:"ok"`
	Origin      string `json:"origin"`
	First       int64  `json:"first"`
	Last        int64  `json:"last"`
	Records     int64  `json:"records"`
	Tombstones  int64  `json:"tombstones"` // of the records, those whose content was pruned
	Unvouched   int64  `json:"unvouched"`  // of the tombstones of a part of a ledger, those that were pruned by a record outside of it
	Checkpoints int    `json:"checkpoints"`
	Signed      int64  `json:"signed"` // the last record that a signed checkpoint covers
	Root        string `json:"root"`
	BadSeq      int64  `json:"bad_seq,omitempty"`
	Fault       string `json:"fault,omitempty"`
	Detail      string `json:"detail,omitempty"`
}

// FaultUnsigned is the fault of an export in which no signed checkpoint covers a record.
const FaultUnsigned = "unsigned"

// LedgerCall is a call as the ledger tells it (R9.1).
type LedgerCall struct {
	Call string `json:"call"`
	// Reconstruction is RECONSTRUCTED, PARTIAL_REDACTED, BLOCKED_BY_POLICY, PARTIAL_MISSING_EVIDENCE or INVALID_LINEAGE.
	Reconstruction string         `json:"reconstruction"`
	Gaps           []ledger.Gap   `json:"gaps,omitempty"` // why it is not RECONSTRUCTED
	ledger.Path                   // who, what, by whose leave, and what became of it
	Records        []LedgerRecord `json:"records"` // all that it was rebuilt from, in order
}

// OpenLedger opens the ledger of a data directory for reading.
func OpenLedger(ctx context.Context, dataDir string) (*Ledger, error) {
	r, err := sqlstore.OpenReadOnly(ctx, dataDir)
	if err != nil {
		return nil, err
	}
	return &Ledger{dir: dataDir, reader: r}, nil
}

// Close lets go of the data directory.
func (l *Ledger) Close() error { return l.reader.Close() }

// Verifier is the ledger's public key: what an export is verified with.
func (l *Ledger) Verifier() (string, error) { return ledger.ReadVerifier(l.dir) }

// Records yields records with a sequence above after, in order, at most limit (0: all).
func (l *Ledger) Records(ctx context.Context, after int64, limit int, yield func(LedgerRecord) error) error {
	return l.reader.View(ctx, func(v store.View) error {
		return v.Records(after, limit, func(r ledger.Record) error { return yield(shown(r)) })
	})
}

// Head is the sequence of the last record.
func (l *Ledger) Head(ctx context.Context) (seq int64, err error) {
	err = l.reader.View(ctx, func(v store.View) error {
		seq, _, err = v.Head()
		return err
	})
	return seq, err
}

// Call rebuilds one call from its records.
func (l *Ledger) Call(ctx context.Context, id call.ID) (c LedgerCall, err error) {
	err = l.reader.View(ctx, func(v store.View) error {
		story, err := ledger.Collect(v, id)
		if err == nil {
			c, err = replayed(story)
		}
		return err
	})
	return c, err
}

// ExportedCall rebuilds one call from an export. It takes the export as true: [VerifyExport] says whether it is.
func ExportedCall(in io.ReadSeeker, id call.ID) (LedgerCall, error) {
	f, err := ledger.OpenExport(in)
	if err != nil {
		return LedgerCall{}, err
	}
	story, err := ledger.Collect(f, id)
	if err != nil {
		return LedgerCall{}, err
	}
	story.First = f.First
	return replayed(story)
}

func replayed(s ledger.Story) (LedgerCall, error) {
	r, err := ledger.Replay(s)
	if err != nil {
		return LedgerCall{}, fmt.Errorf("call %s: %w in the ledger", s.Call, store.ErrNotFound)
	}
	c := LedgerCall{Call: string(s.Call), Reconstruction: string(r.Class), Gaps: r.Gaps, Path: r.Path}
	for _, rec := range s.Records {
		c.Records = append(c.Records, shown(rec))
	}
	return c, nil
}

// Verify checks every record and every checkpoint. Checkpoints that were kept elsewhere show whether the ledger was rolled
// back.
func (l *Ledger) Verify(ctx context.Context, known ...[]byte) (report LedgerReport, err error) {
	key, err := l.Verifier()
	if err != nil {
		return report, err
	}
	err = l.reader.View(ctx, func(v store.View) error {
		r, err := ledger.Verify(ctx, ledger.FromView(v), key, known...)
		report = reported(r)
		return err
	})
	return report, err
}

// Export writes the ledger as JSON Lines: a header, the records, the signed checkpoints.
func (l *Ledger) Export(ctx context.Context, w io.Writer, after, until int64) error {
	key, err := l.Verifier()
	if err != nil {
		return err
	}
	return l.reader.View(ctx, func(v store.View) error {
		return ledger.Export(ctx, v, key, w, ledger.ExportOptions{After: after, Until: until})
	})
}

// Checkpoint is the newest signed checkpoint: keep it elsewhere, and a later verification shows whether the ledger still
// continues it. It is empty if there is none yet.
func (l *Ledger) Checkpoint(ctx context.Context) (note []byte, err error) {
	err = l.reader.View(ctx, func(v store.View) error {
		return v.Checkpoints(func(_ int64, n []byte) error {
			note = append(note[:0], n...)
			return nil
		})
	})
	return note, err
}

// ExportVerifier is the public key that an export names as its own. To check an export with it finds damage, and no forgery.
func ExportVerifier(in io.ReadSeeker) (string, error) {
	f, err := ledger.OpenExport(in)
	if err != nil {
		return "", err
	}
	return f.Verifier, nil
}

// VerifyExport checks an export with nothing but the public key.
func VerifyExport(ctx context.Context, r io.Reader, verifier string, known ...[]byte) (LedgerReport, error) {
	report, err := ledger.Verify(ctx, ledger.FromExport(r), verifier, known...)
	out := reported(report)
	if err == nil && out.OK && out.Records > 0 && out.Signed == 0 {
		// Hashes alone could have been made by anybody.
		out.OK, out.BadSeq, out.Fault = false, out.First, FaultUnsigned
		out.Detail = "no signed checkpoint covers any of the records, so nothing ties them to the key"
	}
	return out, err
}

func shown(r ledger.Record) LedgerRecord {
	return LedgerRecord{Seq: r.Seq, Time: r.Time, Kind: string(r.Kind), Call: string(r.CallID), Session: r.Session, Principal: r.Principal,
		Body: append(JSON(nil), r.Body...), Hash: r.Hash.String(), Pruned: r.Pruned}
}

func reported(r ledger.Report) LedgerReport {
	out := LedgerReport{OK: r.Bad == nil, Origin: r.Origin, First: r.First, Last: r.Last, Records: r.Records, Tombstones: r.Tombstones, Unvouched: r.Unvouched, Checkpoints: r.Checkpoints, Signed: r.Signed, Root: r.Root.String()}
	if r.Bad != nil {
		out.BadSeq, out.Fault, out.Detail = r.Bad.Seq, string(r.Bad.Fault), r.Bad.Detail
	}
	return out
}
