package crashfs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
)

// file makes a durable file.
func file(t *testing.T, f *crashfs.FS, name string, data []byte) wal.File {
	t.Helper()
	h, err := f.Open(name, wal.Create)
	if err == nil {
		_, err = h.WriteAt(data, 0)
	}
	if err == nil {
		err = h.Sync()
	}
	if err == nil {
		err = f.SyncDir("/d")
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func read(t *testing.T, f *crashfs.FS, name string, n int) []byte {
	t.Helper()
	h, err := f.Open(name, wal.ReadFresh)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := h.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadFaults(t *testing.T) {
	f := crashfs.New()
	a, b := bytes.Repeat([]byte{0xaa}, 1024), bytes.Repeat([]byte{0xbb}, 1024)
	file(t, f, "/d/a", a)
	file(t, f, "/d/b", b)
	var fault crashfs.ReadFault
	f.Damage = func(op crashfs.Op) crashfs.ReadFault {
		if op.Bytes != 1024 || op.At != 0 || op.Name != "/d/a" {
			t.Errorf("asked about %+v", op)
		}
		return fault
	}
	fault = crashfs.ReadFault{Flip: 9}
	if got := read(t, f, "/d/a", 1024); got[1] != 0xab || bytes.Count(got, []byte{0xaa}) != 1023 {
		t.Errorf("flipped: %x", got[:4])
	}
	fault = crashfs.ReadFault{From: "/d/b"}
	if !bytes.Equal(read(t, f, "/d/a", 1024), b) {
		t.Error("not misdirected")
	}
	fault = crashfs.ReadFault{From: "/d/none"}
	if !bytes.Equal(read(t, f, "/d/a", 1024), a) {
		t.Error("the faults of earlier reads stay")
	}
	if f.Damaged() != 2 {
		t.Errorf("%d damaged", f.Damaged())
	}
}

func TestRotStays(t *testing.T) {
	f := crashfs.New()
	h := file(t, f, "/d/a", make([]byte, 1024))
	before := f.Durable().Version()
	if err := f.Rot("/d/a", 8*700); err != nil {
		t.Fatal(err)
	}
	if f.Durable().Version() == before {
		t.Error("the version of what is durable stays")
	}
	if err := h.Sync(); err != nil {
		t.Fatal(err)
	}
	if read(t, f, "/d/a", 1024)[700] != 1 {
		t.Error("healed by a read")
	}
	f = f.Crash(rand.New(rand.NewPCG(1, 1)), 0.5)
	if read(t, f, "/d/a", 1024)[700] != 1 {
		t.Error("healed by a crash")
	}
	if f.Rot("/d/a", 8*1024) == nil || f.Rot("/d/b", 0) == nil {
		t.Error("rot where there is nothing")
	}
}

// Files are shared with what a crash leaves until one side writes.
func TestCrashSharesNoWrites(t *testing.T) {
	f := crashfs.New()
	file(t, f, "/d/a", bytes.Repeat([]byte{1}, 2048))
	g := f.Crash(rand.New(rand.NewPCG(1, 1)), 1)
	h := g.Crash(rand.New(rand.NewPCG(1, 1)), 1)
	w, err := h.Open("/d/a", wal.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteAt([]byte{2}, 600); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]crashfs.Durable{"first": f.Durable(), "second": g.Durable()} {
		if b, _ := d.Read("/d/a"); b[600] != 1 {
			t.Errorf("%s: written through a later one", name)
		}
	}
	if b, _ := h.Durable().Read("/d/a"); b[600] != 2 || b[599] != 1 {
		t.Error("not written")
	}
}

// A sync that fails takes what it should have written from the cache with it.
func TestLostSync(t *testing.T) {
	f := crashfs.New()
	h := file(t, f, "/d/a", make([]byte, 1024))
	if _, err := h.WriteAt([]byte{7}, 3); err != nil {
		t.Fatal(err)
	}
	f.LoseSync()
	if h.Sync() == nil {
		t.Fatal("the sync did not fail")
	}
	if err := h.Sync(); err != nil {
		t.Fatal(err)
	}
	if read(t, f, "/d/a", 4)[3] != 0 {
		t.Error("the bytes came back")
	}
}

func BenchmarkCrash(b *testing.B) {
	f := crashfs.New()
	for i := range 10 {
		h, _ := f.Open("/d/"+string(rune('a'+i)), wal.Create)
		_, _ = h.WriteAt(make([]byte, 16<<10), 0)
		_ = h.Sync()
	}
	_ = f.SyncDir("/d")
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		f.Crash(r, 0.5)
	}
}
