package pgwire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire"
)

func TestPgx(t *testing.T) {
	toy := newToy()
	_, addr := startServer(t, toy, pgwire.Config{})
	ctx := context.Background()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := pgx.ParseConfig("postgres://postgres@" + addr + "/lake?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = mode
		c, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		if mode != pgx.QueryExecModeSimpleProtocol { // the toy takes no literals
			var got string
			if err := c.QueryRow(ctx, "select $1", "hello").Scan(&got); err != nil || got != "hello" {
				t.Errorf("%s: %q, %v", mode, got, err)
			}
		}
		rows, err := c.Query(ctx, "rows 1000")
		if err != nil {
			t.Fatal(err)
		}
		n, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (int32, error) {
			var n int32
			var s string
			err := r.Scan(&n, &s)
			if s != fmt.Sprintf("row %d", n) {
				err = errors.Join(err, fmt.Errorf("row %d has %q", n, s))
			}
			return n, err
		})
		if err != nil || len(n) != 1000 || n[999] != 999 {
			t.Errorf("%s: %d rows, %v", mode, len(n), err)
		}
		if _, err := c.Exec(ctx, "fail"); sqlstate(err) != "22012" {
			t.Errorf("%s: %v", mode, err)
		}
		tx, err := c.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, "fail"); sqlstate(err) != "22012" {
			t.Errorf("%s: %v", mode, err)
		}
		if _, err := tx.Exec(ctx, "rows 1"); sqlstate(err) != "25P02" {
			t.Errorf("%s: %v", mode, err)
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		var out bytes.Buffer
		if tag, err := c.PgConn().CopyTo(ctx, &out, "copyout"); err != nil || tag.RowsAffected() != 2 || out.String() != "1\ta\n2\tb\n" {
			t.Errorf("%s: copy to: %q, %v", mode, out.String(), err)
		}
		if tag, err := c.PgConn().CopyFrom(ctx, strings.NewReader("1\n2\n3\n"), "copyin"); err != nil || tag.RowsAffected() != 3 {
			t.Errorf("%s: copy from: %v", mode, err)
		}
		<-toy.running
		_ = c.Close(ctx)
	}
}

func TestPgxPipelineAndBatch(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{})
	ctx := context.Background()
	c, err := pgx.Connect(ctx, "postgres://postgres@"+addr+"/lake?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	var b pgx.Batch
	for i := range 100 {
		b.Queue("select $1", fmt.Sprint(i))
	}
	b.Queue("fail")
	results := c.SendBatch(ctx, &b)
	for i := range 100 {
		var s string
		if err := results.QueryRow().Scan(&s); err != nil || s != fmt.Sprint(i) {
			t.Fatalf("%d: %q, %v", i, s, err)
		}
	}
	if _, err := results.Exec(); sqlstate(err) != "22012" {
		t.Errorf("failing statement of a batch: %v", err)
	}
	_ = results.Close()
	if _, err := c.Exec(ctx, "rows 1"); err != nil {
		t.Errorf("after a failed batch: %v", err)
	}
}

// psql runs commands against the server, or skips.
func psql(t *testing.T, addr, options, input string) string {
	t.Helper()
	path, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("NO PSQL INSTALLED")
	}
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, "-X", "-A", "-t", "-v", "VERBOSITY=verbose", fmt.Sprintf("host=%s port=%s dbname=lake user=postgres %s", host, port, options))
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGPASSWORD=secret")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("psql: %v: %s", err, out)
	}
	return string(out)
}

func TestPsql(t *testing.T) {
	toy := newToy()
	withPassword(t, toy, "postgres", "secret")
	_, addr := startServer(t, toy, pgwire.Config{AuthLoopback: pgwire.AuthSCRAM, TLS: testTLS(t)})
	input := "rows 2;\nfail;\nsyntax;\nnotice;\ncopyout;\nset application_name x;\ncopyin;\n1\ta\n\\.\n" // psql 15 sends the marker too
	for _, options := range []string{"sslmode=disable", "sslmode=require", "sslmode=require channel_binding=require", "gssencmode=prefer"} {
		got := psql(t, addr, options, input)
		for _, want := range []string{
			"0|row 0\n1|row 1\n", "ERROR:  22012: division by zero\nDETAIL:  Detail.\nHINT:  Hint.", "ERROR:  42601: syntax error at or near \"syntax\"\nLINE 1: syntax",
			"NOTICE:  00000: something to know", "1\ta\n2\tb\n", "COPY 2\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", options, want, got)
			}
		}
		<-toy.running
	}
}
