package catalog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
)

func goldenImage(t testing.TB) []byte { return goldenImageOf(t, formatVersion) }

// goldenImageOf is the image of a catalog of a format.
func goldenImageOf(t testing.TB, format byte) []byte {
	t.Helper()
	store := memkv.New()
	b := store.NewBatch()
	err := errors.Join(
		b.Set([]byte{prefixFormat}, []byte{format}), b.Set(nameKey(prefixSetting, "a"), []byte("\x01\"b\"")),
		b.Set(pipelineKey(prefixPipeline, 7), []byte("\x01{}")), b.Set(eventKey(1), []byte("\x01{}")), b.Commit(true))
	if err != nil {
		t.Fatal(err)
	}
	image, err := encodeImage(nil, store, 0)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// The durable bytes of an image do not change by accident.
func TestGoldenImage(t *testing.T) {
	for format, name := range map[byte]string{1: "testdata/image_v1.hex", 2: "testdata/image_v2.hex"} {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for line := range strings.Lines(string(file)) {
			hexPart, _, _ := strings.Cut(line, "#")
			want += strings.Join(strings.Fields(hexPart), "")
		}
		if got := hex.EncodeToString(goldenImageOf(t, format)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// An image is taken apart into the rows it was made of; a part of one is refused, and so
// is one with a bit changed.
func TestParseImage(t *testing.T) {
	image := goldenImage(t)
	rows, err := parseImage(image)
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if string(rows[2].key) != "\x17a" || string(rows[2].value) != "\x01\"b\"" {
		t.Errorf("last row is %q = %q", rows[2].key, rows[2].value)
	}
	for n := range image {
		if _, err := parseImage(image[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
		bad := bytes.Clone(image)
		bad[n] ^= 1 << (n % 8)
		if _, err := parseImage(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bit changed at %d: %v", n, err)
		}
	}
}

// An image that has a row of each kind is read, also one whose kinds come in another order:
// images were written with views and sequences before what follows them.
func TestImageHasAllKinds(t *testing.T) {
	store := memkv.New()
	b := store.NewBatch()
	for _, prefix := range imagePrefixes {
		for _, name := range []string{"a", "b"} {
			if err := b.Set(nameKey(prefix, name), []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.Commit(true); err != nil {
		t.Fatal(err)
	}
	defer func(order []byte) { imagePrefixes = order }(imagePrefixes)
	for _, order := range [][]byte{imagePrefixes, reversed(imagePrefixes)} {
		imagePrefixes = order
		image, err := encodeImage(nil, store, 0)
		if err != nil {
			t.Fatal(err)
		}
		if rows, err := parseImage(image); err != nil || len(rows) != 2*len(imagePrefixes) {
			t.Errorf("order %x: %d rows, %v", order, len(rows), err)
		}
	}
	imagePrefixes = append(slices.Clip(imagePrefixes), imagePrefixes[0])
	image, err := encodeImage(nil, store, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseImage(image); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a kind that comes twice: %v", err)
	}
}

func reversed(b []byte) []byte {
	b = bytes.Clone(b)
	slices.Reverse(b)
	return b
}

func FuzzParseImage(f *testing.F) {
	f.Add(goldenImage(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := parseImage(b)
		if err != nil {
			return
		}
		store := memkv.New()
		batch := store.NewBatch()
		for _, r := range rows {
			err = errors.Join(err, batch.Set(r.key, r.value))
		}
		if err := errors.Join(err, batch.Commit(true)); err != nil {
			t.Fatal(err)
		}
		again, err := encodeImage(nil, store, 0)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := parseImage(again); err != nil || len(same) != len(rows) {
			t.Errorf("%d rows became %d, %v", len(rows), len(same), err)
		}
	})
}

// A crash at any operation of a write leaves the image before it or the new one, whole,
// and the next write succeeds.
func TestFileBackupCrash(t *testing.T) {
	old, fresh := bytes.Repeat([]byte("old"), 3000), bytes.Repeat([]byte("fresh"), 2500)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		disk := crashfs.New()
		if err := FileBackup(disk, "/data").Write(old); err != nil {
			t.Fatal(err)
		}
		stop := disk.Ops() + 1 + r.IntN(9)
		disk.Fail = func(op crashfs.Op) error {
			if op.Count >= stop {
				return crashfs.ErrCrashed
			}
			return nil
		}
		written := FileBackup(disk, "/data").Write(fresh) == nil
		after := disk.Crash(r, r.Float64())
		got, err := FileBackup(after, "/data").Read()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, fresh) && (written || !bytes.Equal(got, old)) {
			t.Errorf("seed %d: %d bytes left, written %v", seed, len(got), written)
		}
		if err := FileBackup(after, "/data").Write(fresh); err != nil {
			t.Errorf("seed %d: write after the crash: %v", seed, err)
		}
	}
	if got, err := FileBackup(wal.DiskFS(), t.TempDir()).Read(); got != nil || err != nil {
		t.Errorf("read of nothing: %v, %v", got, err)
	}
}

// A disk without space for an image keeps the one before, and no part of the new one.
func TestFileBackupFull(t *testing.T) {
	disk := crashfs.New()
	b := FileBackup(disk, "/data")
	if err := b.Write([]byte("old")); err != nil {
		t.Fatal(err)
	}
	disk.SetSpace(100)
	if err := b.Write(make([]byte, 64<<10)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write without space: %v", err)
	}
	files, err := disk.List("/data")
	if err != nil || len(files) != 1 {
		t.Errorf("files are %v, %v", files, err)
	}
	if got, err := b.Read(); string(got) != "old" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}
