package ledger

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

func TestCanonicalRecord(t *testing.T) {
	b := newBook(t, 1)
	got := string(AppendCanonical(nil, &b.records[0]))
	want := `{"body":{"a":"A","b":0},"call":"c0","kind":"call.intent","prev":"` + strings.Repeat("0", 64) + `","principal":"alice","seq":1,"session":"s","time":"2026-09-01T12:00:00Z"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The envelope that is written by hand is what the canonicaliser makes of it, for any content; so is the line of an export.
func TestEnvelopeIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var chain Chain
		chain.Seq = rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "seq")
		copy(chain.Hash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "prev"))
		text := rapid.String()
		body, err := jsontext.AppendQuote([]byte(`{ "x" : `), text.Draw(t, "body"))
		if err != nil {
			t.Fatal(err)
		}
		var bodies []byte
		r, err := chain.Append(Entry{
			Time:    time.Unix(0, rapid.Int64Range(-9_000_000_000_000_000_000, 9_000_000_000_000_000_000).Draw(t, "time")),
			Kind:    Kind(text.Draw(t, "kind")),
			CallID:  call.ID(text.Draw(t, "call")),
			Session: text.Draw(t, "session"), Principal: text.Draw(t, "principal"),
			Body: append(body, '}'),
		}, &bodies)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range [][]byte{AppendCanonical(nil, &r), AppendLine(nil, &r)} {
			v := jsontext.Value(bytes.Clone(line))
			if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if !bytes.Equal(v, line) {
				t.Errorf("written   %s\ncanonical %s", line, v)
			}
		}
		if want := tlog.RecordHash(AppendCanonical(nil, &r)); tlog.Hash(r.Hash) != want {
			t.Errorf("hash %s, want that of tlog, %s", r.Hash, want)
		}
		again, ok := parseLine(AppendLine(nil, &r))
		if !ok || !bytes.Equal(AppendLine(nil, &again), AppendLine(nil, &r)) {
			t.Errorf("the line does not read back: %s", AppendLine(nil, &r))
		}
	})
}

func TestBody(t *testing.T) {
	for in, want := range map[string]string{
		``:                                        `{}`,
		` { } `:                                   `{}`,
		`{"b":1,"a":{"d":[],"c":null}}`:           `{"a":{"c":null,"d":[]},"b":1}`,
		`{"n":9223372036854775808123456789}`:      `{"n":9223372036854775808123456789}`,
		`{"n":1.0,"m":1e3,"k":0.1e-7}`:            `{"k":1e-8,"m":1000,"n":1}`,
		`{"s":"\u00e9\/\u2028\u001f"}`:            "{\"s\":\"é/\u2028\\u001f\"}",
		"{\"\U00010000\":1,\"\uE000\":2}":         "{\"\U00010000\":1,\"\uE000\":2}", // order of UTF-16 units
		`{"` + strings.Repeat("k", 4000) + `":1}`: `{"` + strings.Repeat("k", 4000) + `":1}`,
	} {
		got, err := AppendBody([]byte("kept"), []byte(in))
		if err != nil || string(got) != "kept"+want {
			t.Errorf("%s: got %s, %v, want kept%s", in, got, err, want)
		}
	}
	for _, in := range []string{`null`, `[]`, `"{}"`, `1`, `{`, `{"a"}`, `{"a":1,}`, `{"a":01}`, `{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, `{}x`, `{"a":NaN}`, "{\"\xff\":1}", `{"a":"\ud800"}`, " ", "\x00"} {
		got, err := AppendBody([]byte("kept"), []byte(in))
		if !errors.Is(err, ErrBody) || string(got) != "kept" {
			t.Errorf("%s: got %s, %v, want ErrBody", in, got, err)
		}
	}
	if _, err := AppendBody(nil, []byte(`{"a":"`+strings.Repeat("x", MaxBody)+`"}`)); !errors.Is(err, ErrBody) {
		t.Errorf("too large: got %v, want ErrBody", err)
	}
	if _, err := AppendBody(nil, []byte(strings.Repeat(`{"a":`, 100000)+`1`+strings.Repeat(`}`, 100000))); !errors.Is(err, ErrBody) {
		t.Errorf("too deep: got %v, want ErrBody", err)
	}
}

func TestAppendRefusesTimesOutOfRange(t *testing.T) {
	for _, at := range []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)} {
		var c Chain
		var bodies []byte
		if _, err := c.Append(Entry{Time: at, Kind: KindOpened}, &bodies); err == nil || c.Seq != 0 {
			t.Errorf("%s: got error %v and sequence %d", at, err, c.Seq)
		}
	}
}

// FuzzBody: the canonical form of a body is valid, within its bounds, and its own canonical form.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{}`, `{"b":1.50,"a":[1,2,{"z":"\u0000"}]}`, `{"a":1e400}`, `{"a":-0,"b":-0.0,"c":123456789012345678901234567890}`, `{"\ud83d\ude00":"é"}`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := AppendBody(nil, in)
		if err != nil {
			return
		}
		if !utf8.Valid(once) || !jsontext.Value(once).IsValid() || once[0] != '{' {
			t.Fatalf("%q became %q", in, once)
		}
		twice, err := AppendBody(nil, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q became %q, %v", in, once, twice, err)
		}
	})
}
