package values

import (
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
	seed uint64
	dsn  string
	conn *pgx.Conn
	log  []done
	// failed counts statements that the source refused: keys that exist and the like.
	ran, failed int
	wrote       int64 // rows, by the last statement
	refused     error // the last
}

func newWriter(t testing.TB, dsn string, seed uint64, tables int, beyond bool) *writer {
	w := &writer{generator: newGenerator(seed), dsn: dsn, seed: seed}
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
		if err := w.transaction(w.one(8)); err != nil {
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

// more makes something new: a table, which the pipeline takes in, or a label of the enum;
// or takes a table away.
func (w *writer) more() error {
	switch n := w.r.IntN(6); {
	case n == 3:
		return w.truncateLeaf(pick(w.generator, w.tables))
	case n < 2:
		sql := w.newLabel()
		w.log = append(w.log, done{nil, sql})
		return w.exec(sql)
	case n == 2 && len(w.tables) > 3:
		at := w.r.IntN(len(w.tables))
		sql := "DROP TABLE " + w.tables[at].sql()
		w.log = append(w.log, done{w.tables[at], sql})
		w.tables = slices.Delete(w.tables, at, at+1)
		return w.exec(sql)
	}
	return w.makeTable()
}

// truncateLeaf empties a partition by itself, of which the source does not tell.
func (w *writer) truncateLeaf(t *table) error {
	if len(t.leaves) == 0 {
		return nil
	}
	sql := "TRUNCATE " + leafSQL(pick(w.generator, t.leaves))
	w.log, t.restless = append(w.log, done{t, sql}), true
	return w.exec(sql)
}

// transaction runs a transaction, ddl says whether it changes tables, too. It ends in one of
// the ways that there are.
func (w *writer) transaction(ddl bool) error {
	began, was := len(w.log), w.remember()
	if err := w.exec("BEGIN"); err != nil {
		return err
	}
	w.log = append(w.log, done{nil, "BEGIN"})
	if err := w.statements(1+w.r.IntN(6), ddl, 0); err != nil {
		return err
	}
	switch n := w.r.IntN(20); {
	case n < 2:
		w.log = w.log[:began]
		was.restore(w.generator)
		return w.exec("ROLLBACK")
	case n == 2:
		return w.prepare(was)
	}
	w.log = append(w.log, done{nil, "COMMIT"})
	if err := w.exec("COMMIT"); err != nil {
		return fmt.Errorf("COMMIT: %w", err)
	}
	return nil
}

// prepare has the transaction end in two steps, between which others come. Those give way
// where they meet it.
func (w *writer) prepare(was *memory) error {
	name := quote.Literal(w.newName(fmt.Sprintf("x%d_", w.seed))) // prepared transactions are of all databases
	step := func(sql string) error {
		w.log = append(w.log, done{nil, sql})
		if err := w.exec(sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		return nil
	}
	if err := step("PREPARE TRANSACTION " + name); err != nil {
		return err
	}
	if err := w.exec("SET lock_timeout = '50ms'"); err != nil {
		return err
	}
	for range w.r.IntN(3) {
		began := len(w.log)
		if err := step("BEGIN"); err != nil {
			return err
		}
		if err := w.statements(1+w.r.IntN(3), false, 2); err != nil {
			return err
		}
		if err := step("COMMIT"); err != nil {
			return fmt.Errorf("after %d statements: %w", len(w.log)-began, err)
		}
	}
	if err := w.exec("RESET lock_timeout"); err != nil {
		return err
	}
	if w.one(3) {
		was.restore(w.generator)
		return step("ROLLBACK PREPARED " + name)
	}
	return step("COMMIT PREPARED " + name)
}

// statements runs some statements of a transaction; some are in subtransactions, in each
// other, that end either way.
func (w *writer) statements(n int, ddl bool, depth int) error {
	for range n {
		t := pick(w.generator, w.tables)
		var err error
		switch {
		case depth < 2 && w.one(6):
			err = w.subtransaction(depth)
		case ddl && w.one(2):
			err = w.alterTable(t)
		default:
			err = w.statement(t, w.change(t))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) subtransaction(depth int) error {
	name, was := fmt.Sprintf("d%d", depth), w.remember()
	step := func(sql string) error {
		w.log = append(w.log, done{nil, sql})
		return w.exec(sql)
	}
	if err := step("SAVEPOINT " + name); err != nil {
		return err
	}
	if err := w.statements(1+w.r.IntN(3), w.one(4), depth+1); err != nil {
		return err
	}
	if w.one(2) {
		return step("RELEASE SAVEPOINT " + name)
	}
	was.restore(w.generator)
	return step("ROLLBACK TO SAVEPOINT " + name)
}

// memory is what was known of the tables.
type memory struct {
	tables []*table
	states []table
}

func (w *writer) remember() *memory {
	m := &memory{tables: slices.Clone(w.tables)}
	for _, t := range w.tables {
		state := *t
		state.columns, state.leaves = slices.Clone(t.columns), slices.Clone(t.leaves)
		m.states = append(m.states, state)
	}
	return m
}

// restore brings back what was known before a transaction that is given up.
func (m *memory) restore(g *generator) {
	g.tables = slices.Clone(m.tables)
	for i, t := range m.tables {
		restless := t.restless
		*t = m.states[i]
		t.restless = t.restless || restless
	}
}

// statement runs one statement under a savepoint. One that fails is as if it had not been.
func (w *writer) statement(t *table, sql string) error {
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
		return w.exec("ROLLBACK TO SAVEPOINT s")
	}
	w.log = append(w.log, done{t, sql})
	return w.exec("RELEASE SAVEPOINT s")
}

// alterTable changes a table, and lets a row follow: the source tells of the change with it.
func (w *writer) alterTable(t *table) error {
	m := w.restructure(t)
	before := len(w.log)
	if err := w.statement(t, m.sql); err != nil || len(w.log) == before {
		return err
	}
	m.done()
	for _, of := range append(m.also, t) {
		if err := w.touch(of); err != nil {
			return err
		}
	}
	return nil
}

// touch writes a row: one that exists when no other fits. Where none can be written the
// source does not tell of what has changed.
func (w *writer) touch(t *table) error {
	c := quote.Name(t.columns[0].name)
	same := fmt.Sprintf("UPDATE %[1]s SET %[2]s = %[2]s WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM %[1]s x ORDER BY x::text COLLATE \"C\" LIMIT 1)", t.sql(), c)
	for range 30 { // a large key may not fit its index
		if err := w.statement(t, w.insert(t, 1)); err != nil || w.wrote > 0 {
			t.silent = false
			return err
		}
		if t.inserts() {
			continue
		}
		if err := w.statement(t, same); err != nil || w.wrote > 0 {
			t.silent = false
			return err
		}
	}
	t.silent = true
	return nil
}

// reproduction is what happened to a table, as statements.
func (w *writer) reproduction(t *table) string {
	var out []string
	for i, d := range w.log {
		switch {
		case d.table == t || d.table != nil && strings.Contains(d.sql, quote.Name(t.name)):
			out = append(out, d.sql+";")
		case d.table == nil && d.sql != "BEGIN" && len(out) > 0 && out[len(out)-1] == "BEGIN;":
			out = out[:len(out)-1]
		case d.table == nil && (len(out) > 0 || i > 0):
			out = append(out, d.sql+";")
		}
	}
	return strings.Join(append(slices.Clone(prelude), out...), "\n")
}

// chaos draws what happens to the product, from a seed of its own.
func chaos(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 42)) }
