package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/kv/pebblekv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/segment"
)

func openPebble(t testing.TB, fs vfs.FS, dir string) kv.Store {
	t.Helper()
	o := pebblekv.Options{FS: fs}
	if fs != vfs.Default {
		o.MemTableBytes = 256 << 10 // so that tests flush and compact
	}
	s, err := pebblekv.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// crasher gives the store a crash now would leave, beside the one that goes on.
type crasher struct {
	store kv.Store
	crash func() kv.Store
}

func crashers(t *testing.T, rng *rand.Rand) map[string]crasher {
	t.Helper()
	fs := vfs.NewCrashableMem()
	mem := memkv.New()
	return map[string]crasher{
		"pebble": {openPebble(t, fs, "db"), func() kv.Store {
			cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}
			return openPebble(t, fs.CrashClone(cfg), "db")
		}},
		"memory": {mem, func() kv.Store { return mem.Crash() }},
	}
}

// Publishes between synced updates may vanish in a crash, newest first and whole; what an
// update wrote, and all published before it, never does. After the log gave again what
// vanished, the facts are those of a run without a crash.
func TestCrash(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for name, cr := range crashers(t, rng) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) { runCrash(t, cr, rng) })
		}
	}
}

func runCrash(t *testing.T, cr crasher, rng *rand.Rand) {
	c := open(t, cr.store)
	shop(t, c)
	var log []wal.CommittedGroup
	durable := 0 // groups published before the last update
	updates := 0
	for step := range 60 {
		switch n := rng.IntN(10); {
		case n < 7:
			g := group(segment.Seq(1+len(log)/5), len(log)%5, 1, 2)
			if n == 0 {
				g.State = []byte{1}
			}
			log = append(log, g)
			publish(t, c, g)
		case n < 9:
			if all := live(t, c, 1); len(all) > 0 {
				ackAll(t, c, 1, fmt.Sprint("c", step), catalog.LakeState{Snapshot: int64(step)})
			}
			update(t, c, func(txn *catalog.Txn) error {
				updates++
				return txn.PutSetting("updates", fmt.Sprint(updates))
			})
			durable = len(log)
		default:
			checkCrash(t, c, cr.crash(), log, durable, updates)
		}
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}

func checkCrash(t *testing.T, c *catalog.Catalog, left kv.Store, log []wal.CommittedGroup, durable, updates int) {
	t.Helper()
	crashed := open(t, left)
	s := snapshot(t, crashed)
	if updates > 0 {
		got, _ := s.Setting("updates")
		equal(t, "updates", got, fmt.Sprint(updates))
	}
	mark := published(t, crashed)
	kept := 0
	for kept < len(log) && !mark.Less(segment.SliceRef{Seq: log[kept].Seq, Start: log[kept].End}) {
		kept++
	}
	if kept < durable {
		t.Errorf("%d groups left, %d were durable", kept, durable)
	}
	// No torn group: each that is left has all its slices.
	equal(t, "slices", len(get[[]catalog.Slice](t)(s.Slices(1))), 2*kept)
	publish(t, crashed, log...)
	equal(t, "facts after recovery", everything(t, snapshot(t, crashed)), everything(t, snapshot(t, c)))
}
