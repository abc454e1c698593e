package duckdb

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/quote"
)

const (
	// deletedBytesMax bounds the cached positions of all tables, beside those in use.
	deletedBytesMax = 128 << 20
	// deletedRowsMax is up to how many positions of a table are held in memory; more
	// are joined by the engine.
	deletedRowsMax = 16 << 20
	// deletedFilesMax is up to how many files get a scan of their own.
	deletedFilesMax = 64
)

// deleted is the positions that are deleted in files, by path. A file that is not in
// it has none. Nil: they are not known here.
type deleted map[string]*driver.KeySet

// deletedCache has the contents of position delete files, which never change, by the
// list of them that a snapshot has for a query. Safe for concurrent use.
type deletedCache struct {
	mu struct {
		sync.Mutex
		entries map[string]*deletedEntry
		clock   uint64
	}
}

// deletedEntry is one list. turn, of one token, guards loaded and sets; the rest is
// under deletedCache.mu.
type deletedEntry struct {
	turn   chan struct{}
	loaded bool
	sets   deleted

	bytes int64
	refs  int
	used  uint64
}

func newDeletedCache() *deletedCache {
	c := &deletedCache{}
	c.mu.entries = map[string]*deletedEntry{}
	return c
}

// of returns the deleted positions of the relation's files, reading them by conn, and
// what to call when they are used no more, which is never nil.
func (c *deletedCache) of(ctx context.Context, conn *driver.Conn, r *Relation) (deleted, func(), error) {
	dirty := 0
	for _, f := range r.Files {
		if f.HasDeletes {
			dirty++
		}
	}
	if dirty == 0 || dirty > deletedFilesMax || len(r.PositionDeletes) == 0 {
		return nil, func() {}, nil
	}
	e := c.enter(strings.Join(r.PositionDeletes, "\x00"))
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		c.leave(e)
		return nil, func() {}, context.Cause(ctx)
	}
	var err error
	if !e.loaded {
		var bytes int64
		e.sets, bytes, err = readDeleted(ctx, conn, r.PositionDeletes)
		e.loaded = err == nil
		c.account(e, bytes)
	}
	sets := e.sets
	<-e.turn
	if err != nil {
		c.leave(e)
		return nil, func() {}, fmt.Errorf("read position deletes of %q: %w", r.Name, err)
	}
	return sets, func() { c.leave(e) }, nil
}

func (c *deletedCache) enter(key string) *deletedEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.mu.entries[key]
	if e == nil {
		e = &deletedEntry{turn: make(chan struct{}, 1)}
		c.mu.entries[key] = e
	}
	c.mu.clock++
	e.used = c.mu.clock
	e.refs++
	return e
}

func (c *deletedCache) leave(e *deletedEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.refs--
	c.evictLocked(deletedBytesMax)
}

func (c *deletedCache) account(e *deletedEntry, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.bytes = bytes
}

// evictLocked drops entries that nobody uses, the longest unused first, until the
// rest is small enough.
func (c *deletedCache) evictLocked(limit int64) {
	var total int64
	for _, e := range c.mu.entries {
		total += e.bytes
	}
	for total > limit || limit == 0 {
		oldest := ""
		for key, e := range c.mu.entries {
			if e.refs == 0 && (oldest == "" || e.used < c.mu.entries[oldest].used) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		e := c.mu.entries[oldest]
		total -= e.bytes
		e.sets.close()
		delete(c.mu.entries, oldest)
	}
}

// close drops what nobody uses.
func (c *deletedCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evictLocked(0)
}

func (d deleted) close() {
	for _, set := range d {
		set.Close()
	}
}

// readDeleted reads delete files whole. The result is nil when they hold too much.
func readDeleted(ctx context.Context, conn *driver.Conn, paths []string) (sets deleted, bytes int64, err error) {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = quote.Text(p)
	}
	positions, err := readPositions(ctx, conn,
		"SELECT file_path, pos FROM read_parquet(["+strings.Join(quoted, ",")+"])")
	if err != nil || positions == nil {
		return nil, 0, err
	}
	sets = make(deleted, len(positions))
	for path, rows := range positions {
		set, err := driver.NewKeySet(*rows)
		if err != nil {
			sets.close()
			return nil, 0, err
		}
		sets[path] = set
		bytes += set.Bytes()
	}
	return sets, bytes, nil
}

// readPositions returns nil when there are more than deletedRowsMax.
func readPositions(ctx context.Context, conn *driver.Conn, sql string) (map[string]*[]int64, error) {
	stream, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	if c := stream.Columns(); len(c) != 2 || c[0].Type.Kind != vector.String || c[1].Type.Kind != vector.Int64 {
		return nil, fmt.Errorf("columns %v: %w", c, ErrPlan)
	}
	out, total := map[string]*[]int64{}, 0
	last, into := "", (*[]int64)(nil)
	for {
		chunk, err := stream.Next()
		if err != nil {
			return nil, err
		}
		if chunk == nil {
			return out, nil
		}
		if total += chunk.Rows; total > deletedRowsMax {
			return nil, nil
		}
		path, pos := &chunk.Columns[0], &chunk.Columns[1]
		for i := range chunk.Rows {
			if !path.Valid(i) || !pos.Valid(i) {
				continue // names no row
			}
			if p := path.Bytes(i); into == nil || string(p) != last {
				last = string(p)
				if into = out[last]; into == nil {
					into = new([]int64)
					out[last] = into
				}
			}
			*into = append(*into, pos.Int64(i))
		}
	}
}
