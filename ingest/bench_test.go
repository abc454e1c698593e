package ingest_test

import (
	"context"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// BenchmarkStream runs transactions of the shop through batcher and real log, as fast
// as they go: about 2.4 changes each.
func BenchmarkStream(b *testing.B) {
	cfg := generate.Config{Customers: 1000, Orders: 1000, Transactions: int64(b.N)}
	clock, ids := env.System()
	dir := b.TempDir()
	w := &world{t: b, store: memkv.New(), factory: shopFactory(cfg, nil), lake: &lakeDrops{}}
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		return wal.Open(ctx, wal.Config{Dir: dir, Pipeline: p}, wal.Deps{Publisher: w.catalog, Clock: clock, IDs: ids})
	}
	b.ReportAllocs()
	w.create()
	w.start()
	w.await("end", func(s *catalog.Snapshot) bool {
		return number(w.position(s)) == int64(b.N) && allIn(s, catalog.TableReady)
	})
	st, _ := w.supervisor.Status("shop")
	b.ReportMetric(float64(st.Metrics.Groups), "groups")
	b.ReportMetric(float64(st.Metrics.StreamRows)/b.Elapsed().Seconds(), "changes/s")
}
