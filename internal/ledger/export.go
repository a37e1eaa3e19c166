package ledger

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/mod/sumdb/note"
)

// ExportFormat names the format and its version in an export's first line.
//
// An export is JSON Lines: one header, then one line a record in order, and one line a checkpoint right after the last
// record that it covers. Every line is canonical JSON and has exactly one spelling. The header carries what a part of a
// ledger needs to be verified on its own: the hash and the tree's edge before its first record; the checkpoints prove both.
const ExportFormat = "ostiary-ledger-export/1"

// header is the first line of an export.
type header struct {
	Checkpoint  int64 // last checkpoint in the export; 0: none
	Edge        Edge  // of the tree before First
	First, Last int64 // the range of records; First = Last + 1 if there are none
	Origin      string
	Prev        Hash  // of the record before First
	Previous    int64 // last checkpoint before First; 0: none
	Verifier    string
}

func (h *header) append(dst []byte) []byte {
	dst = append(dst, `{"checkpoint":`...)
	dst = strconv.AppendInt(dst, h.Checkpoint, 10)
	dst = append(dst, `,"edge":"`...)
	dst = hex.AppendEncode(dst, h.Edge.Nodes())
	dst = append(dst, `","first":`...)
	dst = strconv.AppendInt(dst, h.First, 10)
	dst = append(dst, `,"format":"`+ExportFormat+`","last":`...)
	dst = strconv.AppendInt(dst, h.Last, 10)
	dst = append(dst, `,"origin":`...)
	dst = appendString(dst, h.Origin)
	dst = append(dst, `,"prev":"`...)
	dst = hex.AppendEncode(dst, h.Prev[:])
	dst = append(dst, `","previous":`...)
	dst = strconv.AppendInt(dst, h.Previous, 10)
	dst = append(dst, `,"verifier":`...)
	dst = appendString(dst, h.Verifier)
	return append(dst, '}')
}

// checkpointLine begins the line of a checkpoint, and no record's.
const checkpointLine = `{"note":`

func appendCheckpointLine(dst []byte, seq int64, msg []byte) []byte {
	dst = append(dst, checkpointLine...)
	dst = appendString(dst, string(msg))
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, seq, 10)
	return append(dst, '}')
}

// ExportOptions says what to export. The zero value is the whole ledger.
type ExportOptions struct {
	After int64 // only records after this sequence
	Until int64 // and up to this one; 0: to the end
}

// Export writes the ledger of a view, or a range of it, to w. verifier is the ledger's public key. Records are written as
// they are stored: a damaged one is exported damaged.
func Export(ctx context.Context, view View, verifier string, w io.Writer, o ExportOptions) error {
	if err := export(ctx, view, verifier, w, o); err != nil {
		return fmt.Errorf("export ledger: %w", err)
	}
	return nil
}

func export(ctx context.Context, view View, verifier string, w io.Writer, o ExportOptions) error {
	key, err := note.NewVerifier(verifier)
	if err != nil {
		return fmt.Errorf("verifier key: %w", err)
	}
	last, _, err := view.Head()
	if err != nil {
		return err
	}
	if o.Until > 0 && o.Until < last {
		last = o.Until
	}
	if o.After < 0 || o.After > last {
		return fmt.Errorf("there are no records after %d up to %d", o.After, last)
	}
	h := header{First: o.After + 1, Last: last, Origin: Origin(key.Name()), Verifier: verifier}
	var notes []signedNote
	if err := view.Checkpoints(func(seq int64, msg []byte) error {
		switch {
		case seq <= o.After:
			h.Previous = seq
		case seq <= last:
			notes = append(notes, signedNote{seq, append([]byte(nil), msg...)})
			h.Checkpoint = seq
		}
		return nil
	}); err != nil {
		return err
	}
	if o.After > 0 {
		// The tree's edge at an arbitrary place is in no index: it comes from the hashes before it.
		if err := view.Records(0, int(o.After), func(r Record) error {
			h.Edge.Append(r.Hash)
			h.Prev = r.Hash
			return ctx.Err()
		}); err != nil {
			return err
		}
	}
	out := bufio.NewWriterSize(w, 1<<16)
	line := append(h.append(nil), '\n')
	if _, err := out.Write(line); err != nil {
		return err
	}
	errEnd := errors.New("end of range")
	err = view.Records(o.After, 0, func(r Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.Seq > last {
			return errEnd
		}
		line = append(AppendLine(line[:0], &r), '\n')
		for len(notes) > 0 && notes[0].seq <= r.Seq {
			line = append(appendCheckpointLine(line, notes[0].seq, notes[0].msg), '\n')
			notes = notes[1:]
		}
		_, err := out.Write(line)
		return err
	})
	if err != nil && !errors.Is(err, errEnd) {
		return err
	}
	for _, n := range notes { // a checkpoint without its records: verification will say so
		if _, err := out.Write(append(appendCheckpointLine(line[:0], n.seq, n.msg), '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
