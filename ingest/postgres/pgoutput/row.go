package pgoutput

import "fmt"

// How a tuple holds a column's value.
const (
	Null      = 'n'
	Unchanged = 'u' // a large value that did not change and was not sent
	Text      = 't'
	Binary    = 'b'
	Omitted   = 'x' // a large value that we took out of a row that is too long
)

// Tuple is the values of a row, in the order of the relation's columns. Its slices
// are reused by the next parse.
type Tuple struct {
	Kinds  []byte
	Values [][]byte // nil unless Text or Binary
	Cut    bool     // some are Omitted
}

// The forms of a row message's old tuple.
const (
	OldNone = 0
	OldKey  = 'K' // replica identity columns only, the others null
	OldFull = 'O' // the whole row
)

// Row is an insert, update or delete.
type Row struct {
	Relation uint32
	// OldForm says what Old is; Old is meaningful unless it is OldNone.
	OldForm byte
	Old     Tuple
	// New is meaningful for inserts and updates.
	New Tuple
}

// ParseRow reads an Insert, Update or Delete into m.
func ParseRow(b []byte, m *Row) error {
	r := reader{b: b}
	kind := r.uint8()
	m.Relation = r.uint32()
	m.OldForm = OldNone
	next := r.uint8()
	if kind != KindInsert && (next == OldKey || next == OldFull) {
		m.OldForm = next
		if err := m.Old.parse(&r); err != nil {
			return err
		}
		if kind == KindUpdate {
			next = r.uint8()
		}
	}
	switch {
	case kind == KindDelete && m.OldForm != OldNone:
		return r.done("delete")
	case kind != KindDelete && next == 'N':
		if err := m.New.parse(&r); err != nil {
			return err
		}
		return r.done("row")
	}
	return fmt.Errorf("%w: row of kind %q has a tuple of kind %q", ErrMalformed, kind, next)
}

func (t *Tuple) parse(r *reader) error {
	n := int(r.uint16())
	if n > columnsMax {
		return fmt.Errorf("%w: row has %d columns", ErrMalformed, n)
	}
	t.Kinds, t.Values, t.Cut = t.Kinds[:0], t.Values[:0], false
	for range n {
		kind := r.uint8()
		var value []byte
		switch kind {
		case Null, Unchanged:
		case Omitted:
			t.Cut = true
		case Text, Binary:
			value = r.take(int(int32(r.uint32())))
		default:
			return fmt.Errorf("%w: column value of kind %q", ErrMalformed, kind)
		}
		t.Kinds = append(t.Kinds, kind)
		t.Values = append(t.Values, value)
	}
	if r.short {
		return fmt.Errorf("%w: row is too short", ErrMalformed)
	}
	return nil
}

// OldValue is column i of a full old tuple, or of the key that was sent since it is large,
// Unchanged when there is none: where a new tuple leaves out a value that did not change,
// it is the value.
func (m *Row) OldValue(i int) (kind byte, value []byte) {
	switch {
	case m.OldForm == OldNone || i >= len(m.Old.Kinds):
		return Unchanged, nil
	case m.OldForm != OldFull && m.Old.Kinds[i] != Text: // not of the key
		return Unchanged, nil
	}
	return m.Old.Kinds[i], m.Old.Values[i]
}
