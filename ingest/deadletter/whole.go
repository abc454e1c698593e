package deadletter

import (
	"crypto/sha256"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Rows of tables without a key are known by their whole content, under the columns of the
// moment.

// owed are rows of a table without a key that the stream has deleted, that cannot be taken
// in, and that the copy has not come to: their letters are closed when they come. It lives
// as long as a session, as the copy of such a table does.
type owed struct {
	open bool // the copy may have such rows still
	// rows are counted by schema version and content.
	rows map[uint32]map[[sha256.Size]byte]int
	n    int
	// all says that every row is owed which the copy sets aside: the table was truncated.
	all bool
	// at is the commit of the last transaction that owes.
	at change.Position
}

// copying says of a table that rows of it which the stream deletes may be yet to be copied.
func copying(t *catalog.Table) bool {
	return !t.Current.HasKey() && (t.State == catalog.TablePending || t.State == catalog.TableBackfill)
}

func (o *owed) add(version uint32, row string, n int) {
	if o.rows == nil {
		o.rows = map[uint32]map[[sha256.Size]byte]int{}
	}
	if o.rows[version] == nil {
		o.rows[version] = map[[sha256.Size]byte]int{}
	}
	h := sha256.Sum256([]byte(row))
	if o.rows[version][h] += n; o.rows[version][h] == 0 {
		delete(o.rows[version], h)
	}
	o.n += n
}

func (o *owed) has(version uint32, row string) bool {
	return o.rows[version][sha256.Sum256([]byte(row))] > 0
}

// pay says whether a copied row is owed; undo has it owed again. mu is locked, but not when
// undo is called.
func (t *Table) pay(l *catalog.DeadLetter) (undo func(), owed bool) {
	if l.Copied && t.owed.all {
		return func() {}, true
	}
	if !l.Copied || t.owed.n == 0 || l.Row == "" {
		return nil, false
	}
	for _, version := range t.versions {
		row := t.as(l.Row, l.SchemaVersion, version)
		if row == "" || !t.owed.has(version.Version, row) {
			continue
		}
		t.owed.add(version.Version, row, -1)
		if mutant.On(mutant.OwedForgotten) {
			return nil, false
		}
		return func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.owed.add(version.Version, row, 1)
		}, true
	}
	return nil, false
}

// Know notes a schema version of the table; a later one of its number takes its place.
func (t *Table) Know(version *schema.Table) {
	if t == nil || version == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.know(version)
}

// know is Know; mu is locked.
func (t *Table) know(version *schema.Table) {
	t.versions = slices.DeleteFunc(t.versions, func(v *schema.Table) bool { return v.Version == version.Version })
	t.versions = append(t.versions, version)
}

// as renders a row of one schema version under another: columns go by their ids, a new one
// has what old rows have in it. "" when that cannot be told. mu is locked.
func (t *Table) as(row string, from uint32, to *schema.Table) string {
	if from == to.Version {
		return row
	}
	i := slices.IndexFunc(t.versions, func(v *schema.Table) bool { return v.Version == from })
	if i < 0 || row == "" {
		return ""
	}
	values, err := ParseRow(row)
	if err != nil {
		return ""
	}
	out := make([]Value, 0, len(to.Fields))
	for _, f := range to.Fields {
		if f.Unsent() {
			continue // no letter has it
		}
		v := Value{Name: f.Name, Text: f.Initial}
		if old, ok := t.versions[i].Field(f.ID); ok {
			v.Text = values[old.Name]
		}
		out = append(out, v)
	}
	return Row(out)
}

// PassRow notes that one row of a table without a key was deleted, by its whole content as
// the schema version has it: closes is the newest letter that has it, if one does. undo
// takes it back.
func (t *Table) PassRow(row string, version *schema.Table) (closes []catalog.DeadLetterRef, undo func()) {
	if !t.Any() || row == "" {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.passRow(row, version)
}

// passRow is PassRow; mu is locked, but not when undo is called.
func (t *Table) passRow(row string, version *schema.Table) (closes []catalog.DeadLetterRef, undo func()) {
	all := t.keys[""]
	for i, e := range slices.Backward(all) {
		if t.as(e.row, e.version, version) != row {
			continue
		}
		t.keys[""] = slices.Delete(all, i, i+1)
		t.bytes -= int64(len(e.row))
		t.count.Add(-1)
		return []catalog.DeadLetterRef{e.ref}, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.put("", e)
		}
	}
	return nil, nil
}

// MayOwe says whether the delete of a row that no letter has can be of one that the copy is
// yet to set aside.
func (t *Table) MayOwe(row string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed.open && row != "" && t.owed.n < t.most
}

// PassRowOrOwe is PassRow for a row that MayOwe holds of: when no letter has it, the next
// copied one that does is closed as it comes. at is the commit of the delete's transaction.
// Taken back is what comes again: a debt that was paid meanwhile is one fewer then.
func (t *Table) PassRowOrOwe(row string, version *schema.Table, at change.Position) (closes []catalog.DeadLetterRef, undo func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if closes, undo = t.passRow(row, version); len(closes) == 0 {
		t.owed.add(version.Version, row, 1)
		t.owed.at = at
		t.know(version)
		undo = func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.owed.add(version.Version, row, -1)
		}
	}
	return closes, undo
}

// Truncated notes that a TRUNCATE is committed at at. Of a table without a key, whatever its
// copy sets aside is of before: letters that have come since the statement are closed, later
// ones are as they come. undo takes it back, nil when there is nothing to.
func (t *Table) Truncated(at change.Position) (closes []catalog.DeadLetterRef, undo func()) {
	if t == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.owed.open {
		return nil, nil
	}
	before := t.owed.all
	t.owed.all, t.owed.at = true, at
	var since []entry
	kept := make([]entry, 0, len(t.keys[""]))
	for _, e := range t.keys[""] {
		if !e.copied {
			kept = append(kept, e)
			continue
		}
		since, closes = append(since, e), append(closes, e.ref)
		t.bytes -= int64(len(e.row))
		t.count.Add(-1)
	}
	t.keys[""] = kept
	return closes, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.owed.all = before
		for _, e := range since {
			t.put("", e)
		}
	}
}

// Gone says that all that the copy sets aside is gone by now, see Truncated.
func (t *Table) Gone() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed.all
}

// OwedUntil is the commit of the last transaction that has deleted such a row. A letter which
// is closed as it comes must not become durable before that: the source would send the
// delete again, and neither the row nor its letter would be there.
func (t *Table) OwedUntil() change.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed.at
}

// Owes says whether rows are owed that were neither copied nor set aside so far.
func (t *Table) Owes() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed.n > 0 && !t.owed.all
}

// Copied says that all letters of the table's copy have come. The rows that are owed still
// were neither copied nor set aside: there are none, unless something is wrong.
func (t *Table) Copied() (owed int) {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed.open = false
	if t.owed.all {
		return 0 // those were truncated
	}
	return t.owed.n
}
