package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest"
)

// TestSystemTables: what cannot be published at all has no hint to alter it.
func TestSystemTables(t *testing.T) {
	for _, schema := range []string{"pg_catalog", "pg_toast", "information_schema"} {
		r := relation{schema: schema, name: "pg_class", kind: "r", persistence: "p", identity: "n", readable: true}
		reason, hint := unsupported(r, ingest.SourceTable{Key: []string{"oid"}}, tableKeys{primary: []string{"oid"}}, nil)
		if !strings.Contains(reason, "of the system") || strings.Contains(hint, "ALTER") {
			t.Errorf("%s: %q, %q", schema, reason, hint)
		}
	}
}

// TestUntranslatableError: a server that converts texts itself ends the stream at one that
// UTF-8 does not have; what is said of it helps.
func TestUntranslatableError(t *testing.T) {
	err := serverError(&pgconn.PgError{Code: "22P05", Message: "no equivalent", Where: "LSN 0/1\nmore"})
	var source *ingest.SourceError
	if !errors.As(err, &source) || !strings.Contains(source.Message, "no equivalent (LSN 0/1); correct the value at the source") {
		t.Errorf("%v", err)
	}
}
