package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	bykey "github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/ingest/postgres/literal"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// resync is the hint of a table whose copy must begin anew.
const resync = "Copy it anew: ALTER PIPELINE … RESYNC TABLE …;"

// Read implements ingest.Backfill. The Table of its batches is for the caller to set.
func (b *backfill) Read(ctx context.Context, t ingest.SourceTable, s *schema.Table, text string, token int64,
	emit func(*change.Batch) error,
) error {
	name := t.Schema + "." + t.Name
	c, err := parseChunk(text)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	c.filter, c.part = t.Filter, c.leaf != t.OID
	if c.horizon != "" && c.horizon != b.horizon.String() {
		return fmt.Errorf("read %s: %w", name, &ingest.TableError{
			Reason: "its copy was interrupted, and without a key the rest cannot be told apart from what changed since",
			Hint:   resync, Anew: true,
		})
	}
	conn, give, err := b.reader(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	out, err := newRowWriter(s, b.texts, token, emit)
	if err == nil {
		c.filter, err = b.filter(ctx, conn, t)
	}
	if err == nil {
		out.limit = func(rows int) error { return b.limit.wait(ctx, rows) }
		out.lenient = b.refusals != nil
		refused := refusedChunk{chunk: c, table: t, schema: s, text: text}
		var places []place
		err = unlocked(ctx, conn, func() (err error) {
			if refused.leaf, err = b.readChunk(ctx, conn, c, s, out); err == nil && out.skipped > 0 {
				places, err = b.readRefused(ctx, conn, refused, out)
			}
			return err
		})
		if err == nil {
			err = b.checkUnchanged(ctx, refused, places)
		}
		out.release()
	}
	// After an error of the server's own the transaction is gone, else the connection.
	give(err != nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, readError(err))
	}
	return nil
}

// unlocked has f read within a session's transaction, and gives the locks of tables that
// it took back. Kept to the end of the session they would keep an ALTER TABLE waiting for
// hours, all that come after it for as long, and this very session, when another of its
// connections comes to the table.
func unlocked(ctx context.Context, conn *pgconn.PgConn, f func() error) error {
	if err := run(ctx, conn, "SAVEPOINT reading"); err != nil {
		return unavailable("begin to read", err)
	}
	err := f()
	if undo := run(ctx, conn, "ROLLBACK TO SAVEPOINT reading; RELEASE SAVEPOINT reading"); undo != nil && err == nil {
		return unavailable("give locks back", undo)
	}
	return err
}

// readChunk copies a chunk's rows into out, from a table that it names.
func (b *backfill) readChunk(ctx context.Context, conn *pgconn.PgConn, c chunk, s *schema.Table, out *rowWriter) (leaf string, err error) {
	if leaf, err = lockLeaf(ctx, conn, c); err != nil {
		return "", err
	}
	if err := b.checkColumns(ctx, conn, c, s); err != nil {
		return "", err
	}
	sql := fmt.Sprintf("COPY (SELECT %s FROM ONLY %s%s) TO STDOUT (FORMAT binary)", selectList(s), leaf, c.where())
	if err := b.copyTo(ctx, conn, out, sql); err != nil {
		return "", err
	}
	return leaf, out.finish()
}

// copyTo executes a COPY. Texts that we convert come as they are: the server is told so, and
// told otherwise, beside the statement, which it has read as UTF-8 by then.
func (b *backfill) copyTo(ctx context.Context, conn *pgconn.PgConn, out *rowWriter, sql string) error {
	if b.texts != nil {
		sql = fmt.Sprintf("SET LOCAL client_encoding = %s; %s; SET LOCAL client_encoding = 'UTF8'", quoteLiteral(b.texts.Name()), sql)
	}
	_, err := conn.CopyTo(ctx, out, sql)
	if out.err != nil {
		return out.err
	}
	return inUTF8(err, b.texts)
}

// lockLeaf keeps the leaf from being changed while its chunk is read (see unlocked), and
// checks that it is as it was when the chunk was planned. It returns its name now.
func lockLeaf(ctx context.Context, conn *pgconn.PgConn, c chunk) (string, error) {
	names := naming.Of(conn)
	query := names.SQL(fmt.Sprintf("SELECT {{%[1]d::oid::regclass}}, coalesce(pg_catalog.pg_relation_filenode(%[1]d), 0)", c.leaf))
	gone := &ingest.TableError{Reason: "the table was dropped while it was copied", Hint: resync}
	if c.part {
		gone = &ingest.TableError{Reason: "a partition was dropped while the table was copied", Anew: true, Hint: resync}
	}
	for range 3 {
		row, err := oneRow(ctx, conn, query)
		if err != nil {
			return "", err
		}
		if row[0] = names.Text(row[0]); row[0] == fmt.Sprint(c.leaf) {
			return "", gone
		}
		if !naming.Said(row[0]) {
			return "", &ingest.TableError{
				Reason: "its name, or that of a partition, is not UTF-8, or has what UTF-8 has no equivalent of: " + naming.Show(row[0]), Hint: renameIt,
			}
		}
		if err := run(ctx, conn, "LOCK TABLE ONLY "+row[0]+" IN ACCESS SHARE MODE"); err != nil {
			return "", err
		}
		locked, err := oneRow(ctx, conn, query)
		if err != nil {
			return "", err
		}
		if names.Text(locked[0]) != row[0] {
			continue // renamed in between
		}
		if locked[1] != fmt.Sprint(c.file) {
			return "", rewritten()
		}
		return row[0], nil
	}
	return "", gone
}

// rewritten is that rows are not where they were.
func rewritten() *ingest.TableError {
	return &ingest.TableError{Reason: "the table was rewritten or truncated while it was copied", Anew: true}
}

// checkColumns makes sure that the leaf's columns have the types that the schema says:
// another type's bytes could pass for this one's. It sees the types at the session's
// snapshot; a change since then rewrites the table or keeps the bytes. It makes sure, too,
// that the columns have the names still that they had then, by which they are read.
func (b *backfill) checkColumns(ctx context.Context, conn *pgconn.PgConn, c chunk, s *schema.Table) error {
	then, err := leafColumns(ctx, conn, c.leaf)
	if err != nil {
		return err
	}
	var now map[string]leafColumn
	err = b.source.withControl(ctx, func(conn *pgx.Conn) (err error) {
		now, err = leafColumns(ctx, conn.PgConn(), c.leaf)
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range s.Fields {
		column, known := then[f.Name]
		if !known || now[f.Name].number != column.number {
			return changedUnder("column %s was dropped or renamed", quote.Name(f.Name))
		}
		if !sameType(f, column.Column, b.domains) {
			return changedUnder("the type of column %s was changed", quote.Name(f.Name))
		}
	}
	return nil
}

// leafColumn is a column of a leaf.
type leafColumn struct {
	pgoutput.Column
	number string
}

// leafColumns are a table's columns by their names, as the connection sees them.
func leafColumns(ctx context.Context, conn *pgconn.PgConn, oid uint32) (map[string]leafColumn, error) {
	names := naming.Of(conn)
	sql := names.SQL(fmt.Sprintf(`SELECT {{attname}}, atttypid, atttypmod, attnum FROM pg_catalog.pg_attribute
	 WHERE attrelid = %d AND attnum > 0 AND NOT attisdropped`, oid))
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	columns := map[string]leafColumn{}
	for _, row := range results[0].Rows {
		oid, err1 := strconv.ParseUint(string(row[1]), 10, 32)
		typmod, err2 := strconv.ParseInt(string(row[2]), 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("read column types: %w", err)
		}
		columns[names.Text(string(row[0]))] = leafColumn{pgoutput.Column{OID: uint32(oid), TypMod: int32(typmod)}, string(row[3])}
	}
	return columns, nil
}

// changedUnder is that a column is not as it was when the copy began: it begins anew, with
// the columns of then.
func changedUnder(format, column string) *ingest.TableError {
	e := differs(format, column)
	e.Reason, e.Anew = e.Reason+" while the table was copied", true
	return e
}

// readError finds the errors of the server that are about one table.
func readError(err error) error {
	var table *ingest.TableError
	switch {
	case errors.As(err, &table):
		return err
	case code(err) == codeUndefinedColumn:
		return &ingest.TableError{Reason: "a column was dropped or renamed at the source while the table was copied", Hint: resync, Anew: true}
	case code(err) == codeUndefinedTable:
		return &ingest.TableError{Reason: "the table was dropped or renamed at the source while it was copied", Hint: resync, Anew: true}
	case code(err) == codePrivilege:
		return &ingest.TableError{
			Reason: "the role may not read the table any more", Hint: "GRANT SELECT on it to the connection's user.",
		}
	case code(err) == deadletter.CodeNoUTF8:
		return &ingest.TableError{
			Reason: "a text of the table cannot be written as UTF-8: " + outage.Say(err),
			Hint:   "Correct the value at the source, or leave the column out of the table's list, then ALTER PIPELINE … RESYNC TABLE …;",
		}
	case code(err) == "", strings.HasPrefix(code(err), "08"), strings.HasPrefix(code(err), "57"):
		return unavailable("copy", err)
	}
	return err
}

// castable are types whose cast to text gives what their output function gives, and
// is cheap.
var castable = map[uint32]bool{
	schema.OIDNumeric: true, schema.OIDJSON: true, schema.OIDJSONB: true,
	schema.OIDInterval: true, schema.OIDTimeTZ: true,
}

// selectList asks for each column in the form that columnDecoder reads. A cast to text
// is not what the output function writes for every type (inet, char(n), xml, whatever
// a user's own cast makes), so the others go through format, which uses it.
func selectList(s *schema.Table) string {
	columns := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		switch _, native := value.BinaryDecoder(f.OID, f.Type); {
		case native:
			columns[i] = quoteIdent(f.Name)
		default:
			columns[i] = asText(f)
		}
	}
	return strings.Join(columns, ", ")
}

// asText asks for a column as its output function writes it.
func asText(f schema.Field) string {
	name := quoteIdent(f.Name)
	if castable[f.OID] {
		return name + "::pg_catalog.text"
	}
	return fmt.Sprintf("CASE WHEN %s IS DISTINCT FROM NULL THEN pg_catalog.format('%%s', %s) END", name, name)
}

// columnDecoder reads what selectList asked for.
func columnDecoder(f schema.Field, texts *charset.Charset) (value.Decoder, error) {
	if texts == nil {
		if d, ok := value.BinaryDecoder(f.OID, f.Type); ok {
			return d, nil
		}
		return value.TextDecoder(f.Type)
	}
	d, err := value.TextDecoder(schema.Type{Kind: schema.String})
	if err != nil {
		return nil, err
	}
	if d, ok := value.BinaryDecoderOf(f.OID, f.Type, texts.Decoder(d)); ok {
		return d, nil
	}
	if d, err = value.TextDecoder(f.Type); err != nil {
		return nil, err
	}
	return texts.Decoder(d), nil
}

const fetchColumns = `
SELECT a.attnum, {{a.attname}}, a.atttypid, a.atttypmod, {{pg_catalog.format_type(a.atttypid, -1)}}, c.oid::regclass::text, c.relkind
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
 WHERE a.attrelid = %d AND a.attnum > 0 AND NOT a.attisdropped`

var _ ingest.Fetcher = (*backfill)(nil)

// Fetch implements ingest.Fetcher, on a connection of its own: the readers may be busy
// with chunks for long.
func (b *backfill) Fetch(ctx context.Context, t ingest.SourceTable, q *bykey.Query, found bykey.Found) error {
	var conn *pgconn.PgConn
	select {
	case conn = <-b.fetcher:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var err error
	if conn == nil {
		conn, err = b.dialReader(ctx)
	}
	if err == nil {
		err = unlocked(ctx, conn, func() error { return b.fetch(ctx, conn, t.OID, q, found) })
	}
	if err != nil && conn != nil {
		closeNow(conn)
		conn = nil
	}
	b.fetcher <- conn
	switch code(err) {
	case codeUndefinedColumn, codeUndefinedTable: // by a change that the session's moment does not have
		return nil
	}
	if err != nil {
		return fmt.Errorf("read rows of %s.%s: %w", t.Schema, t.Name, err)
	}
	return nil
}

func (b *backfill) fetch(ctx context.Context, conn *pgconn.PgConn, oid uint32, q *bykey.Query, found bykey.Found) error {
	at, err := b.place(ctx, conn, oid, q)
	if err != nil || at == nil {
		return err
	}
	if err := run(ctx, conn, "LOCK TABLE ONLY "+strings.TrimPrefix(at.name, "ONLY ")+" IN ACCESS SHARE MODE"); err != nil {
		return err
	}
	if same, err := b.sameNames(ctx, oid, at.fields); err != nil || !same {
		return err
	}
	keys := make([]string, len(at.types))
	for i := range at.types {
		text, err := literal.Array(q.Keys.Column(i))
		if err != nil {
			return err
		}
		keys[i] = quoteLiteral(text) + "::pg_catalog.text[]"
	}
	emit := func(batch *change.Batch) error {
		defer batch.Release()
		n := int64(change.SystemColumns)
		fields := make([]arrow.Field, 0, batch.Record.NumCols()-n)
		for i, f := range at.fields.Fields {
			fields = append(fields, arrow.Field{
				Name: bykey.FieldName(f.ID), Type: batch.Record.Column(int(n) + i).DataType(), Nullable: true,
			})
		}
		rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), batch.Record.Columns()[n:], batch.Rows())
		defer rec.Release()
		return found(rec)
	}
	out, err := newRowWriter(at.fields, b.texts, 0, emit)
	if err != nil {
		return err
	}
	defer out.release()
	out.limit = func(int) error { return nil }
	sql := fmt.Sprintf("COPY (SELECT %s FROM %s JOIN ROWS FROM (%s) AS _skippr_k(%s) ON %s) TO STDOUT (FORMAT binary)",
		selectList(at.fields), at.name, unnest(keys), at.aliases(), at.joined())
	if err := b.copyTo(ctx, conn, out, sql); err != nil {
		if out.err != nil {
			return err
		}
		return unavailable("read rows by key", err)
	}
	return out.finish()
}

// sameNames says whether columns have the names still by which they are to be read.
func (b *backfill) sameNames(ctx context.Context, oid uint32, s *schema.Table) (same bool, err error) {
	err = b.source.withControl(ctx, func(conn *pgx.Conn) error {
		now, err := leafColumns(ctx, conn.PgConn(), oid)
		if err != nil {
			return unavailable("read columns", err)
		}
		same = !slices.ContainsFunc(s.Fields, func(f schema.Field) bool {
			return now[f.Name].number != strconv.Itoa(int(f.AttNum))
		})
		return nil
	})
	return same, err
}

// fetchPlace is where rows are fetched from.
type fetchPlace struct {
	name   string
	fields *schema.Table // the key's columns, then the wanted ones, under their names now
	types  []string      // of the key's columns
}

// place finds the columns of q in a table as it is now, nil when they are not what they
// were.
func (b *backfill) place(ctx context.Context, conn *pgconn.PgConn, oid uint32, q *bykey.Query) (*fetchPlace, error) {
	names := naming.Of(conn)
	results, err := conn.Exec(ctx, fmt.Sprintf(names.SQL(fetchColumns), oid)).ReadAll()
	if err != nil {
		return nil, unavailable("read columns", err)
	}
	at := &fetchPlace{fields: &schema.Table{Version: q.Schema.Version}}
	add := func(f schema.Field) bool {
		for _, row := range results[0].Rows {
			if string(row[0]) != strconv.Itoa(int(f.AttNum)) {
				continue
			}
			typeOID, err1 := strconv.ParseUint(string(row[2]), 10, 32)
			typmod, err2 := strconv.ParseInt(string(row[3]), 10, 32)
			if errors.Join(err1, err2) != nil || !sameType(f, pgoutput.Column{OID: uint32(typeOID), TypMod: int32(typmod)}, b.domains) {
				return false
			}
			f.Name = names.Text(string(row[1]))
			at.fields.Fields = append(at.fields.Fields, f)
			at.types = append(at.types, names.Text(string(row[4])))
			at.name = string(row[5]) // its number, if it was dropped
			if string(row[6]) == "r" {
				at.name = "ONLY " + at.name
			}
			return true
		}
		return false
	}
	for _, f := range q.Schema.KeyFields() {
		if !add(f) {
			return nil, nil
		}
	}
	keys := len(at.types)
	for _, id := range q.Fields {
		f, ok := q.Schema.Field(id)
		if ok && !add(f) {
			return nil, nil
		}
	}
	if at.types = at.types[:keys]; strings.TrimPrefix(at.name, "ONLY ") == strconv.FormatUint(uint64(oid), 10) {
		return nil, nil
	}
	return at, nil
}

// aliases name the columns of the keys.
func (p *fetchPlace) aliases() string {
	names := make([]string, len(p.types))
	for i := range names {
		names[i] = fmt.Sprintf("_skippr_k%d", i)
	}
	return strings.Join(names, ", ")
}

func (p *fetchPlace) joined() string {
	terms := make([]string, len(p.types))
	for i, t := range p.types {
		terms[i] = fmt.Sprintf("%s = _skippr_k%d::%s", quoteIdent(p.fields.Fields[i].Name), i, t)
	}
	return strings.Join(terms, " AND ")
}

func unnest(arrays []string) string {
	calls := make([]string, len(arrays))
	for i, a := range arrays {
		calls[i] = "pg_catalog.unnest(" + a + ")"
	}
	return strings.Join(calls, ", ")
}
