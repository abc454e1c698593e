// Package kept keeps relations of the system catalogs as they were made last, so that they are made once
// for each state of the catalog.
package kept

import (
	"bytes"
	"sync"
)

// Most bounds the bytes of streams that are kept.
const Most = 64 << 20

// Streams are relations, for each that they are made for and what else they depend on. Its zero
// value is ready, and safe for concurrent use.
type Streams struct {
	mu struct {
		sync.Mutex
		all  map[string]stream
		size int
	}
}

type stream struct {
	version uint64 // of the catalog
	bytes   []byte
}

// Get returns a copy of a relation's stream, nil when that of a version is not there.
func (s *Streams) Get(key string, version uint64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.mu.all[key]; b.version == version {
		return bytes.Clone(b.bytes)
	}
	return nil
}

// Put keeps a copy of a relation's stream instead of that of an older state of the catalog.
func (s *Streams) Put(key string, version uint64, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.mu.all[key]
	if was.version > version || len(b) > Most {
		return
	}
	s.mu.size += len(b) - len(was.bytes)
	if s.mu.all == nil || s.mu.size > Most {
		s.mu.all, s.mu.size = map[string]stream{}, len(b)
	}
	s.mu.all[key] = stream{version, bytes.Clone(b)}
}
