// Package enum is what an enumerated type is, and how it grows. It does no I/O.
package enum

import (
	"errors"
	"slices"
	"time"

	"github.com/skipprd/skipprd/wal/change"
)

// ErrNoLabel means that a type has no label of a name.
var ErrNoLabel = errors.New("enum has no such label")

// Enum is a type whose values are labels, in an order of their own.
type Enum struct {
	// ID is one that no table, view or sequence has: they share their numbers.
	ID           change.TableID
	Schema, Name string
	// Labels are its values, ascending. Their order never changes and none goes: what is
	// stored are their texts.
	Labels    []string
	Comment   string `json:",omitempty"`
	CreatedAt time.Time
	// Owner is the role that makes it; kept with the rights on it.
	Owner uint32 `json:"-"`
}

// oidBase and the id of a type make its pg_type oid; arrayBase that of its array type, as those
// of the rows of tables, which have other numbers.
const (
	oidBase   uint32 = 1 << 30
	arrayBase uint32 = 1<<30 + 1<<29
)

// OID is the type's object id.
func (e *Enum) OID() uint32 { return OIDOf(e.ID) }

// ArrayOID is its array type's.
func (e *Enum) ArrayOID() uint32 { return arrayBase + uint32(e.ID) }

// OIDOf is the object id of the type with a number.
func OIDOf(id change.TableID) uint32 { return oidBase + uint32(id) }

// Has says whether there is a label.
func (e *Enum) Has(label string) bool { return slices.Contains(e.Labels, label) }

// Clone is a copy that shares nothing changeable.
func (e *Enum) Clone() *Enum {
	c := *e
	c.Labels = slices.Clone(e.Labels)
	return &c
}

// Add puts a new label beside another one, or at the end when that is "". It wraps ErrNoLabel.
func (e *Enum) Add(label, beside string, after bool) error {
	at := len(e.Labels)
	if beside != "" {
		if at = slices.Index(e.Labels, beside); at < 0 {
			return ErrNoLabel
		}
		if after {
			at++
		}
	}
	e.Labels = slices.Insert(e.Labels, at, label)
	return nil
}
