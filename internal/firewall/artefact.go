package firewall

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// The codes of content kinds and artefacts (R3.7, R8.7, A-21).
const (
	CodeKindNotAdmitted Code = "kind_not_admitted"
	CodeMIMEMismatch    Code = "mime_mismatch"
	CodeExecutable      Code = "executable"
	CodeBadBase64       Code = "bad_base64"
	CodeEmbeddedText    Code = "embedded_text"
)

// block is a content block, or a resource inside one, as far as it is looked at. Fields are texts, -1 if missing.
type block struct {
	node                         int32
	kind, mime, uri, data, text_ int32
}

// artefact hashes the bytes of a block and compares them with what they are said to be.
func (s *scan) artefact(b *block, kind string) {
	t := &s.doc.texts[b.data]
	mime := ""
	if b.mime >= 0 {
		mime = string(cut(s.doc.texts[b.mime].value, 100))
	}
	raw, err := unpad(t.value)
	if err != nil {
		s.add(located{code: CodeBadBase64, text: b.data, fixed: true, excerpt: s.excerpt([]byte(mime))})
		v := view{text: t.value}
		s.inspect(&v)
		for _, f := range v.found {
			f.text = b.data
			s.add(f)
		}
		return
	}
	sum := sha256.Sum256(raw)
	s.artefacts = append(s.artefacts, Artefact{Place: s.doc.nodePointer(b.node), Kind: kind, MIME: s.excerpt([]byte(mime)), Bytes: len(raw), SHA256: hex.EncodeToString(sum[:])})

	is := magic(raw)
	said, _, _ := strings.Cut(lower(mime), ";")
	said = strings.TrimSpace(said)
	switch {
	case is == "program":
		s.add(located{code: CodeExecutable, text: b.data, fixed: true, excerpt: s.excerpt([]byte(mime)) + " holds a program"})
	case !agrees(said, is, kind):
		what := is
		if what == "" {
			what = "bytes of no known type"
		}
		s.add(located{code: CodeMIMEMismatch, text: b.data, fixed: true, excerpt: "said " + s.excerpt([]byte(mime)) + ", is " + what})
	}
	if is == "text" || is == "image/svg+xml" || is == "text/html" {
		s.embedded(b.data, raw, "content of the artefact")
		return
	}
	s.spend(len(raw) / 8)
	opened, over := compressedTexts(is, raw, s.limits.Text)
	if over {
		s.add(located{code: CodeTextTooLong, text: b.data, fixed: true})
	}
	for _, e := range append(opened, textRuns(raw)) {
		if threeWords.Match(e) {
			s.add(located{code: CodeEmbeddedText, text: b.data, fixed: true, excerpt: "text in the artefact"})
		}
		s.embedded(b.data, e, "text in the artefact")
	}
}

// embedded inspects text that stands inside an artefact. It cannot be taken out alone.
func (s *scan) embedded(i int32, raw []byte, how string) {
	if len(raw) > s.limits.Text {
		s.add(located{code: CodeTextTooLong, text: i, fixed: true})
		return
	}
	v := view{text: raw, how: how, depth: 1}
	s.inspect(&v)
	for _, f := range v.found {
		f.text, f.fixed = i, true
		s.add(f)
	}
}

// unpad decodes base64 in the standard alphabet, padded or not.
func unpad(t []byte) ([]byte, error) {
	t = bytes.TrimRight(t, "=")
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(t)))
	n, err := base64.RawStdEncoding.Decode(out, t)
	return out[:n], err
}

// magic is the type of b by its first bytes, "text" for text, "" if it is none that is known.
func magic(b []byte) string {
	has := func(p string) bool { return bytes.HasPrefix(b, []byte(p)) }
	at := func(i int, p string) bool { return len(b) >= i+len(p) && string(b[i:i+len(p)]) == p }
	switch {
	case has("\x7fELF"), has("MZ"), has("\xfe\xed\xfa\xce"), has("\xfe\xed\xfa\xcf"), has("\xcf\xfa\xed\xfe"), has("\xce\xfa\xed\xfe"), has("\xca\xfe\xba\xbe"), has("#!/"), has("\x00asm"):
		return "program"
	case has("\x89PNG\r\n\x1a\n"):
		return "image/png"
	case has("\xff\xd8\xff"):
		return "image/jpeg"
	case has("GIF87a"), has("GIF89a"):
		return "image/gif"
	case has("RIFF") && at(8, "WEBP"):
		return "image/webp"
	case has("RIFF") && at(8, "WAVE"):
		return "audio/wav"
	case has("BM") && len(b) > 14 && b[6] == 0 && b[7] == 0:
		return "image/bmp"
	case has("II*\x00"), has("MM\x00*"):
		return "image/tiff"
	case has("\x00\x00\x01\x00"):
		return "image/x-icon"
	case at(4, "ftypavif"), at(4, "ftypavis"):
		return "image/avif"
	case at(4, "ftyphei"), at(4, "ftypmif1"):
		return "image/heic"
	case at(4, "ftyp"):
		return "video/mp4"
	case has("ID3"), len(b) > 1 && b[0] == 0xff && b[1]&0xe6 == 0xe2:
		return "audio/mpeg"
	case len(b) > 1 && b[0] == 0xff && b[1]&0xf6 == 0xf0:
		return "audio/aac"
	case has("OggS"):
		return "audio/ogg"
	case has("fLaC"):
		return "audio/flac"
	case has("\x1aE\xdf\xa3"):
		return "video/webm"
	case has("%PDF-"):
		return "application/pdf"
	case has("PK\x03\x04"), has("PK\x05\x06"):
		return "application/zip"
	case has("\x1f\x8b"):
		return "application/gzip"
	}
	if len(b) == 0 {
		return ""
	}
	head := b[:min(len(b), 512)]
	l := bytes.ToLower(bytes.TrimLeft(head, "\ufeff \t\r\n"))
	switch {
	case bytes.HasPrefix(l, []byte("<svg")), bytes.HasPrefix(l, []byte("<?xml")) && bytes.Contains(l, []byte("<svg")):
		return "image/svg+xml"
	case bytes.HasPrefix(l, []byte("<!doctype html")), bytes.HasPrefix(l, []byte("<html")), bytes.HasPrefix(l, []byte("<script")):
		return "text/html"
	case textual(cut(b, 512)):
		return "text"
	}
	return ""
}

// agrees says that bytes of type is may be called said. A type that is not known here is only refused where the bytes are
// known to be something else.
func agrees(said, is, kind string) bool {
	family, _, _ := strings.Cut(said, "/")
	switch {
	case said == is:
		return true
	case kind == "image" && family != "image", kind == "audio" && family != "audio":
		return false
	case is == "":
		return family != "image" || said == "image/x-unknown"
	case said == "" || said == "application/octet-stream":
		return true
	case is == "text":
		return family == "text" || family == "application" && said != "application/pdf" && said != "application/zip" && said != "application/gzip" || family == "model" || family == "message"
	case is == "text/html":
		return family == "text" || said == "application/xhtml+xml"
	case is == "image/svg+xml":
		return family == "text" || said == "application/xml"
	case is == "image/jpeg":
		return said == "image/jpg" || said == "image/pjpeg"
	case is == "image/x-icon":
		return said == "image/vnd.microsoft.icon" || said == "image/ico"
	case is == "audio/wav":
		return said == "audio/x-wav" || said == "audio/wave" || said == "audio/vnd.wave"
	case is == "audio/mpeg":
		return said == "audio/mp3" || said == "audio/mpeg3" || said == "audio/aac"
	case is == "video/mp4":
		return said == "audio/mp4" || said == "audio/m4a" || said == "audio/x-m4a" || family == "video" || said == "image/heic" || said == "image/avif"
	case is == "audio/ogg":
		return said == "video/ogg" || said == "audio/opus" || said == "application/ogg"
	case is == "video/webm":
		return said == "audio/webm" || said == "video/x-matroska"
	case is == "image/tiff":
		return said == "image/tif" || strings.HasPrefix(said, "image/x-")
	case is == "image/bmp":
		return said == "image/x-ms-bmp"
	case is == "image/heic":
		return said == "image/heif"
	case is == "application/zip":
		return strings.HasPrefix(said, "application/") && said != "application/pdf"
	case is == "application/gzip":
		return said == "application/x-gzip" || said == "application/x-tar" || said == "application/x-compressed-tar"
	}
	return false
}
