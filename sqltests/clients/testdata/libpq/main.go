// Command libpq prints sections for the comparison with PostgreSQL, "## name" and then
// lines, of what lib/pq gets.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
)

func section(name string, run func() error) {
	fmt.Println("##", name)
	if err := run(); err != nil {
		fmt.Println("FAILED", err)
	}
}

func show(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(types))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return err
		}
		for i, v := range values {
			v := *v.(*any)
			if b, ok := v.([]byte); ok {
				v = fmt.Sprintf("%q", b)
			}
			if t, ok := v.(time.Time); ok {
				v = t.UTC().Format(time.RFC3339Nano)
			}
			fmt.Printf("%s %s %v; ", types[i].Name(), types[i].DatabaseTypeName(), v)
		}
		fmt.Println()
	}
	return rows.Err()
}

func refused(_ any, err error) error {
	var e *pq.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("no error of the server: %v", err)
	}
	fmt.Println(e.Code, e.Message, e.Detail, e.Hint, e.Position, e.Table, e.Constraint)
	return nil
}

func main() {
	for _, mode := range []string{"", " binary_parameters=yes"} {
		db, err := sql.Open("postgres", "binary_parameters=no"+mode)
		if err != nil {
			panic(err)
		}
		db.SetMaxOpenConns(1)
		run(db, mode)
		db.Close()
	}
}

func run(db *sql.DB, mode string) {
	section("values"+mode, func() error {
		return show(db.Query("SELECT id, name, email, tags, paid, doc, u, d, f4, f8, i2, b, ts, tz, t, n, big, i, ints, c FROM shop.customers ORDER BY id"))
	})
	section("parameters"+mode, func() error {
		if err := show(db.Query("SELECT $1::int + 1, $2::text, $3::text[], $4::timestamptz, $5::bytea", 1, "it's", pq.Array([]string{"a", "b"}), time.Unix(0, 0), []byte{0, 255})); err != nil {
			return err
		}
		s, err := db.Prepare("SELECT name FROM shop.customers WHERE id = $1")
		if err != nil {
			return err
		}
		defer s.Close()
		for i := 1; i < 4; i++ {
			if err := show(s.Query(i)); err != nil {
				return err
			}
		}
		return nil
	})
	section("errors"+mode, func() error {
		for _, q := range []string{"SELECT 1/0", "SELECT * FROM nosuch", "SELEC 1", "SELECT nosuch FROM shop.orders"} {
			if err := refused(db.Exec(q)); err != nil {
				return err
			}
		}
		return refused(db.Exec("SELECT $1::int", "x"))
	})
	section("transactions"+mode, func() error {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return err
		}
		if err := show(tx.Query("SHOW transaction_isolation")); err != nil {
			return err
		}
		if err := refused(tx.Exec("INSERT INTO loads VALUES (1)")); err != nil {
			return err
		}
		return tx.Rollback()
	})
	section("copy"+mode, func() error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		s, err := tx.Prepare(pq.CopyIn("loads", "id", "v", "n"))
		if err != nil {
			return err
		}
		for i := range 3 {
			if _, err := s.Exec(i, fmt.Sprintf("v\t%d", i), nil); err != nil {
				return err
			}
		}
		if _, err := s.Exec(); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		return show(db.Query("SELECT * FROM loads ORDER BY id"))
	})
	section("write"+mode, func() error {
		r, err := db.Exec("UPDATE loads SET n = $1 WHERE id > $2", "1.5", 0)
		if err != nil {
			return err
		}
		n, _ := r.RowsAffected()
		fmt.Println(n)
		if err := refused(db.Exec("INSERT INTO loads VALUES (1)")); err != nil {
			return err
		}
		if err := show(db.Query("DELETE FROM loads WHERE id = 2 RETURNING id, n")); err != nil {
			return err
		}
		_, err = db.Exec("DELETE FROM loads")
		return err
	})
	section("cancel"+mode, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(ctx, "SELECT pg_sleep(60)")
		fmt.Println(err != nil)
		return show(db.Query("SELECT 1"))
	})
}
