package death

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// step is one operation on the mounted disk.
func write(t *testing.T, path, text string, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func syncDir(t *testing.T, dir string) {
	t.Helper()
	d, err := os.Open(dir)
	must(t, err)
	must(t, d.Sync())
	must(t, d.Close())
}

// tree is the files of a directory as "name=contents".
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out = append(out, rel+"="+string(b))
		return err
	}))
	return strings.Join(out, " ")
}

// TestDisk: what survives is what was synced, contents and names each on their own.
func TestDisk(t *testing.T) {
	for _, c := range []struct {
		name string
		lie  Lie
		do   func(t *testing.T, dir string)
		want string
		seen string
	}{
		{"nothing synced", Honest, func(t *testing.T, dir string) { write(t, dir+"/a", "x", false) }, "", ""},
		{"file without its name", Honest, func(t *testing.T, dir string) { write(t, dir+"/a", "x", true) }, "", ""},
		{"name without contents", Honest, func(t *testing.T, dir string) { write(t, dir+"/a", "x", false); syncDir(t, dir) }, "a=", ""},
		{"both", Honest, func(t *testing.T, dir string) { write(t, dir+"/a", "x", true); syncDir(t, dir) }, "a=x", ""},
		{"both, overwritten", Honest, func(t *testing.T, dir string) {
			write(t, dir+"/a", "xy", true)
			syncDir(t, dir)
			write(t, dir+"/a", "z", false)
		}, "a=xy", ""},
		{"rename", Honest, func(t *testing.T, dir string) {
			write(t, dir+"/a", "x", true)
			syncDir(t, dir)
			must(t, os.Rename(dir+"/a", dir+"/b"))
		}, "a=x", "b=x"},
		{"rename, synced", Honest, func(t *testing.T, dir string) {
			write(t, dir+"/a", "x", true)
			write(t, dir+"/b", "y", true)
			must(t, os.Rename(dir+"/a", dir+"/b"))
			syncDir(t, dir)
		}, "b=x", ""},
		{"removed", Honest, func(t *testing.T, dir string) {
			write(t, dir+"/a", "x", true)
			syncDir(t, dir)
			must(t, os.Remove(dir+"/a"))
		}, "a=x", ""},
		{"cut short", Honest, func(t *testing.T, dir string) {
			write(t, dir+"/a", "xyz", true)
			syncDir(t, dir)
			must(t, os.Truncate(dir+"/a", 1))
		}, "a=xyz", ""},
		{"a directory whose name is not synced", Honest, func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir+"/d", 0o700))
			write(t, dir+"/d/a", "x", true)
			syncDir(t, dir+"/d")
		}, "", ""},
		{"a directory, synced", Honest, func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir+"/d", 0o700))
			write(t, dir+"/d/a", "x", true)
			syncDir(t, dir+"/d")
			syncDir(t, dir)
		}, "d/a=x", ""},
		{"a lie about files", LieAboutFiles, func(t *testing.T, dir string) { write(t, dir+"/a", "x", true); syncDir(t, dir) }, "a=", ""},
		{"a lie about names", LieAboutNames, func(t *testing.T, dir string) { write(t, dir+"/a", "x", true); syncDir(t, dir) }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := NewDisk(1 << 30)
			d.Lie = c.lie
			m := MountDisk(t, d)
			c.do(t, m.Dir)
			seen := tree(t, m.Dir)
			if c.seen != "" && seen != c.seen {
				t.Errorf("seen %q, want %q", seen, c.seen)
			}
			d.Cut()
			if err := os.WriteFile(m.Dir+"/late", nil, 0o600); err == nil {
				t.Error("a write after the cut is answered")
			}
			must(t, m.Remount(func() { d.PowerOn(nil) }))
			if got := tree(t, m.Dir); got != c.want {
				t.Errorf("kept %q, want %q; before there was %q", got, c.want, seen)
			}
		})
	}
}

// TestDiskKeepsSome: with a source of chance, what was not synced survives page by page,
// and a whole file is never older than what was synced.
func TestDiskKeepsSome(t *testing.T) {
	d := NewDisk(1 << 30)
	m := MountDisk(t, d)
	page := strings.Repeat("o", pageSize)
	write(t, m.Dir+"/a", strings.Repeat(page, 20), true)
	syncDir(t, m.Dir)
	write(t, m.Dir+"/a", strings.Repeat(strings.Repeat("n", pageSize), 20), false)
	d.Cut()
	var lost Lost
	must(t, m.Remount(func() { lost = d.PowerOn(rand.New(rand.NewPCG(1, 1))) }))
	b, err := os.ReadFile(m.Dir + "/a")
	must(t, err)
	old := 0
	for p := 0; p < len(b); p += pageSize {
		if string(b[p:p+pageSize]) == page {
			old++
		}
	}
	if len(b) != 20*pageSize || old != lost.Pages || old == 0 || old == 20 {
		t.Errorf("%d bytes, %d pages old, lost %+v", len(b), old, lost)
	}
}
