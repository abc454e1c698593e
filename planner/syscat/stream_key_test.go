package syscat

import (
	"testing"

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
