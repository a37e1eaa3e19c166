package firewall

import (
	"errors"
	"slices"
)

// result inspects the whole of a tool's result.
func (s *scan) result(raw []byte, schema func([]byte) error) {
	if !s.read(raw) {
		return
	}
	d := s.doc
	content, structured := s.members()
	failed := s.isError()

	skip := map[int32]bool{}
	blocks := 0
	if content >= 0 {
		if !d.nodes[content].array {
			s.add(located{code: CodeShape, text: -1, place: "/content"})
			return
		}
		list := s.blocks(content)
		for i := range list {
			b := &list[i]
			if d.nodes[b.node].parent == content {
				blocks++
			}
			kind := ""
			if b.kind >= 0 {
				kind = string(d.texts[b.kind].value)
			}
			if d.nodes[b.node].parent == content {
				if kind == "" {
					s.add(located{code: CodeShape, text: -1, place: d.nodePointer(b.node)})
				} else if s.rules.Content != nil && !slices.Contains(s.rules.Content, kind) {
					s.add(located{code: CodeKindNotAdmitted, text: -1, place: d.nodePointer(b.node), excerpt: s.excerpt(cut([]byte(kind), 60))})
				}
			}
			if b.data >= 0 && (kind == "image" || kind == "audio" || kind == "") {
				skip[b.data] = true
				s.artefact(b, orResource(kind))
			}
			if b.uri >= 0 {
				v := view{text: d.texts[b.uri].value, name: []byte("uri")}
				s.uri(&v)
				for _, f := range v.found {
					f.text, f.excerpt = b.uri, s.excerpt(v.text)
					s.add(f)
				}
			}
		}
		if blocks > s.limits.Blocks {
			s.add(located{code: CodeTooManyBlocks, text: -1, place: "/content"})
			return
		}
	}
	s.outputSchema(structured, failed, schema)
	for i := range d.texts {
		if !skip[int32(i)] {
			s.inspectText(int32(i))
		}
	}
	s.askedFields()
	if structured >= 0 && !failed {
		s.mismatch(content, structured)
	}
}

func orResource(kind string) string {
	if kind == "" {
		return "resource"
	}
	return kind
}

// read parses raw into the document. What cannot be read is a finding, and the end.
func (s *scan) read(raw []byte) bool {
	if len(raw) > s.limits.Bytes {
		s.add(located{code: CodeTooLarge, text: -1})
		return false
	}
	d, err := parse(raw, s.limits.Depth)
	switch {
	case errors.Is(err, errTooDeep):
		s.add(located{code: CodeTooDeep, text: -1})
		return false
	case err != nil:
		s.add(located{code: CodeNotJSON, text: -1})
		return false
	case len(d.nodes) == 0 || d.nodes[0].array:
		s.add(located{code: CodeShape, text: -1})
		return false
	}
	s.doc = d
	return true
}

// members are the nodes of content and structuredContent: -1 if missing. A structuredContent that is no object or array is
// no node.
func (s *scan) members() (content, structured int32) {
	content, structured = -1, -1
	for i := range s.doc.nodes {
		if n := &s.doc.nodes[i]; n.parent == 0 && n.name >= 0 {
			switch s.doc.nameOf(n.name) {
			case "content":
				content = int32(i)
			case "structuredContent":
				structured = int32(i)
			}
		}
	}
	return content, structured
}

// isError is the member of that name.
func (s *scan) isError() bool {
	for i := range s.doc.texts {
		if t := &s.doc.texts[i]; t.isName && t.parent == 0 && string(t.value) == "isError" {
			rest := s.doc.raw[t.end:]
			for len(rest) > 0 && (blank(rest[0]) || rest[0] == ':') {
				rest = rest[1:]
			}
			return len(rest) >= 4 && string(rest[:4]) == "true"
		}
	}
	return false
}

// blocks lists the blocks of content, and the resources inside them, in order.
func (s *scan) blocks(content int32) []block {
	d := s.doc
	at := map[int32]int{}
	var list []block
	for i := range d.nodes {
		n := &d.nodes[i]
		_, inside := at[n.parent]
		if n.parent == content && !n.array || inside && n.name >= 0 && d.nameOf(n.name) == "resource" && !n.array {
			at[int32(i)] = len(list)
			list = append(list, block{node: int32(i), kind: -1, mime: -1, uri: -1, data: -1, text_: -1})
		} else if n.parent == content {
			s.add(located{code: CodeShape, text: -1, place: d.nodePointer(int32(i))})
		}
	}
	for i := range d.texts {
		t := &d.texts[i]
		if t.parent == content {
			s.add(located{code: CodeShape, text: -1, place: "/content"})
			continue
		}
		k, ok := at[t.parent]
		if !ok || t.isName || t.name < 0 {
			continue
		}
		b := &list[k]
		switch string(d.texts[t.name].value) {
		case "type":
			b.kind = int32(i)
		case "mimeType":
			b.mime = int32(i)
		case "uri":
			b.uri = int32(i)
		case "data", "blob":
			b.data = int32(i)
		case "text":
			b.text_ = int32(i)
		}
	}
	return list
}

// outputSchema asks the tool's own schema. A tool error needs no structuredContent.
func (s *scan) outputSchema(structured int32, failed bool, schema func([]byte) error) {
	if schema == nil {
		return
	}
	value := s.structuredValue(structured)
	switch {
	case value == nil && !failed:
		s.add(located{code: CodeNoStructured, text: -1})
	case value != nil && schema(value) != nil: // the error may quote the value: it is not kept
		s.add(located{code: CodeSchema, text: -1, place: "/structuredContent"})
	}
}

// structuredValue is the raw structuredContent, nil if there is none.
func (s *scan) structuredValue(structured int32) []byte {
	if structured >= 0 {
		n := s.doc.nodes[structured]
		return s.doc.raw[n.start:n.end]
	}
	return member(s.doc, "structuredContent")
}
