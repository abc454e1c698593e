package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
)

// EngineSearcher is the Searcher that runs plans in the engine's worker.
type EngineSearcher struct {
	Pool *duckdb.Pool
}

var _ Searcher = EngineSearcher{}

// Superseded implements Searcher.
func (e EngineSearcher) Superseded(ctx context.Context, plan *duckdb.Plan) iter.Seq2[lake.Position, error] {
	return func(yield func(lake.Position, error) bool) {
		stream, err := e.Pool.Query(ctx, plan)
		if err != nil {
			yield(lake.Position{}, err)
			return
		}
		defer stream.Close()
		frames := &frameReader{ctx: ctx, stream: stream}
		rows, err := ipc.NewReader(frames)
		if errors.Is(err, io.EOF) && frames.err == nil {
			return // a result without rows may have no bytes
		}
		if err != nil {
			yield(lake.Position{}, errors.Join(err, frames.err))
			return
		}
		defer rows.Release()
		for rows.Next() {
			rec := rows.RecordBatch()
			file, okFile := rec.Column(0).(*array.String)
			pos, okPos := rec.Column(1).(*array.Int64)
			if !okFile || !okPos {
				yield(lake.Position{}, fmt.Errorf("search result has columns %s", rec.Schema()))
				return
			}
			for i := range int(rec.NumRows()) {
				if !yield(lake.Position{File: file.Value(i), Row: pos.Value(i)}, nil) {
					return
				}
			}
		}
		if err := errors.Join(rows.Err(), frames.err); err != nil {
			yield(lake.Position{}, err)
		}
	}
}

// frameReader reads the bytes of a stream's frames.
type frameReader struct {
	ctx    context.Context // of one Superseded call
	stream *duckdb.Stream
	left   []byte
	err    error // what ended it, but for io.EOF
}

// Read implements io.Reader.
func (f *frameReader) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		frame, err := f.stream.Next(f.ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				f.err = err
			}
			return 0, err
		}
		f.left = frame.Data
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}
