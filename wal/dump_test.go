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
