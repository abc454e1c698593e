package iceberg

import (
	"slices"
	"sync"
)

// Hold keeps a snapshot, as lake.Snapshot.Metadata and ID name it, with its files until
// release is called, which may happen more than once: it is not expired, nor is its
// table's directory removed. It does not bring back what has gone: the caller holds a
// snapshot that the catalog has, or had a moment ago, which retention and the grace
// period keep meanwhile. Holding snapshot 0 does nothing.
func (w *Warehouse) Hold(metadata string, snapshot int64) (release func()) {
	if snapshot == 0 {
		return func() {}
	}
	key := snapshotKey{tableLocation(metadata), snapshot}
	w.pins.add(key, 1)
	return sync.OnceFunc(func() { w.pins.add(key, -1) })
}

// pins count the holders of snapshots. Safe for concurrent use.
type pins struct {
	mu sync.Mutex
	n  map[snapshotKey]int
}

func (p *pins) add(key snapshotKey, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == nil {
		p.n = map[snapshotKey]int{}
	}
	if p.n[key] += n; p.n[key] == 0 {
		delete(p.n, key)
	}
}

// of are the snapshots held of the table in a directory.
func (p *pins) of(location string) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int64
	for key := range p.n {
		if key.location == location {
			out = append(out, key.id)
		}
	}
	slices.Sort(out)
	return out
}
