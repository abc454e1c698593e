package duckdb

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// LogReader reads live slices from the logs on this machine's disk, one wal.Reader a
// directory. It is the SliceReader of a worker process. Safe for concurrent use.
type LogReader struct {
	fs wal.FS
	mu struct {
		sync.Mutex
		readers map[string]*wal.Reader
	}
}

var _ SliceReader = (*LogReader)(nil)

// NewLogReader returns a reader of every log directory that plans name.
func NewLogReader() *LogReader { return NewLogReaderFS(wal.DiskFS()) }

// NewLogReaderFS is NewLogReader on another file system.
func NewLogReaderFS(fsys wal.FS) *LogReader {
	r := &LogReader{fs: fsys}
	r.mu.readers = make(map[string]*wal.Reader)
	return r
}

// ReadSlice implements SliceReader. A slice that turns out to be of a backfill, or
// not to be, is read all the same: that has no bearing on its rows.
func (r *LogReader) ReadSlice(ctx context.Context, s LiveSlice, dir string) (arrow.RecordBatch, error) {
	want := wal.Slice{
		Ref: segment.SliceRef{Seq: segment.Seq(s.Seq), Start: s.Start}, Length: s.Length,
		Table: change.TableID(s.Table), SchemaVersion: s.SchemaVersion, Rows: uint32(s.Rows),
		Truncate: s.Truncate, Backfill: s.Backfill,
	}
	reader := r.reader(dir)
	rec, err := reader.ReadSlice(ctx, want)
	if errors.Is(err, segment.ErrIdentity) {
		want.Backfill = !want.Backfill
		rec, err = reader.ReadSlice(ctx, want)
	}
	var corrupt *segment.CorruptError
	switch {
	case errors.Is(err, wal.ErrSliceLost) && mutant.On(mutant.LostSliceIsEmpty):
		return nil, nil
	case errors.Is(err, wal.ErrSliceLost):
		return nil, fmt.Errorf("%w: %w", ErrSliceLost, err)
	case errors.As(err, &corrupt):
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return rec, err
}

// Close closes the files. No read may be under way.
func (r *LogReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for _, one := range r.mu.readers {
		err = errors.Join(err, one.Close())
	}
	clear(r.mu.readers)
	return err
}

func (r *LogReader) reader(dir string) *wal.Reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.mu.readers[dir]
	if one == nil {
		one = wal.OpenReaderFS(r.fs, dir)
		r.mu.readers[dir] = one
	}
	return one
}
