package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type ans struct{ rows, types, names, code, msg string }

func run(c *pgx.Conn, sql string) ans {
	var a ans
	mr := c.PgConn().Exec(context.Background(), sql)
	var rows, types, names []string
	for mr.NextResult() {
		rr := mr.ResultReader()
		for _, f := range rr.FieldDescriptions() {
			types = append(types, fmt.Sprint(f.DataTypeOID))
			names = append(names, f.Name)
		}
		for rr.NextRow() {
			var v []string
			for _, x := range rr.Values() {
				if x == nil {
					v = append(v, "∅")
				} else {
					v = append(v, string(x))
				}
			}
			rows = append(rows, strings.Join(v, "|"))
		}
	}
	if err := mr.Close(); err != nil {
		if e, ok := err.(*pgconn.PgError); ok {
			a.code, a.msg = e.Code, e.Message
		} else {
			a.code, a.msg = "?????", err.Error()
		}
		return a
	}
	a.rows, a.types, a.names = strings.Join(rows, "\n"), strings.Join(types, ","), strings.Join(names, ",")
	return a
}

func main() {
	ctx := context.Background()
	pg, err := pgx.Connect(ctx, "host=127.0.0.1 port=7701 user=postgres dbname=lake sslmode=disable")
	if err != nil {
		panic(err)
	}
	us, err := pgx.Connect(ctx, "host=127.0.0.1 port=7702 user=postgres dbname=lake sslmode=disable")
	if err != nil {
		panic(err)
	}
	n, eq := 0, 0
	var refused []string
	var same *os.File
	if p := os.Getenv("SAME"); p != "" {
		same, _ = os.Create(p)
	}
	for _, f := range os.Args[1:] {
		file, err := os.Open(f)
		if err != nil {
			panic(err)
		}
		sc := bufio.NewScanner(file)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			q := strings.TrimSpace(sc.Text())
			if q == "" || strings.HasPrefix(q, "--") {
				continue
			}
			if !strings.HasPrefix(strings.ToUpper(q), "SELECT") && strings.HasPrefix(q, "=") {
				q = "SELECT " + q[1:]
			}
			n++
			a, b := run(pg, q), run(us, q)
			if b.code == "?????" {
				us, _ = pgx.Connect(ctx, "host=127.0.0.1 port=7702 user=postgres dbname=lake sslmode=disable")
			}
			switch {
			case a == b || a.code != "" && a.code == b.code:
				eq++
				if same != nil {
					fmt.Fprintln(same, q)
				}
			case a.code == "" && (b.code == "0A000" || b.code == "42883"):
				refused = append(refused, fmt.Sprintf("%-60s || %s || %s => %q", b.msg, b.code, q, a.rows))
			case a.code != "" && (b.code == "0A000"):
				eq++
			default:
				fmt.Printf("DIFF %s\n  pg:   %s %s %q %s %s\n  ours: %s %s %q %s %s\n", q, a.code, a.msg, a.rows, a.types, a.names, b.code, b.msg, b.rows, b.types, b.names)
			}
		}
	}
	sort.Strings(refused)
	for _, r := range refused {
		fmt.Println("REF ", r)
	}
	fmt.Printf("%d queries, %d equal, %d refused\n", n, eq, len(refused))
}
