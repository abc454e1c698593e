package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pgxModes are all ways in which pgx runs queries.
var pgxModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
	pgx.QueryExecModeSimpleProtocol,
}

// pgxRun is a connection in one mode, and where its sections go.
type pgxRun struct {
	conn *pgx.Conn
	out  io.Writer
	mode pgx.QueryExecMode
}

// withPgx prints what pgx gets, in every mode.
func withPgx(ctx context.Context, dsn string) string {
	var out strings.Builder
	for _, mode := range pgxModes {
		conf, err := pgx.ParseConfig(dsn)
		if err != nil {
			return failure + " " + err.Error()
		}
		conf.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(ctx, conf)
		if err != nil {
			return failure + " " + err.Error()
		}
		(&pgxRun{conn, &out, mode}).all(ctx)
		_ = conn.Close(ctx) // whatever it says, the next mode has one of its own
	}
	return out.String()
}

func (r *pgxRun) section(name string, run func() error) {
	fmt.Fprintf(r.out, "## %s %s\n", r.mode, name)
	if err := run(); err != nil {
		fmt.Fprintln(r.out, failure, err)
	}
}

// show prints the rows of a query: values with their Go types.
func (r *pgxRun) show(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		for _, v := range values {
			if t, ok := v.(time.Time); ok {
				v = t.UTC().Format(time.RFC3339Nano)
			}
			fmt.Fprintf(r.out, "%T %v; ", v, v)
		}
		fmt.Fprintln(r.out)
	}
	return rows.Err()
}

// refused prints the server's error, and is one if there is none.
func (r *pgxRun) refused(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return fmt.Errorf("no error of the server: %w", err)
	}
	fmt.Fprintln(r.out, e.Severity, e.Code, e.Message, e.Hint, e.Position, e.SchemaName, e.TableName, e.ConstraintName)
	return nil
}

func (r *pgxRun) all(ctx context.Context) {
	r.section("values", func() error {
		return r.show(r.conn.Query(ctx, `SELECT id, name, email, tags, paid, doc, u, d, f4, f8, i2, b, ts, tz, t, n, big, i, ints, c
			FROM shop.customers ORDER BY id`))
	})
	r.section("parameters", func() error { return r.parameters(ctx) })
	r.section("errors", func() error { return r.errors(ctx) })
	r.section("transactions", func() error { return r.transactions(ctx) })
	r.section("batch", func() error { return r.batch(ctx) })
	r.section("copy", func() error { return r.copy(ctx) })
	r.section("cancel", func() error {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		_, err := r.conn.Exec(short, "SELECT pg_sleep(60)")
		fmt.Fprintln(r.out, err != nil, r.conn.IsClosed())
		return nil
	})
}

func (r *pgxRun) parameters(ctx context.Context) error {
	if err := r.show(r.conn.Query(ctx, "SELECT $1::int + 1, $2::text, $3::text[], $4::timestamptz, $5::bytea, $6::float8, $7::bool, $8::int",
		1, "it's", []string{"a", "b,c"}, time.Unix(0, 0).UTC(), []byte{0, 255}, 1.5, true, nil)); err != nil {
		return err
	}
	for i := range 3 { // by a name that is known from the second on, or not
		if err := r.show(r.conn.Query(ctx, "SELECT name, n FROM shop.customers WHERE id = $1", i+1)); err != nil {
			return err
		}
	}
	return r.show(r.conn.Query(ctx, "SELECT id, line FROM shop.orders WHERE id = ANY($1::int[]) ORDER BY id, line", []int32{3, 5}))
}

func (r *pgxRun) errors(ctx context.Context) error {
	for _, sql := range []string{"SELECT 1/0", "SELECT * FROM nosuch", "SELEC 1", "SELECT nosuch FROM shop.orders", "INSERT INTO loads VALUES (NULL)"} {
		_, err := r.conn.Exec(ctx, sql)
		if err := r.refused(err); err != nil {
			return err
		}
	}
	_, err := r.conn.Exec(ctx, "SELECT $1::text::int", "x")
	return r.refused(err)
}

func (r *pgxRun) transactions(ctx context.Context) error {
	tx, err := r.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // of one that has ended already
	if err := r.show(tx.Query(ctx, "SHOW transaction_isolation")); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, "INSERT INTO loads VALUES ($1, $2, $3)", 1, "a", "1.5")
	if err != nil {
		return err
	}
	fmt.Fprintln(r.out, tag)
	err = pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
		_, err := inner.Exec(ctx, "INSERT INTO loads VALUES (1)")
		return err
	})
	if err := r.refused(err); err != nil {
		return err
	}
	if err := r.show(tx.Query(ctx, "UPDATE loads SET n = n * 2 RETURNING *")); err != nil {
		return err
	}
	return tx.Rollback(ctx)
}

func (r *pgxRun) batch(ctx context.Context) error {
	b := &pgx.Batch{}
	for i := range 3 {
		b.Queue("INSERT INTO loads (id, v) VALUES ($1, $2)", i, fmt.Sprint("v", i))
	}
	b.Queue("SELECT count(*), max(v) FROM loads")
	b.Queue("DELETE FROM loads")
	results := r.conn.SendBatch(ctx, b)
	for range 3 {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	if err := r.show(results.Query()); err != nil {
		return err
	}
	tag, err := results.Exec()
	fmt.Fprintln(r.out, tag)
	return errors.Join(err, results.Close())
}

func (r *pgxRun) copy(ctx context.Context) error {
	n, err := r.conn.CopyFrom(ctx, pgx.Identifier{"public", "loads"}, []string{"id", "v"}, pgx.CopyFromRows([][]any{{1, "a"}, {2, nil}}))
	if err != nil {
		return err
	}
	fmt.Fprintln(r.out, n)
	if err := r.show(r.conn.Query(ctx, "SELECT * FROM loads ORDER BY id")); err != nil {
		return err
	}
	_, err = r.conn.Exec(ctx, "TRUNCATE loads")
	return err
}
