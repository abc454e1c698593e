package encode

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// array is a parsed array literal: its elements in row-major order, nil for NULL.
type array struct {
	dims  []int
	lower []int32
	elems []*string
}

func errArray(text, detail string) *pgerr.Error {
	e := pgerr.New(codes.InvalidTextRepresentation, "malformed array literal: \"%s\"", text)
	e.Detail = detail
	return e
}

// arrayParser reads one literal. Depth is bounded by maxDimensions.
type arrayParser struct {
	text      string
	pos       int
	delimiter byte
	out       array
	counts    [maxDimensions]int // elements per level, -1 until the first list ended
}

// parseArray reads what array_in reads, with an optional [l:u]= in front.
func parseArray(text string, elem uint32) (array, *pgerr.Error) {
	p := &arrayParser{text: text, delimiter: ','}
	if elem == 603 {
		p.delimiter = ';'
	}
	for i := range p.counts {
		p.counts[i] = -1
	}
	lower, lengths, err := p.bounds()
	if err != nil {
		return array{}, err
	}
	p.skipSpace()
	if p.peek() != '{' {
		return array{}, errArray(text, "Array value must start with \"{\" or dimension information.")
	}
	if err := p.list(0); err != nil {
		return array{}, err
	}
	p.skipSpace()
	if p.pos != len(text) {
		return array{}, errArray(text, "Junk after closing right brace.")
	}
	if len(p.out.elems) == 0 {
		return array{}, nil
	}
	for _, n := range p.counts {
		if n < 0 {
			break
		}
		p.out.dims = append(p.out.dims, n)
		p.out.lower = append(p.out.lower, 1)
	}
	if lower != nil {
		if !slices.Equal(lengths, p.out.dims) {
			return array{}, errArray(text, "Specified array dimensions do not match array contents.")
		}
		p.out.lower = lower
	}
	return p.out, nil
}

func (p *arrayParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *arrayParser) skipSpace() {
	for p.pos < len(p.text) && strings.IndexByte(spaces, p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// bounds reads [l:u][l:u]=.
func (p *arrayParser) bounds() (lower []int32, lengths []int, err *pgerr.Error) {
	p.skipSpace()
	for p.peek() == '[' {
		end := strings.IndexByte(p.text[p.pos:], ']')
		if end < 0 || len(lower) == maxDimensions {
			return nil, nil, errArray(p.text, "Missing \"]\" after array dimensions.")
		}
		l, u, two := strings.Cut(p.text[p.pos+1:p.pos+end], ":")
		if !two {
			l, u = "1", l
		}
		from, err1 := strconv.ParseInt(l, 10, 32)
		to, err2 := strconv.ParseInt(u, 10, 32)
		if err1 != nil || err2 != nil {
			return nil, nil, errArray(p.text, "\"[\" must introduce explicitly-specified array dimensions.")
		}
		lower, lengths = append(lower, int32(from)), append(lengths, int(to-from+1))
		p.pos += end + 1
	}
	if lower != nil {
		if p.peek() != '=' {
			return nil, nil, errArray(p.text, "Missing \"=\" after array dimensions.")
		}
		p.pos++
	}
	return lower, lengths, nil
}

// list reads {…} at a level of nesting.
func (p *arrayParser) list(level int) *pgerr.Error {
	if level == maxDimensions {
		return pgerr.New(codes.ProgramLimitExceeded,
			"number of array dimensions (%d) exceeds the maximum allowed (%d)", level+1, maxDimensions)
	}
	p.pos++ // the brace
	n := 0
	for {
		p.skipSpace()
		switch c := p.peek(); {
		case p.pos >= len(p.text):
			return errArray(p.text, "Unexpected end of input.")
		case c == '}' && n == 0 && level > 0:
			return errArray(p.text, "Unexpected \"}\" character.")
		case c == '}' && n == 0:
			p.pos++
			return p.closeList(level, n)
		case c == '{':
			if err := p.list(level + 1); err != nil {
				return err
			}
		default:
			if level+1 < maxDimensions && p.counts[level+1] >= 0 {
				return errArray(p.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
			}
			if err := p.element(); err != nil {
				return err
			}
		}
		n++
		p.skipSpace()
		switch p.peek() {
		case p.delimiter:
			p.pos++
		case '}':
			p.pos++
			return p.closeList(level, n)
		default:
			if p.pos >= len(p.text) {
				return errArray(p.text, "Unexpected end of input.")
			}
			return errArray(p.text, "Unexpected array element.")
		}
	}
}

func (p *arrayParser) closeList(level, n int) *pgerr.Error {
	if p.counts[level] >= 0 && p.counts[level] != n {
		return errArray(p.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
	}
	p.counts[level] = n
	return nil
}

func (p *arrayParser) element() *pgerr.Error {
	if p.peek() == '"' {
		return p.quoted()
	}
	start := p.pos
	var b strings.Builder
	trailing := 0 // unescaped blanks at the end
	escaped := false
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if c == p.delimiter || c == '}' {
			break
		}
		switch {
		case c == '{' || c == '"':
			return errArray(p.text, "Unexpected \""+string(c)+"\" character.")
		case c == '\\' && p.pos+1 < len(p.text):
			p.pos++
			escaped = true
			b.WriteByte(p.text[p.pos])
			trailing = 0
		case strings.IndexByte(spaces, c) >= 0:
			b.WriteByte(c)
			trailing++
		default:
			b.WriteByte(c)
			trailing = 0
		}
		p.pos++
	}
	s := b.String()
	s = s[:len(s)-trailing]
	if p.pos == start || s == "" {
		return errArray(p.text, "Unexpected \""+string(p.peek())+"\" character.")
	}
	if !escaped && strings.EqualFold(s, "null") {
		p.out.elems = append(p.out.elems, nil)
		return nil
	}
	p.out.elems = append(p.out.elems, &s)
	return nil
}

func (p *arrayParser) quoted() *pgerr.Error {
	var b strings.Builder
	for p.pos++; p.pos < len(p.text); p.pos++ {
		c := p.text[p.pos]
		if c == '"' {
			p.pos++
			s := b.String()
			p.out.elems = append(p.out.elems, &s)
			return nil
		}
		if c == '\\' && p.pos+1 < len(p.text) {
			p.pos++
			c = p.text[p.pos]
		}
		b.WriteByte(c)
	}
	return errArray(p.text, "Unexpected end of input.")
}

// Array is the value of an array of any number of dimensions, its elements as the texts that
// the output function of their type writes.
type Array struct {
	// Dims are the lengths, Lower the first subscripts; none of an empty array.
	Dims  []int
	Lower []int32
	// Elements are in row-major order, nil for NULL.
	Elements []*string
}

// ParseArray reads what array_in reads of an array of elements of a type; the elements stay as
// they are written.
func ParseArray(text string, elem uint32) (Array, error) {
	a, err := parseArray(text, elem)
	if err != nil {
		return Array{}, err
	}
	return Array{Dims: a.dims, Lower: a.lower, Elements: a.elems}, nil
}

// Plain reports whether the array has at most one dimension and begins at 1.
func (a Array) Plain() bool {
	return len(a.Dims) == 0 || len(a.Dims) == 1 && a.Lower[0] == 1
}

// Flat is the text of the list of an array's elements, as the engine's cast reads it,
// whatever the array's dimensions.
func (in Input) Flat(oid uint32, text string) (string, error) {
	elem := ElementOID(oid)
	a, err := parseArray(text, elem)
	if err != nil {
		return "", err
	}
	if len(a.elems) > 0 {
		a.dims, a.lower = []int{len(a.elems)}, []int32{1}
	}
	out, err := a.engineText(func(s string) (string, *pgerr.Error) { return in.decodeText(elem, s) })
	if err != nil {
		return "", err
	}
	return out, nil
}

// Bounds are the subscripts as array_dims shows them, "" of an empty array.
func (a Array) Bounds() string {
	var b strings.Builder
	for i, n := range a.Dims {
		b.WriteString("[" + strconv.Itoa(int(a.Lower[i])) + ":" + strconv.FormatInt(int64(a.Lower[i])+int64(n)-1, 10) + "]")
	}
	return b.String()
}

// String is array_out.
func (a Array) String() string {
	if len(a.Dims) == 0 {
		return "{}"
	}
	var b strings.Builder
	for _, l := range a.Lower {
		if l != 1 {
			b.WriteString(a.Bounds() + "=")
			break
		}
	}
	at := 0
	a.write(&b, 0, &at)
	return b.String()
}

func (a Array) write(b *strings.Builder, level int, at *int) {
	b.WriteByte('{')
	for i := range a.Dims[level] {
		if i > 0 {
			b.WriteByte(',')
		}
		if level+1 < len(a.Dims) {
			a.write(b, level+1, at)
			continue
		}
		writeElement(b, a.Elements[*at])
		*at++
	}
	b.WriteByte('}')
}

func writeElement(b *strings.Builder, e *string) {
	switch {
	case e == nil:
		b.WriteString("NULL")
	case *e == "" || strings.EqualFold(*e, "null") || strings.ContainsAny(*e, "{}\",\\ \t\n\r\v\f"):
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(*e) + `"`)
	default:
		b.WriteString(*e)
	}
}

// MaxArrayElements is how many elements an array can have.
const MaxArrayElements = 1<<27 - 1

// TooLarge is the error of an array with more.
func TooLarge() error {
	return pgerr.New(codes.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", MaxArrayElements)
}
