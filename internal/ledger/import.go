package ledger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// maxLine bounds a line of an export: the largest body, and room for the join keys.
const maxLine = MaxBody + 1<<20

// FromExport reads an export. It is read once, line by line; no more than one line is held.
func FromExport(r io.Reader) Source { return exportSource{r} }

type exportSource struct{ r io.Reader }

func (s exportSource) walk(ctx context.Context, w *Walker) error {
	in := bufio.NewReaderSize(s.r, 1<<16)
	var line, again []byte
	line, err := readLine(in, line)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	h, ok := parseHeader(line)
	if !ok || !bytes.Equal(h.append(nil), line) || err != nil {
		return &Problem{1, FaultMalformed, "the first line is not the header of a ledger export"}
	}
	if h.Origin != w.report.Origin {
		return &Problem{h.First, FaultMalformed, fmt.Sprintf("the export is of %q, the key is that of %q", h.Origin, w.report.Origin)}
	}
	if h.Verifier != w.key {
		return &Problem{h.First, FaultMalformed, "the header names another verifier key"}
	}
	w.chain = Chain{Seq: h.First - 1, Hash: h.Prev}
	w.edge = h.Edge
	w.previous = h.Previous
	w.begin = h.First
	if err := w.checkKnown(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err = readLine(in, line)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLineTooLong) {
			return err
		}
		next := w.chain.Seq + 1
		if err != nil {
			return &Problem{next, FaultMalformed, "its line is cut off or too long"}
		}
		if seq, msg, ok := parseCheckpointLine(line); ok {
			if again = appendCheckpointLine(again[:0], seq, msg); !bytes.Equal(again, line) {
				return &Problem{seq, FaultMalformed, "the checkpoint's line is not in canonical form"}
			}
			if err := w.checkpoint(seq, msg); err != nil {
				return err
			}
			continue
		}
		r, ok := parseLine(line)
		if !ok {
			return &Problem{next, FaultMalformed, "its line is not a record"}
		}
		if err := w.Record(&r); err != nil {
			return err
		}
		if again = AppendLine(again[:0], &r); !bytes.Equal(again, line) {
			return &Problem{r.Seq, FaultMalformed, "its line is not in canonical form"}
		}
	}
	for _, g := range w.graves { // what vouches for them is behind the end
		w.report.Unvouched += g.count
	}
	if w.chain.Seq != h.Last {
		if w.chain.Seq < h.Last {
			return &Problem{w.chain.Seq + 1, FaultTruncated, fmt.Sprintf("the header promises records up to %d", h.Last)}
		}
		return &Problem{h.Last + 1, FaultMalformed, fmt.Sprintf("the header ends the export at %d", h.Last)}
	}
	if h.Checkpoint != w.report.Signed {
		return &Problem{max(h.Checkpoint, w.report.Signed), FaultTruncated, fmt.Sprintf("the header promises a last checkpoint at %d, it is at %d", h.Checkpoint, w.report.Signed)}
	}
	return nil
}

var errLineTooLong = errors.New("line is too long")

// readLine reads a line into buf, without its newline. io.EOF: there was none, or it did not end.
func readLine(in *bufio.Reader, buf []byte) ([]byte, error) {
	buf = buf[:0]
	for {
		part, err := in.ReadSlice('\n')
		if len(buf)+len(part) > maxLine {
			return buf, errLineTooLong
		}
		buf = append(buf, part...)
		switch {
		case err == nil:
			return buf[:len(buf)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return buf, err
		}
	}
}

// members reads the members of the JSON object in line, strictly. A value is valid until member returns.
func members(line []byte, member func(name string, value jsontext.Value) bool) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(line))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return false
		}
		name := t.String()
		v, err := d.ReadValue()
		if err != nil || !member(name, v) {
			return false
		}
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '}' {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
}

// parseLine reads a record's line. Whether the line has the one right spelling is for the
// caller to check, by writing it again; so a member that is missing needs no check here.
func parseLine(line []byte) (r Record, ok bool) {
	ok = members(line, func(name string, v jsontext.Value) (ok bool) {
		switch name {
		case "body":
			r.Body, ok = v.Clone(), v.Kind() == '{'
		case "call":
			var s string
			s, ok = parseString(v)
			r.CallID = call.ID(s)
		case "hash":
			ok = parseHash(&r.Hash, v)
		case "kind":
			var s string
			s, ok = parseString(v)
			r.Kind = Kind(s)
		case "prev":
			ok = parseHash(&r.Prev, v)
		case "principal":
			r.Principal, ok = parseString(v)
		case "pruned":
			r.Pruned, ok = parseInt(v)
			ok = ok && r.Pruned > 0
		case "seq":
			r.Seq, ok = parseInt(v)
		case "session":
			r.Session, ok = parseString(v)
		case "time":
			var s string
			var err error
			if s, ok = parseString(v); ok {
				r.Time, err = time.Parse(time.RFC3339Nano, s)
			}
			ok = ok && err == nil
		}
		return ok
	})
	return r, ok
}

func parseCheckpointLine(line []byte) (seq int64, msg []byte, ok bool) {
	if !bytes.HasPrefix(line, []byte(checkpointLine)) {
		return 0, nil, false
	}
	ok = members(line, func(name string, v jsontext.Value) (ok bool) {
		switch name {
		case "note":
			var s string
			s, ok = parseString(v)
			msg = []byte(s)
		case "seq":
			seq, ok = parseInt(v)
		}
		return ok
	})
	return seq, msg, ok
}

func parseHeader(line []byte) (h header, ok bool) {
	var edge []byte
	ok = members(line, func(name string, v jsontext.Value) (ok bool) {
		switch name {
		case "checkpoint":
			h.Checkpoint, ok = parseInt(v)
		case "edge":
			var s string
			var err error
			if s, ok = parseString(v); ok {
				edge, err = hex.DecodeString(s)
			}
			ok = ok && err == nil
		case "first":
			h.First, ok = parseInt(v)
		case "format":
			var s string
			s, ok = parseString(v)
			ok = ok && s == ExportFormat
		case "last":
			h.Last, ok = parseInt(v)
		case "origin":
			h.Origin, ok = parseString(v)
		case "prev":
			ok = parseHash(&h.Prev, v)
		case "previous":
			h.Previous, ok = parseInt(v)
		case "verifier":
			h.Verifier, ok = parseString(v)
		}
		return ok
	})
	if !ok || h.First < 1 || h.Last < h.First-1 {
		return header{}, false
	}
	var err error
	h.Edge, err = ParseEdge(h.First-1, edge)
	return h, err == nil
}

func parseString(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

func parseInt(v jsontext.Value) (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}

func parseHash(h *Hash, v jsontext.Value) bool {
	if len(v) != 2*len(h)+2 || v[0] != '"' {
		return false
	}
	_, err := hex.Decode(h[:], v[1:len(v)-1])
	return err == nil
}
