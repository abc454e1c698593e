package duckdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/lake/duckdb/admission"
)

// Frame is a run of encoded rows. Data holds whole messages and is valid until the
// next call of Next or Close.
type Frame struct {
	Rows int
	Data []byte
}

// Stream is the answer to a query. Used by one goroutine. The worker computes at most
// a few frames ahead of the reader.
type Stream struct {
	pool  *Pool
	wire  *wire
	place *admission.Seat
	// first is a frame that came with begin; over says that no more will come.
	first  *Frame
	over   bool
	err    error
	closed bool
}

// begin sends the plan and waits for the first frame.
func (s *Stream) begin(ctx context.Context, p *Plan) error {
	defer s.pool.places.Idle(s.place)
	kind, rows, err := s.wire.request(ctx, frameQuery, p)
	f, err := s.take(ctx, kind, rows, err)
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	s.first = &f
	return nil
}

// Next returns the next rows, io.EOF after the last. When ctx ends the query is
// canceled and the error is ctx's cause.
func (s *Stream) Next(ctx context.Context) (Frame, error) {
	if f := s.first; f != nil {
		s.first = nil
		return *f, nil
	}
	if s.over {
		if s.err == nil {
			return Frame{}, io.EOF
		}
		return Frame{}, s.err
	}
	if err := s.pool.places.Enter(ctx, s.place); err != nil {
		return Frame{}, err
	}
	defer s.pool.places.Idle(s.place)
	kind, rows, err := s.wire.receive(ctx)
	return s.take(ctx, kind, rows, err)
}

// Close ends the query if it still runs, and frees its place. Safe to call twice.
func (s *Stream) Close() {
	if s.closed {
		return
	}
	s.closed = true
	if !s.over && !s.wire.broken {
		canceled, cancel := context.WithCancel(context.Background())
		cancel()
		_, _, _ = s.wire.receive(canceled) // cancels, and drops rows until the last word
	}
	s.pool.giveBack(s.wire, s.err)
	s.pool.leave(s.place, s.err)
}

// take turns a frame of the worker into the answer.
func (s *Stream) take(ctx context.Context, kind byte, rows []byte, err error) (Frame, error) {
	if err == nil && ctx.Err() != nil && kind == frameDone {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		s.over, s.err = true, ended(ctx, err)
		return Frame{}, s.err
	case kind == frameDone:
		s.over = true
		return Frame{}, io.EOF
	case kind != frameRows:
		s.over, s.wire.broken = true, true
		s.err = fmt.Errorf("frame %d answers a query: %w", kind, ErrWorkerDied)
		return Frame{}, s.err
	}
	f := Frame{Rows: int(binary.LittleEndian.Uint32(rows)), Data: rows[4:]}
	s.pool.count.rows.Add(int64(f.Rows))
	s.pool.count.bytes.Add(int64(len(f.Data)))
	return f, nil
}

// Frames is the answer to a query, or what wraps one: a *Stream.
type Frames interface {
	// Next returns the next frame, io.EOF after the last. Its data is valid until the
	// next call.
	Next(ctx context.Context) (Frame, error)
}

// Records are the records of an answer whose output is OutputArrow. One is valid until the
// next; an error is the last.
func Records(ctx context.Context, frames Frames) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		bytes := &frameReader{ctx: ctx, frames: frames}
		in, err := ipc.NewReader(bytes)
		if errors.Is(err, io.EOF) && bytes.err == nil {
			return // a result without rows may have no bytes
		}
		if err != nil {
			yield(nil, errors.Join(bytes.err, err))
			return
		}
		defer in.Release()
		for in.Next() {
			if !yield(in.RecordBatch(), nil) {
				return
			}
		}
		if err := errors.Join(bytes.err, in.Err()); err != nil {
			yield(nil, err)
		}
	}
}

// frameReader reads the bytes of an answer's frames.
type frameReader struct {
	ctx    context.Context // of one Records call
	frames Frames
	left   []byte
	err    error // what ended it, but for io.EOF
}

// Read implements io.Reader.
func (f *frameReader) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		frame, err := f.frames.Next(f.ctx)
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
