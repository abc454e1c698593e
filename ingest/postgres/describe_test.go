package postgres

import (
	"strings"
	"testing"

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
