package pgfunc

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// jsonKind is the type of a JSON value.
type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonString
	jsonNumber
	jsonBool
	jsonArray
	jsonObject
)

// jsonNode is a JSON value as jsonb keeps it: members sorted by length and bytes, the last
// of equal names.
type jsonNode struct {
	kind  jsonKind
	text  string // of a string, or a number as a numeric
	truth bool
	names []string // of an object
	items []*jsonNode
}

// jsonDepthMax bounds the nesting.
const jsonDepthMax = 4096

var (
	errJSON      = pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type json")
	errJSONArray = pgerr.New(codes.InvalidTextRepresentation, "expected JSON array")
)

type jsonParser struct {
	s      string
	at     int
	depth  int
	binary bool // as jsonb: members are sorted, numbers are numerics
	raw    bool // strings are not read, but that they end
}

// parseJSON reads a JSON text as jsonb does.
func parseJSON(s string) (*jsonNode, error) { return parseJSONAs(s, true) }

func parseJSONAs(s string, binary bool) (*jsonNode, error) {
	return (&jsonParser{s: s, binary: binary}).all()
}

func (p *jsonParser) all() (*jsonNode, error) {
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.space(); p.at != len(p.s) {
		return nil, errJSON
	}
	return n, nil
}

func (p *jsonParser) space() {
	for p.at < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.at]) >= 0 {
		p.at++
	}
}

func (p *jsonParser) take(c byte) bool {
	if p.space(); p.at < len(p.s) && p.s[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *jsonParser) value() (*jsonNode, error) {
	if p.depth++; p.depth > jsonDepthMax {
		return nil, pgerr.New(codes.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { p.depth-- }()
	p.space()
	if p.at == len(p.s) {
		return nil, errJSON
	}
	switch c := p.s[p.at]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.str()
		return &jsonNode{kind: jsonString, text: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for word, n := range map[string]*jsonNode{"true": {kind: jsonBool, truth: true}, "false": {kind: jsonBool}, "null": {}} {
		if strings.HasPrefix(p.s[p.at:], word) {
			if p.at += len(word); p.at < len(p.s) && isWordByte(p.s[p.at]) {
				return nil, errJSON
			}
			return n, nil
		}
	}
	return nil, errJSON
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func (p *jsonParser) array() (*jsonNode, error) {
	p.at++
	n := &jsonNode{kind: jsonArray}
	if p.take(']') {
		return n, nil
	}
	for {
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		if p.take(']') {
			return n, nil
		}
		if !p.take(',') {
			return nil, errJSON
		}
	}
}

func (p *jsonParser) object() (*jsonNode, error) {
	p.at++
	n := &jsonNode{kind: jsonObject}
	if p.take('}') {
		return n, nil
	}
	for {
		if p.space(); p.at == len(p.s) || p.s[p.at] != '"' {
			return nil, errJSON
		}
		name, err := p.str()
		if err != nil {
			return nil, err
		}
		if !p.take(':') {
			return nil, errJSON
		}
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		n.names, n.items = append(n.names, name), append(n.items, item)
		if p.take('}') {
			if p.binary {
				n.sort()
			}
			return n, nil
		}
		if !p.take(',') {
			return nil, errJSON
		}
	}
}

// byName sorts members as jsonb does.
func lessName(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// sort orders the members of an object, of equal names the last.
func (n *jsonNode) sort() {
	order := make([]int, len(n.names))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return lessName(n.names[order[i]], n.names[order[j]]) })
	var names []string
	var items []*jsonNode
	for _, i := range order {
		if k := len(names); k > 0 && names[k-1] == n.names[i] {
			items[k-1] = n.items[i]
			continue
		}
		names, items = append(names, n.names[i]), append(items, n.items[i])
	}
	n.names, n.items = names, items
}

func (p *jsonParser) number() (*jsonNode, error) {
	start := p.at
	digits := func() int {
		from := p.at
		for p.at < len(p.s) && p.s[p.at] >= '0' && p.s[p.at] <= '9' {
			p.at++
		}
		return p.at - from
	}
	if p.s[p.at] == '-' {
		p.at++
	}
	zero := p.at < len(p.s) && p.s[p.at] == '0'
	if n := digits(); n == 0 || zero && n > 1 {
		return nil, errJSON
	}
	if p.at < len(p.s) && p.s[p.at] == '.' {
		p.at++
		if digits() == 0 {
			return nil, errJSON
		}
	}
	if p.at < len(p.s) && (p.s[p.at] == 'e' || p.s[p.at] == 'E') {
		p.at++
		if p.at < len(p.s) && (p.s[p.at] == '+' || p.s[p.at] == '-') {
			p.at++
		}
		if digits() == 0 {
			return nil, errJSON
		}
	}
	if p.at < len(p.s) && isWordByte(p.s[p.at]) {
		return nil, errJSON
	}
	text := p.s[start:p.at]
	if p.binary {
		v, err := numeric.Parse(text)
		if err != nil {
			return nil, err
		}
		text = v.Text()
	}
	return &jsonNode{kind: jsonNumber, text: text}, nil
}

// str reads a string at its quote.
func (p *jsonParser) str() (string, error) {
	p.at++
	var b strings.Builder
	for p.at < len(p.s) {
		c := p.s[p.at]
		switch {
		case c == '"':
			p.at++
			return b.String(), nil
		case c < ' ':
			return "", errJSON
		case c != '\\':
			b.WriteByte(c)
			p.at++
			continue
		}
		if err := p.escape(&b); err != nil {
			return "", err
		}
	}
	return "", errJSON
}

var jsonEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *jsonParser) escape(b *strings.Builder) error {
	if p.at+1 >= len(p.s) {
		return errJSON
	}
	c := p.s[p.at+1]
	if plain, ok := jsonEscapes[c]; ok {
		b.WriteByte(plain)
		p.at += 2
		return nil
	}
	if c != 'u' {
		return errJSON
	}
	r, err := p.hex4(p.at + 2)
	if err != nil {
		return err
	}
	p.at += 6
	if p.raw { // json_in does not ask whether there is such a character
		return nil
	}
	if r == 0 {
		return pgerr.New(codes.UntranslatableCharacter, "unsupported Unicode escape sequence").
			WithDetail("\\u0000 cannot be converted to text.")
	}
	if r >= 0xd800 && r < 0xdc00 && strings.HasPrefix(p.s[p.at:], `\u`) {
		low, err := p.hex4(p.at + 2)
		if err != nil || low < 0xdc00 || low > 0xdfff {
			return errJSON
		}
		p.at += 6
		b.WriteRune(0x10000 + (r-0xd800)<<10 + low - 0xdc00)
		return nil
	}
	if r >= 0xd800 && r <= 0xdfff {
		return errJSON
	}
	b.WriteRune(r)
	return nil
}

func (p *jsonParser) hex4(at int) (rune, error) {
	if at+4 > len(p.s) {
		return 0, errJSON
	}
	n, err := strconv.ParseUint(p.s[at:at+4], 16, 16)
	if err != nil {
		return 0, errJSON
	}
	return rune(n), nil
}

// appendJSONString writes a string with PostgreSQL's escapes.
func appendJSONString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			if c < ' ' {
				b.WriteString(`\u00`)
				b.WriteByte("01"[c>>4])
				b.WriteByte("0123456789abcdef"[c&15])
				continue
			}
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

// String is jsonb_out.
func (n *jsonNode) String() string {
	var b strings.Builder
	n.write(&b, -1)
	return b.String()
}

// write appends the text; indent is the depth of a pretty one, -1 for one line.
func (n *jsonNode) write(b *strings.Builder, indent int) {
	open, closed := byte('['), byte(']')
	switch n.kind {
	case jsonNull:
		b.WriteString("null")
		return
	case jsonBool:
		b.WriteString(strconv.FormatBool(n.truth))
		return
	case jsonNumber:
		b.WriteString(n.text)
		return
	case jsonString:
		appendJSONString(b, n.text)
		return
	case jsonObject:
		open, closed = '{', '}'
	}
	b.WriteByte(open)
	for i, item := range n.items {
		switch {
		case indent >= 0:
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n" + strings.Repeat("    ", indent+1))
		case i > 0:
			b.WriteString(", ")
		}
		if n.kind == jsonObject {
			appendJSONString(b, n.names[i])
			b.WriteString(": ")
		}
		if indent >= 0 {
			item.write(b, indent+1)
		} else {
			item.write(b, -1)
		}
	}
	if indent >= 0 { // of an empty one too
		b.WriteString("\n" + strings.Repeat("    ", indent))
	}
	b.WriteByte(closed)
}

// member finds a member of an object, nil when there is none.
func (n *jsonNode) member(name string) *jsonNode {
	if n.kind != jsonObject {
		return nil
	}
	for i := len(n.names) - 1; i >= 0; i-- {
		if n.names[i] == name {
			return n.items[i]
		}
	}
	return nil
}

func pathIndex(s string) (int64, bool) {
	i, err := strconv.ParseInt(strings.TrimLeft(s, " \t\n\v\f\r"), 10, 32)
	return i, err == nil
}

// contains is @>.
func (n *jsonNode) contains(m *jsonNode) bool {
	if n.kind == jsonArray && m.kind != jsonArray && m.kind != jsonObject {
		return slices.ContainsFunc(n.items, m.equal)
	}
	return n.holds(m)
}

// holds is containment of a value in one of the same place.
func (n *jsonNode) holds(m *jsonNode) bool {
	if n.kind != m.kind {
		return false
	}
	switch n.kind {
	case jsonObject:
		for i, name := range m.names {
			have := n.member(name)
			if have == nil || !have.holds(m.items[i]) {
				return false
			}
		}
		return true
	case jsonArray:
		for _, want := range m.items {
			if !slices.ContainsFunc(n.items, func(have *jsonNode) bool { return have.holds(want) }) {
				return false
			}
		}
		return true
	}
	return n.equal(m)
}

func (n *jsonNode) equal(m *jsonNode) bool { return n.orderKey() == m.orderKey() }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// typeName is jsonb_typeof.
func (n *jsonNode) typeName() string {
	return [...]string{
		jsonNull: "null", jsonString: "string", jsonNumber: "number", jsonBool: "boolean", jsonArray: "array",
		jsonObject: "object",
	}[n.kind]
}

func (n *jsonNode) scalar() bool { return n.kind != jsonArray && n.kind != jsonObject }
