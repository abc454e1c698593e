package own

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// kind is what a statement does.
type kind uint8

const (
	insert kind = iota
	copyText
	copyCSV
	update
	remove
	truncate
	begin
	commit
	rollback
	savepoint
	rollbackTo
	create
	drop
	grant
	revoke
	addColumn
	dropColumn
	unique
	notUnique
	setValue
	restart
	restartWith
	rekey
	setImmediate
	setDeferred
	foreign
	notForeign
	lockRows
	refresh
	refreshConcurrently
)

// spare is the table that clients make and drop, numbered the one whose key a sequence gives.
const (
	spare    = "extra"
	numbered = "numbered"
)

// statement is a client's statement, with what a naive execution makes of it.
type statement struct {
	kind  kind
	table string
	// shape is how the table looked when it was sent; column is one that it adds or drops, and
	// number a value of a sequence.
	shape  *source.Version
	column string
	number int64
	// drawn are the values that it was given by a sequence, reserved the numbers of tables.
	drawn    []int64
	reserved []change.TableID
	// rows are those to add; keys the values of the table's first key column, or of its first
	// column, by which rows are found, and set what its changed column gets.
	rows []source.Row
	keys []any
	set  any
	// bad: the data of a COPY have a row that cannot be read; ended: they were sent to their
	// end; failed: the client gave up.
	bad, ended, failed bool
	// seen are the rows that it was told, as the wire has them, and read those that a materialized view
	// is made of; before are the rows there were when it was sent, txns how many transactions then.
	seen   []string
	read   []source.Row
	before []source.Row
	txns   int
	// answered: its client was told how it ended.
	answered bool
	// begun is how many statements that make or drop a table had begun with it.
	begun int
	// settled: none of them was under way then.
	settled bool
	// cancelled: its client has cancelled it.
	cancelled bool

	verdict
	// committed: it was evaluated when its transaction, of itself alone, came to be committed.
	committed *Txn
}

// verdict is what a naive execution makes of a statement.
type verdict struct {
	changes []source.Change
	count   int
	// taken: a new row has the key of another; dangling: a row would refer to one that is not there.
	taken, dangling bool
	// unknown: the server sees less than there is, so that nothing can be said.
	unknown bool
}

func (s *statement) copies() bool { return s.kind == copyText || s.kind == copyCSV }

// defines says whether it makes or drops a table.
func (s *statement) defines() bool { return s.kind == create || s.kind == drop }

// writes says whether it changes rows.
func (s *statement) writes() bool {
	return s.kind <= truncate || s.kind == restart || s.kind == rekey || s.refreshes()
}

// edits says whether it changes definitions.
func (s *statement) edits() bool {
	switch s.kind {
	case restartWith, foreign, notForeign:
		return true
	}
	return s.kind >= create && s.kind <= notUnique
}

// given are the places of the columns that it gives values.
func (s *statement) given() (out []int) {
	for i := range s.shape.Columns {
		if s.table != numbered || i > 0 {
			out = append(out, i)
		}
	}
	return out
}

func (s *statement) columnNames() string {
	var names []string
	for _, i := range s.given() {
		names = append(names, s.shape.Columns[i].Name)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// sql is its text.
func (s *statement) sql() string {
	switch s.kind {
	case insert:
		return "INSERT INTO " + s.table + s.columnNames() + " VALUES " + s.tuples()
	case copyText:
		return "COPY " + s.table + s.columnNames() + " FROM STDIN"
	case copyCSV:
		return "COPY " + s.table + s.columnNames() + " FROM STDIN WITH (FORMAT csv)"
	case update, rekey:
		v := s.shape
		return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", s.table, v.Columns[s.changed(v)].Name, literal(s.set), s.where(v))
	case remove:
		return "DELETE FROM " + s.table + " WHERE " + s.where(s.shape)
	case truncate:
		return "TRUNCATE " + s.table + cascade(s.table)
	case begin:
		return "BEGIN"
	case commit:
		return "COMMIT"
	case rollback:
		return "ROLLBACK"
	case savepoint:
		return "SAVEPOINT s"
	case rollbackTo:
		return "ROLLBACK TO SAVEPOINT s"
	case create:
		return "CREATE TABLE " + spare + " (id bigint PRIMARY KEY, v text, n integer)"
	}
	if s.kind == drop {
		return "DROP TABLE " + spare
	}
	return s.definition()
}

// definition is the text of one that changes definitions or a sequence.
func (s *statement) definition() string {
	switch s.kind {
	case grant:
		return "GRANT SELECT ON " + s.table + " TO " + reader
	case revoke:
		return "REVOKE SELECT ON " + s.table + " FROM " + reader
	case addColumn:
		return "ALTER TABLE " + s.table + " ADD COLUMN " + s.column + " integer"
	case dropColumn:
		return "ALTER TABLE " + s.table + " DROP COLUMN " + s.column
	case unique:
		return "CREATE UNIQUE INDEX one_" + s.table + " ON " + s.table + " (" + uniqueColumn(s.table) + ")"
	case notUnique:
		return "DROP INDEX one_" + s.table
	case setValue:
		return fmt.Sprintf("SELECT setval('%s_id_seq', %d)", numbered, s.number)
	case restart:
		return "TRUNCATE " + numbered + " RESTART IDENTITY"
	case restartWith:
		return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN id RESTART WITH %d", numbered, s.number)
	}
	return s.relation()
}

func (s *statement) where(v *source.Version) string {
	if len(s.keys) == 0 {
		return "false"
	}
	list := make([]string, len(s.keys))
	for i, k := range s.keys {
		list[i] = literal(k)
	}
	return v.Columns[found(v)].Name + " IN (" + strings.Join(list, ", ") + ")"
}

// found is the column by which statements find rows: the first of the key, or of all.
func found(v *source.Version) int {
	if len(v.Key) == 0 {
		return 0
	}
	return v.KeyIndexes()[0]
}

// changed is the column that an UPDATE changes: the first that is not of the key, and not the
// one by which rows are found.
func changed(v *source.Version) int {
	keys := v.KeyIndexes()
	for i := range v.Columns {
		if i != found(v) && !slices.Contains(keys, i) {
			return i
		}
	}
	return 0
}

// changed is the column that the statement changes.
func (s *statement) changed(v *source.Version) int {
	if s.kind == rekey {
		return found(v)
	}
	return changed(v)
}

func (s *statement) tuples() string {
	out := make([]string, len(s.rows))
	for i, r := range s.rows {
		var values []string
		for _, c := range s.given() {
			values = append(values, literal(r[c]))
		}
		out[i] = "(" + strings.Join(values, ", ") + ")"
	}
	return strings.Join(out, ", ")
}

// literal is a value as SQL has it.
func literal(v any) string {
	text, ok := textOf(v)
	if !ok {
		return "NULL"
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// textOf is PostgreSQL's text of a value; false for null.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		switch {
		case math.IsInf(v, 1):
			return "Infinity", true
		case math.IsInf(v, -1):
			return "-Infinity", true
		}
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case string:
		return v, true
	}
	return "", false
}

var textEscapes = strings.NewReplacer("\\", "\\\\", "\n", "\\n", "\r", "\\r", "\t", "\\t")

// line is a row as the data of a COPY have it.
func (s *statement) line(r source.Row) []byte {
	var b []byte
	delimiter := byte('\t')
	if s.kind == copyCSV {
		delimiter = ','
	}
	for n, i := range s.given() {
		if n > 0 {
			b = append(b, delimiter)
		}
		text, ok := textOf(r[i])
		switch {
		case s.kind == copyCSV && ok:
			b = append(b, '"')
			b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
			b = append(b, '"')
		case s.kind == copyCSV:
		case ok:
			b = append(b, textEscapes.Replace(text)...)
		default:
			b = append(b, `\N`...)
		}
	}
	return append(b, '\n')
}

// badLine has a column too few.
const badLine = "x\n"

// run is what a naive execution over rows makes of the statement, of a table of a version whose
// columns are to be unique.
func (s *statement) run(t *source.Table, v *source.Version, rows []source.Row, uniques []int) verdict {
	var out verdict
	base := source.Change{Table: t, Version: v}
	switch s.kind {
	case truncate, restart:
		base.Truncate = true
		out.changes = []source.Change{base}
	case lockRows:
		out.count = len(s.found(v, rows))
	case refresh, refreshConcurrently:
		out.changes = s.refilled(base)
	case unique:
		at := slices.IndexFunc(v.Columns, func(c source.Column) bool { return c.Name == uniqueColumn(s.table) })
		out.taken = repeated(rows, []int{at})
	case insert, copyText, copyCSV:
		out = s.adds(base, rows)
	case update, remove, rekey:
		for _, r := range s.found(v, rows) {
			c := base
			c.Op, c.Old = change.Delete, r
			if s.kind != remove {
				c.Op, c.New = change.Update, slices.Clone(r)
				c.New[s.changed(v)] = s.set
			}
			out.changes = append(out.changes, c)
			out.count++
		}
	}
	if s.kind == rekey && len(out.changes) > 0 {
		out.taken = repeated(apply(t, rows, out.changes), v.KeyIndexes())
	}
	if s.kind != remove && len(out.changes) > 0 && len(uniques) > 0 {
		out.taken = out.taken || repeated(apply(t, rows, out.changes), uniques)
	}
	return out
}

// found are the rows that the statement finds.
func (s *statement) found(v *source.Version, rows []source.Row) (out []source.Row) {
	for _, r := range rows {
		if at := r[found(v)]; at != nil && slices.Contains(s.keys, at) {
			out = append(out, r)
		}
	}
	return out
}

// adds is run of one that adds rows.
func (s *statement) adds(base source.Change, rows []source.Row) (out verdict) {
	v := base.Version
	taken := map[string]bool{}
	if len(v.Key) > 0 {
		for _, r := range rows {
			taken[keyOf(v, r)] = true
		}
	}
	for i := range s.rows {
		r, known := s.row(v, i)
		if !known {
			return verdict{unknown: true}
		}
		if len(v.Key) > 0 {
			out.taken = out.taken || taken[keyOf(v, r)]
			taken[keyOf(v, r)] = true
		}
		c := base
		c.Op, c.New = change.Insert, r
		out.changes = append(out.changes, c)
		out.count++
	}
	return out
}

// row is the i-th row that it adds, in the columns of a version; false when the sequence has not
// given it its key.
func (s *statement) row(v *source.Version, i int) (source.Row, bool) {
	out := make(source.Row, len(v.Columns))
	for _, from := range s.given() {
		name := s.shape.Columns[from].Name
		if at := slices.IndexFunc(v.Columns, func(c source.Column) bool { return c.Name == name }); at >= 0 {
			out[at] = s.rows[i][from]
		}
	}
	if s.table == numbered {
		if i >= len(s.drawn) {
			return out, false
		}
		out[0] = s.drawn[i]
	}
	return out, true
}

func keyOf(v *source.Version, r source.Row) string {
	var b []byte
	for _, i := range v.KeyIndexes() {
		b = append(source.AppendValue(b, r[i]), 0)
	}
	return string(b)
}

// apply is rows after changes of their table.
func apply(t *source.Table, rows []source.Row, changes []source.Change) []source.Row {
	rows = slices.Clone(rows)
	for i := range changes {
		c := &changes[i]
		if c.Table != t {
			continue
		}
		if c.Truncate {
			rows = nil
			continue
		}
		if c.Old != nil {
			if at := slices.IndexFunc(rows, func(r source.Row) bool { return source.SameRow(r, c.Old) }); at >= 0 {
				rows = slices.Delete(rows, at, at+1)
			}
		}
		if c.New != nil {
			rows = append(rows, c.New)
		}
	}
	return rows
}

// tag is the command tag of its success.
func (s *statement) tag() string {
	switch s.kind {
	case insert:
		return fmt.Sprintf("INSERT 0 %d", s.count)
	case copyText, copyCSV:
		return fmt.Sprintf("COPY %d", s.count)
	case update, rekey:
		return fmt.Sprintf("UPDATE %d", s.count)
	case lockRows:
		return fmt.Sprintf("SELECT %d", s.count)
	case remove:
		return fmt.Sprintf("DELETE %d", s.count)
	}
	return [...]string{
		truncate: "TRUNCATE TABLE", begin: "BEGIN", commit: "COMMIT", rollback: "ROLLBACK", savepoint: "SAVEPOINT",
		rollbackTo: "ROLLBACK", create: "CREATE TABLE", drop: "DROP TABLE", grant: "GRANT", revoke: "REVOKE",
		addColumn: "ALTER TABLE", dropColumn: "ALTER TABLE", unique: "CREATE INDEX", notUnique: "DROP INDEX",
		setValue: "SELECT 1", restart: "TRUNCATE TABLE", restartWith: "ALTER TABLE",
		setImmediate: "SET CONSTRAINTS", setDeferred: "SET CONSTRAINTS", foreign: "ALTER TABLE", notForeign: "ALTER TABLE",
		refresh: "REFRESH MATERIALIZED VIEW", refreshConcurrently: "REFRESH MATERIALIZED VIEW",
	}[s.kind]
}
