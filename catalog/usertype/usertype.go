// Package usertype is what types are that users have made: enumerated ones of our own, and
// those of pipelines' sources. It does no I/O.
package usertype

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/skipprd/skipprd/wal/change"
)

// ErrNoLabel means that a type has no label of a name.
var ErrNoLabel = errors.New("enum has no such label")

// Kind says how values of a type compare. All are texts in log and lake. The values are durable.
type Kind string

// The kinds.
const (
	// Enum: equal when the labels are, ordered by their places.
	Enum Kind = ""
	// Folded: compares as its text in lower case (citext).
	Folded Kind = "folded"
	// Canonical: equal when the texts are, and not ordered here.
	Canonical Kind = "canonical"
	// Opaque: not compared here, since equal values may have several texts.
	Opaque Kind = "opaque"
)

// Type is a type that users have made.
type Type struct {
	// ID is one that no table, view or sequence has: they share their numbers.
	ID           change.TableID
	Schema, Name string
	Kind         Kind `json:",omitempty"`
	// Labels are the values of an enumerated type, ascending. Of one of our own their order
	// never changes and none goes: what is stored are their texts.
	Labels    []string
	Comment   string `json:",omitempty"`
	CreatedAt time.Time
	// Source is where a type of a pipeline's source comes from, nil of our own. It is never
	// changed in place.
	Source *Source `json:",omitempty"`
	// Owner is the role that makes it; kept with the rights on it.
	Owner uint32 `json:"-"`
}

// Source is the other side of a type of a source's.
type Source struct {
	// Pipeline is the one whose columns are of it; 0: it is gone, and something of ours has
	// such columns still.
	Pipeline change.PipelineID
	// OID and ArrayOID are its numbers there, and that of its arrays, 0 for none.
	OID, ArrayOID uint32
	Schema, Name  string
	// Length and Category are pg_type.typlen and typcategory.
	Length   int16
	Category string
	// Textual says that its binary form is its text.
	Textual bool `json:",omitempty"`
	// Composite says that it is a row type, JSON that it has a cast to json.
	Composite, JSON bool `json:",omitempty"`
	// LabelOIDs are the numbers of Labels there, which stay when a label is renamed.
	LabelOIDs []uint32 `json:",omitempty"`
	// Former are labels that rows may have still, by what they are called now.
	Former map[string]string `json:",omitempty"`
}

// A type's pg_type oid is its id and oidBase, its array's has arrayBit too, as those of the rows
// of tables, which have other numbers. opaqueBit is in that of a type, and of its array, whose
// binary form is not its text.
const (
	oidBase   uint32 = 1 << 30
	arrayBit  uint32 = 1 << 29
	opaqueBit uint32 = 1 << 28
)

// OID is the type's object id.
func (t *Type) OID() uint32 {
	if t.Source != nil && !t.Source.Textual {
		return OIDOf(t.ID) | opaqueBit
	}
	return OIDOf(t.ID)
}

// ArrayOID is its array type's.
func (t *Type) ArrayOID() uint32 { return t.OID() | arrayBit }

// OIDOf is the object id of the type with a number, by which rights on it are kept.
func OIDOf(id change.TableID) uint32 { return oidBase + uint32(id) }

// Has says whether there is a label.
func (t *Type) Has(label string) bool { return slices.Contains(t.Labels, label) }

// Clone is a copy that shares nothing changeable.
func (t *Type) Clone() *Type {
	c := *t
	c.Labels = slices.Clone(t.Labels)
	return &c
}

// Add puts a new label beside another one, or at the end when that is "". It wraps ErrNoLabel.
func (t *Type) Add(label, beside string, after bool) error {
	at := len(t.Labels)
	if beside != "" {
		if at = slices.Index(t.Labels, beside); at < 0 {
			return ErrNoLabel
		}
		if after {
			at++
		}
	}
	t.Labels = slices.Insert(t.Labels, at, label)
	return nil
}

// Found is a type as a source has it now.
type Found struct {
	Source
	Kind   Kind
	Labels []string // with LabelOIDs
}

// Follow is the type as its source has it now; its name here stays. A label that was renamed is
// remembered, since rows have the old one until they are copied anew. changed is false when
// nothing is other than before.
func (t *Type) Follow(f *Found) (next *Type, changed bool) {
	next = t.Clone()
	src := f.Source
	src.Former = nil
	if t.Source != nil && t.Source.Pipeline == f.Pipeline { // else the numbers are another source's
		src.Former = formerly(t, f)
	}
	next.Kind, next.Labels, next.Source = f.Kind, slices.Clone(f.Labels), &src
	same := t.Source != nil && t.Kind == next.Kind && slices.Equal(t.Labels, next.Labels) && t.Source.equal(&src)
	return next, !same
}

func (s *Source) equal(o *Source) bool {
	return s.Pipeline == o.Pipeline && s.OID == o.OID && s.ArrayOID == o.ArrayOID && s.Schema == o.Schema && s.Name == o.Name &&
		s.Length == o.Length && s.Category == o.Category && s.Textual == o.Textual && s.Composite == o.Composite && s.JSON == o.JSON &&
		slices.Equal(s.LabelOIDs, o.LabelOIDs) && maps.Equal(s.Former, o.Former)
}

// formerly are the labels that rows of before may have, by what they are called now.
func formerly(t *Type, f *Found) map[string]string {
	out := map[string]string{}
	renamed := func(label string) (string, bool) {
		i := slices.Index(t.Labels, label)
		if i < 0 || i >= len(t.Source.LabelOIDs) {
			return "", false
		}
		at := slices.Index(f.LabelOIDs, t.Source.LabelOIDs[i])
		if at < 0 {
			return "", false
		}
		return f.Labels[at], true
	}
	keep := func(old, now string) {
		if !slices.Contains(f.Labels, old) { // a label that is another's name now means that one
			out[old] = now
		}
	}
	for _, label := range t.Labels {
		if now, ok := renamed(label); ok && now != label {
			keep(label, now)
		}
	}
	for old, was := range t.Source.Former {
		if now, ok := renamed(was); ok {
			keep(old, now)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// key is how the columns of pipelines' tables name a type.
type key struct {
	pipeline change.PipelineID
	oid      uint32
}

// Index finds types of sources by the numbers that they have there.
type Index map[key]*Type

// IndexOf are the types of sources among all.
func IndexOf(types []*Type) Index {
	x := Index{}
	for _, t := range types {
		if s := t.Source; s != nil && s.Pipeline != 0 {
			x[key{s.Pipeline, s.OID}] = t
			if s.ArrayOID != 0 {
				x[key{s.Pipeline, s.ArrayOID}] = t
			}
		}
	}
	return x
}

// Of is the object id of a source's type that is known, 0 for any other.
func (x Index) Of(pipeline change.PipelineID, oid uint32) uint32 {
	t := x[key{pipeline, oid}]
	switch {
	case t == nil:
		return 0
	case t.Source.OID == oid:
		return t.OID()
	}
	return t.ArrayOID()
}
