package values

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// done is a statement that the source has committed, or a mark.
type done struct {
	table *table // nil: of the transaction
	sql   string
}

// writer runs what a generator draws against one database.
type writer struct {
	*generator
	dsn  string
	conn *pgx.Conn
	log  []done
	// failed counts statements that the source refused: keys that exist and the like.
	ran, failed int
	wrote       int64 // rows, by the last statement
	refused     error // the last
}

func newWriter(t testing.TB, dsn string, seed uint64, tables int, beyond bool) *writer {
	w := &writer{generator: newGenerator(seed), dsn: dsn}
	w.beyond = beyond
	w.conn = connect(t, dsn)
	for len(w.tables) < tables {
		if err := w.makeTable(); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *writer) exec(sql string) error {
	results, err := w.conn.PgConn().Exec(context.Background(), sql).ReadAll()
	w.wrote = 0
	if n := len(results); err == nil && n > 0 {
		w.wrote = results[n-1].CommandTag.RowsAffected()
	}
	return err
}

func (w *writer) makeTable() error {
	n := w.newTable()
	if err := w.exec(strings.Join(n.made, ";\n")); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(n.made, ";\n"), err)
	}
	for _, sql := range n.made {
		w.log = append(w.log, done{n, sql})
	}
	w.tables = append(w.tables, n)
	return nil
}

// transactions runs n transactions: statements with savepoints, some rolled back.
func (w *writer) transactions(n int) error {
	for range n {
		if err := w.transaction(); err != nil {
			return err
		}
		if w.one(30) {
			if err := w.more(); err != nil {
				return err
			}
		}
	}
	return nil
}

// more makes something new: a table, which the pipeline takes in, or a label of the enum.
func (w *writer) more() error {
	if w.one(2) {
		sql := w.newLabel()
		w.log = append(w.log, done{nil, sql})
		return w.exec(sql)
	}
	return w.makeTable()
}

func (w *writer) transaction() error {
	began := len(w.log)
	if err := w.exec("BEGIN"); err != nil {
		return err
	}
	w.log = append(w.log, done{nil, "BEGIN"})
	ddl := w.one(12)
	for range 1 + w.r.IntN(6) {
		t := pick(w.generator, w.tables)
		keep := ddl || !w.one(5) // a change of columns is not taken back: what is known of the table is not either
		var err error
		if ddl && w.one(2) {
			err = w.alterTable(t)
		} else {
			err = w.statement(t, w.change(t), keep)
		}
		if err != nil {
			return err
		}
	}
	end := "COMMIT"
	if !ddl && w.one(10) {
		end = "ROLLBACK"
	}
	if err := w.exec(end); err != nil {
		return fmt.Errorf("%s: %w", end, err)
	}
	if end == "ROLLBACK" {
		w.log = w.log[:began]
		return nil
	}
	w.log = append(w.log, done{nil, end})
	return nil
}

// statement runs one statement under a savepoint. One that fails is as if it had not been.
func (w *writer) statement(t *table, sql string, keep bool) error {
	w.ran++
	if err := w.exec("SAVEPOINT s"); err != nil {
		return err
	}
	failed := w.exec(sql)
	wrote := w.wrote
	defer func() { w.wrote = wrote }()
	if w.conn.IsClosed() {
		return failed
	}
	if failed != nil {
		w.failed, w.refused = w.failed+1, failed
	}
	if failed != nil || !keep {
		return w.exec("ROLLBACK TO SAVEPOINT s")
	}
	w.log = append(w.log, done{t, sql})
	return w.exec("RELEASE SAVEPOINT s")
}

// alterTable changes a table, and lets a row follow: the source tells of the change with it.
func (w *writer) alterTable(t *table) error {
	sql, happened := w.alter(t)
	before := len(w.log)
	if err := w.statement(t, sql, true); err != nil || len(w.log) == before {
		return err
	}
	happened()
	return w.touch(t)
}

// touch writes a row: one that exists when no other fits.
func (w *writer) touch(t *table) error {
	c := quote.Name(t.columns[0].name)
	same := fmt.Sprintf("UPDATE %[1]s SET %[2]s = %[2]s WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM %[1]s x ORDER BY x::text COLLATE \"C\" LIMIT 1)", quote.Name(t.name), c)
	for range 30 { // a large key may not fit its index
		if err := w.statement(t, w.insert(t, 1), true); err != nil || w.wrote > 0 {
			return err
		}
		if err := w.statement(t, same, true); err != nil || w.wrote > 0 {
			return err
		}
	}
	return fmt.Errorf("no row can be written to %s: %w\n%s", t.name, w.refused, w.reproduction(t))
}

// reproduction is what happened to a table, as statements.
func (w *writer) reproduction(t *table) string {
	var out []string
	for i, d := range w.log {
		switch {
		case d.table == t || d.table != nil && strings.HasPrefix(d.sql, "TRUNCATE") && strings.Contains(d.sql, quote.Name(t.name)):
			out = append(out, d.sql+";")
		case d.table == nil && d.sql != "BEGIN" && len(out) > 0 && out[len(out)-1] == "BEGIN;":
			out = out[:len(out)-1]
		case d.table == nil && (len(out) > 0 || i > 0):
			out = append(out, d.sql+";")
		}
	}
	return strings.Join(append(slices.Clone(prelude), out...), "\n")
}

// differences compares all rows of a table with the source's; "" when they are equal.
func differences(ctx context.Context, source, here *pgx.Conn, pipeline string, t *table) (string, error) {
	want, err := ask(ctx, source, "SELECT * FROM "+quote.Name(t.name))
	if err != nil {
		return "", err
	}
	got, err := ask(ctx, here, "SELECT * FROM "+pipeline+"."+quote.Name(t.here))
	if err != nil {
		return err.Error(), nil
	}
	if !slices.Equal(want.names, got.names) {
		return fmt.Sprintf("columns %q, want %q", got.names, want.names), nil
	}
	for i, c := range t.columns {
		at := slices.Index(want.names, c.name)
		if at < 0 {
			return "", fmt.Errorf("column %q (%d) is not at the source", c.name, i)
		}
		told := want.types[at]
		if told[0] >= 16384 || c.typ.own {
			told = [2]int64{25, -1}
		}
		if got.types[at] != told {
			return fmt.Sprintf("column %q is announced as %v, want %v", c.name, got.types[at], told), nil
		}
	}
	a, b := lines(want), lines(got)
	if slices.Equal(a, b) {
		return "", nil
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(rows []string) string { return strings.Join(rows[max(0, i-2):min(len(rows), i+3)], "\n     ") }
	return fmt.Sprintf("%d rows, want %d; row %d\n got %.1500s\nwant %.1500s", len(b), len(a), i, around(b), around(a)), nil
}

// lines are the rows as sorted texts.
func lines(r *result) []string {
	out := make([]string, len(r.rows))
	for i, row := range r.rows {
		var b bytes.Buffer
		for _, v := range row {
			if v == nil {
				b.WriteString("NULL|")
				continue
			}
			fmt.Fprintf(&b, "%q|", v)
		}
		out[i] = b.String()
	}
	slices.Sort(out)
	return out
}

// chaos draws what happens to the product, from a seed of its own.
func chaos(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 42)) }
