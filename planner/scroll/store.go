package scroll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// File keeps rows that memory does not. Its content is nobody's once it is closed.
type File interface {
	io.WriterAt
	io.ReaderAt
	io.Closer
}

// Limits of a Store.
const (
	// memoryBytes is how much of its rows a store has in memory.
	memoryBytes = 4 << 20
	// blockBytes is from where on a block of rows is full; one is read back at a time.
	blockBytes = 128 << 10
	// fileBytesMax bounds the file of a store.
	fileBytesMax = 64 << 30
)

// Store keeps rows in order: finished DataRow messages.
type Store struct {
	open   func() (File, error)
	file   File
	blocks []block
	rows   int64
	// passed is the row before which memory need not have all of them.
	passed int64
	memory int
	size   int64 // of the file
	// read is the block that was read last, of number at.
	read []byte
	at   int
}

// block is a run of rows: data in memory, or size bytes of the file.
type block struct {
	first, rows int64
	data        []byte
	offset      int64
	size        int
}

// NewStore makes a store; open makes its file once it needs one. Nil: it must do without.
func NewStore(open func() (File, error)) *Store { return &Store{open: open, at: -1} }

// Len is how many rows there are.
func (s *Store) Len() int64 { return s.rows }

// Append adds n rows. messages are not kept.
func (s *Store) Append(messages []byte, n int) error {
	last := len(s.blocks) - 1
	if last < 0 || len(s.blocks[last].data)+len(messages) > blockBytes {
		if err := s.seal(); err != nil {
			return err
		}
		s.blocks = append(s.blocks, block{first: s.rows, data: make([]byte, 0, len(messages))})
	}
	b := &s.blocks[len(s.blocks)-1]
	b.data = append(b.data, messages...)
	b.rows += int64(n)
	s.rows += int64(n)
	return nil
}

// Forget says that rows before a row need not be kept once memory has its share; those that
// are added from now on are.
func (s *Store) Forget(before int64) { s.passed = before }

// First is the first row that there still is.
func (s *Store) First() int64 {
	if len(s.blocks) == 0 {
		return s.rows
	}
	return s.blocks[0].first
}

// drop gives up the first block if it may.
func (s *Store) drop() bool {
	if len(s.blocks) == 0 || s.blocks[0].first+s.blocks[0].rows > s.passed {
		return false
	}
	if len(s.blocks) > 1 { // the last one is not counted yet
		s.memory -= len(s.blocks[0].data)
	}
	s.blocks, s.at = s.blocks[1:], -1
	return true
}

// seal ends the last block, which goes to the file if memory has its share.
func (s *Store) seal() error {
	last := func() *block { return &s.blocks[len(s.blocks)-1] }
	for len(s.blocks) > 0 && s.memory+len(last().data) > memoryBytes && s.drop() {
	}
	if len(s.blocks) == 0 {
		return nil
	}
	b := last()
	if b.data == nil {
		return nil
	}
	if s.memory+len(b.data) <= memoryBytes {
		s.memory += len(b.data)
		return nil
	}
	if s.file == nil {
		if s.open == nil {
			return errFull()
		}
		file, err := s.open()
		if err != nil {
			return fmt.Errorf("make the file of a cursor: %w", err)
		}
		s.file = file
	}
	if s.size+int64(len(b.data)) > fileBytesMax {
		return errFull()
	}
	if _, err := s.file.WriteAt(b.data, s.size); err != nil {
		return fmt.Errorf("keep rows of a cursor: %w", err)
	}
	b.offset, b.size, b.data = s.size, len(b.data), nil
	s.size += int64(b.size)
	return nil
}

func errFull() error {
	return pgerr.New(codes.ConfigurationLimitExceeded, "too many rows for a cursor that scrolls, or outlives its transaction").
		WithHint("Declare it with NO SCROLL, and without WITH HOLD.")
}

// errForgotten is the error of who goes back to rows that are not there any more.
func errForgotten(kept int64) error {
	return pgerr.New(codes.ObjectNotInPrerequisiteState, "cursor can only go back over the last %d rows", kept).
		WithHint("Declare it with SCROLL: all of its rows are kept then.")
}

// load gives a block's bytes, valid until the next call.
func (s *Store) load(i int) ([]byte, error) {
	b := &s.blocks[i]
	if b.data != nil {
		return b.data, nil
	}
	if s.at == i {
		return s.read, nil
	}
	s.at = -1
	if cap(s.read) < b.size {
		s.read = make([]byte, b.size)
	}
	s.read = s.read[:b.size]
	if _, err := s.file.ReadAt(s.read, b.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read rows of a cursor: %w", err)
	}
	s.at = i
	return s.read, nil
}

// Forward gives the n rows from row from on, counted from 0, to send, block by block.
func (s *Store) Forward(from, n int64, send func(messages []byte, n int) error) error {
	if from < s.First() {
		return errForgotten(s.rows - s.First())
	}
	for i := s.find(from); n > 0; i++ {
		data, err := s.load(i)
		if err != nil {
			return err
		}
		skip := from - s.blocks[i].first
		some := min(n, s.blocks[i].rows-skip)
		data = data[length(data, skip):]
		if err := send(data[:length(data, some)], int(some)); err != nil {
			return err
		}
		from, n = from+some, n-some
	}
	return nil
}

// Backward gives the n rows up to row from, that one first.
func (s *Store) Backward(from, n int64, send func(messages []byte, n int) error) error {
	if from-n+1 < s.First() {
		return errForgotten(s.rows - s.First())
	}
	var out []byte
	for i := s.find(from); n > 0; i-- {
		data, err := s.load(i)
		if err != nil {
			return err
		}
		have := from - s.blocks[i].first + 1
		some := min(n, have)
		ends := make([]int, 0, some+1)
		at := length(data, have-some)
		ends = append(ends, at)
		for range some {
			at += length(data[at:], 1)
			ends = append(ends, at)
		}
		out = out[:0]
		for k := len(ends) - 1; k > 0; k-- {
			out = append(out, data[ends[k-1]:ends[k]]...)
		}
		if err := send(out, int(some)); err != nil {
			return err
		}
		from, n = from-some, n-some
	}
	return nil
}

// find is the block of a row.
func (s *Store) find(row int64) int {
	return sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].first > row }) - 1
}

// length is that of the first n messages of data.
func length(data []byte, n int64) int {
	at := 0
	for range n {
		at += 1 + int(binary.BigEndian.Uint32(data[at+1:]))
	}
	return at
}

// Close gives up the rows.
func (s *Store) Close() {
	if s.file != nil {
		_ = s.file.Close() // nobody reads it again
	}
	*s = Store{open: s.open, at: -1}
}
