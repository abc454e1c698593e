package pebblekv_test

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/kvtest"
	"github.com/skipprd/skipprd/catalog/kv/pebblekv"
)

func TestStore(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Store {
		s, err := pebblekv.Open("db", pebblekv.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestReopenOnDisk(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		s, err := pebblekv.Open(dir, pebblekv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if _, err := s.Get([]byte{byte(i)}); err != nil {
				t.Errorf("open %d: %v", i, err)
			}
		}
		b := s.NewBatch()
		if err := b.Set([]byte{byte(i + 1)}, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(false); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	s, err := pebblekv.Open(dir, pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if other, err := pebblekv.Open(dir, pebblekv.Options{}); err == nil {
		t.Error("a second process could open the store")
		_ = other.Close()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestUseAfterClose(t *testing.T) {
	s, err := pebblekv.Open("db", pebblekv.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, getErr := s.Get([]byte("a"))
	_, snapErr := s.Snapshot().Get([]byte("a"))
	for _, err := range []error{getErr, snapErr, s.Close(), s.NewBatch().Commit(true)} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
}
