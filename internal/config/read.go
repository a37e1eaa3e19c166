package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one key with the value that holds, as it may be shown: without secrets.
type Setting struct {
	Key     string // dotted, as TOML
	Value   string // as TOML; "" if the key has neither value nor default
	Default bool   // the value is not from the file
	Line    int    // 0 for a default
}

// section reads the keys of one table by their description, and notes down every fault and every setting.
type section struct {
	*loader
	Section
	path  []string // of the table
	table *node    // nil: the file does not have it
	line  int      // of its header, for what is missing

	index map[string][]int // of arrays: the place of each value that was read
}

func (l *loader) section(s Section, table *node, path ...string) *section {
	sec := &section{loader: l, Section: s, path: path, table: table, index: map[string][]int{}}
	if table == nil {
		return sec
	}
	sec.line = table.line
	if table.kind != kindTable {
		l.fault(table.line, joinKey(path...), "", "expected a table, found %s", table.kind)
		sec.table = nil
	}
	return sec
}

// unknown reports every key of the table that the section does not know. Names of tables below it are known too.
func (s *section) unknown(tables ...string) {
	if s.table == nil {
		return
	}
	for _, k := range s.table.keys {
		if s.key(k) != nil || slices.Contains(tables, k) {
			continue
		}
		known := append(s.names(), tables...)
		hint := didYouMean(k, known)
		if hint == "" {
			hint = "known keys: " + strings.Join(known, ", ")
		}
		s.faultAt(k, hint, "unknown key")
	}
}

func (s *section) has(name string) bool { return s.table.child(name) != nil }

// hasText says whether a key is there with a value that is worth a closer look.
func (s *section) hasText(name string) bool {
	n := s.table.child(name)
	return n != nil && n.kind == kindString
}

func (s *section) lineOf(name string) int {
	if n := s.table.child(name); n != nil {
		return n.line
	}
	return s.line
}

func (s *section) faultAt(name, hint, format string, args ...any) {
	s.fault(s.lineOf(name), s.keyOf(name), hint, format, args...)
}

func (s *section) warnAt(name, hint, format string, args ...any) {
	s.warn(s.lineOf(name), s.keyOf(name), hint, format, args...)
}

// get finds the value of a key if it has the kind that is wanted.
func (s *section) get(name string, want ...kind) (*Key, *node) {
	k := s.key(name)
	n := s.table.child(name)
	if n == nil {
		if k.Required && s.table != nil {
			s.faultAt(name, s.expected(k), "the key is missing")
		}
		return k, nil
	}
	if !slices.Contains(want, n.kind) {
		s.faultAt(name, s.expected(k), "expected %s, found %s", article(k.Type.String()), n.kind)
		return k, nil
	}
	return k, n
}

// expected says what a key's value must be, for a hint.
func (s *section) expected(k *Key) string {
	if len(k.Enum) > 0 && k.Type == typeString {
		return "expected one of " + oneOf(k.Enum)
	}
	return strings.TrimSuffix(strings.ReplaceAll(k.Meaning, "`", ""), ".")
}

// note records what holds for a key.
func (s *section) note(k *Key, n *node, value string) {
	set := Setting{Key: s.keyOf(k.Name), Value: value}
	if n == nil {
		set.Default = true
	} else {
		set.Line = n.line
	}
	s.settings = append(s.settings, set)
}

// derived says what holds in place of a key that the file does not have.
func (s *section) derived(name, value string) {
	key := s.keyOf(name)
	for i := range slices.Backward(s.settings) {
		if s.settings[i].Key == key {
			s.settings[i].Value = quote(value)
			return
		}
	}
}

// str reads a string, or a word of the key's closed list. shown renders it for [Config.Settings]; nil: as it is.
func (s *section) str(name string, shown func(string) string) string {
	k, n := s.get(name, kindString)
	value, _ := strconv.Unquote(k.Default)
	if n != nil {
		value = n.str
	}
	if n != nil && k.Enum != nil && !slices.Contains(k.Enum, value) {
		hint := didYouMean(value, k.Enum)
		s.faultAt(name, hint, "%s: expected %s", shownText(value), oneOf(k.Enum))
		value, _ = strconv.Unquote(k.Default)
	}
	switch {
	case n == nil && k.Default == "":
		s.note(k, n, "")
	case shown != nil:
		s.note(k, n, quote(shown(value)))
	default:
		s.note(k, n, quote(value))
	}
	return value
}

func (s *section) boolean(name string) bool {
	k, n := s.get(name, kindBool)
	value := k.Default == "true"
	if n != nil {
		value = n.boolean
	}
	if n != nil || k.Default != "" {
		s.note(k, n, strconv.FormatBool(value))
	} else {
		s.note(k, n, "")
	}
	return value
}

func (s *section) integer(name string) int64 {
	k, n := s.get(name, kindInteger)
	value, _ := strconv.ParseInt(k.Default, 10, 64)
	if n != nil && s.within(k, float64(n.integer)) {
		value = n.integer
	}
	if n == nil && k.Default == "" {
		s.note(k, n, "")
	} else {
		s.note(k, n, strconv.FormatInt(value, 10))
	}
	return value
}

func (s *section) seconds(name string) time.Duration {
	k, n := s.get(name, kindInteger, kindFloat)
	value, _ := strconv.ParseFloat(k.Default, 64)
	if n != nil {
		got := n.float
		if n.kind == kindInteger {
			got = float64(n.integer)
		}
		if s.within(k, got) {
			value = got
		}
	}
	s.note(k, n, strconv.FormatFloat(value, 'f', -1, 64))
	return time.Duration(math.Round(value * float64(time.Second)))
}

func (s *section) within(k *Key, v float64) bool {
	if v >= k.Min && v <= k.Max { // false for NaN
		return true
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	s.faultAt(k.Name, "", "%s is out of bounds: expected %s to %s %s", number(v), number(k.Min), number(k.Max), k.Unit)
	return false
}

// strs reads an array of strings without duplicates; lines has the line of each.
func (s *section) strs(name string, shown func(before, item string) string) (values []string, lines []int) {
	k, n := s.get(name, kindArray)
	if n == nil {
		s.note(k, n, k.Default)
		return nil, nil
	}
	var out []string
	values = []string{}
	for i, item := range n.items {
		if item.kind != kindString {
			s.fault(item.line, s.element(name, i), s.expected(k), "expected a string, found %s", item.kind)
			continue
		}
		if k.Enum != nil && !slices.Contains(k.Enum, item.str) {
			s.fault(item.line, s.element(name, i), didYouMean(item.str, k.Enum), "%s: expected %s", shownText(item.str), oneOf(k.Enum))
			continue
		}
		before := ""
		if len(values) > 0 {
			before = values[len(values)-1]
		}
		values, lines = append(values, item.str), append(lines, item.line)
		s.index[name] = append(s.index[name], i)
		if shown != nil {
			out = append(out, quote(shown(before, item.str)))
		} else {
			out = append(out, quote(item.str))
		}
	}
	s.note(k, n, "["+strings.Join(out, ", ")+"]")
	return values, lines
}

// distinct reports items that occur twice.
func (s *section) distinct(name string, values []string, lines []int) {
	first := map[string]int{}
	for i, v := range values {
		if at, ok := first[v]; ok {
			s.fault(lines[i], s.item(name, i), "leave one of them out", "%s occurs twice, first on line %d", shownText(v), at)
			continue
		}
		first[v] = lines[i]
	}
}

// table of strings, in the file's order.
func (s *section) pairs(name string) (keys []string, values map[string]string, lines map[string]int) {
	k, n := s.get(name, kindTable)
	values, lines = map[string]string{}, map[string]int{}
	if n == nil {
		s.note(k, n, k.Default)
		return nil, values, lines
	}
	var out []string
	for _, key := range n.keys {
		v := n.table[key]
		if v.kind != kindString {
			s.fault(v.line, joinKey(append(slices.Clone(s.path), name, key)...), "put quotes around it", "expected a string, found %s", v.kind)
			continue
		}
		keys = append(keys, key)
		values[key], lines[key] = v.str, v.line
		shown := v.str
		if k.secretish {
			shown = redacted
		}
		out = append(out, quoteKey(key)+" = "+quote(shown))
	}
	shown := "{}"
	if len(out) > 0 {
		shown = "{ " + strings.Join(out, ", ") + " }"
	}
	s.note(k, n, shown)
	return keys, values, lines
}

// keyOf is the dotted key of one of the section's keys.
func (s *section) keyOf(name string) string {
	return joinKey(append(slices.Clone(s.path), name)...)
}

// item is the key of the i-th value that was read from an array, for messages.
func (s *section) item(name string, i int) string { return s.element(name, s.index[name][i]) }

// element is the key of an array's element: allowed_tools[2].
func (s *section) element(name string, i int) string { return fmt.Sprintf("%s[%d]", s.keyOf(name), i) }

func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}
