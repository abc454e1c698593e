package catalog_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
)

// slowStore is a store whose synced commits apply at once and then wait for the disk.
type slowStore struct {
	kv.Store
	mu   sync.Mutex
	disk func() error // nil: fast
}

func (s *slowStore) NewIndexedBatch() kv.IndexedBatch {
	return &slowBatch{s.Store.NewIndexedBatch(), s}
}

func (s *slowStore) set(disk func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk = disk
}

type slowBatch struct {
	kv.IndexedBatch
	store *slowStore
}

func (b *slowBatch) Commit(sync bool) error {
	err := b.IndexedBatch.Commit(sync)
	b.store.mu.Lock()
	disk := b.store.disk
	b.store.mu.Unlock()
	if sync && disk != nil {
		return errors.Join(err, disk())
	}
	return err
}

// While an update waits for the disk, snapshots are given out and show the state before
// it; when it returns they show the state after it.
func TestSnapshotDoesNotWaitForDisk(t *testing.T) {
	store := &slowStore{Store: memkv.New()}
	c := open(t, store)
	shop(t, c)
	publish(t, c, group(1, 0, 1, 2))
	before := everything(t, snapshot(t, c))
	reached, written := make(chan struct{}), make(chan struct{})
	store.set(func() error {
		close(reached)
		<-written
		return nil
	})
	done := make(chan error)
	changed := c.Changed()
	go func() {
		done <- c.Update(t.Context(), func(txn *catalog.Txn) error {
			return errors.Join(txn.DeleteTable(2), txn.PutSetting("a", "b"))
		})
	}()
	<-reached
	during := snapshot(t, c)
	equal(t, "during", everything(t, during), before)
	equal(t, "live during", refs(get[[]catalog.Slice](t)(during.LiveSlices(2))), []string{"1:10"})
	select {
	case <-changed:
		t.Error("told of a change that is not durable")
	default:
	}
	close(written)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-changed
	s := snapshot(t, c)
	equal(t, "tables after", len(s.AllTables()), 1)
	equal(t, "live after", len(get[[]catalog.Slice](t)(s.LiveSlices(2))), 0)
	equal(t, "held snapshot after", everything(t, during), before)
}

// When it is unknown whether a commit is durable nothing more is committed; what was
// visible stays readable.
func TestBrokenCommit(t *testing.T) {
	store := &slowStore{Store: memkv.New()}
	c := open(t, store)
	shop(t, c)
	before := everything(t, snapshot(t, c))
	boom := errors.New("disk is gone")
	store.set(func() error { return boom })
	put := func(txn *catalog.Txn) error { return txn.PutSetting("a", "b") }
	err := c.Update(t.Context(), put)
	is(t, "update", err, boom)
	is(t, "update", err, catalog.ErrInDoubt)
	store.set(nil)
	is(t, "next update", c.Update(t.Context(), put), catalog.ErrBroken)
	is(t, "publish", c.Publish(t.Context(), 1, []wal.CommittedGroup{group(1, 0, 1)}), catalog.ErrBroken)
	equal(t, "facts", everything(t, snapshot(t, c)), before)
}

// The cache of live slices serves snapshots of different ages in any order of asking.
func TestLiveSlicesOfOldSnapshots(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	type moment struct {
		snap *catalog.Snapshot
		want []string
	}
	var moments []moment
	want := []string{}
	look := func() {
		moments = append(moments, moment{snapshot(t, c), append([]string{}, want...)})
	}
	for i := range 12 {
		look()
		publish(t, c, group(1, i, 1))
		want = append(want, fmt.Sprintf("1:%d", i*100))
		switch i {
		case 4, 9:
			look()
			ackAll(t, c, 1, fmt.Sprint("c", i), catalog.LakeState{Snapshot: 1})
			want = []string{}
		case 7:
			look()
			update(t, c, func(txn *catalog.Txn) error {
				_, err := txn.ResetTable(1)
				return err
			})
			want = []string{}
		}
	}
	look()
	n := len(moments)
	for step := range 3 * n {
		m := moments[step*7%n]
		got := get[[]catalog.Slice](t)(m.snap.LiveSlices(1))
		equal(t, fmt.Sprint("step ", step), refs(got), m.want)
		_ = append(got, catalog.Slice{}) // must not reach anybody else
	}
	equal(t, "of no table", len(get[[]catalog.Slice](t)(moments[0].snap.LiveSlices(9))), 0)
}
