package values

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
)

// present is a table of a pipeline, with what it says of it.
type present struct{ name, source, state, reason string }

func (u *run) tablesOf(pipeline string) ([]present, error) {
	conn := connect(u.t, u.server.DSN)
	defer func() { _ = conn.Close(u.t.Context()) }()
	r, err := ask(u.t.Context(), conn, "SELECT t.table_name, t.source_table, s.state, s.reason FROM skippr.tables t JOIN pg_stat_pipeline_table s "+
		"ON s.pipeline = t.pipeline AND s.table_name = t.table_name WHERE t.pipeline = '"+pipeline+"' ORDER BY 1")
	if err != nil {
		return nil, err
	}
	var out []present
	for _, row := range r.rows {
		out = append(out, present{string(row[0]), string(row[1]), string(row[2]), string(row[3])})
	}
	return out, nil
}

// patience is how long a table may take that a look at the source has to tell of.
const patience = harness.Patience

// compare has all tables of a database compared. Those to which something happened that the
// stream does not tell of become equal soon, the others are at once.
func (u *run) compare(round, i int, w *writer) {
	pipeline := fmt.Sprintf("p%d", i)
	if err := w.calm(); err != nil {
		u.t.Errorf("seed %d, database %d: %v", u.seed, i, err)
		return
	}
	u.note("add and sync %s", pipeline)
	u.addTables(pipeline, w)
	restless := slices.ContainsFunc(w.tables, func(t *table) bool { return t.restless })
	var wrong []string
	pause := time.Duration(0)
	harness.Until(patience, func() bool {
		u.server.WaitDead(pause)
		pause = time.Second
		harness.Exec(u.t, u.server.DSN, "REFRESH PIPELINE "+pipeline, "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
		u.note("compare %s", pipeline)
		wrong = u.unequal(pipeline, w)
		return len(wrong) == 0 || !restless || u.t.Failed()
	})
	for _, text := range wrong {
		u.t.Errorf("seed %d, round %d, database %d, %s\n%s", u.seed, round, i, text, strings.Join(u.events, "\n"))
	}
	if len(wrong) > 0 || u.t.Failed() {
		return
	}
	for _, t := range w.tables {
		t.restless, t.again = false, false
	}
	if agrees(u.t, u.server, pipeline) == 0 {
		u.t.Errorf("VERIFY compared no table of %s", pipeline)
	}
	if u.t.Failed() {
		here, err := u.tablesOf(pipeline)
		u.t.Logf("%+v, %v", here, err)
	}
	for _, t := range w.tables { // those that it alone compares
		if u.t.Failed() && (t.silent || t.undeclared) {
			u.t.Logf("seed %d, round %d, database %d, table %s, here %q\n%s\n%s", u.seed, round, i, t.sql(), t.here, strings.Join(u.events, "\n"), w.reproduction(t))
		}
	}
	u.noLetters(round, pipeline, w)
}

// noLetters says whether a table whose rows can all be taken in has open dead letters.
func (u *run) noLetters(round int, pipeline string, w *writer) {
	conn := connect(u.t, u.server.DSN)
	defer func() { _ = conn.Close(u.t.Context()) }()
	open, err := ask(u.t.Context(), conn, "SELECT DISTINCT table_name FROM skippr.dead_letters WHERE state = 'open' AND pipeline = '"+pipeline+"'")
	if err != nil {
		u.t.Fatal(err)
	}
	for _, row := range open.rows {
		for _, t := range w.tables {
			if t.here == string(row[0]) && !t.silent && !t.undeclared {
				u.t.Errorf("seed %d, round %d: %s of %s has open dead letters\n%s\n%s", u.seed, round, t.here, pipeline, strings.Join(u.events, "\n"), w.reproduction(t))
			}
		}
	}
}

// calm prepares a comparison: what the source has not told it tells now, and values that are
// beyond the types here are mended.
func (w *writer) calm() error {
	for _, t := range w.tables {
		if t.silent {
			if err := w.alone(func() error { return w.touch(t) }); err != nil {
				return err
			}
		}
	}
	if !w.heals {
		return nil
	}
	for _, t := range w.tables {
		for _, c := range t.columns {
			if err := w.alone(func() error { return w.heal(t, c) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone runs statements in a transaction of their own.
func (w *writer) alone(do func() error) error {
	if err := w.exec("BEGIN"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.exec("COMMIT")
}

// heal gives the rows whose value of a column is refused another one, or takes them away.
func (w *writer) heal(t *table, c column) error {
	if len(c.typ.refused) == 0 || isList(c.typ) {
		return nil
	}
	name := quote.Name(c.name)
	if t.inserts() {
		t.silent = true
		return nil
	}
	where := fmt.Sprintf("NOT isfinite(%s) OR %[1]s >= '294247-01-01'", name)
	switch {
	case strings.HasPrefix(c.typ.sql, "numeric"):
		where = name + " = 'NaN'"
	case c.typ.sql == "date":
		where = fmt.Sprintf("NOT isfinite(%s)", name)
	}
	sql := fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", t.sql(), name, c.typ.values[0], where)
	if c.key || w.one(3) {
		sql = fmt.Sprintf("DELETE FROM %s WHERE %s", t.sql(), where)
	}
	if err := w.statement(t, sql); err != nil {
		return err
	}
	left, err := ask(context.Background(), w.conn, fmt.Sprintf("SELECT FROM %s WHERE %s LIMIT 1", t.sql(), where))
	if err == nil && len(left.rows) > 0 { // without an identity its rows cannot be changed
		t.silent = true
	}
	return err
}

// addTables takes those in again that were taken out, or leaves them out.
func (u *run) addTables(pipeline string, w *writer) {
	for _, t := range w.tables {
		if u.excepted(pipeline, t) && u.r.IntN(2) == 0 && !u.nameTaken(pipeline, t) {
			u.note("add %s %s", pipeline, t.sql())
			harness.Exec(u.t, u.server.DSN, fmt.Sprintf("ALTER PIPELINE %s ADD TABLE %s", pipeline, t.sql()))
		}
	}
}

// excepted says whether a table is one that was taken out.
func (u *run) excepted(pipeline string, t *table) bool {
	text, err := harness.Text(u.server.DSN, "SELECT skippr.get_ddl('pipeline', '"+pipeline+"')")
	if err != nil {
		u.t.Fatal(err)
	}
	_, except, _ := strings.Cut(text, " EXCEPT ")
	except, _, _ = strings.Cut(except, " WITH ")
	except, _, _ = strings.Cut(except, " FOR TABLE ")
	return slices.Contains(strings.Split(strings.TrimSuffix(except, ";"), ", "), t.schema+"."+quote.NameIfNeeded(t.name))
}

// nameTaken says whether another table has a table's name here.
func (u *run) nameTaken(pipeline string, t *table) bool {
	here, err := u.tablesOf(pipeline)
	if err != nil {
		u.t.Fatal(err)
	}
	return slices.ContainsFunc(here, func(p present) bool { return p.name == t.name && p.source != t.schema+"."+t.name })
}

// unequal mends what has stopped as it may, and describes the tables that differ.
func (u *run) unequal(pipeline string, w *writer) (wrong []string) {
	here, err := u.tablesOf(pipeline)
	if err != nil {
		u.t.Fatal(err)
	}
	recognize(w.tables, here)
	if u.mend(pipeline, w, here) > 0 {
		harness.Exec(u.t, u.server.DSN, "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
	}
	conn := connect(u.t, u.server.DSN)
	defer func() { _ = conn.Close(u.t.Context()) }()
	for _, t := range w.tables {
		if t.silent || t.undeclared || t.here == "" && (u.excepted(pipeline, t) || u.nameTaken(pipeline, t)) {
			continue
		}
		diff := "it is not here"
		if t.here != "" {
			if diff, err = differences(u.t.Context(), w.conn, conn, pipeline, t); err != nil {
				u.t.Fatal(err)
			}
		}
		if diff != "" && t.here != "" && t.restless && len(t.keyNames()) == 0 && !t.again {
			t.again = true // of updates and deletes it may have been told nothing
			u.note("resync %s %s, which has no key", pipeline, t.here)
			u.stopped["no key"]++
			u.resync(pipeline, t.here)
		}
		if diff != "" {
			wrong = append(wrong, fmt.Sprintf("table %s, here %q: %s\n%v\n%s", t.sql(), t.here, diff, here, w.reproduction(t)))
		}
	}
	return wrong
}

// recognize finds the names that tables have here, whatever they are called at the source.
func recognize(tables []*table, here []present) {
	for _, t := range tables {
		i := slices.IndexFunc(here, func(p present) bool { return p.source == t.schema+"."+t.name && p.state != "gone" })
		t.here = ""
		if i >= 0 {
			t.here = here[i].name
		}
	}
}

// mend copies tables anew that stopped for a reason for which they may. A table that has
// stopped is not told of its new names.
func (u *run) mend(pipeline string, w *writer, here []present) (stopped int) {
	for _, p := range here {
		if p.state != "stopped" {
			continue
		}
		at := slices.IndexFunc(w.tables, func(t *table) bool { return t.here == p.name })
		reason := mayStop.FindString(p.reason)
		if reason == "" && (at < 0 || w.tables[at].restless) {
			reason = mayStopOthers.FindString(p.reason)
		}
		if reason == "" {
			text := ""
			if at >= 0 {
				text = w.reproduction(w.tables[at])
			}
			u.t.Errorf("seed %d: table %s of %s (of %s) stopped: %s\n%s\n%s", u.seed, p.name, pipeline, p.source, p.reason, strings.Join(u.events, "\n"), text)
			continue
		}
		u.stopped[reason]++
		u.note("resync %s %s: %s", pipeline, p.name, p.reason)
		u.resync(pipeline, p.name)
		stopped++
	}
	return stopped
}

// resync copies a table anew, if the source has it.
func (u *run) resync(pipeline, name string) {
	conn := connect(u.t, u.server.DSN)
	defer func() { _ = conn.Close(u.t.Context()) }()
	sql := fmt.Sprintf("ALTER PIPELINE %[1]s RESYNC TABLE %[1]s.%[2]s", pipeline, quote.Name(name))
	_, err := conn.PgConn().Exec(u.t.Context(), sql).ReadAll()
	if err != nil && !strings.Contains(err.Error(), "does not exist at the source") &&
		!strings.Contains(err.Error(), "may not read the table") { // it was dropped at that moment

		u.t.Errorf("seed %d: %s: %v", u.seed, sql, err)
	}
}

// differences compares all rows of a table with the source's; "" when they are equal.
func differences(ctx context.Context, source, here *pgx.Conn, pipeline string, t *table) (string, error) {
	want, err := ask(ctx, source, "SELECT * FROM "+t.sql())
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
		switch got := got.types[at]; {
		case told[0] < 16384 && !c.typ.own:
		case got[0] >= ownOID: // under a number of ours
			told[0] = got[0]
		default: // not looked at yet
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
