package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest"
)

// appendSuffix names the second publication. PostgreSQL refuses updates and deletes
// of a table without replica identity that is published with updates: publishing it
// like the others would break the user's own statements. So tables without a key go
// into a publication of inserts and truncates only. For the same reason there is no
// FOR ALL TABLES, which would break tables of the future too.
const appendSuffix = "_append"

// publication is a publication as the catalog has it.
type publication struct {
	name    string
	exists  bool
	all     bool // of all tables
	root    bool // publish_via_partition_root
	stored  bool // publish_generated_columns = stored
	inserts bool // publishes insert and truncate
	updates bool // and update and delete
	comment string
	tables  []uint32
	// filters are the row filters of tables, as the server writes them; listed are the
	// columns that are published of tables that have a list.
	filters map[uint32]string
	listed  map[uint32][]string
}

// publicationQuery reads publication $1. The view of its tables has not those that are named
// and have become partitions of others that are.
const publicationQuery = `
SELECT p.puballtables, %s, %s, p.pubinsert AND p.pubtruncate, p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate,
       coalesce(pg_catalog.obj_description(p.oid, 'pg_publication'), ''),
       ARRAY(SELECT c.oid FROM pg_catalog.pg_publication_tables t
               JOIN pg_catalog.pg_namespace n ON n.nspname = t.schemaname
               JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
              WHERE t.pubname = p.pubname
             UNION SELECT r.prrelid FROM pg_catalog.pg_publication_rel r WHERE r.prpubid = p.oid)::oid[],
       %s
  FROM pg_catalog.pg_publication p WHERE p.pubname = $1`

func readPublication(ctx context.Context, conn *pgx.Conn, name string, version int) (publication, error) {
	root, stored, filtered := "false", "false", "'{}'::text[]"
	if version >= versionGenerated {
		stored = "p.pubgencols = 's'"
	}
	if version >= versionRoot {
		root = "p.pubviaroot"
	}
	if version >= versionFilter {
		filtered = `ARRAY(SELECT pg_catalog.json_build_object('table', r.prrelid::int8,
		          'filter', pg_catalog.pg_get_expr(r.prqual, r.prrelid),
		          'columns', (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a
		                       WHERE a.attrelid = r.prrelid AND a.attnum = ANY(r.prattrs)))::text
		   FROM pg_catalog.pg_publication_rel r
		  WHERE r.prpubid = p.oid AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL))::text[]`
	}
	p := publication{name: name, exists: true}
	var limits []string
	err := conn.QueryRow(ctx, fmt.Sprintf(publicationQuery, root, stored, filtered), name).
		Scan(&p.all, &p.root, &p.stored, &p.inserts, &p.updates, &p.comment, &p.tables, &limits)
	if errors.Is(err, pgx.ErrNoRows) {
		return publication{name: name}, nil
	}
	if err != nil {
		return p, unavailable("read publication "+name, err)
	}
	return p, p.limit(limits)
}

// limit notes what is published of tables only in part.
func (p *publication) limit(limits []string) error {
	p.filters, p.listed = map[uint32]string{}, map[uint32][]string{}
	for _, text := range limits {
		var l struct {
			Table   uint32   `json:"table"`
			Filter  string   `json:"filter"`
			Columns []string `json:"columns"`
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return fmt.Errorf("read publication %s: %w", p.name, err)
		}
		if l.Filter != "" {
			p.filters[l.Table] = l.Filter
		}
		if l.Columns != nil {
			p.listed[l.Table] = l.Columns
		}
	}
	return nil
}

// wanted are the tables that each of the two publications must have.
type wanted struct {
	changes, inserts []ingest.SourceTable
}

func wantedTables(tables []ingest.SourceTable) wanted {
	var w wanted
	for _, t := range tables {
		switch {
		case t.Unsupported != "" || t.OID == 0:
		case len(t.Key) > 0 || t.WholeRow:
			w.changes = append(w.changes, t)
		default:
			w.inserts = append(w.inserts, t)
		}
	}
	return w
}

// lacks are the tables that p has not, or has only in part.
func (p publication) lacks(tables []ingest.SourceTable) []ingest.SourceTable {
	var out []ingest.SourceTable
	for _, t := range tables {
		if !p.names(t) || !p.has(t) || !p.filtersAlike(t) || p.scatters(t) {
			out = append(out, t)
		}
	}
	return out
}

// names says whether a table is published, if only as its partitions.
func (p publication) names(t ingest.SourceTable) bool {
	return p.all || slices.Contains(p.tables, t.OID)
}

// scatters says whether changes of a table are sent as those of its partitions.
func (p publication) scatters(t ingest.SourceTable) bool { return t.Parts != nil && !p.root }

// has says whether all columns that are wanted of a table are published.
func (p publication) has(t ingest.SourceTable) bool {
	list, ok := p.listed[t.OID]
	return !ok || !slices.ContainsFunc(t.Columns, func(c ingest.SourceColumn) bool { return !slices.Contains(list, c.Name) })
}

// filtersAlike says whether a table is published with the filter that it is to have. Of
// a filter of our own only its being there is asked: the server writes it in its way.
func (p publication) filtersAlike(t ingest.SourceTable) bool {
	filter, ok := p.filters[t.OID]
	if !ok || t.Filter == "" || p.ours() {
		return ok == (t.Filter != "")
	}
	bare := func(s string) string {
		s = strings.Join(strings.Fields(s), " ")
		return strings.TrimSuffix(strings.TrimPrefix(s, "("), ")")
	}
	return bare(filter) == bare(t.Filter)
}

// list writes tables as SQL. ONLY keeps tables that inherit out: they are published by
// themselves, where they may lack the key of their parent, and with it updates of the
// user's own would fail. A partitioned table brings its partitions all the same.
func list(tables []ingest.SourceTable) string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = "ONLY " + quoteIdent(t.Schema, t.Name) + filterClause(t)
	}
	return strings.Join(names, ", ")
}

// options are a publication's WITH clause.
func publicationOptions(publish string, version int) string {
	if version < versionRoot {
		return "publish = '" + publish + "'"
	}
	options := "publish = '" + publish + "', publish_via_partition_root = true"
	if version >= versionGenerated {
		options += ", publish_generated_columns = stored"
	}
	return options
}

const (
	publishChanges = "insert, update, delete, truncate"
	publishInserts = "insert, truncate"
)

// ensurePublications makes or completes the publications for a new slot, and returns
// the names to stream and which of them are ours. A publication that somebody made
// for us beforehand, and that has all tables, is used as it is.
func ensurePublications(ctx context.Context, conn *pgx.Conn, name string, tables []ingest.SourceTable,
	v settings,
) (names, owned []string, err error) {
	w := wantedTables(tables)
	have, err := readPublications(ctx, conn, name, v.version)
	if err != nil {
		return nil, nil, err
	}
	if names := have.given(w); names != nil {
		return names, nil, nil
	}
	if v.recovery {
		return nil, nil, joined(have.onStandby(w, v.version))
	}
	if problems := have.foreign(w, v.version); len(problems) > 0 {
		return nil, nil, joined(problems)
	}
	for _, p := range []struct {
		name, publish string
		tables        []ingest.SourceTable
	}{{name, publishChanges, w.changes}, {name + appendSuffix, publishInserts, w.inserts}} {
		sql := makePublication(p.name, p.publish, p.tables, v.version)
		if err := run(ctx, conn.PgConn(), sql); err != nil {
			return nil, nil, publicationError(p.name, sql, err)
		}
		names = append(names, p.name)
	}
	return names, names, nil
}

// publications are the two that a pipeline may have.
type publications struct{ main, inserts publication }

func readPublications(ctx context.Context, conn *pgx.Conn, name string, version int) (p publications, err error) {
	if p.main, err = readPublication(ctx, conn, name, version); err != nil {
		return p, err
	}
	p.inserts, err = readPublication(ctx, conn, name+appendSuffix, version)
	return p, err
}

// ours says whether we made p.
func (p publication) ours() bool { return strings.HasPrefix(p.comment, markOurs) }

// given names the publications that somebody made for us beforehand, if they have
// all that is wanted.
func (p publications) given(w wanted) []string {
	if !p.main.exists || p.main.ours() || !p.main.updates || len(p.main.lacks(w.changes)) > 0 {
		return nil
	}
	if len(p.main.lacks(w.inserts)) == 0 {
		return []string{p.main.name}
	}
	if p.inserts.exists && len(p.inserts.lacks(w.inserts)) == 0 {
		return []string{p.main.name, p.inserts.name}
	}
	return nil
}

// foreign says what is wrong with publications of our names that are not ours.
func (p publications) foreign(w wanted, version int) []Problem {
	var out []Problem
	for _, c := range []struct {
		have    publication
		publish string
		tables  []ingest.SourceTable
	}{{p.main, publishChanges, w.changes}, {p.inserts, publishInserts, w.inserts}} {
		if !c.have.exists || c.have.ours() {
			continue
		}
		out = append(out, Problem{
			What: fmt.Sprintf("publication %s was not made by us and has not all tables, or rows, or operations", c.have.name),
			Fix:  p.completing(c.have, c.publish, c.tables, w, version),
		})
	}
	return out
}

// onStandby says what is to be made at the primary of a standby, which makes nothing.
func (p publications) onStandby(w wanted, version int) []Problem {
	if p.main.ours() {
		return []Problem{{
			What: fmt.Sprintf("publication %s was made by a pipeline that reads the primary, and is not for another one", p.main.name),
			Fix:  "-- choose another name with the option publication",
		}}
	}
	if out := p.foreign(w, version); len(out) > 0 {
		for i := range out {
			out[i].Fix = atPrimary + out[i].Fix
		}
		return out
	}
	return []Problem{{
		What: fmt.Sprintf("the server is a standby, where publication %s cannot be made", p.main.name),
		Fix:  atPrimary + p.creating(w, version),
	}}
}

// creating is the SQL with which somebody else makes the publications.
func (p publications) creating(w wanted, version int) string {
	sql := withoutComment(makePublication(p.main.name, publishChanges, w.changes, version))
	if len(w.inserts) > 0 {
		sql += " " + withoutComment(makePublication(p.inserts.name, publishInserts, w.inserts, version))
	}
	return sql
}

// completing is the SQL that makes a publication of somebody else's one that will do.
func (p publications) completing(have publication, publish string, tables []ingest.SourceTable, w wanted, version int) string {
	sql := have.completion(publish, tables, version)
	if publish == publishChanges && len(w.inserts) > 0 && !p.inserts.exists {
		sql = append(sql, withoutComment(makePublication(p.inserts.name, publishInserts, w.inserts, version)))
	}
	return strings.Join(append(sql, "-- or choose another name with the option publication"), " ")
}

// makePublication makes a publication anew, marked as ours.
func makePublication(name, publish string, tables []ingest.SourceTable, version int) string {
	quoted := quoteIdent(name)
	sql := fmt.Sprintf("DROP PUBLICATION IF EXISTS %s; CREATE PUBLICATION %s", quoted, quoted)
	if len(tables) > 0 {
		sql += " FOR TABLE " + list(tables)
	}
	return fmt.Sprintf("%s WITH (%s); COMMENT ON PUBLICATION %s IS %s",
		sql, publicationOptions(publish, version), quoted, quoteLiteral(markOurs))
}

// markOurs is the comment of our publications; markStart precedes the slot's
// consistent point in that of the main one.
const (
	markOurs  = "made by skipprd"
	markStart = markOurs + "; slot starts at "
)

// renewMembership has the server look anew at which tables are partitions of which, in each
// decoding of what commits later. Before version 15 its decoder remembers that a table is
// published, and as what, over ATTACH and DETACH: it leaves changes of a partition out, or
// sends them as before, until a publication changes. warnings say that the role may not.
func renewMembership(ctx context.Context, conn *pgx.Conn, st *state, tables []ingest.SourceTable, version int) (warnings []string, err error) {
	if !overlooks(version) || !slices.ContainsFunc(tables, func(t ingest.SourceTable) bool { return t.Parts != nil }) {
		return nil, nil
	}
	name := quoteIdent(st.Slot + "_renew")
	sql := fmt.Sprintf("CREATE PUBLICATION %s; DROP PUBLICATION %s", name, name) // one transaction
	switch err := run(ctx, conn.PgConn(), sql); {
	case err == nil:
		return nil, nil
	case code(err) == codeReadOnly:
		return []string{overlooked + ", unless the role may write: " +
			fmt.Sprintf("ALTER ROLE %s SET default_transaction_read_only = off;", quoteIdent(conn.Config().User))}, nil
	case code(err) == codePrivilege:
		return []string{overlooked + ", unless the role may create a publication: " +
			fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s;", quoteIdent(st.Database), quoteIdent(conn.Config().User))}, nil
	default:
		return nil, unavailable("have partitions looked at anew", err)
	}
}

// overlooks says that a server does not notice while it decodes that partitions come and go;
// before versionRoot it publishes none.
func overlooks(version int) bool { return version >= versionRoot && version < versionMembership }

const overlooked = "a server older than 15 may leave out what is written to partitions that are attached, and send what is written to detached ones"

// publicationError names the SQL to run as somebody who may.
func publicationError(name, sql string, err error) error {
	switch c := code(err); {
	case c == codePrivilege:
	case strings.HasPrefix(c, "42"), strings.HasPrefix(c, "0A"), strings.HasPrefix(c, "22"): // a row filter, as a rule
		return joined([]Problem{{What: fmt.Sprintf("publication %s cannot be made: %s", name, serverMessage(err))}})
	default:
		return unavailable("make publication "+name, err)
	}
	return joined([]Problem{{
		What: fmt.Sprintf("publication %s cannot be made: %s", name, firstLine(err)),
		Fix:  "as a superuser or the tables' owner: " + withoutComment(sql),
	}})
}

// serverMessage is what a server said, with its detail.
func serverMessage(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return firstLine(err)
	}
	return strings.TrimSuffix(pg.Message+". "+pg.Detail, ". ")
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// withoutComment leaves off our mark, which makes a publication ours.
func withoutComment(sql string) string {
	statement, _, _ := strings.Cut(sql, "; COMMENT ON")
	if _, create, ok := strings.Cut(statement, "; "); ok {
		statement = create
	}
	return statement + ";"
}

// addTables adds the tables that the publications of an existing slot lack. Nothing
// is ever taken out while the slot lives: changes of a table that is not published at
// their place in the log are skipped for good, and a stopped table still needs its.
// refused are tables that the role may not publish; the others are published all the same.
func addTables(ctx context.Context, conn *pgx.Conn, st *state, tables []ingest.SourceTable, v settings,
) (refused map[uint32]*ingest.TableError, err error) {
	w := wantedTables(tables)
	var have []publication
	for _, name := range st.Publications {
		p, err := readPublication(ctx, conn, name, v.version)
		if err != nil {
			return nil, err
		}
		if !p.exists {
			return nil, fmt.Errorf("%w: publication %s is gone: what was changed since cannot be streamed", ErrSlotLost, name)
		}
		have = append(have, p)
	}
	inserts := have[len(have)-1]
	if len(have) == 1 {
		w.changes, w.inserts = append(w.changes, w.inserts...), nil
	}
	for _, add := range []struct {
		to      publication
		publish string
		tables  []ingest.SourceTable
	}{{have[0], publishChanges, w.changes}, {inserts, publishInserts, w.inserts}} {
		if err := add.to.mend(ctx, conn, st, add.publish, add.tables, v.version, &refused); err != nil {
			return nil, err
		}
		lacking := slices.DeleteFunc(add.to.lacks(add.tables), func(t ingest.SourceTable) bool { return add.to.partly(st, add.publish, t, v.version, &refused) })
		if len(lacking) == 0 {
			continue
		}
		if err := addTo(ctx, conn, add.to.name, lacking, &refused); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

func refuse(refused *map[uint32]*ingest.TableError, t ingest.SourceTable, why *ingest.TableError) {
	if *refused == nil {
		*refused = map[uint32]*ingest.TableError{}
	}
	(*refused)[t.OID] = why
}

// ofTable says whether an error may be of one table, and not of the others that are published with
// it: its owner's rights, or what it is.
func ofTable(err error) bool {
	c := code(err)
	return c == codePrivilege || c == codeReadOnly || strings.HasPrefix(c, "22") || strings.HasPrefix(c, "42") || strings.HasPrefix(c, "0A")
}

// addTo publishes tables: together, or one by one when one of them may not be.
func addTo(ctx context.Context, conn *pgx.Conn, name string, tables []ingest.SourceTable,
	refused *map[uint32]*ingest.TableError,
) error {
	sql := fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", quoteIdent(name), list(tables))
	err := run(ctx, conn.PgConn(), sql)
	switch {
	case err == nil:
		return nil
	case !ofTable(err):
		return publicationError(name, sql, err)
	case len(tables) == 1 && code(err) != codePrivilege && code(err) != codeReadOnly:
		refuse(refused, tables[0], &ingest.TableError{
			Reason: "the table cannot be published: " + serverMessage(err),
			Hint:   "Once that is mended at the source: ALTER PIPELINE … RESUME TABLE …;",
		})
		return nil
	case len(tables) == 1:
		refuse(refused, tables[0], &ingest.TableError{
			Reason: "the role may not publish the table: " + firstLine(err),
			Hint: "At the source (at its primary, if it is a standby), as a superuser or the owner: " + sql +
				"; then here: ALTER PIPELINE … RESUME TABLE …;",
		})
		return nil
	}
	for i := range tables {
		if err := addTo(ctx, conn, name, tables[i:i+1], refused); err != nil {
			return err
		}
	}
	return nil
}

const ownsQuery = `
SELECT coalesce(bool_and(pg_catalog.pg_has_role(c.relowner, 'USAGE')), true)
  FROM pg_catalog.pg_class c WHERE c.oid = ANY($1::oid[])`

// validatePublication judges whether the publications are there, or can be made by the
// role, and writes the SQL with which somebody else makes them.
func validatePublication(ctx context.Context, conn *pgx.Conn, name string, tables []ingest.SourceTable,
	v settings,
) ([]ingest.Finding, error) {
	const check = "publication"
	w := wantedTables(tables)
	have, err := readPublications(ctx, conn, name, v.version)
	if err != nil {
		return nil, err
	}
	if have.given(w) != nil {
		return []ingest.Finding{{Check: check, OK: true, Detail: fmt.Sprintf("publication %s is used as it is", name)}}, nil
	}
	if v.recovery {
		var out []ingest.Finding
		for _, p := range have.onStandby(w, v.version) {
			out = append(out, ingest.Finding{Check: check, Detail: p.What, Fix: p.Fix})
		}
		return out, nil
	}
	well := []ingest.Finding{{Check: check, OK: true, Detail: publicationPlan(name, w)}}
	if have.complete(w) {
		well[0].Detail = fmt.Sprintf("publication %s has all tables", name)
		return well, nil
	}
	var out []ingest.Finding
	for _, p := range have.foreign(w, v.version) {
		out = append(out, ingest.Finding{Check: check, Detail: p.What, Fix: p.Fix})
	}
	switch {
	case len(out) > 0:
		return out, nil
	case v.superuser:
		return well, nil
	}
	var oids []uint32
	for _, t := range append(slices.Clone(w.changes), w.inserts...) {
		oids = append(oids, t.OID)
	}
	var owner bool
	if err := conn.QueryRow(ctx, ownsQuery, oids).Scan(&owner); err != nil {
		return nil, unavailable("read table owners", err)
	}
	if !owner {
		return []ingest.Finding{{
			Check:  check,
			Detail: "the role owns not all tables and is no superuser, so it cannot publish them; with another name than the pipeline's, name it in WITH (publication = …)",
			Fix:    have.creating(w, v.version),
		}}, nil
	}
	if !v.create && !have.main.exists {
		return []ingest.Finding{{
			Check:  check,
			Detail: fmt.Sprintf("role %s may not create a publication in database %s", quoteIdent(v.role), v.database),
			Fix:    fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s;", quoteIdent(v.database), quoteIdent(v.role)),
		}}, nil
	}
	return well, nil
}

// publicationPlan says what will be made.
func publicationPlan(name string, w wanted) string {
	out := fmt.Sprintf("publication %s will be made or completed, of %d tables", name, len(w.changes))
	if len(w.inserts) > 0 {
		out += fmt.Sprintf(", and %s%s, of the inserts of %d without a key", name, appendSuffix, len(w.inserts))
	}
	return out
}

// complete says whether publications of our own have all that is wanted.
func (p publications) complete(w wanted) bool {
	return p.main.exists && p.main.ours() && len(p.main.lacks(w.changes)) == 0 &&
		(len(w.inserts) == 0 || p.inserts.exists && len(p.inserts.lacks(w.inserts)) == 0)
}
