package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/reconcile"
	"github.com/skipprd/skipprd/ingest/postgres/rewrite"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// describe takes the description of a table that the open transaction comes with: it
// finds which columns it speaks of, and tells the sink when they are others than before.
// It asks the catalog, which may be newer than the description, and waits until it is not
// older.
func (a *applier) describe(t *streamTable) error {
	r := t.described
	t.described = nil
	if err := a.source.awaitSeen(a.ctx, a.xid); err != nil {
		return fmt.Errorf("describe %s.%s: %w", r.Namespace, r.Name, err)
	}
	var change ingest.SchemaChange
	var problem *ingest.TableError
	again := false
	err := a.source.withControlUnlocked(a.ctx, func(conn *pgx.Conn) error {
		live, err := readLiveTable(a.ctx, conn, t.Source.OID)
		if err != nil {
			return err
		}
		if problem, err = a.source.dropUnlisted(a.ctx, conn, live, t); err != nil || problem != nil {
			return err
		}
		if err := live.readGenerated(a.ctx, conn, t.Source.OID); err != nil {
			return err
		}
		if len(live.look.Files) > 0 {
			if err := a.source.files.Complete(a.ctx, conn, t.Source.OID, t.Source.Files, &live.look, a.source.streamedNames(), a.source.truncated.have); err != nil {
				return unavailable("look at a table", err)
			}
		}
		a.source.files.Add(t.Source.OID, t.Source.Files, live.look)
		d := description{streamTable: t, relation: r, live: live, files: &a.source.files, xid: a.xid}
		if !a.source.cfg.skipGenerated {
			d.added = &a.source.added
		}
		change, problem, err = d.change(a.ctx, conn)
		again = d.again
		return err
	})
	if err != nil {
		return fmt.Errorf("describe %s.%s: %w", r.Namespace, r.Name, err)
	}
	if problem != nil {
		return a.stop(t, problem)
	}
	if again {
		a.again = append(a.again, describedAgain{t, r})
	}
	next, err := a.sink.Evolve(t.ID, change)
	if err != nil {
		if t.stoppedBy(err) {
			return nil
		}
		return fmt.Errorf("describe %s.%s: %w", r.Namespace, r.Name, err)
	}
	if next != t.Schema {
		t.Versions = append(t.Versions[:len(t.Versions):len(t.Versions)], t.Schema)
	}
	t.Schema, t.Source.Schema, t.Source.Name = next, r.Namespace, r.Name
	t.builder = nil
	return t.bind(r)
}

// description is a description of a table with what is known to make sense of it.
type description struct {
	*streamTable
	relation *pgoutput.Relation
	live     *liveTable
	files    *rewrite.Known // what looks at the table found, this one too
	xid      uint32
	added    *addedColumns // told of generated columns that are left out; nil: all are
	numbers  []int16       // of relation.Columns
	again    bool          // another transaction may be told more from the same description
}

// describedAgain is a description to look at once more, at the next transaction.
type describedAgain struct {
	table    *streamTable
	relation *pgoutput.Relation
}

// change is how the table looks from the description on; problem says why the table
// cannot go on.
func (d *description) change(ctx context.Context, conn *pgx.Conn) (c ingest.SchemaChange, problem *ingest.TableError, err error) {
	if reason, _ := unnamed(relation{schema: d.relation.Namespace, name: d.relation.Name}, ingest.SourceTable{}); reason != "" {
		return c, &ingest.TableError{Reason: reason, Hint: renameIt}, nil
	}
	d.numbers, err = reconcile.Match(d.attributes(), d.shapes(), d.xid)
	if err != nil {
		return c, cannotTell(err), nil
	}
	c.Schema, c.Name = d.relation.Namespace, d.relation.Name
	for i, rc := range d.relation.Columns {
		number := d.numbers[i]
		old, known := d.fieldOf(number)
		if !known && (d.partial || means(d.except, d.Source.Numbers, rc.Name, number)) {
			continue
		}
		if l, ok := d.live.column(number); !known && ok && l.generated {
			continue // older rows have values, too: see unsent
		}
		if !naming.Said(rc.Name) {
			return c, &ingest.TableError{Reason: notUTF8("the name of a column", rc.Name), Hint: renameIt}, nil
		}
		col, err := d.column(ctx, conn, rc, number)
		if err != nil {
			return c, nil, err
		}
		switch {
		case !known:
			problem = d.initial(&col)
		case !keepsValues(old, col):
			problem = differs("the type of column %s was changed to one that old values cannot follow", quote.Name(rc.Name))
		}
		if problem == nil && known {
			col.Computed = d.sent(old)
		}
		if problem != nil {
			return c, problem, nil
		}
		c.Columns = append(c.Columns, col)
	}
	if c.Columns, problem = d.unsent(c.Columns); problem != nil {
		return c, problem, nil
	}
	if c.Key, problem = d.key(); problem == nil && d.Schema.WholeRow {
		problem, err = d.wholeRow(ctx, conn)
	}
	return c, problem, err
}

// renameIt is the hint of a table that was given a name which cannot be used here.
const renameIt = "Rename it at the source, then " + resync

func (d *description) fieldOf(number int16) (schema.Field, bool) {
	i := slices.IndexFunc(d.Schema.Fields, func(f schema.Field) bool { return f.AttNum == number })
	if i < 0 {
		return schema.Field{}, false
	}
	return d.Schema.Fields[i], true
}

// attributes are the columns that the table has and had.
func (d *description) attributes() []reconcile.Attribute {
	var out []reconcile.Attribute
	for _, l := range d.live.columns {
		f, known := d.fieldOf(l.number)
		if l.generated && !d.live.sends(l.number) {
			continue
		}
		a := reconcile.Attribute{Number: l.number, Changed: l.changed, Silent: l.generated}
		if !l.dropped {
			a.Now = d.shape(l.name, l.oid, l.typmod)
		}
		if known && !f.Unsent() {
			a.Known = &reconcile.Shape{Name: f.Name, OID: f.OID, TypMod: f.TypMod}
		}
		if known && f.Unsent() && !a.Settled(d.xid) {
			a.Silent = true // it was generated, and is not any more
		}
		out = append(out, a)
	}
	if len(d.live.columns) == 0 { // the table was dropped
		for _, f := range d.Schema.Fields {
			if f.Unsent() {
				continue
			}
			out = append(out, reconcile.Attribute{
				Number: f.AttNum, Known: &reconcile.Shape{Name: f.Name, OID: f.OID, TypMod: f.TypMod}, Changed: d.xid + 1,
			})
		}
	}
	slices.SortFunc(out, func(a, b reconcile.Attribute) int { return int(a.Number) - int(b.Number) })
	return out
}

// shape is a column's look with its domain resolved, as schemas have it.
func (d *description) shape(name string, oid uint32, typmod int32) *reconcile.Shape {
	oid, typmod, _, _, _ = resolve(attribute{oid: oid, typmod: typmod}, d.live.domains)
	return &reconcile.Shape{Name: name, OID: oid, TypMod: typmod}
}

func (d *description) shapes() []reconcile.Shape {
	out := make([]reconcile.Shape, len(d.relation.Columns))
	for i, c := range d.relation.Columns {
		out[i] = *d.shape(c.Name, c.OID, c.TypMod)
	}
	return out
}

// cannotTell explains what Match found.
func cannotTell(err error) *ingest.TableError {
	e := &ingest.TableError{
		Reason: "its columns were changed at the source more than once, and which of them a change has cannot be told",
		Hint:   resync, Resync: true,
	}
	if errors.Is(err, reconcile.ErrOlder) {
		e.Reason = "a change is older than the table's columns here, which lack nothing since"
		e.Hint = "Wait until the pipeline has caught up, then " + resync
	}
	return e
}

// column is a described column, with what only the catalog knows.
func (d *description) column(ctx context.Context, conn *pgx.Conn, rc pgoutput.Column, number int16) (ingest.SourceColumn, error) {
	a := attribute{number: number, name: rc.Name, oid: rc.OID, typmod: rc.TypMod, dims: 1}
	if f, ok := d.fieldOf(number); ok {
		a.notNull = f.NotNull
		if f.Type.Kind != schema.List && schema.ElementOID(f.OID) != 0 {
			a.dims = 2
		}
	}
	if l, ok := d.live.column(number); ok {
		a.notNull, a.typeName, a.dims = l.notNull, l.typeName, l.dims
	}
	if a.oid >= firstUserOID {
		var err error
		if a.typeName, err = typeName(ctx, conn, a.oid, a.typmod); err != nil {
			return ingest.SourceColumn{}, err
		}
	}
	c := column(a, d.live.domains)
	old, known := d.fieldOf(number)
	d.exact.follow(&c, old, known)
	return c, nil
}

// firstUserOID is the first OID of types that are a database's own.
const firstUserOID = 16384

// initial finds what rows older than a new column have in it. The server says so when it
// has added the column without touching the rows; when they were rewritten since, for a
// default that differs from row to row or for something else, it does not.
func (d *description) initial(c *ingest.SourceColumn) *ingest.TableError {
	l, ok := d.live.column(c.AttNum)
	switch {
	case !ok: // dropped since: nobody will ask for it for long
		return nil
	case len(l.missing) > 1:
		return told(differs("column %s was added with a default that is not the same in all partitions", quote.Name(c.Name)))
	case len(l.missing) == 1:
		text, err := initialText(c.Type, l.missing[0])
		if err != nil {
			return differs("column %s was added with a default that cannot be taken in", quote.Name(c.Name))
		}
		c.Initial = text
		return nil
	}
	switch plain := d.files.Plain(d.Source.OID, d.live.look, c.AttNum); {
	case plain:
		return nil
	case l.eachOwn:
		return differs("column %s was added with a default that each row has a value of its own of", quote.Name(c.Name))
	}
	// It may have had a default that it has no more, or got values by a change of its type.
	return told(differs("column %s was added, and the table rewritten before the change was seen, so what older rows have in it is not known",
		quote.Name(c.Name)))
}

// told is a problem that is none for a new copy; see ingest.TableError.
func told(problem *ingest.TableError) *ingest.TableError {
	problem.Resync = true
	return problem
}

// initialText reads a value as the server writes it.
func initialText(t schema.Type, text string) (*string, error) {
	decode, err := value.TextDecoder(t)
	if err != nil {
		return nil, err
	}
	b := array.NewBuilder(memory.DefaultAllocator, schema.ArrowType(t))
	defer b.Release()
	if err := decode(b, []byte(text)); err != nil {
		return nil, err
	}
	a := b.NewArray()
	defer a.Release()
	return schema.FormatInitial(t, a, 0)
}

// key is the row key's columns by their names now. The replica identity tells them, or
// with identity FULL an index that keeps rows unique by them.
func (d *description) key() ([]string, *ingest.TableError) {
	if len(d.Schema.Key) == 0 {
		return nil, nil
	}
	var names []string
	var numbers []int16
	for _, f := range d.Schema.KeyFields() {
		i := slices.Index(d.numbers, f.AttNum)
		if i < 0 || d.relation.Identity != 'f' && !d.relation.Columns[i].Identity {
			return nil, told(differs("the key, or the replica identity, no longer is what it was: see column %s", quote.Name(f.Name)))
		}
		names, numbers = append(names, d.relation.Columns[i].Name), append(numbers, f.AttNum)
	}
	if d.relation.Identity == 'f' {
		if len(d.live.columns) > 0 && !d.live.keeps(numbers) {
			return nil, told(differs("no index keeps rows apart any more by the key, see column %s", quote.Name(names[0])))
		}
		return names, nil
	}
	for i, c := range d.relation.Columns {
		if c.Identity && !slices.Contains(numbers, d.numbers[i]) {
			return nil, told(differs("the key, or the replica identity, no longer is what it was: see column %s", quote.Name(c.Name)))
		}
	}
	return names, nil
}

// silentLeafQuery names a partition of table $1 that sends less than whole old rows: only
// those of a key. One without any key sends none, for PostgreSQL refuses to change its rows.
const silentLeafQuery = `
SELECT {{coalesce(min(t.relid::pg_catalog.regclass::text), '')}}
  FROM pg_catalog.pg_partition_tree($1) t JOIN pg_catalog.pg_class c ON c.oid = t.relid
 WHERE c.relkind = 'r' AND (c.relreplident = 'i' OR c.relreplident = 'd' AND EXISTS (
       SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate AND i.indisvalid))`

// wholeRow says why changes of a table whose rows are told apart by all their columns do
// not carry them all any more. With identity NOTHING, or DEFAULT and no key, PostgreSQL
// refuses updates and deletes of a table that publishes them, so nothing is missed.
func (d *description) wholeRow(ctx context.Context, conn *pgx.Conn) (*ingest.TableError, error) {
	r := d.relation
	if r.Identity != 'f' && slices.ContainsFunc(r.Columns, func(c pgoutput.Column) bool { return c.Identity }) {
		return &ingest.TableError{
			Reason: "its replica identity is no longer FULL at the source, so its changes do not carry whole rows",
			Hint:   "Take its rows by their key now, or make it FULL again. " + resync, Resync: true,
		}, nil
	}
	var leaf string
	names := naming.Of(conn.PgConn())
	if err := conn.QueryRow(ctx, names.SQL(silentLeafQuery), d.Source.OID).Scan(&leaf); err != nil {
		return nil, unavailable("read replica identity of partitions", err)
	}
	leaf = naming.Show(names.Text(leaf))
	if leaf == "" {
		return nil, nil
	}
	return &ingest.TableError{
		Reason: fmt.Sprintf("the replica identity of partition %s is not FULL, so its changes do not carry whole rows", leaf),
		Hint:   fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL at the source. ", leaf) + resync,
	}, nil
}

// keepsValues says that a change of type leaves the values that rows have as they are, as
// far as one can know: a USING clause can change them all the same.
func keepsValues(old schema.Field, c ingest.SourceColumn) bool {
	if old.OID == c.OID {
		return old.TypMod == c.TypMod || keepsModifier(old, c)
	}
	switch [2]uint32{old.OID, c.OID} {
	case [2]uint32{schema.OIDInt2, schema.OIDInt4}, [2]uint32{schema.OIDInt2, schema.OIDInt8},
		[2]uint32{schema.OIDInt4, schema.OIDInt8}, [2]uint32{schema.OIDFloat4, schema.OIDFloat8},
		[2]uint32{schema.OIDVarchar, schema.OIDText}:
		return true
	case [2]uint32{schema.OIDText, schema.OIDVarchar}:
		return c.TypMod < 0
	}
	return false
}

// keepsModifier says that another modifier of the same type leaves values as they are.
func keepsModifier(old schema.Field, c ingest.SourceColumn) bool {
	switch old.OID {
	case schema.OIDVarchar, schema.OIDVarbit, schema.OIDTime, schema.OIDTimeTZ, schema.OIDTimestamp, schema.OIDTimestampTZ:
		return c.TypMod < 0 || old.TypMod >= 0 && c.TypMod >= old.TypMod
	case schema.OIDNumeric:
		return schema.Widens(old.Type, c.Type) && old.Type.Kind == schema.Decimal
	}
	return false
}
