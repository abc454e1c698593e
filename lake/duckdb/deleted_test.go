package duckdb

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// TestDeletedPositions reads few and many files with deleted rows, in memory and by a
// join, again after more was deleted, and with a delete file that names other files.
func TestDeletedPositions(t *testing.T) {
	for _, n := range []int{1, deletedFilesMax, deletedFilesMax + 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir := t.TempDir()
			rel := Relation{Name: "R", Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}}}
			var first, second []place
			for i := range n {
				f := lakeFile(t, filepath.Join(dir, fmt.Sprintf("%d.parquet", i)), []row{{id: int64(3 * i)}, {id: int64(3*i + 1)}, {id: int64(3*i + 2)}})
				f.HasDeletes = true
				first, second = append(first, place{f.Path, 1}), append(second, place{f.Path, 2})
				rel.Files = append(rel.Files, f)
			}
			first = append(first, place{filepath.Join(dir, "elsewhere.parquet"), 0})
			clean := lakeFile(t, filepath.Join(dir, "clean.parquet"), []row{{id: -1}})
			rel.Files = append(rel.Files, clean)
			p := newTestPool(t, PoolConfig{InProcess: true}, nil)
			for pass, places := range [][]place{first, second} {
				name := filepath.Join(dir, fmt.Sprintf("deletes-%d.parquet", pass))
				deleteFile(t, name, places)
				rel.PositionDeletes = append(slices.Clone(rel.PositionDeletes), name)
				want := []string{"-1"}
				for i := range n {
					want = append(want, fmt.Sprint(3*i))
					if pass == 0 {
						want = append(want, fmt.Sprint(3*i+2))
					}
				}
				plan := &Plan{SQL: `SELECT id::VARCHAR FROM "R" r ORDER BY r.id`, Relations: []Relation{rel}, Output: rowsOutput(1)}
				for range 2 { // read, then cached
					if got := mustRun(t, p, plan); !slices.Equal(got, want) {
						t.Errorf("pass %d: got %v, want %v", pass, got, want)
					}
				}
			}
		})
	}
}

// TestDeletedCacheForgets: what nobody uses goes, what is in use stays.
func TestDeletedCacheForgets(t *testing.T) {
	c := newDeletedCache()
	used, unused := c.enter("used"), c.enter("unused")
	c.account(used, deletedBytesMax)
	c.account(unused, deletedBytesMax)
	c.leave(unused)
	if len(c.mu.entries) != 1 || c.mu.entries["used"] != used {
		t.Errorf("kept %v", c.mu.entries)
	}
	c.leave(used)
	if len(c.mu.entries) != 1 {
		t.Error("an entry that fits was dropped")
	}
	c.close()
	if len(c.mu.entries) != 0 {
		t.Errorf("close kept %v", c.mu.entries)
	}
}
