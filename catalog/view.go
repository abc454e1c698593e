package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// View is a query with a name.
type View struct {
	// ID is one that no table has: they share their numbers.
	ID           change.TableID
	Schema, Name string
	// SQL is the query, in which all relations are named with their schemas.
	SQL     string
	Columns []ViewColumn
	// Reads are the tables and views that it names, by the id under which users know them.
	Reads []change.TableID `json:",omitempty"`
	// Uses are the columns of these that it names, by their numbers; what was made before they
	// were kept has none.
	Uses []ViewUse `json:",omitempty"`
	// Options are its parameters, as pg_class.reloptions has them. Never changed in place.
	Options   []string `json:",omitempty"`
	Comment   string   `json:",omitempty"`
	CreatedAt time.Time
	// Owner is the role that makes it; kept with the rights on it.
	Owner uint32 `json:"-"`
	// Materialized says that it is the query of a materialized view, as Queries gives it.
	Materialized bool `json:"-"`
}

// ViewColumn is a column of a view.
type ViewColumn struct {
	Name    string
	OID     uint32
	TypMod  int32
	Comment string `json:",omitempty"`
	// Collation is as in schema.Field.
	Collation uint32 `json:",omitempty"`
	// Default is what a row that is inserted through the view has in it, as SQL; "": what the table
	// says.
	Default string `json:",omitempty"`
}

// ViewUse are columns that a view names, by their numbers in pg_attribute.
type ViewUse struct {
	ID      change.TableID
	Columns []int16
}

// Query is what the rows of a materialized view are the result of. Immutable.
type Query struct {
	// SQL, Reads and Uses are as those of a view.
	SQL   string
	Reads []change.TableID `json:",omitempty"`
	Uses  []ViewUse        `json:",omitempty"`
	// Populated says that it has rows, or would have some: it may be read.
	Populated bool `json:",omitempty"`
}

// Check is a condition that rows of a table of our own meet.
type Check struct {
	Name, SQL string
	// Comment is what COMMENT ON says of it.
	Comment string `json:",omitempty"`
}

// Index is a unique constraint of a table of our own, or an index. None is kept: that keys are
// unique is looked up in the rows, and the name of an index is all that there is of another one.
type Index struct {
	// ID is one that no table has.
	ID   change.TableID
	Name string
	// Fields are its columns', in order, with 0 for each of Expressions; a unique one has some.
	Fields      []int32                `json:",omitempty"`
	Expressions []schema.KeyExpression `json:",omitempty"`
	// Unique says that no two rows have equal values in them, unless one is null; Constraint
	// that it was made as a constraint.
	Unique     bool `json:",omitempty"`
	Constraint bool `json:",omitempty"`
	// NullsEqual says that nulls are equal to each other there.
	NullsEqual bool `json:",omitempty"`
	// Deferrable and Deferred are those of a constraint: DEFERRABLE, INITIALLY DEFERRED.
	Deferrable bool `json:",omitempty"`
	Deferred   bool `json:",omitempty"`
	// Where are the conditions that the rows meet which it is of, all of them: none for all rows.
	// Predicate is a condition as SQL, in their place where they cannot say it. Uses are the fields
	// that expressions and the predicate name.
	Where     []Condition `json:",omitempty"`
	Predicate string      `json:",omitempty"`
	Uses      []int32     `json:",omitempty"`
	// Definition is what follows USING in CREATE INDEX, "" for btree and the fields.
	Definition string `json:",omitempty"`
	// Comments are what COMMENT ON says of it.
	Comments IndexComments `json:",omitzero"`
}

// Condition is what rows meet in one field.
type Condition struct {
	Field int32
	Test  schema.RowTest
}

// Partial says that a unique index is of some rows only.
func (x Index) Partial() bool { return len(x.Where) > 0 || x.Predicate != "" }

// WhereSQL is the condition on the rows that a unique index is of, "" for none.
func (x Index) WhereSQL(t *schema.Table) string {
	if x.Predicate != "" {
		return x.Predicate
	}
	sql := x.where(t, schema.RowTest.SQL)
	if len(x.Where) > 1 {
		return "(" + sql + ")"
	}
	return sql
}

// WherePretty is the same without parentheses.
func (x Index) WherePretty(t *schema.Table) string {
	if x.Predicate != "" {
		return x.Predicate
	}
	return x.where(t, schema.RowTest.Pretty)
}

func (x Index) where(t *schema.Table, print func(schema.RowTest, string) string) string {
	var parts []string
	for _, c := range x.Where {
		f, _ := t.Field(c.Field)
		parts = append(parts, print(c.Test, quote.NameIfNeeded(f.Name)))
	}
	return strings.Join(parts, " AND ")
}

// Has says whether it is of a field, or of rows by that field.
func (x Index) Has(field int32) bool {
	return slices.Contains(x.Fields, field) || slices.Contains(x.Uses, field) || slices.ContainsFunc(x.Where, func(c Condition) bool { return c.Field == field })
}

// IndexComments are those on an index, and on the constraint that it was made as.
type IndexComments struct {
	Index      string `json:",omitempty"`
	Constraint string `json:",omitempty"`
}

// ForeignKey is a foreign key of a table of our own: each of its rows that has values in Fields has
// a row in another table with equal ones.
type ForeignKey struct {
	// ID is one that no table has.
	ID   change.TableID
	Name string
	// Fields are its columns', in order; Refs those of Table, by face, that they are equal to, and
	// which are the key of it or unique by Index, 0 for the key.
	Fields []int32
	Table  change.TableID
	Refs   []int32
	Index  change.TableID `json:",omitempty"`
	// OnDelete and OnUpdate are what becomes of rows whose row in Table goes, or gets other values.
	OnDelete, OnUpdate ForeignAction
	// Set are the fields that ON DELETE SET NULL and SET DEFAULT set; empty: all.
	Set []int32 `json:",omitempty"`
	// Full is MATCH FULL: a row has all values, or none.
	Full bool `json:",omitempty"`
	// Deferrable says that it may be checked at the end of a transaction, Deferred that it is
	// unless the transaction says otherwise, Invalid that rows of before may be without a row there.
	Deferrable bool `json:",omitempty"`
	Deferred   bool `json:",omitempty"`
	Invalid    bool `json:",omitempty"`
	// Comment is what COMMENT ON says of it.
	Comment string `json:",omitempty"`
}

// ForeignAction is what becomes of rows that refer to another, as pg_constraint says it.
type ForeignAction string

// What becomes of them.
const (
	ForeignNoAction   ForeignAction = "a"
	ForeignRestrict   ForeignAction = "r"
	ForeignCascade    ForeignAction = "c"
	ForeignSetNull    ForeignAction = "n"
	ForeignSetDefault ForeignAction = "d"
)

// Clone is a copy that shares nothing changeable.
func (v *View) Clone() *View {
	c := *v
	c.Columns, c.Reads = slices.Clone(v.Columns), slices.Clone(v.Reads)
	return &c
}

// viewKey names a view among all: neither part has a zero byte, as names have none.
func viewKey(schema, name string) string { return schema + "\x00" + name }

// Views are all views, by schema and name.
func (r *reader) Views() []*View { return byName(r.facts.views) }

// Queries are all views, and all materialized ones as views of their query, with the id of their
// table.
func (r *reader) Queries() []*View {
	out := r.Views()
	for _, t := range r.facts.tables {
		if t.Query == nil || t.Draft {
			continue
		}
		v := &View{ID: t.Face(), Schema: t.Schema, Name: t.Name, SQL: t.Query.SQL, Reads: t.Query.Reads, Uses: t.Query.Uses, Materialized: true}
		for _, f := range t.Current.Fields {
			v.Columns = append(v.Columns, ViewColumn{Name: f.Name, OID: f.OID, TypMod: f.TypMod, Collation: f.Collation})
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *View) int { return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name)) })
	return out
}

// ViewByName finds a view, or wraps ErrTableNotFound.
func (r *reader) ViewByName(schema, name string) (*View, error) {
	if v, ok := r.facts.views[viewKey(schema, name)]; ok {
		return v, nil
	}
	return nil, &NotFoundError{KindView, schema + "." + name}
}

// PutView adds a view, or replaces the one of its name. One without an ID gets it, and its
// schema is added if there is none.
func (t *Txn) PutView(v *View) error {
	if v.Name == "" || v.Schema == "" {
		return fmt.Errorf("put view: %w", errName)
	}
	v = v.Clone()
	if v.ID == 0 {
		v.ID = t.ReserveTable()
	}
	if v.CreatedAt.IsZero() {
		v.CreatedAt = t.now
	}
	key := viewKey(v.Schema, v.Name)
	old := t.facts.views[key]
	n := namedObject{kind: "view", prefix: prefixView, schema: v.Schema, name: v.Name, id: v.ID, owner: v.Owner}
	if old != nil {
		n.replaces = old.ID
	}
	if err := t.putObject(n, v); err != nil {
		return err
	}
	own(&t.facts.views, &t.owned.views)
	t.facts.views[key] = v
	return nil
}

// namedObject is a view or a sequence, on its way into the catalog or out of it.
type namedObject struct {
	kind         string
	prefix       byte
	schema, name string
	id           change.TableID
	// replaces is the id of the one that has the name, 0 for none.
	replaces change.TableID
	owner    uint32
	bits     uint32 // of a type's oid, beside its id
}

func (n namedObject) object(id change.TableID) right.Object {
	switch n.prefix {
	case prefixSequence:
		return right.SequenceOf(uint32(id))
	case prefixType:
		return right.Object{Class: right.Type, ID: usertype.OIDOf(id) | n.bits}
	}
	return right.Table(uint32(id))
}

// putObject writes the row of an object, and gives a new one its owner.
func (t *Txn) putObject(n namedObject, row any) error {
	if _, ok := t.facts.schemas[n.schema]; !ok {
		if err := t.putSchema(&Schema{Name: n.schema}); err != nil {
			return err
		}
	}
	var err error
	if n.replaces != 0 {
		err = t.mayChange(n.object(n.replaces), n.kind, n.name)
	} else {
		err = t.mayMake(n.schema)
	}
	if err != nil {
		return err
	}
	if err := t.setJSON(nameKey(n.prefix, viewKey(n.schema, n.name)), row); err != nil {
		return fmt.Errorf("put %s %s.%s: %w", n.kind, n.schema, n.name, err)
	}
	o, owner := n.object(n.id), cmp.Or(t.actor, n.owner)
	switch moved := t.moved[o.Key()]; {
	case n.replaces != 0:
		return nil
	case moved != nil:
		return t.putRight(o.Key(), moved)
	case owner == 0:
		return nil
	}
	return t.made(o, owner, t.facts.schemas[n.schema].OID)
}

// RewordView says the query of a view, also of a materialized one, in other words, since what it
// reads has another name now; whose the view is does not matter. It wraps ErrTableNotFound.
func (t *Txn) RewordView(schema, name, sql string) error {
	v, err := t.ViewByName(schema, name)
	if old, tableErr := t.reader.TableByName(schema, name); tableErr == nil && old.Query != nil {
		next, query := old.Clone(), *old.Query
		query.SQL = sql
		next.Query = &query
		return t.storeTable(old, next)
	}
	if err != nil {
		return err
	}
	next := v.Clone()
	next.SQL = sql
	if err := t.setJSON(nameKey(prefixView, viewKey(schema, name)), next); err != nil {
		return fmt.Errorf("reword view %s.%s: %w", schema, name, err)
	}
	own(&t.facts.views, &t.owned.views)
	t.facts.views[viewKey(schema, name)] = next
	return nil
}

// DeleteView removes a view, or wraps ErrTableNotFound. Whether others read it is the
// caller's to see.
func (t *Txn) DeleteView(schema, name string) error {
	v, err := t.ViewByName(schema, name)
	if err != nil {
		return err
	}
	if err := t.deleteObject(namedObject{kind: "view", prefix: prefixView, schema: schema, name: name, id: v.ID}); err != nil {
		return err
	}
	own(&t.facts.views, &t.owned.views)
	delete(t.facts.views, viewKey(schema, name))
	return nil
}

// deleteObject removes the row of an object, and what rights there are on it.
func (t *Txn) deleteObject(n namedObject) error {
	o := n.object(n.id)
	key := o.Key()
	if err := t.mayDrop(o, n.kind, n.schema, n.name); err != nil {
		return err
	}
	if e := t.facts.rights[key]; e != nil { // it may be put under another name
		if t.moved == nil {
			t.moved = map[string]*right.Entry{}
		}
		t.moved[key] = e
	}
	if err := t.putRight(key, nil); err != nil {
		return err
	}
	if err := t.delete(nameKey(n.prefix, viewKey(n.schema, n.name))); err != nil {
		return fmt.Errorf("delete %s %s.%s: %w", n.kind, n.schema, n.name, err)
	}
	return nil
}

// Sequences are all sequences, by schema and name.
func (r *reader) Sequences() []*sequence.Sequence { return byName(r.facts.sequences) }

// SequenceByName finds a sequence, or wraps ErrTableNotFound.
func (r *reader) SequenceByName(schema, name string) (*sequence.Sequence, error) {
	if s, ok := r.facts.sequences[viewKey(schema, name)]; ok {
		return s, nil
	}
	return nil, &NotFoundError{KindSequence, schema + "." + name}
}

// SequenceByID finds a sequence, or wraps ErrTableNotFound.
func (r *reader) SequenceByID(id change.TableID) (*sequence.Sequence, error) {
	for _, s := range r.facts.sequences {
		if s.ID == id {
			return s, nil
		}
	}
	return nil, &NotFoundError{KindSequence, idName(uint32(id))}
}

// PutSequence adds a sequence, or replaces the one of its name. It has its ID already; its
// schema is added if there is none.
func (t *Txn) PutSequence(s *sequence.Sequence) error {
	if s.Name == "" || s.Schema == "" || s.ID == 0 {
		return fmt.Errorf("put sequence: %w", errName)
	}
	s = s.Clone()
	if s.CreatedAt.IsZero() {
		s.CreatedAt = t.now
	}
	key := viewKey(s.Schema, s.Name)
	n := namedObject{kind: "sequence", prefix: prefixSequence, schema: s.Schema, name: s.Name, id: s.ID, owner: s.Owner}
	if old := t.facts.sequences[key]; old != nil {
		n.replaces = old.ID
	}
	if err := t.putObject(n, s); err != nil {
		return err
	}
	own(&t.facts.sequences, &t.owned.sequences)
	t.facts.sequences[key] = s
	return nil
}

// DeleteSequence removes a sequence, or wraps ErrTableNotFound. Whether defaults name it is
// the caller's to see.
func (t *Txn) DeleteSequence(schema, name string) error {
	s, err := t.SequenceByName(schema, name)
	if err != nil {
		return err
	}
	err = t.deleteObject(namedObject{kind: "sequence", prefix: prefixSequence, schema: schema, name: name, id: s.ID})
	if err != nil {
		return err
	}
	own(&t.facts.sequences, &t.owned.sequences)
	delete(t.facts.sequences, viewKey(schema, name))
	return nil
}

// DeleteDraft removes a table if it is a draft, with what the log and the lake have of it.
func (t *Txn) DeleteDraft(id change.TableID) error {
	tbl, ok := t.facts.tables[id]
	if !ok || !tbl.Draft {
		return nil
	}
	return errors.Join(t.DeleteTable(id), t.LeaveLake(id))
}

// ReserveTable gives out the number of a table, or view, that is to be made.
func (t *Txn) ReserveTable() change.TableID {
	return change.TableID(t.nextID(counterTable, 1))
}

// draftVersion begins the versions of drafts, which no committed state has.
const draftVersion = 1 << 62

// IsDraft says that the snapshot is of what is not committed.
func (s *Snapshot) IsDraft() bool { return s.facts.version >= draftVersion }

// Draft is a snapshot as it would be if fn were committed; nothing is. Its version is one
// that no other snapshot has.
func (c *Catalog) Draft(fn func(*Txn) error) (*Snapshot, error) { return c.draft(nil, fn) }

// DraftOn is Draft at the moment of a snapshot, of what Temporary has.
func (c *Catalog) DraftOn(at *Snapshot, fn func(*Txn) error) (*Snapshot, error) {
	return c.draft(at, fn)
}

func (c *Catalog) draft(at *Snapshot, fn func(*Txn) error) (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return nil, c.mu.err
	}
	if at == nil {
		at = c.Snapshot() // nothing is committed meanwhile
		defer at.Close()
	}
	return c.draftLocked(at, at.facts, fn)
}

// draftLocked is a draft at a moment, of facts that are the moment's or a draft at it.
func (c *Catalog) draftLocked(at *Snapshot, from *facts, fn func(*Txn) error) (*Snapshot, error) {
	txn := c.newTxnLocked()
	defer func() { _ = txn.batch.Close() }() // it is given up
	txn.facts, txn.drafting = from.share(), true
	if err := fn(txn); err != nil {
		return nil, err
	}
	c.mu.drafts++
	txn.facts.version, txn.facts.base = draftVersion+c.mu.drafts, at.facts
	return at.with(txn.facts), nil
}

// DraftMore is a draft, which may be closed, as it would be if fn were committed after it; nil when
// facts have been committed since the draft was made.
func (c *Catalog) DraftMore(draft *Snapshot, fn func(*Txn) error) (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return nil, c.mu.err
	}
	at := c.Snapshot()
	defer at.Close()
	if draft == nil || draft.facts.base != at.facts {
		return nil, nil
	}
	return c.draftLocked(at, draft.facts, fn)
}

// Again is a draft, which may be closed, at the moment of the snapshot: nil when facts have been
// committed since the draft was made. Its version is the draft's.
func (s *Snapshot) Again(draft *Snapshot) *Snapshot {
	if draft == nil || draft.facts.base != s.facts {
		return nil
	}
	return s.with(draft.facts)
}

// with is the snapshot's moment with other facts.
func (s *Snapshot) with(f *facts) *Snapshot {
	s.held.refs.Add(1)
	return &Snapshot{reader: reader{facts: f, kv: s.reader.kv}, held: s.held, cache: s.cache, log: s.log}
}

// Temporary are the tables and views that one session has for itself, in a schema of their own,
// and the rights on them. Only drafts of the session have them.
type Temporary struct {
	Schema *Schema
	Tables []*Table
	Views  []*View
	// Sequences are as their definitions have left them.
	Sequences []*sequence.Sequence
	Rights    []*right.Entry
}

// Include adds what is temporary to a draft: a transaction that has it cannot be committed.
func (t *Txn) Include(m *Temporary) {
	t.temporary = true
	t.facts.order.Store(nil)
	t.facts.book.Store(nil)
	own(&t.facts.schemas, &t.owned.schemas)
	own(&t.facts.tables, &t.owned.tables)
	own(&t.facts.tableByName, &t.owned.tableNames)
	own(&t.facts.tableByIndex, &t.owned.indexNames)
	own(&t.facts.views, &t.owned.views)
	own(&t.facts.rights, &t.owned.rights)
	t.facts.schemas[m.Schema.Name] = m.Schema
	for _, tbl := range m.Tables {
		t.facts.tables[tbl.ID], t.facts.tableByName[tableName{tbl.Schema, tbl.Name}] = tbl, tbl.ID
		for _, name := range tbl.indexNames() {
			t.facts.tableByIndex[name] = tbl.ID
		}
	}
	for _, v := range m.Views {
		t.facts.views[viewKey(v.Schema, v.Name)] = v
	}
	own(&t.facts.sequences, &t.owned.sequences)
	for _, q := range m.Sequences {
		t.facts.sequences[viewKey(q.Schema, q.Name)] = q
	}
	for _, e := range m.Rights {
		t.facts.rights[e.Object.Key()] = e
	}
}

// Temporary is what there is in a schema of temporary objects.
func (s *Snapshot) Temporary(schema *Schema) *Temporary {
	out := &Temporary{Schema: schema}
	rights := func(o right.Object) {
		if e := s.facts.rights[o.Key()]; e != nil {
			out.Rights = append(out.Rights, e)
		}
	}
	for _, t := range s.AllTables() {
		if t.Schema == schema.Name {
			out.Tables = append(out.Tables, t)
			rights(right.Table(uint32(t.Face())))
		}
	}
	for _, v := range s.Views() {
		if v.Schema == schema.Name {
			out.Views = append(out.Views, v)
			rights(right.Table(uint32(v.ID)))
		}
	}
	for _, q := range s.Sequences() {
		if q.Schema == schema.Name {
			out.Sequences = append(out.Sequences, q)
			rights(right.SequenceOf(uint32(q.ID)))
		}
	}
	return out
}
