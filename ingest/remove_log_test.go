package ingest

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
)

// TestRemoveLogIsDurable: a log that was removed does not come back with a power loss, for
// nobody remembers it: wherever the removal was cut off, it is whole after another.
func TestRemoveLogIsDurable(t *testing.T) {
	const dir = "wal/00000001"
	fill := func(fsys *crashfs.FS) {
		t.Helper()
		for _, name := range []string{"0000000000000001.seg", "0000000000000001.seg.commit", "spare-1"} {
			f, err := fsys.Open(filepath.Join(dir, name), wal.Create)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := fsys.SyncDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	whole := crashfs.New()
	fill(whole)
	before := whole.Ops()
	if err := removeLog(whole, dir); err != nil {
		t.Fatal(err)
	}
	if files, _ := whole.Crash(r, 0).List(dir); len(files) > 0 {
		t.Errorf("%d files came back", len(files))
	}
	for cut := range whole.Ops() - before {
		fsys := crashfs.New()
		fill(fsys)
		fsys.HaltAt = fsys.Ops() + cut + 1
		_ = removeLog(fsys, dir) // as far as it gets
		fsys = fsys.Crash(r, 0.5)
		if err := removeLog(fsys, dir); err != nil {
			t.Fatal(err)
		}
		if files, _ := fsys.Crash(r, 0).List(dir); len(files) > 0 {
			t.Errorf("cut after %d operations: %d files came back", cut, len(files))
		}
	}
}
