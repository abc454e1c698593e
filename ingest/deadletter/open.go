package deadletter

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Open are the open letters of a pipeline's tables, as one session knows them: those
// that were durable when it began, and what it has added and closed since. Safe for
// concurrent use.
type Open struct{ tables map[change.TableID]*Table }

// Table are the open letters of one table.
type Table struct {
	id         change.TableID
	generation uint32
	most       int
	count      atomic.Int64 // of all letters

	mu    sync.Mutex
	keys  map[string][]entry
	bytes int64
	owed  owed
	// versions are those of letters and of changes, as far as they are known.
	versions []*schema.Table
}

type entry struct {
	ref catalog.DeadLetterRef
	row string
	// version is the schema version whose columns row has.
	version uint32
	copied  bool
	// spoiled says that row is not what was sent, or not known to be what the key has.
	spoiled bool
	// pending says that its row may have changed before the letter was known.
	pending bool
}

func entryOf(l *catalog.DeadLetter) entry {
	return entry{
		ref: l.DeadLetterRef, row: l.Row, version: l.SchemaVersion, copied: l.Copied,
		spoiled: l.Code == CodeEncoding || l.Code == CodeNoUTF8 || l.Doubtful,
	}
}

// NewOpen are tables without letters, with their generations.
func NewOpen(most int, tables map[change.TableID]uint32) *Open {
	o := &Open{tables: make(map[change.TableID]*Table, len(tables))}
	for id, generation := range tables {
		o.add(id, generation, most)
	}
	return o
}

func (o *Open) add(id change.TableID, generation uint32, most int) *Table {
	t := &Table{id: id, generation: generation, most: most, keys: map[string][]entry{}}
	o.tables[id] = t
	return t
}

// Load reads the open letters of a pipeline. most is the limit per table.
func Load(snap *catalog.Snapshot, pipeline change.PipelineID, most int) (*Open, error) {
	o := NewOpen(most, nil)
	for _, t := range snap.EveryTableOf(pipeline) {
		letters, err := snap.OpenDeadLetters(t.ID)
		if err != nil {
			return nil, fmt.Errorf("load dead letters of %s.%s: %w", t.Schema, t.Name, err)
		}
		into := o.add(t.ID, t.Generation, most)
		into.owed.open = copying(t)
		for _, v := range append(slices.Clone(t.Versions), t.Current) {
			into.know(v)
		}
		for _, l := range letters {
			into.put(l.Key, entryOf(l))
		}
	}
	return o, nil
}

// Table is a table's, nil when the session does not know it.
func (o *Open) Table(id change.TableID) *Table {
	if o == nil {
		return nil
	}
	return o.tables[id]
}

// Any says whether the table has an open letter, so that changes must be told by Pass. It
// is cheap.
func (t *Table) Any() bool { return t != nil && t.count.Load() > 0 }

// Full says, as a clause, why the table may have no further letter, "" when it may.
func (t *Table) Full() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch n := int(t.count.Load()); {
	case n >= t.most:
		return fmt.Sprintf("%d of its rows are dead letters, as many as max_dead_letters allows", n)
	case t.bytes >= OpenBytesMax:
		return fmt.Sprintf("the rows of its dead letters have more than %d MiB", OpenBytesMax>>20)
	}
	return ""
}

// Add notes a letter. closes are the older ones of its key, which it supersedes; it is
// closed itself when a newer one of its key is open, or when its row was deleted before it
// was known (PassRowOrOwe). undo takes all back.
func (t *Table) Add(l *catalog.DeadLetter) (closes []catalog.DeadLetterRef, undo func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := entryOf(l)
	e.pending = l.Copied
	if l.Key == "" {
		if undo, owed := t.pay(l); owed {
			return []catalog.DeadLetterRef{e.ref}, undo
		}
		t.put("", e)
		return nil, func() { t.remove("", e.ref) }
	}
	before := t.keys[l.Key]
	if slices.ContainsFunc(before, func(o entry) bool { return newer(o.ref, e.ref) }) {
		return []catalog.DeadLetterRef{e.ref}, func() {}
	}
	closes, restore := t.take(l.Key)
	if i := slices.Index(closes, e.ref); i >= 0 { // refused again
		closes = slices.Delete(closes, i, i+1)
	}
	t.put(l.Key, e)
	return closes, func() {
		t.remove(l.Key, e.ref)
		restore()
	}
}

// Pass notes that a change of a key was taken in whole: closes are the letters that it
// supersedes. undo takes it back.
func (t *Table) Pass(key string) (closes []catalog.DeadLetterRef, undo func()) {
	if !t.Any() || key == "" || mutant.On(mutant.LetterOutlived) {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.take(key)
}

// PassAll is Pass for every key: a TRUNCATE.
func (t *Table) PassAll() (closes []catalog.DeadLetterRef, undo func()) {
	if !t.Any() {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]string, 0, len(t.keys))
	for key := range t.keys {
		all = append(all, key)
	}
	slices.Sort(all)
	var undos []func()
	for _, key := range all {
		c, undo := t.take(key)
		closes, undos = append(closes, c...), append(undos, undo)
	}
	return closes, func() {
		for _, undo := range undos {
			undo()
		}
	}
}

// Prior is the open letter of a key, for a change that leaves values out.
type Prior struct {
	Row           string // "" when it is not kept as it was
	SchemaVersion uint32 // of its columns
	Copied        bool   // it is a row of the initial copy
	Pending       bool   // it may have changed since: it is not settled
}

// Row is the row of a key's open letter, see Prior.
func (t *Table) Row(key string) (row string, open bool) {
	p, open := t.Prior(key)
	return p.Row, open
}

// Prior is the open letter of a key; open is false when there is none.
func (t *Table) Prior(key string) (p Prior, open bool) {
	if !t.Any() || key == "" {
		return p, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.keys[key]
	if len(all) == 0 {
		return p, false
	}
	newest := slices.MaxFunc(all, func(a, b entry) int { return a.ref.Compare(b.ref) })
	p = Prior{Row: newest.row, SchemaVersion: newest.version, Copied: newest.copied, Pending: newest.pending}
	if newest.spoiled {
		p.Row = ""
	}
	return p, true
}

// Settle says that a copied letter, if it is open still, has the row as it was before all
// changes that come from now on.
func (t *Table) Settle(l *catalog.DeadLetter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.keys[l.Key] {
		if e := &t.keys[l.Key][i]; e.ref == l.DeadLetterRef {
			e.pending = false
		}
	}
}

// Doubt says of a copied letter that is not durable yet that its row may have changed
// before it was known, and nobody can tell.
func (t *Table) Doubt(l *catalog.DeadLetter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.Doubtful, l.Reason = true, l.Reason+"; it was locked or being changed while it was copied"
	for i := range t.keys[l.Key] {
		if e := &t.keys[l.Key][i]; e.ref == l.DeadLetterRef {
			e.spoiled = true
		}
	}
}

// take removes the letters of a key; mu is locked, but not when restore is called.
func (t *Table) take(key string) (closes []catalog.DeadLetterRef, restore func()) {
	taken := t.keys[key]
	for _, e := range taken {
		closes = append(closes, e.ref)
		t.bytes -= int64(len(e.row))
	}
	delete(t.keys, key)
	t.count.Add(int64(-len(taken)))
	return closes, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, e := range taken {
			t.put(key, e)
		}
	}
}

// put adds a letter; mu is locked.
func (t *Table) put(key string, e entry) {
	t.keys[key] = append(t.keys[key], e)
	t.bytes += int64(len(e.row))
	t.count.Add(1)
}

func (t *Table) remove(key string, ref catalog.DeadLetterRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.keys[key], func(e entry) bool { return e.ref == ref })
	if i < 0 {
		return
	}
	t.bytes -= int64(len(t.keys[key][i].row))
	t.keys[key] = slices.Delete(t.keys[key], i, i+1)
	if len(t.keys[key]) == 0 {
		delete(t.keys, key)
	}
	t.count.Add(-1)
}

// newer says whether a change came after another.
func newer(a, b catalog.DeadLetterRef) bool {
	a.ID, b.ID = 0, 0
	return a.Compare(b) > 0
}

// MostOf is the limit of a pipeline's options.
func MostOf(options map[string]string) int {
	if n, err := strconv.Atoi(options["max_dead_letters"]); err == nil && n >= 0 {
		return n
	}
	return OpenMax
}
