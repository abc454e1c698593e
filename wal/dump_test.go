package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/segment"
)

func TestDumpGivesAVerdict(t *testing.T) {
	cfg := config(t.TempDir())
	l := mustOpen(t, cfg, deps(nil, &catalog{}))
	sealed := mustAppend(t, l, group("0/16B3748", batch(1, 1, 3, 5)))
	must(t, l.SealActive(t.Context()))
	active := mustAppend(t, l, group("0/16B3900", batch(1, 4, 2, 5)))

	var out strings.Builder
	must(t, wal.Dump(&out, cfg.Dir, wal.DumpOptions{Slices: true}))
	for _, want := range []string{
		"2 segments", `position "0/16B3748"`, "verdict: sealed, with footer", "digest verified",
		"slice 2:", "rows 2 +2 ~0 -0", "verdict: not sealed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}

	out.Reset()
	name := filepath.Join(cfg.Dir, sealed.Seq.ID()+".seg")
	b, err := os.ReadFile(name)
	must(t, err)
	b[sealed.Slices[0].Ref.Start+90] ^= 1
	must(t, os.WriteFile(name, b, 0o600))
	var corrupt *segment.CorruptError
	if err := wal.Dump(&out, name, wal.DumpOptions{}); !errors.As(err, &corrupt) {
		t.Errorf("dump of a damaged segment: %v", err)
	}
	if !strings.Contains(out.String(), "CORRUPT") || strings.Contains(out.String(), active.Seq.ID()) {
		t.Errorf("dump of one file:\n%s", out.String())
	}
}

// reclaiming is a disk from which a segment's files go after the directory was listed.
type reclaiming struct {
	wal.FS
	listed bool
	gone   func(name string) bool
	t      *testing.T
}

func (r *reclaiming) List(dir string) ([]wal.FileInfo, error) {
	files, err := r.FS.List(dir)
	if r.listed || err != nil {
		return files, err
	}
	r.listed = true
	for _, f := range files {
		if r.gone(f.Name) {
			must(r.t, os.Remove(filepath.Join(dir, f.Name)))
		}
	}
	return files, nil
}

// TestDumpBesideReclaim: a segment that goes while the log is shown is no damage; one whose
// body is missing is.
func TestDumpBesideReclaim(t *testing.T) {
	for suffix, damaged := range map[string]bool{"": false, ".seg": true} {
		cfg := config(t.TempDir())
		l := mustOpen(t, cfg, deps(nil, &catalog{}))
		sealed := mustAppend(t, l, group("0/16B3748", batch(1, 1, 3, 5)))
		must(t, l.SealActive(t.Context()))
		mustAppend(t, l, group("0/16B3900", batch(1, 4, 2, 5)))
		fs := &reclaiming{FS: wal.DiskFS(), t: t, gone: func(name string) bool {
			return strings.HasPrefix(name, sealed.Seq.ID()) && (suffix == "" || strings.HasSuffix(name, suffix))
		}}
		var out strings.Builder
		err := wal.Dump(&out, cfg.Dir, wal.DumpOptions{FS: fs})
		if (err != nil) != damaged || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without %q: %v", suffix, err)
		}
		if strings.Contains(out.String(), "reclaimed meanwhile") == damaged || !strings.Contains(out.String(), `position "0/16B3900"`) {
			t.Errorf("without %q:\n%s", suffix, out.String())
		}
	}
}
