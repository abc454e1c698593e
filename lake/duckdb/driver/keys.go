package driver

/*
#include "scan.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// KeySet is a set of integers that takes rows out of a query, at a fraction of an anti
// join's cost. It may be used any number of times, also at once, until Close; Close only after
// every stream whose SQL names it was closed.
type KeySet struct {
	id  uint64
	set *C.struct_sk_keys
}

// NewKeySet publishes the set of keys, which it copies.
func NewKeySet(keys []int64) (*KeySet, error) {
	set := C.sk_keys_make((*C.int64_t)(unsafe.Pointer(unsafe.SliceData(keys))), C.int64_t(len(keys)))
	if set == nil {
		return nil, fmt.Errorf("make set of %d keys: %w", len(keys), ErrOutOfMemory)
	}
	s := &KeySet{set: set, id: uint64(C.sk_publish(C.SK_KEYS, unsafe.Pointer(set)))}
	if s.id == 0 {
		C.sk_keys_free(set)
		return nil, fmt.Errorf("publish set of keys: %w", ErrOutOfMemory)
	}
	return s, nil
}

// Lacks is SQL that is true where value, an expression of an integer type, is not a
// member, and null where it is null.
func (s *KeySet) Lacks(value string) string {
	return fmt.Sprintf("skippr_stranger(%d::UBIGINT, CAST(%s AS BIGINT))", s.id, value)
}

// Bytes is the memory of the set.
func (s *KeySet) Bytes() int64 {
	if s.set.width != 0 {
		return int64(s.set.width/64+1) * 8
	}
	return int64(1)<<(64-s.set.bit_shift)/8 + int64(8)<<(64-s.set.slot_shift)
}

// Close withdraws the set and frees it.
func (s *KeySet) Close() {
	C.sk_withdraw(C.uint64_t(s.id))
	C.sk_keys_free(s.set)
}
