package sim

import (
	"context"
	"sync"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/env"
)

// settings are what a schedule's configuration bytes mean. Zero bytes are the plainest.
type settings struct {
	Seed uint64
	c    [script.ConfigBytes]byte
}

// The configuration bytes.
const (
	bySegment = iota // size of segments
	byRows           // of each table before it is copied
	byReclaim        // delay of reclaim
	byCompaction
	byGroup // size of groups
	byRetention
	byKeys // how many keys there are
	byBackup
	byLinger
	byLoad // whether the source has transactions of its own accord
	byComputed
	byWhole // whether the table without a key has whole rows as its identity
)

func settingsOf(s script.Schedule) settings { return settings{Seed: s.Seed, c: s.Config} }

func (s settings) segmentBytes() int64 {
	return segmentBytesMin << (s.c[bySegment] % 3)
}

// initialRows is how many rows each table has before a pipeline reads it.
func (s settings) initialRows() int { return max(0, int(s.c[byRows]%16)-8) }

// backups says whether hosts keep backups of their catalogs, so that they may lose them.
func (s settings) backups() bool { return s.c[byBackup]%3 == 2 }

// early says whether the source has transactions as soon as there is a slot, so that they are
// streamed while the tables are copied.
func (s settings) early() bool { return s.c[byRows]%16 > 8 && s.c[byRows]&16 != 0 }

// whole says whether rows of the table without a key are told apart by all their columns.
func (s settings) whole() bool { return s.c[byWhole]%2 == 1 }

// refuses says whether some rows cannot be taken in.
func (s settings) refuses() bool { return s.c[byWhole]/2%2 == 1 }

// computes says whether tables have a column that the source computes and does not send.
func (s settings) computes() bool { return s.c[byComputed]%8 == 7 }

// busy says whether the source has transactions of its own accord.
func (s settings) busy() bool { return s.c[byLoad]%4 == 3 }

func (s settings) keys() int { return 4 + int(s.c[byKeys]%12) }

// compaction makes the compactor eager, so that a short run has many compactions.
func (s settings) compaction() compact.Config {
	return compact.Config{
		CommitInterval: time.Duration(1+s.c[byCompaction]%4) * time.Second,
		WantRows:       int64(4 + s.c[byCompaction]%16), MostRows: int64(8 + s.c[byCompaction]/8),
		MostSlices: []int64{0, 8, 4, 2, 1}[s.c[byCompaction]%5],
		Snapshots:  2 + int(s.c[byRetention]%4), MaintainEvery: 1 + int(s.c[byRetention]%3), FileGrace: grace,
		HoldMost:     365 * 24 * time.Hour, // longer than any clock of ours jumps
		ReclaimDelay: time.Duration(1+s.c[byReclaim]%3) * time.Second,
	}
}

func (s settings) ingest() ingest.Config {
	return ingest.Config{
		DataDir: "/data", GroupBytes: 64 << (s.c[byGroup] % 6), BackoffMax: 2 * time.Second,
	}
}

// sourceKind is the kind of the world's connection.
const sourceKind = "scripted"

// pipelineName is the only pipeline's, when the source is another system.
const pipelineName = "p"

var catalogKey [32]byte

// template is a catalog with a pipeline that has not run. Making one takes longer than a
// run.
var template = sync.OnceValues(func() (*memkv.Store, error) {
	fake := env.NewFake(origin, 1)
	store := memkv.New()
	c, err := catalog.Open(context.Background(), store, catalog.Deps{Clock: fake, IDs: fake, Key: catalogKey[:]})
	if err != nil {
		return nil, err
	}
	err = c.Update(context.Background(), func(txn *catalog.Txn) error {
		if err := txn.CreateConnection(&catalog.Connection{Name: "c", Kind: sourceKind}); err != nil {
			return err
		}
		return txn.CreatePipeline(&catalog.Pipeline{
			Name: pipelineName, Connection: "c", TargetSchema: "public",
			Selection: catalog.TableSelection{AllTables: true}, Enabled: true, State: catalog.PipelineStarting,
		})
	})
	if err != nil {
		return nil, err
	}
	return store, c.Close()
})

func newHost(w *World, name string, kv store) *host {
	return &host{world: w, name: name, disk: crashfs.New(), kv: kv}
}

// The types of the world's columns.
var (
	int64Type   = schema.Type{Kind: schema.Int64}
	int32Type   = schema.Type{Kind: schema.Int32}
	stringType  = schema.Type{Kind: schema.String}
	float64Type = schema.Type{Kind: schema.Float64}
)

const (
	oidInt8   = 20
	oidInt4   = 23
	oidText   = 25
	oidFloat8 = 701
)

// createTables makes the source's tables: one with a key of one number, one with a key of two
// texts, one without.
func (w *World) createTables() {
	w.tables = []*source.Table{
		w.db.CreateTable("s", "ints", []source.Column{
			{Name: "id", Type: int64Type, OID: oidInt8, TypMod: -1},
			{Name: "v", Type: stringType, OID: oidText, TypMod: -1},
			{Name: "n", Type: int32Type, OID: oidInt4, TypMod: -1},
		}, "id"),
		w.db.CreateTable("s", "texts", []source.Column{
			{Name: "a", Type: stringType, OID: oidText, TypMod: -1},
			{Name: "f", Type: float64Type, OID: oidFloat8, TypMod: -1},
			{Name: "b", Type: stringType, OID: oidText, TypMod: -1},
		}, "b", "a"),
		w.db.CreateTable("s", "log", []source.Column{
			{Name: "at", Type: int64Type, OID: oidInt8, TypMod: -1},
			{Name: "what", Type: stringType, OID: oidText, TypMod: -1},
		}),
	}
	w.tables[2].Current().WholeRow = w.cfg.whole()
	if w.cfg.computes() {
		for _, t := range []*source.Table{w.tables[0], w.tables[2]} {
			w.db.ComputeColumn(t, source.Column{Name: "g", Type: stringType, OID: oidText, TypMod: -1}, 1)
		}
	}
	r := &random{w.cfg.Seed ^ 0x1a1}
	var rows []source.Change
	for _, t := range w.tables {
		for i := range w.cfg.initialRows() {
			rows = append(rows, source.Change{
				Table: t, Version: t.Current(), Op: change.Insert, New: w.row(r, t, i),
			})
		}
	}
	if len(rows) > 0 {
		w.db.Commit(rows, false)
	}
}
