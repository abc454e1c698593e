package syscat

import (
	"testing"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/setting"
)

func TestStreamKey(t *testing.T) {
	seen := map[string]int{}
	for i, env := range []planner.SystemEnv{
		{},
		{Role: 1},
		{Database: "a"},
		{Version: "15.8"},
		{SearchPath: []string{"a"}},
		{SearchPath: []string{"a", "b"}},
		{Settings: []setting.Shown{{Setting: &setting.Setting{Name: "TimeZone"}, Value: "UTC"}}},
	} {
		key := streamKey("pg_catalog.pg_class", &env)
		if before, ok := seen[key]; ok {
			t.Errorf("%d has the key of %d", i, before)
		}
		seen[key] = i
	}
}

// TestRowsOfOtherRights: rows that are seen with rights which the state of the catalog does not have, as those
// of a transaction that has not ended, are not kept for others that see that state.
func TestRowsOfOtherRights(t *testing.T) {
	c, e := filled(t)
	class := c.shapes["pg_catalog.pg_class"].SystemRelation
	kept := func(e *planner.SystemEnv) bool {
		t.Helper()
		if _, err := c.Rows(t.Context(), class, e); err != nil {
			t.Fatal(err)
		}
		return c.remembered.Get(streamKey("pg_catalog.pg_class", e), e.Snapshot.Version()) != nil
	}
	other := *e
	other.Role, other.Rights = 99, right.New(map[string]*right.Role{"r": {OID: 99, Name: "r", Superuser: true}}, nil)
	if kept(&other) {
		t.Error("what an open transaction shows is kept for others")
	}
	if !kept(e) {
		t.Error("what the state of the catalog shows is not kept")
	}
}
