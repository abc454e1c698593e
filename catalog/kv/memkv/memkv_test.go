package memkv_test

import (
	"testing"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/kvtest"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
)

func TestStore(t *testing.T) {
	kvtest.Run(t, func(*testing.T) kv.Store { return memkv.New() })
}

// A crash takes what was committed after the last synced batch.
func TestCrash(t *testing.T) {
	s := memkv.New()
	for i, key := range []string{"unsynced before", "synced", "unsynced after"} {
		b := s.NewBatch()
		if err := b.Set([]byte(key), nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(i == 1); err != nil {
			t.Fatal(err)
		}
	}
	crashed := s.Crash()
	for key, kept := range map[string]bool{"unsynced before": true, "synced": true, "unsynced after": false} {
		if _, err := crashed.Get([]byte(key)); (err == nil) != kept {
			t.Errorf("%s: %v", key, err)
		}
	}
}
