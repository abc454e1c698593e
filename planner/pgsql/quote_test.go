package pgsql_test

import (
	"testing"

	"github.com/skipprd/skipprd/planner/pgsql"
)

func TestCallable(t *testing.T) {
	for name, want := range map[string]bool{"lower": true, "count": true, "to_char": true, "json_agg": true, "pg_notify": true, "lo_import": false} {
		if got := pgsql.Callable(name); got != want {
			t.Errorf("Callable(%q) = %v, want %v", name, got, want)
		}
	}
}
