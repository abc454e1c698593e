package wal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// benchBatch has rows that do not compress, like ids and hashes.
func benchBatch(table change.TableID, rows int) *change.Batch {
	b := change.NewBuilder(memory.DefaultAllocator, table, 1, tableSchema)
	defer b.Release()
	r := rand.New(rand.NewPCG(1, uint64(table)))
	text := make([]byte, 64)
	for i := range rows {
		for j := range text {
			text[j] = 'a' + byte(r.IntN(26))
		}
		b.Add(change.Insert, int64(i), int32(i))
		b.Column(0).(*array.Int64Builder).Append(r.Int64())
		b.Column(1).(*array.StringBuilder).Append(string(text))
	}
	return b.Batch()
}

// rowsFor makes about 5 KB and 81 KB of body per group.
var rowsFor = map[string]int{"5KB": 50, "81KB": 900}

// rawLimit is how many writes of n bytes with one fdatasync each a pre-written file
// takes in a second: the limit of a single stream.
func rawLimit(b *testing.B, n int, d time.Duration) float64 {
	b.Helper()
	name := filepath.Join(b.TempDir(), "raw")
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(name)
	defer f.Close()
	const size = 64 << 20
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, n)
	begin, count, at := time.Now(), 0, int64(0)
	for time.Since(begin) < d {
		if at+int64(n) > size {
			at = 0
		}
		if _, err := f.WriteAt(data, at); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		at += int64(n)
		count++
	}
	return float64(count) / time.Since(begin).Seconds()
}

// cpuTime is what this process has used of the processors, the kernel's part included.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppend reports appends in a second as a multiple of the raw limit that is
// measured right before and right after, since a shared disk drifts; and processor time,
// which does not depend on the disk.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []string{"5KB", "81KB"} {
		for _, producers := range []int{1, 16} {
			b.Run(fmt.Sprintf("size=%s/producers=%d", size, producers), func(b *testing.B) {
				benchmarkAppend(b, rowsFor[size], producers)
			})
		}
	}
}

func benchmarkAppend(b *testing.B, rows, producers int) {
	cfg := wal.Config{Dir: b.TempDir(), Pipeline: pipeline, Spares: 2}
	pub := &reclaimer{}
	l := mustOpen(b, cfg, deps(nil, pub))
	pub.log.Store(l)
	g := mustAppend(b, l, &change.Group{Batches: []*change.Batch{benchBatch(1, rows)}})
	fill := func() {
		for l.Stats().Spares < cfg.Spares {
			time.Sleep(10 * time.Millisecond) // a benchmark may wait for real disks
		}
	}
	fill()
	must(b, l.SealActive(b.Context())) // go on in a pre-written file
	mustAppend(b, l, &change.Group{Batches: []*change.Batch{benchBatch(1, 1)}})
	fill() // neither the log nor the raw stream shares the disk with that
	n := int(g.Slices[0].Length)
	before := rawLimit(b, n, 300*time.Millisecond)
	commits := l.Stats().Commits
	var next atomic.Int64
	var wg sync.WaitGroup
	b.SetBytes(int64(n))
	b.ReportAllocs()
	cpu := cpuTime(b)
	b.ResetTimer()
	for p := range producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			batch := benchBatch(change.TableID(p+1), rows)
			defer batch.Release()
			for next.Add(1) <= int64(b.N) {
				if _, err := l.Append(b.Context(), &change.Group{Batches: []*change.Batch{batch}}); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	rate := float64(b.N) / b.Elapsed().Seconds()
	after := rawLimit(b, n, 300*time.Millisecond)
	b.ReportMetric(rate/((before+after)/2), "x-raw")
	b.ReportMetric((before+after)/2, "raw/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/float64(l.Stats().Commits-commits), "groups/commit")
}

// BenchmarkReadSlice reads slices of 81 KB from the page cache.
func BenchmarkReadSlice(b *testing.B) {
	cfg := wal.Config{Dir: b.TempDir(), Pipeline: pipeline}
	l := mustOpen(b, cfg, deps(nil, discard{}))
	for _, size := range []string{"5KB", "81KB"} {
		g := mustAppend(b, l, &change.Group{Batches: []*change.Batch{benchBatch(1, rowsFor[size])}})
		b.Run("size="+size, func(b *testing.B) {
			r := wal.OpenReader(cfg.Dir)
			defer r.Close()
			b.SetBytes(int64(g.Slices[0].Length))
			b.ReportAllocs()
			for b.Loop() {
				rec, err := r.ReadSlice(b.Context(), g.Slices[0])
				must(b, err)
				rec.Release()
			}
		})
	}
}

// reclaimer is a catalog whose tables are compacted as soon as a segment is sealed, so
// that files come back the way they do in a log that is being drained.
type reclaimer struct {
	discard
	log  atomic.Pointer[wal.Log]
	last segment.Seq
}

func (r *reclaimer) Publish(ctx context.Context, _ change.PipelineID, groups []wal.CommittedGroup) error {
	if seq := groups[0].Seq; seq != r.last {
		r.last = seq
		if l := r.log.Load(); l != nil && seq > 2 {
			go func() { _ = l.Reclaim(ctx, []segment.Seq{seq - 2}) }() // one missed is no matter
		}
	}
	return nil
}

// discard is a catalog that forgets.
type discard struct{}

func (discard) Publish(context.Context, change.PipelineID, []wal.CommittedGroup) error { return nil }

func (discard) Published(context.Context, change.PipelineID) (segment.Seq, uint32, error) {
	return 0, 0, nil
}
