package outage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest"
)

// TestExplain tells a failed connection from other errors, and never quotes a password.
func TestExplain(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := pgconn.Connect(ctx, "postgres://u:secret@127.0.0.1:1/d?sslmode=disable")
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		t.Fatalf("connect: %v", err)
	}
	e, ok := Explain(fmt.Errorf("discover: %w", Wrap("connect", err)))
	if !ok || e.Message != "could not connect to the source" || e.Detail == "" || e.Hint == "" {
		t.Errorf("a failed connection: %+v, %t", e, ok)
	}
	if strings.Contains(e.Detail, "secret") || strings.Contains(e.Detail, "\n") {
		t.Errorf("detail %q", e.Detail)
	}
	if e, ok := Explain(Wrap("read settings", errors.New("broken pipe"))); ok {
		t.Errorf("another error: %+v", e)
	}
	for _, c := range []struct{ dsn, want string }{
		{"postgres://u:secret@127.0.0.1:1/d?sslmode=disable", "127.0.0.1:1: connection refused"},
		{"postgres://u:secret@/d?host=/nonexistent&port=1", "/nonexistent/.s.PGSQL.1: no such file or directory"},
	} {
		_, err := pgconn.Connect(t.Context(), c.dsn)
		if e, ok := Explain(err); !ok || e.Detail != c.want {
			t.Errorf("%s: %q of %v, want %q", c.dsn, e.Detail, err, c.want)
		}
	}
	refused := Wrap("set up slot s", fmt.Errorf("again: %w", Wrap("connect", connect)))
	var said *ingest.SourceError
	if !errors.As(refused, &said) || !strings.HasPrefix(said.Message, "could not connect to the source: ") {
		t.Errorf("a failed connection, wrapped twice: %+v", said)
	}
}

// TestWrap: what users are told has no addresses, no types and no layers of ours; the error
// has them all.
func TestWrap(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "permission denied for table a"}, "could not list tables: permission denied for table a"},
		{&pgconn.PgError{Severity: "FATAL", Code: "57P01", Message: "terminating connection due to administrator command"}, "the source ended the session: terminating connection due to administrator command"},
		{fmt.Errorf("receive message: %w", io.ErrUnexpectedEOF), "could not list tables: the connection to the source broke"},
		{&net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}, "could not list tables: the connection to the source broke"},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), "could not list tables: the source did not answer in time"},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, "could not list tables: the source did not answer in time"},
		{errors.New("something else"), "could not list tables: something else"},
	} {
		err := fmt.Errorf("discover: %w", Wrap("list tables", c.err))
		var said *ingest.SourceError
		if !errors.As(err, &said) || said.Message != c.want {
			t.Errorf("%v: %+v, want %q", c.err, said, c.want)
		}
		if got := Say(err); got != c.want {
			t.Errorf("%v is said as %q", c.err, got)
		}
		if got := Say(fmt.Errorf("%w\nmore", c.err)); got != c.err.Error() {
			t.Errorf("%v is said as %q", c.err, got)
		}
		if !errors.Is(err, ingest.ErrSourceUnavailable) || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.err.Error()) {
			t.Errorf("%v is not in %v", c.err, err)
		}
	}
}
