package objbackup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/kvtest"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
)

func openKV(t *testing.T, objects objstore.Store, seed uint64) *KV {
	t.Helper()
	k, err := OpenKV(objects, "lake", ids(seed), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func set(k *KV, key, value string) error {
	b := k.NewBatch()
	defer func() { _ = b.Close() }()
	return errors.Join(b.Set([]byte(key), []byte(value)), b.Commit(true))
}

func TestKV(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Store { return openKV(t, memstore.New(), 1) })
}

// Whatever goes wrong on the way: what is read after a commit is what the next one who
// opens finds, and a commit that succeeded is in it.
func TestKVFaults(t *testing.T) {
	kinds := []faultstore.Kind{
		faultstore.None, faultstore.Refused, faultstore.Conflicted, faultstore.LostRequest, faultstore.LostReply,
		faultstore.Late, faultstore.Duplicated, faultstore.Repeated,
	}
	failed := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		mem, quiet, down := memstore.New(), true, false
		way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
			k := kinds[rng.IntN(len(kinds))]
			switch {
			case quiet:
				return faultstore.Fault{}
			case down && !op.Applies(k):
				k = faultstore.Refused
			case !down && (!op.Applies(k) || rng.IntN(4) == 0):
				return faultstore.Fault{}
			}
			return faultstore.Fault{Kind: k, N: rng.Uint64N(64)}
		}})
		k, want := openKV(t, way, seed), ""
		for i := range 10 {
			quiet, down = false, rng.IntN(3) == 0
			value := fmt.Sprint(i)
			err := set(k, "a", value)
			if err == nil {
				want = value
			} else {
				failed++
			}
			got, readErr := k.Get([]byte("a"))
			quiet = true
			if readErr != nil && !errors.Is(readErr, kv.ErrNotFound) {
				got, readErr = k.Get([]byte("a")) // the way is free again
			}
			if readErr != nil && !errors.Is(readErr, kv.ErrNotFound) {
				t.Fatalf("seed %d: %v", seed, readErr)
			}
			for late := len(way.Late()); late > 0; late = len(way.Late()) {
				_, _ = way.Deliver(t.Context(), rng.IntN(late)) // its answer is lost
			}
			found := memkv.New()
			image, err := New(mem, "lake", ids(99)).Read()
			if err == nil {
				err = decodeRows(image, found)
			}
			stored, _ := found.Get([]byte("a"))
			if err != nil || string(got) != want || string(stored) != want {
				t.Fatalf("seed %d: read %q, stored %q, want %q, %v", seed, got, stored, want, err)
			}
		}
	}
	if failed < 100 {
		t.Errorf("only %d commits failed", failed)
	}
}

// Who has been taken over neither reads nor commits, whatever became of its last commit.
func TestKVTakenOver(t *testing.T) {
	mem := memstore.New()
	told := 0
	first, err := OpenKV(mem, "lake", ids(1), func(error) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	if err := set(first, "a", "1"); err != nil {
		t.Fatal(err)
	}
	second := openKV(t, mem, 2)
	for range 2 {
		if err := set(first, "a", "2"); !errors.Is(err, ErrSuperseded) || !errors.Is(err, wal.ErrFenced) {
			t.Errorf("commit of the first: %v", err)
		}
		if _, err := first.Get([]byte("a")); !errors.Is(err, wal.ErrFenced) {
			t.Errorf("read of the first: %v", err)
		}
	}
	if told != 1 {
		t.Errorf("the first was told %d times", told)
	}
	if err := set(second, "b", "3"); err != nil {
		t.Fatal(err)
	}
	if v, err := second.Get([]byte("a")); err != nil || string(v) != "1" {
		t.Errorf("read of the second: %q, %v", v, err)
	}
}

// The durable bytes do not change by accident; damaged ones are refused.
func TestKVImage(t *testing.T) {
	k := openKV(t, memstore.New(), 1)
	if err := errors.Join(set(k, "a", "1"), set(k, "b", "")); err != nil {
		t.Fatal(err)
	}
	image, err := encodeRows(k)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(image); got != "534b4b560100000001610131016200"+hex.EncodeToString(image[len(image)-4:]) {
		t.Errorf("image %s", got)
	}
	for i := range image {
		bad := append([]byte(nil), image...)
		bad[i] ^= 1
		if err := decodeRows(bad, memkv.New()); !errors.Is(err, catalog.ErrCorrupt) {
			t.Errorf("bit of byte %d: %v", i, err)
		}
		if err := decodeRows(image[:i], memkv.New()); !errors.Is(err, catalog.ErrCorrupt) {
			t.Errorf("first %d bytes: %v", i, err)
		}
	}
}

func FuzzDecodeRows(f *testing.F) {
	image, err := encodeRows(memkv.New())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(image)
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = decodeRows(b, memkv.New())
	})
}
