package schema

import "slices"

// Computed is how the source computes a column from others of the same row. It is a
// function of them and nothing else, so that whoever asks the source to evaluate it for
// the same values gets what the row has.
type Computed struct {
	// Expr is the expression in the source's SQL, over the names of Inputs, which are those
	// of the moment when it was read. Type is the column's own, to which the result is cast.
	Expr   string  `json:"expr"`
	Type   string  `json:"type"`
	Inputs []Input `json:"inputs,omitempty"`
	// Form tells one expression from another, whatever the names in it are now.
	Form string `json:"form"`
	// Sent says that the source sends the column like any other.
	Sent bool `json:"sent,omitempty"`
}

// Input is a column that an expression reads.
type Input struct {
	// AttNum is the source's number for the column, Name what the expression calls it.
	AttNum int16  `json:"attnum"`
	Name   string `json:"name"`
	// Type is its type in the source's SQL. Cast says that arrays of that type cannot be
	// written: a text is cast to it.
	Type string `json:"type"`
	Cast bool   `json:"cast,omitempty"`
	// Collation is its collation, if that is not its type's.
	Collation string `json:"collation,omitempty"`
}

// Equal says whether both compute alike, and are sent alike. The names of inputs do not
// count. Both may be nil.
func (c *Computed) Equal(o *Computed) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.Form == o.Form && c.Sent == o.Sent && c.Type == o.Type &&
		slices.EqualFunc(c.Inputs, o.Inputs, func(a, b Input) bool { return a.AttNum == b.AttNum })
}

// Unsent says that the source computes the field and does not send it.
func (f Field) Unsent() bool { return f.Computed != nil && !f.Computed.Sent }

// Computes says that the table has a field that the source computes and does not send.
func (t *Table) Computes() bool { return slices.ContainsFunc(t.Fields, Field.Unsent) }
