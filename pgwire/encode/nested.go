package encode

import (
	"encoding/binary"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// listEntry is a row of a List vector.
type listEntry struct{ offset, length uint64 }

// elementOf returns the innermost element type of a (nested) list and its OID.
func elementOf(t vector.Type, oid uint32) (vector.Type, uint32) {
	for t.Kind == vector.List {
		t = t.Elem[0]
	}
	switch oid {
	case oidInt2Vector:
		return t, oidInt2
	case oidOIDVector:
		return t, oidOID
	}
	if elem := ElementOID(oid); elem != 0 {
		return t, elem
	}
	elem, _ := TypeOf(t)
	return t, elem
}

func isVector(oid uint32) bool { return oid == oidInt2Vector || oid == oidOIDVector }

func listText(t vector.Type, oid uint32) (appendFunc, error) {
	elemType, elemOID := elementOf(t, oid)
	text, err := chooseText(elemType, elemOID)
	if err != nil {
		if elemType.Kind != vector.Null {
			return nil, err
		}
		text = nil
	}
	if isVector(oid) {
		return spacedList(text), nil
	}
	delimiter := byte(',')
	if elemOID == 603 { // box
		delimiter = ';'
	}
	var list func(s *state, dst []byte, t *vector.Type, v *vector.Vector, i int) []byte
	list = func(s *state, dst []byte, t *vector.Type, v *vector.Vector, i int) []byte {
		e := load[listEntry](v, i)
		child, elem := &v.Child[0], &t.Elem[0]
		dst = append(dst, '{')
		for k := int(e.offset); k < int(e.offset+e.length); k++ {
			if k > int(e.offset) {
				dst = append(dst, delimiter)
			}
			switch {
			case text == nil && elem.Kind != vector.List, !child.Valid(k):
				dst = append(dst, "NULL"...)
			case elem.Kind == vector.List:
				dst = list(s, dst, elem, child, k)
			default:
				at := len(dst)
				dst = text(s, dst, child, k)
				if arrayNeedsQuotes(dst[at:], delimiter) {
					dst = arrayQuoting.wrap(dst, at)
				}
			}
		}
		return append(dst, '}')
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte { return list(s, dst, &t, v, i) }, nil
}

// spacedList is the text of int2vector and oidvector.
func spacedList(text appendFunc) appendFunc {
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		e := load[listEntry](v, i)
		for k := int(e.offset); k < int(e.offset+e.length); k++ {
			if k > int(e.offset) {
				dst = append(dst, ' ')
			}
			if text != nil && v.Child[0].Valid(k) {
				dst = text(s, dst, &v.Child[0], k)
			}
		}
		return dst
	}
}

func errRagged() error {
	return pgerr.New(codes.FeatureNotSupported, "cannot send nested lists of different lengths as a binary array").
		WithHint("Ask for text format, or unnest the lists.")
}

// listBinary is array_send; nil when the target is no array or its elements have no
// binary form.
func listBinary(t vector.Type, oid uint32) appendFunc {
	if ElementOID(oid) == 0 && !isVector(oid) {
		return nil
	}
	elemType, elemOID := elementOf(t, oid)
	cell, err := chooseCell(elemType, elemOID, true)
	if err != nil {
		return nil
	}
	lower := uint32(1)
	if isVector(oid) {
		lower = 0
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		w := listWriter{state: s, cell: cell}
		start := len(dst)
		dst = binary.BigEndian.AppendUint32(dst, 0) // dimensions
		dst = binary.BigEndian.AppendUint32(dst, 0) // has nulls
		dst = binary.BigEndian.AppendUint32(dst, elemOID)
		if !w.measure(v, i) {
			s.fail(errRagged())
			return dst
		}
		if w.lengths[w.depth-1] == 0 {
			return dst
		}
		for _, n := range w.lengths[:w.depth] {
			dst = binary.BigEndian.AppendUint32(dst, uint32(n))
			dst = binary.BigEndian.AppendUint32(dst, lower)
		}
		dst = w.append(dst, v, i, 0)
		binary.BigEndian.PutUint32(dst[start:], uint32(w.depth))
		if w.nulls {
			dst[start+7] = 1
		}
		return dst
	}
}

// maxDimensions is PostgreSQL's MAXDIM.
const maxDimensions = 6

// listWriter writes one array value.
type listWriter struct {
	*state
	cell    appendFunc
	lengths [maxDimensions]uint64
	depth   int
	nulls   bool
}

// measure finds the dimensions along the first elements.
func (w *listWriter) measure(v *vector.Vector, i int) bool {
	for {
		if w.depth == maxDimensions {
			return false
		}
		e := load[listEntry](v, i)
		w.lengths[w.depth] = e.length
		w.depth++
		child := &v.Child[0]
		if e.length == 0 || child.Type.Kind != vector.List {
			return child.Type.Kind != vector.List || e.length == 0
		}
		v, i = child, int(e.offset)
		if !v.Valid(i) {
			return false
		}
	}
}

func (w *listWriter) append(dst []byte, v *vector.Vector, i, level int) []byte {
	e := load[listEntry](v, i)
	if level >= w.depth || e.length != w.lengths[level] {
		w.fail(errRagged())
		return dst
	}
	child := &v.Child[0]
	for k := int(e.offset); k < int(e.offset+e.length); k++ {
		valid := w.cell != nil && child.Valid(k)
		switch {
		case child.Type.Kind == vector.List:
			if !child.Valid(k) {
				w.fail(errRagged())
				return dst
			}
			dst = w.append(dst, child, k, level+1)
		case !valid:
			w.nulls = true
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
		default:
			at := len(dst)
			dst = w.cell(w.state, append(dst, 0, 0, 0, 0), child, k)
			binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		}
		if w.err != nil {
			return dst
		}
	}
	return dst
}

// structText is record_out: (a,"b c",).
func structText(t vector.Type) (appendFunc, error) {
	members, err := memberTexts(t)
	if err != nil {
		return nil, err
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		dst = append(dst, '(')
		for j, text := range members {
			if j > 0 {
				dst = append(dst, ',')
			}
			if text == nil || !v.Child[j].Valid(i) {
				continue
			}
			at := len(dst)
			dst = text(s, dst, &v.Child[j], i)
			if recordNeedsQuotes(dst[at:]) {
				dst = recordQuoting.wrap(dst, at)
			}
		}
		return append(dst, ')')
	}, nil
}

func memberTexts(t vector.Type) ([]appendFunc, error) {
	members := make([]appendFunc, len(t.Elem))
	for j, m := range t.Elem {
		oid, _ := TypeOf(m)
		f, err := chooseCell(m, oid, false)
		if err != nil {
			return nil, err
		}
		members[j] = f
	}
	return members, nil
}

// structBinary is record_send; nil when the target is no record or a member has no
// binary form.
func structBinary(t vector.Type, oid uint32) appendFunc {
	if oid != oidRecord && oid < firstUserOID {
		return nil
	}
	cells := make([]appendFunc, len(t.Elem))
	oids := make([]uint32, len(t.Elem))
	for j, m := range t.Elem {
		oids[j], _ = TypeOf(m)
		f, err := chooseCell(m, oids[j], true)
		if err != nil {
			return nil
		}
		cells[j] = f
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(cells)))
		for j, cell := range cells {
			dst = binary.BigEndian.AppendUint32(dst, oids[j])
			if cell == nil || !v.Child[j].Valid(i) {
				dst = append(dst, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			at := len(dst)
			dst = cell(s, append(dst, 0, 0, 0, 0), &v.Child[j], i)
			binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		}
		return dst
	}
}

// mapText is the engine's own notation, {key=value, …}: PostgreSQL has no map.
func mapText(t vector.Type) (appendFunc, error) {
	members, err := memberTexts(t)
	if err != nil {
		return nil, err
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		e := load[listEntry](v, i)
		entry := &v.Child[0]
		dst = append(dst, '{')
		for k := int(e.offset); k < int(e.offset+e.length); k++ {
			if k > int(e.offset) {
				dst = append(dst, ", "...)
			}
			for j, text := range members {
				if j > 0 {
					dst = append(dst, '=')
				}
				if text == nil || !entry.Child[j].Valid(k) {
					dst = append(dst, "NULL"...)
					continue
				}
				dst = text(s, dst, &entry.Child[j], k)
			}
		}
		return append(dst, '}')
	}, nil
}
