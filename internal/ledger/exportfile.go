package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ostiary/ostiary/call"
)

// ExportFile finds records in an export. It reads the file anew for each question and checks only that the lines are what
// the format says: whether they are true is for [Verify] to say.
type ExportFile struct {
	First, Last int64  // the range of records
	Verifier    string // the public key that the file names as its own
	in          io.ReadSeeker
}

var _ Finder = (*ExportFile)(nil)

// ErrExport says that a file is no export of a ledger.
var ErrExport = errors.New("not an export of a ledger")

// OpenExport reads the header of an export. in belongs to the ExportFile as long as that is used.
func OpenExport(in io.ReadSeeker) (*ExportFile, error) {
	f := &ExportFile{in: in}
	_, err := f.open()
	return f, err
}

// open goes to the first record.
func (f *ExportFile) open() (*bufio.Reader, error) {
	if _, err := f.in.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read export: %w", err)
	}
	r := bufio.NewReaderSize(f.in, 1<<16)
	line, err := readLine(r, nil)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLineTooLong) {
		return nil, fmt.Errorf("read export: %w", err)
	}
	h, ok := parseHeader(line)
	if !ok || err != nil {
		return nil, fmt.Errorf("read export: %w: the first line is not its header", ErrExport)
	}
	f.First, f.Last, f.Verifier = h.First, h.Last, h.Verifier
	return r, nil
}

// RecordsOfCall implements [Finder].
func (f *ExportFile) RecordsOfCall(id call.ID, yield func(Record) error) error {
	return f.each(func(r *Record) bool { return r.CallID == id && id != "" }, yield)
}

// RecordsOfKind implements [Finder].
func (f *ExportFile) RecordsOfKind(kind Kind, yield func(Record) error) error {
	return f.each(func(r *Record) bool { return r.Kind == kind && r.CallID == "" }, yield)
}

func (f *ExportFile) each(wanted func(*Record) bool, yield func(Record) error) error {
	in, err := f.open()
	if err != nil {
		return err
	}
	var line []byte
	for next := f.First; ; {
		line, err = readLine(in, line)
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, errLineTooLong):
			return fmt.Errorf("read export: %w: the line of record %d is cut off or too long", ErrExport, next)
		case err != nil:
			return fmt.Errorf("read export: %w", err)
		}
		if bytes.HasPrefix(line, []byte(checkpointLine)) {
			continue
		}
		r, ok := parseLine(line)
		if !ok {
			return fmt.Errorf("read export: %w: the line of record %d is not a record", ErrExport, next)
		}
		next = r.Seq + 1
		if wanted(&r) {
			if err := yield(r); err != nil {
				return err
			}
		}
	}
}
