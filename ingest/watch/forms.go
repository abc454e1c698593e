package watch

import (
	"fmt"
	"maps"
	"slices"
)

// Form is one thing that decides how values of a column are written: its type, a label of
// an enum, the attributes of a composite type.
type Form struct {
	Column int16  // its number
	ID     string // tells forms of a column apart, whatever they are
	Text   string // how it is
	// Late says that it became so after the column was made, or changed last.
	Late bool
}

// Forms are the forms of a table's columns, by column and ID.
type Forms map[string]string

func (f Form) key() string { return fmt.Sprintf("%d%s", f.Column, f.ID) }

// FormsOf are a table's forms as they are kept.
func FormsOf(all []Form) Forms {
	out := make(Forms, len(all))
	for _, f := range all {
		out[f.key()] = f.Text
	}
	return out
}

// reworded compares the forms of the columns that are here. More of them change no row
// that is written already (a label is added), unless they are those of a column that was
// not known, and became what they are after it was made. While the table is being copied
// anew they wait for the copy's place.
func (h *Here) reworded(now []Form) (a Action, changed bool) {
	a = Action{Kind: Worded, Table: h.ID, Forms: FormsOf(now)}
	if now == nil || h.Copy != 0 || h.Forms != nil && maps.Equal(a.Forms, h.Forms) {
		return a, false
	}
	if h.Forms == nil {
		return a, true
	}
	known := map[int16]bool{}
	for _, f := range now {
		_, ok := h.Forms[f.key()]
		known[f.Column] = known[f.Column] || ok
	}
	for _, f := range now {
		old, ok := h.Forms[f.key()]
		other := ok && old != f.Text || f.Late && !known[f.Column]
		if other && slices.Contains(h.Columns, f.Column) && !slices.Contains(a.Columns, f.Column) {
			a.Kind, a.Columns = Reworded, append(a.Columns, f.Column)
		}
	}
	return a, true
}
