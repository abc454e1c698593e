package driver

/*
#include <stdlib.h>
#include "scan.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
)

// Block is a record whose memory the engine may read: pinned, and described in C
// once, however many sources name it. Counted references; safe for concurrent use.
type Block struct {
	record  arrow.RecordBatch
	columns *C.struct_sk_array
	memory  arena
	pin     runtime.Pinner
	refs    atomic.Int64
}

// NewBlock pins a record and takes a reference to it. The caller owns one reference
// of the block.
func NewBlock(record arrow.RecordBatch) (*Block, error) {
	b := &Block{record: record}
	b.refs.Store(1)
	n := int(record.NumCols())
	arrays := allocate[C.struct_sk_array](&b.memory, n)
	b.columns = unsafe.SliceData(arrays)
	for i := range n {
		if err := b.describe(&arrays[i], record.Column(i).Data()); err != nil {
			b.pin.Unpin()
			b.memory.free()
			return nil, fmt.Errorf("column %q: %w", record.ColumnName(i), err)
		}
	}
	record.Retain()
	return b, nil
}

// Record is the block's record, valid while the caller has a reference.
func (b *Block) Record() arrow.RecordBatch { return b.record }

// Retain takes another reference.
func (b *Block) Retain() { b.refs.Add(1) }

// Release gives a reference back.
func (b *Block) Release() {
	if b.refs.Add(-1) > 0 {
		return
	}
	b.pin.Unpin()
	b.memory.free()
	b.record.Release()
}

func (b *Block) describe(a *C.struct_sk_array, d arrow.ArrayData) error {
	buffers := d.Buffers()
	a.offset = C.int64_t(d.Offset())
	if len(buffers) > 0 && buffers[0] != nil && d.NullN() != 0 {
		a.validity = b.address(buffers[0].Bytes())
	}
	if len(buffers) > 1 && buffers[1] != nil {
		a.data = b.address(buffers[1].Bytes())
	}
	if len(buffers) > 2 && buffers[2] != nil {
		a.bytes = b.address(buffers[2].Bytes())
	}
	children := d.Children()
	if len(children) == 0 {
		return nil
	}
	if len(children) != 1 {
		return fmt.Errorf("type %s: %w", d.DataType(), ErrArrowType)
	}
	child := allocate[C.struct_sk_array](&b.memory, 1)
	a.child = &child[0]
	return b.describe(a.child, children[0])
}

// address pins bytes of the Go heap; other memory is left as it is.
func (b *Block) address(p []byte) *C.uint8_t {
	if len(p) == 0 {
		return nil
	}
	b.pin.Pin(unsafe.SliceData(p))
	return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(p)))
}

// arena is C memory with one owner.
type arena struct{ chunks []unsafe.Pointer }

// allocate returns n zeroed values in C memory.
func allocate[T any](a *arena, n int) []T {
	var zero T
	p := C.calloc(C.size_t(max(1, n)), C.size_t(unsafe.Sizeof(zero)))
	a.chunks = append(a.chunks, p)
	return unsafe.Slice((*T)(p), n)
}

func (a *arena) text(s string) *C.char {
	p := C.CString(s)
	a.chunks = append(a.chunks, unsafe.Pointer(p))
	return p
}

func (a *arena) free() {
	for _, p := range a.chunks {
		C.free(p)
	}
	a.chunks = nil
}
