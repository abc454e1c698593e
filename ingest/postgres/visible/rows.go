package visible

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Row is a version of a row: where it is in its table, and who wrote it.
type Row struct{ CTID, Xmin string }

// Rows looks at rows of tables that others write to. Safe for concurrent use.
type Rows struct {
	Source Source

	mu struct {
		sync.Mutex
		// open are transactions that were waited for in vain, and had not ended at the last
		// time.
		open map[string]bool
	}
}

// rowsAtOnce is how many rows are asked for at once.
const rowsAtOnce = 1000

// ErrRewritten says that a table has another file than the one that rows are in, or is gone.
var ErrRewritten = errors.New("the table was rewritten, renamed or dropped")

// Table is an ordinary table as it was when its rows were read.
type Table struct {
	OID, File uint32
	Name      string // as SQL has it
}

const rowsQuery = `
SELECT coalesce(pg_catalog.pg_relation_filenode($2) = $3 AND pg_catalog.to_regclass($4)::oid = $2, false),
       coalesce(r.ctid, ''), coalesce(r.xmin, ''), coalesce(r.marked, false)
  FROM (VALUES (1)) one LEFT JOIN (
    SELECT ctid::text, xmin::text, xmax::text <> '0' AS marked FROM ONLY %s WHERE ctid = ANY($1::text[]::pg_catalog.tid[])) r ON true`

// The SQLSTATEs of a table that is not there under its name, and of one that is locked.
const (
	codeUndefinedTable = "42P01"
	codeLockTimeout    = "55P03"
)

// lockMost is how long a table's lock is waited for at once, in milliseconds: whoever comes
// after us waits as long, and so does whoever wants the connection.
const lockMost = 500

// writersQuery lists transactions that may have written to table $1 and have a commit in
// the log that others do not see. One that waits for a lock, or for its client, has none,
// and need not be waited for; nor must it, for a lock may be ours.
const writersQuery = `
SELECT w.virtualtransaction
  FROM pg_catalog.pg_locks w LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = w.pid
 WHERE w.locktype = 'relation' AND w.relation = $1 AND w.mode = 'RowExclusiveLock' AND w.granted
   AND w.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
   AND coalesce(a.state, '') NOT LIKE 'idle in transaction%'
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_locks q WHERE q.virtualtransaction = w.virtualtransaction AND NOT q.granted)`

// aliveQuery lists all transactions that have not ended.
const aliveQuery = `SELECT DISTINCT virtualtransaction FROM pg_catalog.pg_locks WHERE virtualtransaction IS NOT NULL`

// Changed says which rows of a table, by their places in rows, have been changed or deleted
// by the transactions that were in the source's log before the call. Those of doubt may
// have been: a transaction that was open for long may have committed one. The caller holds
// no lock of the table: others who wait for it would keep us waiting. All are of doubt when it
// is locked for long. The error wraps ErrRewritten when the places say nothing any more.
//
// A change marks the row's old version before its commit is in the log, so that a row
// without a mark is settled at once. The others are so when the writers of the table are
// over.
func (r *Rows) Changed(ctx context.Context, t Table, rows []Row) (changed, doubt []int, err error) {
	first, err := r.look(ctx, t, rows)
	if errors.Is(err, ErrWaits) {
		return nil, all(rows), nil
	}
	if err != nil {
		return nil, nil, err
	}
	var marked []int
	for i, is := range first {
		switch is {
		case gone:
			changed = append(changed, i)
		case touched:
			marked = append(marked, i)
		}
	}
	if len(marked) == 0 {
		return changed, nil, nil
	}
	over, err := r.awaitWriters(ctx, t.OID)
	if err != nil {
		return nil, nil, err
	}
	second, err := r.look(ctx, t, pick(rows, marked))
	if errors.Is(err, ErrWaits) {
		return changed, marked, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for i, at := range marked {
		switch {
		case second[i] == gone:
			changed = append(changed, at)
		case !over:
			doubt = append(doubt, at)
		}
	}
	slices.Sort(changed)
	return changed, doubt, nil
}

// all are the places of rows.
func all(rows []Row) []int {
	out := make([]int, len(rows))
	for i := range out {
		out[i] = i
	}
	return out
}

func pick(rows []Row, at []int) []Row {
	out := make([]Row, len(at))
	for i, k := range at {
		out[i] = rows[k]
	}
	return out
}

// fate is what has become of a row.
type fate int

const (
	gone    fate = iota // it is another, or none
	touched             // somebody has, or had, it locked or changed
	whole
)

// look finds what has become of rows. It waits while the table is locked, and wraps ErrWaits
// when that is for long.
func (r *Rows) look(ctx context.Context, t Table, rows []Row) ([]fate, error) {
	out := make([]fate, 0, len(rows))
	for part := range slices.Chunk(rows, rowsAtOnce) {
		var found map[Row]fate
		err := r.Source.poll(ctx, func() (done bool, err error) {
			err = r.Source.Lend(ctx, func(conn *pgx.Conn) (err error) {
				found, err = lookPart(ctx, conn, t, part)
				return err
			})
			var server *pgconn.PgError
			if errors.As(err, &server) && server.Code == codeLockTimeout {
				return false, nil
			}
			return true, err
		})
		if err != nil {
			return nil, fmt.Errorf("look at rows of %s: %w", t.Name, err)
		}
		for _, p := range part {
			out = append(out, found[p])
		}
	}
	return out, nil
}

func lookPart(ctx context.Context, conn *pgx.Conn, t Table, rows []Row) (map[Row]fate, error) {
	ctids := make([]string, len(rows))
	for i, p := range rows {
		ctids[i] = p.CTID
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, unavailable("look for rows", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it has only read
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", lockMost)); err != nil {
		return nil, unavailable("look for rows", err)
	}
	found, same := map[Row]fate{}, true
	got, err := tx.Query(ctx, fmt.Sprintf(rowsQuery, t.Name), ctids, t.OID, t.File, t.Name)
	if err == nil {
		var row Row
		var here, marked bool
		_, err = pgx.ForEachRow(got, []any{&here, &row.CTID, &row.Xmin, &marked}, func() error {
			same = same && here
			if found[row] = whole; marked {
				found[row] = touched
			}
			return nil
		})
	}
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server) && server.Code == codeUndefinedTable, err == nil && !same:
		return nil, ErrRewritten
	case err != nil:
		return nil, unavailable("look for rows", err)
	}
	return found, nil
}

// awaitWriters waits until the transactions that write to a table now are over; over is
// false when that takes too long, for some of them.
func (r *Rows) awaitWriters(ctx context.Context, oid uint32) (over bool, err error) {
	now, err := r.writers(ctx, oid)
	if err != nil {
		return false, err
	}
	over = true
	now = slices.DeleteFunc(now, func(w string) bool {
		known := r.isOpen(w)
		over = over && !known
		return known
	})
	err = r.Source.poll(ctx, func() (bool, error) {
		if len(now) == 0 {
			return true, nil
		}
		still, err := r.writers(ctx, oid)
		now = slices.DeleteFunc(now, func(w string) bool { return !slices.Contains(still, w) })
		return len(now) == 0, err
	})
	if !errors.Is(err, ErrWaits) {
		return over, err
	}
	alive, err := r.list(ctx, aliveQuery)
	if err != nil {
		return false, err
	}
	r.noteOpen(now, alive)
	return false, nil
}

// noteOpen notes transactions that were waited for in vain, and forgets those that are not
// alive any more.
func (r *Rows) noteOpen(inVain, alive []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.mu.open
	r.mu.open = map[string]bool{}
	for _, w := range alive {
		if known[w] || slices.Contains(inVain, w) {
			r.mu.open[w] = true
		}
	}
}

func (r *Rows) isOpen(writer string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.open[writer]
}

func (r *Rows) writers(ctx context.Context, oid uint32) (out []string, err error) {
	return r.list(ctx, writersQuery, oid)
}

// list answers a query for transactions.
func (r *Rows) list(ctx context.Context, query string, args ...any) (out []string, err error) {
	err = r.Source.Lend(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err == nil {
			out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			return unavailable("list transactions", err)
		}
		return nil
	})
	return out, err
}
