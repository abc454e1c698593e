package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
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
	e, ok := Explain(fmt.Errorf("discover: %w", unavailable("connect", err)))
	if !ok || e.Message != "could not connect to the source" || e.Detail == "" || e.Hint == "" {
		t.Errorf("a failed connection: %+v, %t", e, ok)
	}
	if strings.Contains(e.Detail, "secret") || strings.Contains(e.Detail, "\n") {
		t.Errorf("detail %q", e.Detail)
	}
	if e, ok := Explain(unavailable("read settings", errors.New("broken pipe"))); ok {
		t.Errorf("another error: %+v", e)
	}
}
