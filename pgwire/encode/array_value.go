package encode

import (
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

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
