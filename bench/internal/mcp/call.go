package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary/ostiary/bench/internal/jsonscan"
)

// idDigits is the width of the ids of calls, which are patched in place. Ids
// stay below 2^53, so that gateways that read them as floats keep them.
const idDigits = 13

// Call is a prepared tools/call whose id, and the mark in its text, change
// from one call to the next without any copying.
type Call struct {
	c       *Client
	request []byte
	id      []byte // inside request
	mark    []byte // inside request; nil if the arguments do not change
	want    []byte // raw JSON string that the answer's text must equal
}

// Text kinds of NewEcho.
const (
	Plain = "plain" // ASCII words, no escapes
	Mixed = "mixed" // quotes, line ends, markup, and characters beyond ASCII
)

// NewEcho prepares calls of an echo tool with a text of size bytes. Each text
// begins with the call's id, as far as it fits.
func (c *Client) NewEcho(tool string, size int, kind string) *Call {
	n := min(size, idDigits)
	text := quote(strings.Repeat("0", n) + filler(size-n, kind))
	call := c.newCall(tool, `"text":`+text)
	at := bytes.Index(call.request, []byte(text))
	call.want = call.request[at : at+len(text)]
	call.mark = call.want[1 : 1+n]
	return call
}

// NewBlob prepares calls of a tool that answers with size bytes.
func (c *Client) NewBlob(tool string, size int) *Call {
	call := c.newCall(tool, `"n":`+strconv.Itoa(size))
	call.want = []byte(`"` + string(BlobText(size)) + `"`)
	return call
}

// NewSlow prepares calls of a tool that sleeps for ms milliseconds.
func (c *Client) NewSlow(tool string, ms int) *Call {
	call := c.newCall(tool, `"ms":`+strconv.Itoa(ms))
	call.want = []byte(`"slept ` + strconv.Itoa(ms) + ` ms"`)
	return call
}

func (c *Client) newCall(tool, args string) *Call {
	id := strings.Repeat("0", idDigits)
	body := c.Body(id, "tools/call", `"name":`+quote(tool)+`,"arguments":{`+args+`}`)
	head := c.Head("POST", "tools/call", tool, len(body))
	request := append(head, body...)
	at := len(head) + len(`{"jsonrpc":"2.0","id":`)
	return &Call{c: c, request: request, id: request[at : at+idDigits]}
}

// Do makes the call under an id of 13 digits, checks that the answer is its
// own, and returns when that had come.
func (call *Call) Do(id int64) (time.Time, error) {
	for i := idDigits - 1; i >= 0; i-- {
		call.id[i] = '0' + byte(id%10)
		id /= 10
	}
	copy(call.mark, call.id[idDigits-len(call.mark):])
	msg, at, err := call.c.Exchange(call.request, call.id)
	if err != nil {
		return at, err
	}
	return at, check(msg, call.want)
}

// check compares the first text of a tool's answer.
func check(msg, want []byte) error {
	result, err := Result(msg)
	if err != nil {
		return err
	}
	var content, failed, first, text []byte
	if err := jsonscan.Members(result, func(k, v []byte) {
		switch string(k) {
		case "content":
			content = v
		case "isError":
			failed = v
		}
	}); err != nil {
		return err
	}
	if err := jsonscan.Elements(content, func(v []byte) {
		if first == nil {
			first = v
		}
	}); err != nil || first == nil {
		return fmt.Errorf("%w: no content in %.100s", ErrMismatch, result)
	}
	if err := jsonscan.Members(first, func(k, v []byte) {
		if string(k) == "text" {
			text = v
		}
	}); err != nil {
		return err
	}
	if string(failed) == "true" {
		return fmt.Errorf("tool error %.200s", text)
	}
	if bytes.Equal(text, want) {
		return nil
	}
	// The same text may be escaped in another way.
	var got, wanted string
	if json.Unmarshal(text, &got) == nil && json.Unmarshal(want, &wanted) == nil && got == wanted {
		return nil
	}
	return fmt.Errorf("%w: text of %d bytes %.40s…, want %d bytes %.40s…", ErrMismatch, len(text), text, len(want), want)
}

// filler returns n bytes of text.
func filler(n int, kind string) string {
	words := " The quick brown fox jumps over the lazy dog; then it rests, and counts to ten."
	if kind == Mixed {
		words = " \"Größe\"\n\t<b>5 & 6</b> \\ 大小 😀 {\"k\": [1, null]} and some plain words in between."
	}
	b := strings.Repeat(words, n/len(words)+1)[:n]
	// Do not end inside a character.
	valid := strings.ToValidUTF8(b, "")
	return valid + strings.Repeat(".", n-len(valid))
}

// quote returns s as a JSON string, with no more escapes than JSON needs.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
