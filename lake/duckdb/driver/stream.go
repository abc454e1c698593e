package driver

import (
	b "github.com/duckdb/duckdb-go-bindings"

	"github.com/skipprd/skipprd/lake/vector"
)

// Stream is a running query. It holds about a megabyte of finished rows at most; the
// engine waits for the reader. Used by one goroutine.
type Stream struct {
	statement b.PreparedStatement
	result    b.Result
	columns   []Column
	chunk     b.DataChunk
	out       vector.Chunk
	join      func()
	over      chan struct{} // closed by join
}

// Columns are the result's columns.
func (s *Stream) Columns() []Column { return s.columns }

// Next returns the next rows, nil at the end. The chunk aliases engine memory and is
// valid until the next call of Next or Close.
func (s *Stream) Next() (*vector.Chunk, error) {
	b.DestroyDataChunk(&s.chunk)
	s.chunk = b.FetchChunk(s.result)
	if s.chunk.Ptr == nil {
		if b.ResultError(&s.result) != "" {
			return nil, resultError(&s.result)
		}
		return nil, nil
	}
	s.out.Rows = int(b.DataChunkGetSize(s.chunk))
	for i := range s.out.Columns {
		load(&s.out.Columns[i], b.DataChunkGetVector(s.chunk, b.IdxT(i)), s.out.Rows)
	}
	return &s.out, nil
}

// Close ends the query, whether or not it was read to its end.
func (s *Stream) Close() {
	if s.join != nil {
		s.join()
		s.join = nil
	}
	b.DestroyDataChunk(&s.chunk)
	b.DestroyResult(&s.result)
	b.DestroyPrepare(&s.statement)
}

func (s *Stream) start(c *Conn, sql string) error {
	st, err := c.prepare(sql)
	if err != nil {
		return err
	}
	s.statement = st
	if s.columns, err = preparedColumns(st); err != nil {
		return err
	}
	var pending b.PendingResult
	defer b.DestroyPending(&pending)
	if b.PendingPreparedStreaming(st, &pending) == b.StateError {
		return classify(b.PendingError(pending))
	}
	if b.ExecutePending(pending, &s.result) == b.StateError {
		return resultError(&s.result)
	}
	s.out.Columns = make([]vector.Vector, len(s.columns))
	for i, c := range s.columns {
		s.out.Columns[i] = shape(c.Type)
	}
	return nil
}

// shape makes the vectors of a type, children included, to be loaded per chunk.
func shape(t vector.Type) vector.Vector {
	v := vector.Vector{Type: t}
	switch t.Kind {
	case vector.List:
		v.Child = []vector.Vector{shape(t.Elem[0])}
	case vector.Struct:
		for _, e := range t.Elem {
			v.Child = append(v.Child, shape(e))
		}
	case vector.Map:
		entry := vector.Type{Kind: vector.Struct, Elem: t.Elem, Names: []string{"key", "value"}}
		v.Child = []vector.Vector{shape(entry)}
	}
	return v
}

// load points v at the engine's vector of n rows.
func load(v *vector.Vector, from b.Vector, n int) {
	v.Data = b.VectorGetData(from)
	v.Validity = b.VectorGetValidity(from)
	switch v.Type.Kind {
	case vector.List, vector.Map:
		v.ChildRows = int(b.ListVectorGetSize(from))
		load(&v.Child[0], b.ListVectorGetChild(from), v.ChildRows)
	case vector.Struct:
		for i := range v.Child {
			load(&v.Child[i], b.StructVectorGetChild(from, b.IdxT(i)), n)
		}
	}
}
