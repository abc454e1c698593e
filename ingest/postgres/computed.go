package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/ingest/postgres/generated"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/ingest/postgres/preflight"
	"github.com/skipprd/skipprd/ingest/postgres/reconcile"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
)

var _ ingest.Computer = (*Source)(nil)

// computing is the session that evaluates expressions, and what is known of them. Its
// holder has taken it out of Source.computing.
type computing struct {
	conn *pgx.Conn
	// recipes are the queries of schema versions, by their tables.
	recipes map[computedVersion]*generated.Recipe
}

type computedVersion struct {
	oid, version uint32
}

// Compute implements ingest.Computer, on a connection of its own.
func (s *Source) Compute(ctx context.Context, oid uint32, t *schema.Table, rec arrow.RecordBatch) ([]arrow.Array, error) {
	var c *computing
	select {
	case c = <-s.computing:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { s.computing <- c }()
	if c.conn == nil || c.conn.IsClosed() {
		conn, err := s.dialComputing(ctx)
		if err != nil {
			return nil, err
		}
		c.conn, c.recipes = conn, map[computedVersion]*generated.Recipe{}
	}
	columns, refused, err := s.compute(ctx, c, oid, t, rec)
	switch {
	case errors.Is(err, generated.ErrDefinition):
		return nil, uncomputable(t, err)
	case err != nil && code(err) == "":
		closeNow(c.conn.PgConn())
		c.conn = nil
		fallthrough
	case err != nil:
		return nil, unavailable("compute columns", err)
	case len(refused) == 0:
		return columns, nil
	}
	out := &compute.RefusedError{Rows: map[int]compute.Refusal{}}
	for _, r := range refused {
		out.Rows[r.Row] = compute.Refusal{
			Column: r.Column, Reason: r.Err.Class, Hint: valueHint(r.Err), Code: refusedCode(t, r.Column, r.Err),
		}
	}
	for _, a := range columns {
		a.Release()
	}
	return nil, out
}

func (s *Source) compute(ctx context.Context, c *computing, oid uint32, t *schema.Table, rec arrow.RecordBatch,
) ([]arrow.Array, []generated.Refused, error) {
	decode := func(f schema.Field) (value.Decoder, error) {
		d, err := value.TextDecoder(f.Type)
		if err != nil {
			return nil, err
		}
		return outofrange.Decoder(d, f, s.cfg.rule), nil
	}
	at := computedVersion{oid, t.Version}
	recipe := c.recipes[at]
	var err error
	if recipe == nil {
		if recipe, err = generated.NewRecipe(t); err != nil {
			return nil, nil, err
		}
		c.recipes[at] = recipe
	}
	columns, refused, err := recipe.Values(ctx, generated.Session{Conn: c.conn.PgConn(), Table: oid}, t, rec, decode)
	if !errors.Is(err, generated.ErrDefinition) {
		return columns, refused, err
	}
	// What the expression names may have another name by now.
	again, known := s.renamed(ctx, oid, t)
	if known != nil {
		return nil, nil, known
	}
	if again == nil {
		return nil, nil, err
	}
	if recipe, err = generated.NewRecipe(again); err != nil {
		return nil, nil, err
	}
	c.recipes[at] = recipe
	return recipe.Values(ctx, generated.Session{Conn: c.conn.PgConn(), Table: oid}, again, rec, decode)
}

// renamed is a version of a table with its expressions as the source writes them now, nil
// when they are others.
func (s *Source) renamed(ctx context.Context, oid uint32, t *schema.Table) (*schema.Table, error) {
	var now []generated.Column
	err := s.withControlUnlocked(ctx, func(conn *pgx.Conn) error {
		all, err := generated.Read(ctx, conn, []uint32{oid})
		now = all[oid]
		return err
	})
	if err != nil {
		return nil, err
	}
	again := *t
	again.Fields = slices.Clone(t.Fields)
	for i, f := range again.Fields {
		if !f.Unsent() {
			continue
		}
		at := slices.IndexFunc(now, func(c generated.Column) bool {
			return c.Number == f.AttNum && c.Recipe.Form == f.Computed.Form && c.Problem == ""
		})
		if at < 0 {
			return nil, nil
		}
		again.Fields[i].Computed = &now[at].Recipe
	}
	return &again, nil
}

// uncomputable is why no row of a table can be computed.
func uncomputable(t *schema.Table, err error) *ingest.TableError {
	var names []string
	for _, f := range t.Fields {
		if f.Unsent() {
			names = append(names, quote.Name(f.Name))
		}
	}
	e := &ingest.TableError{
		Reason: fmt.Sprintf("generated column %s cannot be computed any more, the source says: %s", strings.Join(names, ", "), generated.Explain(err)),
		Hint:   resync,
	}
	if code(err) == codePrivilege {
		e.Hint = "GRANT what is missing at the source to the table's owner, or to the connection's role where it may not act as the owner; then ALTER PIPELINE … RESUME TABLE …;"
	}
	return e
}

// dialComputing opens the session. It reads only. Names in expressions are those of
// pg_catalog, or qualified; functions of the user's may count on the search_path that the
// role has.
func (s *Source) dialComputing(ctx context.Context) (*pgx.Conn, error) {
	cfg := s.cfg.conn.Copy()
	cfg.DialFunc = patient(cfg.DialFunc, s.clock)
	delete(cfg.RuntimeParams, "search_path")
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, unavailable("connect", err)
	}
	const path = `SELECT pg_catalog.set_config('search_path', pg_catalog.concat_ws(', ', 'pg_catalog',
		nullif(pg_catalog.current_setting('search_path'), '')), false)`
	if err := run(ctx, conn.PgConn(), path); err != nil {
		closeNow(conn.PgConn())
		return nil, unavailable("set search_path", err)
	}
	return conn, nil
}

// describeGenerated finds out about the generated columns among those of tables: what the
// source sends of them, and how the others are computed.
func describeGenerated(ctx context.Context, conn *pgx.Conn, columns map[uint32][]attribute, publication string) error {
	var oids []uint32
	for oid, list := range columns {
		if slices.ContainsFunc(list, func(a attribute) bool { return a.generated }) {
			oids = append(oids, oid)
		}
	}
	if len(oids) == 0 {
		return nil
	}
	slices.Sort(oids)
	known, err := generated.Read(ctx, conn, oids)
	if err != nil {
		return unavailable("list columns", err)
	}
	sent, err := generated.Sent(ctx, conn, publication, oids)
	if err != nil {
		return unavailable("list columns", err)
	}
	for oid, list := range known {
		for _, c := range list {
			i := slices.IndexFunc(columns[oid], func(a attribute) bool { return a.number == c.Number })
			if i < 0 {
				continue
			}
			c.Recipe.Sent = !c.Virtual && sent(oid, c.Name)
			columns[oid][i].computed = &c
		}
	}
	return nil
}

// keepComputable leaves out the computed columns of a table that cannot be computed from
// what is taken in of it, and says so. wanted are the columns that the user names.
func keepComputable(ctx context.Context, conn *pgx.Conn, t *ingest.SourceTable, wanted []string, unable map[string]string) error {
	var kept []string
	for i := 0; i < len(t.Columns) && t.Unsupported == ""; {
		c := t.Columns[i]
		if c.Computed == nil || c.Computed.Sent {
			i++
			continue
		}
		why := unable[c.Name]
		if why == "" {
			var err error
			if why, err = tryColumn(ctx, conn, t, c); err != nil {
				return err
			}
		}
		if why == "" {
			kept = append(kept, quote.Name(c.Name))
			i++
			continue
		}
		if slices.Contains(wanted, c.Name) {
			t.Unsupported = fmt.Sprintf("column %s is generated, not sent by the source, and cannot be computed: %s", quote.Name(c.Name), why)
			t.Hint = "Name the columns that it is computed from, too, or leave it out."
			return nil
		}
		t.Notes = append(t.Notes, fmt.Sprintf("column %s of %s.%s is generated and left out: the source does not send it, and %s",
			quote.Name(c.Name), t.Schema, t.Name, why))
		t.Columns = slices.Delete(t.Columns, i, i+1)
	}
	if len(kept) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf(
			"column %s of %s.%s is generated and not sent by the source, which computes it again: one query for each group of changes;"+
				" generated_columns = 'skip' leaves it out", strings.Join(kept, ", "), t.Schema, t.Name))
	}
	return nil
}

// tryColumn has a column computed for no rows, and says why that fails, or nothing.
func tryColumn(ctx context.Context, conn *pgx.Conn, t *ingest.SourceTable, c ingest.SourceColumn) (why string, err error) {
	s := &schema.Table{}
	for _, o := range t.Columns {
		if o.Computed == nil || o.Computed.Sent || o.Name == c.Name {
			s.Fields = append(s.Fields, schema.Field{Name: o.Name, AttNum: o.AttNum, Type: o.Type, OID: o.OID, Computed: o.Computed})
		}
	}
	recipe, err := generated.NewRecipe(s)
	if err != nil {
		return "a column that it is computed from is left out", nil // the only way to fail
	}
	params := [][]byte{[]byte("0")}
	for range recipe.Inputs {
		params = append(params, []byte("{}"))
	}
	try := func() error {
		return generated.Session{Conn: conn.PgConn(), Table: t.OID}.Query(ctx, recipe.SQL, params, func([][]byte) error { return nil })
	}
	if conn.PgConn().TxStatus() == 'T' {
		err = aside(ctx, conn.PgConn(), try)
	} else {
		err = try()
	}
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &pg):
		return "it cannot be computed, the source says: " + firstLine(errors.New(pg.Message)), nil
	}
	return "", unavailable("try to compute a column", err)
}

// aside does what may fail inside of a transaction, which goes on as if it had not been done.
func aside(ctx context.Context, conn *pgconn.PgConn, f func() error) error {
	if err := run(ctx, conn, "SAVEPOINT _skippr_try"); err != nil {
		return err
	}
	failed := f()
	if err := run(ctx, conn, "ROLLBACK TO SAVEPOINT _skippr_try; RELEASE SAVEPOINT _skippr_try"); err != nil {
		return err
	}
	return failed
}

// inputs are the numbers of the columns from which others are computed. What they hold
// beyond the range of their types here is never replaced: the others would be of another
// value.
func inputs(s *schema.Table) map[int16]bool {
	var out map[int16]bool
	for _, f := range s.Fields {
		if !f.Unsent() {
			continue
		}
		if out == nil {
			out = map[int16]bool{}
		}
		for _, in := range f.Computed.Inputs {
			out[in.AttNum] = true
		}
	}
	return out
}

// readGenerated reads how the generated columns of a table are computed, if it has any.
func (t *liveTable) readGenerated(ctx context.Context, conn *pgx.Conn, oid uint32) error {
	if !slices.ContainsFunc(t.columns, func(a liveAttribute) bool { return a.generated }) {
		return nil
	}
	all, err := generated.Read(ctx, conn, []uint32{oid})
	if err != nil {
		return unavailable("read columns", err)
	}
	t.computed = all[oid]
	return nil
}

// recipe is how a column is computed, nil when it is not.
func (t *liveTable) recipe(number int16) *generated.Column {
	i := slices.IndexFunc(t.computed, func(c generated.Column) bool { return c.Number == number })
	if i < 0 {
		return nil
	}
	return &t.computed[i]
}

// sends says that a description may have the generated column with a number.
func (t *liveTable) sends(number int16) bool {
	c := t.recipe(number)
	return c != nil && !c.Virtual
}

// settled says that what was changed by one transaction is so for another, which has
// written to the table: see reconcile.Attribute.Settled.
func settled(changed, xid uint32) bool {
	return (&reconcile.Attribute{Changed: changed}).Settled(xid)
}

// sent is how a described column of ours is computed; nil: it is not generated.
func (d *description) sent(old schema.Field) *schema.Computed {
	live := d.live.recipe(old.AttNum)
	if live == nil {
		return nil
	}
	now := live.Recipe
	if old.Computed != nil && now.Form != old.Computed.Form && !settled(live.Changed, d.xid) {
		d.again = d.again || live.Changed == d.xid
		now = *old.Computed
	}
	now.Sent = true
	return &now
}

// unsent adds the columns that are computed and not described to those that are, and tells
// of generated ones that are new: they come with a copy, for older rows have values, too.
func (d *description) unsent(described []ingest.SourceColumn) ([]ingest.SourceColumn, *ingest.TableError) {
	out := described
	for _, l := range d.live.columns {
		if _, known := d.fieldOf(l.number); l.generated && !known && !d.partial && !slices.Contains(d.except, l.name) {
			d.leftOut(l)
		}
	}
	for _, f := range d.Schema.Fields {
		if f.Computed == nil || slices.Contains(d.numbers, f.AttNum) {
			continue
		}
		c := ingest.SourceColumn{
			Name: f.Name, OID: f.OID, TypMod: f.TypMod, TypeName: f.TypeName, NotNull: f.NotNull,
			AttNum: f.AttNum, Type: f.Type, Initial: f.Initial,
		}
		recipe := *f.Computed
		recipe.Sent, c.Computed = false, &recipe
		i := slices.IndexFunc(d.live.columns, func(a liveAttribute) bool { return a.number == f.AttNum })
		d.again = d.again || i >= 0 && d.live.columns[i].changed == d.xid
		if i >= 0 && settled(d.live.columns[i].changed, d.xid) {
			l := d.live.columns[i]
			if l.dropped {
				continue
			}
			c.Name, c.NotNull = l.name, l.notNull
		}
		if live := d.live.recipe(f.AttNum); live != nil {
			d.again = d.again || live.Changed == d.xid
			switch {
			case live.Problem != "":
				return nil, differs("generated column %s is not sent, and "+live.Problem, quote.Name(f.Name))
			case live.Recipe.Form == recipe.Form || !settled(live.Changed, d.xid):
			case d.Schema.WholeRow:
				return nil, told(differs("the expression of generated column %s was changed, and with it the values of all rows,", quote.Name(f.Name)))
			default: // older rows come with a copy
				recipe = live.Recipe
			}
		}
		if !readable(recipe, described) {
			if i < 0 || d.live.columns[i].dropped {
				continue // it went with what it is computed from
			}
			return nil, told(differs("a column was dropped from which %s is computed", quote.Name(f.Name)))
		}
		if slices.ContainsFunc(out, func(o ingest.SourceColumn) bool { return o.Name == c.Name }) {
			return nil, cannotTell(reconcile.ErrAmbiguous)
		}
		out = append(out, c)
	}
	if len(out) > len(described) {
		slices.SortStableFunc(out, func(a, b ingest.SourceColumn) int { return int(a.AttNum) - int(b.AttNum) })
	}
	return out, nil
}

// readable says that all columns are described that an expression reads.
func readable(c schema.Computed, described []ingest.SourceColumn) bool {
	return !slices.ContainsFunc(c.Inputs, func(in schema.Input) bool {
		return !slices.ContainsFunc(described, func(c ingest.SourceColumn) bool { return c.AttNum == in.AttNum })
	})
}

// leftOut remembers a generated column that was added while the table was watched.
func (d *description) leftOut(l liveAttribute) {
	if d.added != nil && d.files.Came(d.Source.OID, l.number) {
		d.added.note(d.Source.OID, l.name)
	}
}

// addedColumns are generated columns that came to tables while they were watched, by table.
// Safe for concurrent use.
type addedColumns struct {
	mu    sync.Mutex
	names map[uint32]string
}

func (a *addedColumns) note(oid uint32, column string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil {
		a.names = map[uint32]string{}
	}
	a.names[oid] = column
}

// notes adds what is left out to notes on tables.
func (a *addedColumns) notes(to map[uint32]ingest.TableNote) map[uint32]ingest.TableNote {
	a.mu.Lock()
	defer a.mu.Unlock()
	for oid, column := range a.names {
		if _, ok := to[oid]; ok {
			continue
		}
		if to == nil {
			to = map[uint32]ingest.TableNote{}
		}
		to[oid] = ingest.TableNote{
			Reason: fmt.Sprintf("generated column %s was added at the source, and is left out until the table is copied anew", quote.Name(column)),
			Hint:   resync,
		}
	}
	return to
}

// functionNeeds adds to what tables lack the functions that may not be called, of
// generated columns that are left out for it.
func (s *Source) functionNeeds(ctx context.Context, conn *pgx.Conn, tables []ingest.SourceTable,
	needs map[uint32][]preflight.Need,
) error {
	if s.cfg.skipGenerated {
		return nil
	}
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	all, err := generated.Read(ctx, conn, oids)
	if err != nil {
		return unavailable("list columns", err)
	}
	for _, t := range tables {
		selected := selectedTable(s.cfg.selection, t.Schema, t.Name)
		for _, c := range all[t.OID] {
			taken := slices.ContainsFunc(t.Columns, func(o ingest.SourceColumn) bool { return o.AttNum == c.Number })
			if taken || slices.Contains(selected.Except, c.Name) || len(selected.Columns) > 0 && !slices.Contains(selected.Columns, c.Name) {
				continue
			}
			for _, f := range c.Barred {
				role := quoteIdent(f.Role)
				fix := fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s;", f.Signature, role)
				if !f.Usage {
					fix = fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; ", quoteIdent(f.Schema), role) + fix
				}
				needs[t.OID] = append(needs[t.OID], preflight.Need{
					What: fmt.Sprintf("role %s may not call function %s, by which column %s is generated", role, f.Signature, quote.Name(c.Name)), Fix: fix,
				})
			}
		}
	}
	return nil
}
