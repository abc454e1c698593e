package watch

import (
	"cmp"
	"slices"

	"github.com/skipprd/skipprd/wal/change"
)

// Part is a partition of a table at the source, at any depth.
type Part struct {
	OID uint32
	// Born says that it was made as a partition, and so came without rows that the stream
	// does not have.
	Born bool
	// Mark is another one when it has become a partition again, or its rows are in another
	// file: others may be in it than the stream has told of. Same says of a known partition
	// that they are not.
	Mark uint64
	Same bool
}

// Files are the files of a table and its partitions at the source, and its newest column, as
// they were when they were looked at last.
type Files struct {
	Newest int16
	Files  []uint32 // ascending
	// Plain are columns that came later than a look, and after which nobody has rewritten the
	// table.
	Plain []int16
	// Since is a number of the source's for the moment of the look: what changes later has a
	// greater one, or the same.
	Since uint64
	// Reworked counts the looks at which the table was found rewritten, and one of its columns
	// changed, since the look before: rows may have got other values.
	Reworked uint32
}

// There is a table that the source has.
type There struct {
	OID          uint32
	Schema, Name string
	Parts        []Part
	// Root is the table that it is a partition of, 0 for none.
	Root uint32
	// Forms are those of its columns; nil when the source does not say.
	Forms []Form
	// Overlooked says, a clause, what the stream may have wrong of changes to partitions that
	// have come or gone since the look before; "" when it has them all.
	Overlooked string
	// Identified says that the source can send updates and deletes of the table's rows; Barred
	// why it does not.
	Identified bool
	Barred     *Barred
	// Gap says why changes of the table may have been left out of the stream; nil when none were.
	Gap *Gap
}

// Gap is why changes of a table may have been left out of the stream.
type Gap struct {
	Reason string // a clause
	// Hint is what helps before the table can be copied anew; "" when nothing is in the way.
	Hint string
}

// Barred is why a source sends only inserts of a table.
type Barred struct {
	Reason, Hint string
}

// Here is a table that was taken in, with what was known of the source's side.
type Here struct {
	ID           change.TableID
	OID          uint32
	Schema, Name string // at the source
	// Parts are its partitions when it was copied, ascending; nil when that is not known.
	Parts []uint32
	// Marks are those of Parts, nil when they are not known.
	Marks []uint64
	// Away says why the source does not have it, "" when it has.
	Away string
	// Copy is the table at the source of which it is being copied anew, 0 for none.
	Copy uint32
	// Columns are the numbers of its columns; Forms is how their values were written when
	// it was copied, nil when that is not known.
	Columns []int16
	Forms   Forms
	// Files are its files as they are known, nil when they are not.
	Files *Files
	// Keyless says that updates and deletes of it do not come.
	Keyless bool
	// Published is how the source publishes it, in the source's words; "" when that is not known.
	Published string
	// Unpublished says that it has stopped since the source does not publish it.
	Unpublished bool
}

// Kind says what has happened to a table.
type Kind uint8

// The kinds.
const (
	// Made: a table of the selection that is not here; Found is its place.
	Made Kind = iota + 1
	// Remade: the table is gone, and Found has its name; or it is a partition no more, and is
	// Found itself.
	Remade
	// Left: the source does not have the table any more, for Reason.
	Left
	// Repartitioned: partitions came with rows that the stream does not have, or left with
	// rows that are here, or were emptied; Attached, Detached and Refilled count them.
	Repartitioned
	// Noted: Parts are others, and nothing is to be done.
	Noted
	// Reworded: the source writes values of Columns in another way than when the rows that
	// are here were sent.
	Reworded
	// Worded: Forms has more than was known, and nothing is to be done.
	Worded
	// Renamed: the source calls it Schema and Name now.
	Renamed
	// Identified: updates and deletes of a table without a key can be sent now; Found is how the
	// table is. Barred is why they are not all the same.
	Identified
	// Unpublished: changes of it may have been left out; Found is how the table is, -1 when it is not
	// of the selection.
	Unpublished
)

// Action is one thing that has happened.
type Action struct {
	Kind               Kind
	Table              change.TableID // all but Made
	Found              int            // Made, Remade, Identified, Unpublished
	Reason             string         // Left
	Parts              []uint32       // Repartitioned, Noted: those that there are now
	Marks              []uint64       // of Parts
	Attached, Detached int
	// Refilled counts the partitions that stayed, and whose rows did not all come or go by
	// the stream.
	Refilled int
	// Overlooked is There's, of Repartitioned.
	Overlooked   string
	Columns      []int16 // Reworded
	Forms        Forms   // Reworded, Worded: those that there are now
	Schema, Name string  // Renamed
	Barred       *Barred // Identified, nil: they will be sent
	Gap          *Gap    // Unpublished
}

// The reasons of Left, clauses.
const (
	Dropped  = "the table was dropped at the source"
	AsPart   = "the table is a partition of another one at the source now, and its changes come with that one"
	Replaced = "the table was dropped at the source, and another one has its name there"
)

// Decide compares what is here with what the source has: found are the tables of the
// selection, known those of here that exist, by their numbers. Tables of found that are
// partitions of one of found are not in it.
func Decide(here []Here, found []There, known map[uint32]There) []Action {
	var out []Action
	taken := map[uint32]bool{}
	for i := range here {
		taken[here[i].OID] = true
		taken[here[i].Copy] = true
	}
	for i := range here {
		h := &here[i]
		now, exists := known[h.OID]
		if !exists {
			out = append(out, h.gone(found, taken)...)
			continue
		}
		if now.Root != 0 && taken[now.Root] {
			if h.Away == "" {
				out = append(out, Action{Kind: Left, Table: h.ID, Reason: AsPart})
			}
			continue
		}
		if h.Away == AsPart {
			if i := slices.IndexFunc(found, func(f There) bool { return f.OID == h.OID }); i >= 0 && h.Copy == 0 {
				out = append(out, Action{Kind: Remade, Table: h.ID, Found: i})
			}
			continue
		}
		if now.Schema != h.Schema || now.Name != h.Name {
			out = append(out, Action{Kind: Renamed, Table: h.ID, Schema: now.Schema, Name: now.Name})
		}
		if a, ok := h.parts(now.Parts); ok {
			a.Overlooked = now.Overlooked
			out = append(out, a)
		}
		if a, ok := h.reworded(now.Forms); ok {
			out = append(out, a)
		}
		if a, ok := h.identified(found); ok {
			out = append(out, a)
		}
		if a, ok := h.unpublished(&now, found); ok {
			out = append(out, a)
		}
	}
	for i := range found {
		if !taken[found[i].OID] {
			out = append(out, Action{Kind: Made, Found: i})
		}
	}
	return out
}

// gone is what to do about a table that does not exist. One that has its name is taken for
// it.
func (h *Here) gone(found []There, taken map[uint32]bool) []Action {
	for i := range found {
		f := &found[i]
		if f.Schema == h.Schema && f.Name == h.Name && !taken[f.OID] {
			taken[f.OID] = true
			return []Action{{Kind: Remade, Table: h.ID, Found: i}}
		}
	}
	if h.Away != "" || h.Copy != 0 && h.Copy != h.OID {
		return nil
	}
	return []Action{{Kind: Left, Table: h.ID, Reason: Dropped}}
}

// marked says whether the partition at a place may have other rows than those that the
// stream has told of.
func (h *Here) marked(at int, now Part) bool {
	return at < len(h.Marks) && h.Marks[at] != now.Mark && !now.Same
}

// identified looks whether a table without a key has one now, or rows that are sent whole.
// While it is being copied anew the copy takes that in.
func (h *Here) identified(found []There) (a Action, changed bool) {
	if !h.Keyless || h.Copy != 0 {
		return a, false
	}
	i := slices.IndexFunc(found, func(f There) bool { return f.OID == h.OID && f.Identified })
	if i < 0 {
		return a, false
	}
	return Action{Kind: Identified, Table: h.ID, Found: i, Barred: found[i].Barred}, true
}

// PublishedAgain is why a table is copied anew that had stopped as it was not published.
const PublishedAgain = "it is published again at the source"

// unpublished looks whether changes of a table may have been left out. While it is being copied
// anew they come with the copy, or are noticed once that has its place.
func (h *Here) unpublished(now *There, found []There) (a Action, changed bool) {
	gap := now.Gap
	if gap == nil && h.Unpublished {
		gap = &Gap{Reason: PublishedAgain}
	}
	if gap == nil || h.Copy != 0 || h.Away != "" {
		return a, false
	}
	return Action{Kind: Unpublished, Table: h.ID, Found: slices.IndexFunc(found, func(f There) bool { return f.OID == h.OID }), Gap: gap}, true
}

// parts compares the partitions. While the table is being copied anew they wait for the
// copy's place.
func (h *Here) parts(now []Part) (a Action, changed bool) {
	a = Action{Kind: Noted, Table: h.ID}
	now = slices.SortedFunc(slices.Values(now), func(a, b Part) int { return cmp.Compare(a.OID, b.OID) })
	for _, p := range now {
		a.Parts, a.Marks = append(a.Parts, p.OID), append(a.Marks, p.Mark)
	}
	if h.Copy != 0 || slices.Equal(a.Parts, h.Parts) && slices.Equal(a.Marks, h.Marks) {
		return a, false
	}
	if h.Parts == nil {
		return a, true
	}
	for _, p := range now {
		at, known := slices.BinarySearch(h.Parts, p.OID)
		switch {
		case !known && !p.Born:
			a.Attached++
		case known && h.marked(at, p):
			a.Refilled++
		}
	}
	for _, old := range h.Parts {
		if _, there := slices.BinarySearch(a.Parts, old); !there {
			a.Detached++
		}
	}
	if a.Attached+a.Detached+a.Refilled > 0 {
		a.Kind = Repartitioned
	}
	return a, true
}
