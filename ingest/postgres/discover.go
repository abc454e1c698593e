package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/generated"
	"github.com/skipprd/skipprd/ingest/postgres/kinds"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/ingest/postgres/wording"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// relation is a relation as pg_class has it.
type relation struct {
	oid                         uint32
	schema, name                string
	kind, persistence, identity string
	ancestors                   []uint32
	rows, bytes                 int64
	// silent and alien count leaves that send no old rows, and leaves that are never
	// in the log (foreign, unlogged).
	silent, alien int64
	// partial and mixed count leaves that do not send whole old rows, and leaves that send
	// others columns of them than the table says; whole counts the others than partial.
	partial, mixed, whole int64
	// readable says that we may read it and its leaves; hidden, that row security keeps
	// rows from us.
	readable, hidden bool
	parent           bool   // other tables inherit from it
	role             string // ours
}

// Discover implements ingest.Source.
func (s *Source) Discover(ctx context.Context, sel catalog.TableSelection) ([]ingest.SourceTable, error) {
	var out []ingest.SourceTable
	err := s.withControl(ctx, func(conn *pgx.Conn) error {
		var err error
		if out, err = discover(ctx, conn, sel, &s.cfg); err != nil {
			return err
		}
		return tryPublications(ctx, conn, out)
	})
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	return out, nil
}

// discover lists tables, for a pipeline with the options of cfg.
func discover(ctx context.Context, conn *pgx.Conn, sel catalog.TableSelection, cfg *config) ([]ingest.SourceTable, error) {
	return discoverAs(ctx, conn, sel, cfg, func(r relation) relation { return r })
}

// discoverAs is discover, had the relations been as given by as.
func discoverAs(ctx context.Context, conn *pgx.Conn, sel catalog.TableSelection, cfg *config, as func(relation) relation,
) ([]ingest.SourceTable, error) {
	relations, err := readRelations(ctx, conn, sel)
	if err != nil {
		return nil, err
	}
	relations = withoutExcepted(relations, sel)
	oids := make([]uint32, len(relations))
	for i, r := range relations {
		oids[i] = r.oid
	}
	domains, err := readDomains(ctx, conn)
	if err != nil {
		return nil, err
	}
	columns, err := readColumns(ctx, conn, oids)
	if err != nil {
		return nil, err
	}
	if !cfg.skipGenerated {
		if err := describeGenerated(ctx, conn, columns, cfg.publication); err != nil {
			return nil, err
		}
	}
	keys, err := readKeys(ctx, conn, oids)
	if err != nil {
		return nil, err
	}
	sel = renamedIn(sel, relations, columns)
	var out []ingest.SourceTable
	for _, r := range relations {
		if inSelection(r.ancestors, oids) {
			continue // the partitioned table brings it
		}
		if len(selectedColumns(sel, r.schema, r.name)) > 0 { // what is not named may be called what it likes
			columns[r.oid] = slices.DeleteFunc(columns[r.oid], func(a attribute) bool { return !naming.Said(a.name) })
		}
		t := describe(as(r), columns[r.oid], keys[r.oid], domains)
		exact := exactTextOf(sel, r.schema, r.name)
		for i := range t.Columns {
			exact.keep(&t.Columns[i])
		}
		t.Numbers = selectedTable(sel, r.schema, r.name).Numbers
		out = append(out, t)
	}
	if err := bringParts(ctx, conn, relations, out); err != nil {
		return nil, err
	}
	if err := bringForms(ctx, conn, out); err != nil {
		return nil, err
	}
	if err := bringTypes(ctx, conn, out); err != nil {
		return nil, err
	}
	for i := range out {
		selectColumns(&out[i], sel)
		if err := keepComputable(ctx, conn, &out[i], selectedColumns(sel, out[i].Schema, out[i].Name), unable(columns[out[i].OID])); err != nil {
			return nil, err
		}
	}
	if err := checkFilters(ctx, conn, out, sel); err != nil {
		return nil, err
	}
	return append(out, missing(relations, sel)...), nil
}

// inSelection says whether one of some relations is among oids.
func inSelection(some, oids []uint32) bool {
	return slices.ContainsFunc(some, func(o uint32) bool { return slices.Contains(oids, o) })
}

// readRelations lists the relations that a selection may mean. One that is called what the
// database's encoding does not have is none of it.
func readRelations(ctx context.Context, conn *pgx.Conn, sel catalog.TableSelection) ([]relation, error) {
	out, err := listRelations(ctx, conn, sel)
	if code(err) != deadletter.CodeNoUTF8 || conn.PgConn().TxStatus() != 'I' {
		return out, err
	}
	foreign := func(name string) bool {
		_, asked := conn.Exec(ctx, "SELECT $1::pg_catalog.text", name)
		return code(asked) == deadletter.CodeNoUTF8
	}
	sel.Schemas = slices.DeleteFunc(slices.Clone(sel.Schemas), foreign)
	sel.Tables = slices.DeleteFunc(slices.Clone(sel.Tables), func(t catalog.SelectedTable) bool {
		return foreign(t.Schema + t.Name)
	})
	return listRelations(ctx, conn, sel)
}

func listRelations(ctx context.Context, conn *pgx.Conn, sel catalog.TableSelection) ([]relation, error) {
	var schemas, tables []string
	for _, t := range sel.Tables {
		schemas, tables = append(schemas, schemaOf(t)), append(tables, t.Name)
	}
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(relationsQuery), sel.AllTables, nonNil(sel.Schemas), nonNil(schemas), nonNil(tables))
	if err != nil {
		return nil, unavailable("list tables", err)
	}
	var out []relation
	var r relation
	var readable *bool
	_, err = pgx.ForEachRow(rows, []any{
		&r.oid, &r.schema, &r.name, &r.kind, &r.persistence, &r.identity, &r.ancestors,
		&r.rows, &r.bytes, &r.silent, &r.alien, &r.partial, &r.mixed, &r.whole, &readable, &r.hidden, &r.parent,
	}, func() error {
		if readable == nil {
			return nil // dropped meanwhile
		}
		r.readable, r.role = *readable, conn.Config().User
		names.Read(&r.schema, &r.name)
		out, r = append(out, r), relation{}
		return nil
	})
	if err != nil {
		return nil, unavailable("list tables", err)
	}
	return out, nil
}

func nonNil(list []string) []string { return append([]string{}, list...) }

// schemaOf is the schema of a selected table: public when none is named.
func schemaOf(t catalog.SelectedTable) string {
	if t.Schema == "" {
		return "public"
	}
	return t.Schema
}

func withoutExcepted(relations []relation, sel catalog.TableSelection) []relation {
	return slices.DeleteFunc(relations, func(r relation) bool {
		return slices.Contains(sel.Except, r.schema+"."+r.name) ||
			(r.schema == "public" && slices.Contains(sel.Except, r.name))
	})
}

// missing lists tables that were named and do not exist.
func missing(relations []relation, sel catalog.TableSelection) []ingest.SourceTable {
	var out []ingest.SourceTable
	for _, t := range sel.Tables {
		known := slices.ContainsFunc(relations, func(r relation) bool {
			return r.schema == schemaOf(t) && r.name == t.Name
		})
		if !known {
			out = append(out, ingest.SourceTable{
				Schema: schemaOf(t), Name: t.Name, EstimatedRows: -1,
				Unsupported: "the table does not exist at the source",
				Hint:        "Check the spelling of the schema and the table; names are case-sensitive.",
			})
		}
	}
	return out
}

// attribute is a column as pg_attribute has it.
type attribute struct {
	number    int16
	name      string
	oid       uint32
	typmod    int32
	notNull   bool
	generated bool
	virtual   bool // generated, and not stored
	// computed is how, once that was read.
	computed *generated.Column
	dims     int32
	typeName string
}

func readColumns(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32][]attribute, error) {
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(columnsQuery), oids)
	if err != nil {
		return nil, unavailable("list columns", err)
	}
	out := map[uint32][]attribute{}
	var table uint32
	var a attribute
	_, err = pgx.ForEachRow(rows, []any{
		&table, &a.number, &a.name, &a.oid, &a.typmod, &a.notNull, &a.generated, &a.virtual, &a.dims, &a.typeName,
	}, func() error {
		said := a
		names.Read(&said.name, &said.typeName)
		said.typeName = naming.Show(said.typeName)
		out[table] = append(out[table], said)
		return nil
	})
	if err != nil {
		return nil, unavailable("list columns", err)
	}
	return out, nil
}

// tableKeys are the candidates for a table's row key.
type tableKeys struct {
	primary, identity []string
}

func readKeys(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32]tableKeys, error) {
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(keysQuery), oids)
	if err != nil {
		return nil, unavailable("list keys", err)
	}
	out := map[uint32]tableKeys{}
	var table uint32
	var primary, identity bool
	var columns []string
	_, err = pgx.ForEachRow(rows, []any{&table, &primary, &identity, &columns}, func() error {
		k := out[table]
		names.Texts(columns)
		if primary {
			k.primary = slices.Clone(columns)
		}
		if identity {
			k.identity = slices.Clone(columns)
		}
		out[table] = k
		return nil
	})
	if err != nil {
		return nil, unavailable("list keys", err)
	}
	return out, nil
}

// domain is a domain type.
type domain struct {
	base               uint32
	typmod             int32
	dims               int32
	name, baseTypeName string
}

func readDomains(ctx context.Context, conn *pgx.Conn) (map[uint32]domain, error) {
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(domainsQuery))
	if err != nil {
		return nil, unavailable("list domains", err)
	}
	out := map[uint32]domain{}
	var oid uint32
	var d domain
	_, err = pgx.ForEachRow(rows, []any{&oid, &d.base, &d.typmod, &d.dims, &d.name, &d.baseTypeName}, func() error {
		said := d
		names.Read(&said.name, &said.baseTypeName)
		said.name, said.baseTypeName = naming.Show(said.name), naming.Show(said.baseTypeName)
		out[oid] = said
		return nil
	})
	if err != nil {
		return nil, unavailable("list domains", err)
	}
	return out, nil
}

// renamedIn is a selection with the names that its columns have now, as far as it says
// which they are, and with all their numbers. A column that is left out, or kept as text,
// goes by its former name, too.
func renamedIn(sel catalog.TableSelection, relations []relation, columns map[uint32][]attribute) catalog.TableSelection {
	sel.Tables = slices.Clone(sel.Tables)
	for i := range sel.Tables {
		w := &sel.Tables[i]
		at := slices.IndexFunc(relations, func(r relation) bool { return r.schema == schemaOf(*w) && r.name == w.Name })
		if at < 0 || len(w.Columns)+len(w.AsText)+len(w.Except) == 0 {
			continue
		}
		now := columns[relations[at].oid]
		numbers := map[string]int16{}
		rename := func(names []string, both bool) []string {
			var out []string
			for _, name := range names {
				a := slices.IndexFunc(now, func(a attribute) bool { return a.number == w.Numbers[name] })
				if a < 0 {
					a = slices.IndexFunc(now, func(a attribute) bool { return a.name == name })
				}
				if a < 0 || both || now[a].name == name {
					out = append(out, name)
				}
				if a >= 0 {
					numbers[name] = now[a].number
					if now[a].name != name {
						out = append(out, now[a].name)
					}
				}
			}
			return out
		}
		w.Columns, w.AsText, w.Except = rename(w.Columns, false), rename(w.AsText, true), rename(w.Except, true)
		w.Numbers = numbers
	}
	return sel
}

// bringForms notes how values of tables are written.
func bringForms(ctx context.Context, conn *pgx.Conn, tables []ingest.SourceTable) error {
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	forms, err := wording.Read(ctx, conn, serverVersion(conn), oids)
	if err != nil {
		return unavailable("look at types", err)
	}
	for i := range tables {
		tables[i].Forms = watch.FormsOf(forms[tables[i].OID])
	}
	return nil
}

// bringTypes notes the types of users that columns of tables are of.
func bringTypes(ctx context.Context, conn *pgx.Conn, tables []ingest.SourceTable) error {
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	found, err := kinds.Read(ctx, conn, serverVersion(conn), oids)
	if err != nil {
		return unavailable("look at types", err)
	}
	for i := range tables {
		tables[i].Types = found[tables[i].OID]
	}
	return nil
}

// selectColumns keeps the columns that the selection names for a table, and not those
// that it excepts.
func selectColumns(t *ingest.SourceTable, sel catalog.TableSelection) {
	if t.Unsupported != "" {
		return
	}
	exceptColumns(t, selectedTable(sel, t.Schema, t.Name).Except)
	wanted := selectedColumns(sel, t.Schema, t.Name)
	if len(wanted) == 0 || t.Unsupported != "" {
		return
	}
	for _, name := range append(slices.Clone(wanted), t.Key...) {
		known := slices.ContainsFunc(t.Columns, func(c ingest.SourceColumn) bool { return c.Name == name })
		switch {
		case !known:
			t.Unsupported = fmt.Sprintf("column %s does not exist, or is generated and left out", quote.Name(name))
			t.Hint = "Name existing columns only."
			return
		case !slices.Contains(wanted, name):
			t.Unsupported = fmt.Sprintf("key column %s is not selected", quote.Name(name))
			t.Hint = "Add the columns of the key to the list: " + strings.Join(t.Key, ", ") + "."
			return
		}
	}
	t.Columns = slices.DeleteFunc(t.Columns, func(c ingest.SourceColumn) bool {
		return !slices.Contains(wanted, c.Name)
	})
}

// exceptColumns leaves columns out.
func exceptColumns(t *ingest.SourceTable, except []string) {
	for _, name := range except {
		i := slices.IndexFunc(t.Columns, func(c ingest.SourceColumn) bool { return c.Name == name })
		switch {
		case slices.Contains(t.Key, name):
			t.Unsupported = fmt.Sprintf("key column %s is excepted", quote.Name(name))
			t.Hint = "Leave out columns only that are not of the key: " + strings.Join(t.Key, ", ") + "."
			return
		case i >= 0:
			t.Columns = slices.Delete(t.Columns, i, i+1)
		}
	}
}

// selectedColumns are the columns that a selection lists for a table; nil means all.
func selectedColumns(sel catalog.TableSelection, schemaName, name string) []string {
	return selectedTable(sel, schemaName, name).Columns
}

// resolve is what a column's type becomes: the base type for a domain.
func resolve(a attribute, domains map[uint32]domain) (oid uint32, typmod, dims int32, typeName, note string) {
	oid, typmod, dims, typeName = a.oid, a.typmod, a.dims, a.typeName
	for depth := 0; depth < 32; depth++ {
		d, ok := domains[oid]
		if !ok {
			break
		}
		if note == "" {
			note = "domain " + d.name
		}
		oid, typeName = d.base, d.baseTypeName
		if typmod < 0 {
			typmod = d.typmod
		}
		dims = max(dims, d.dims)
	}
	return oid, typmod, dims, typeName, note
}

// column is a source column and whether its values are kept as exact text.
func column(a attribute, domains map[uint32]domain) ingest.SourceColumn {
	oid, typmod, dims, typeName, note := resolve(a, domains)
	t, exact := schema.FromPostgres(oid, typmod, int(dims))
	if exact {
		note = strings.TrimPrefix(note+", exact text", ", ")
	}
	c := ingest.SourceColumn{
		Name: a.name, OID: oid, TypMod: typmod, TypeName: typeName, NotNull: a.notNull,
		AttNum: a.number, Type: t, Note: note,
	}
	if a.computed != nil {
		c.Computed = &a.computed.Recipe
	}
	return c
}
