// Package memstore is an object store in memory: deterministic, with cheap copies of
// its whole state, and as strict as the strictest store we know.
package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/skipprd/skipprd/wal/objstore"
)

// Store implements objstore.Store. The zero value is empty and ready. It keeps the
// bodies that it is given and returns them without copying, so a caller that breaks
// the rules of ownership damages its objects. A version is a digest of the bytes: the
// same bytes under the same key have the same version again, as on S3.
type Store struct {
	mu struct {
		sync.Mutex
		entries []entry // ascending keys
		shared  bool    // a clone has the slice too
		// changes counts what has changed; listing is that of the latest change of keys.
		changes, listing uint64
	}
}

type entry struct {
	key     string
	body    []byte
	version objstore.Version
	stamp   uint64 // the store's changes when it was put
}

var _ objstore.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store { return &Store{} }

// Clone copies the state at the cost of one allocation; bodies and, until one of the
// two is written, keys are shared.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.shared = true
	c := &Store{}
	c.mu.entries, c.mu.shared = s.mu.entries, true
	c.mu.changes, c.mu.listing = s.mu.changes, s.mu.listing
	return c
}

// All visits the objects of one moment in ascending order of their keys. Bodies must
// not be modified.
func (s *Store) All() iter.Seq2[string, []byte] {
	entries := s.Clone().mu.entries
	return func(yield func(string, []byte) bool) {
		for _, e := range entries {
			if !yield(e.key, e.body) {
				return
			}
		}
	}
}

// Listing is another after each change of the keys.
func (s *Store) Listing() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.listing
}

// Stamp is another after each change of a key's object; 0 if there is none.
func (s *Store) Stamp(key string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, found := s.findLocked(key); found {
		return s.mu.entries[i].stamp
	}
	return 0
}

// Len is the number of objects.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.entries)
}

// Put implements objstore.Store.
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Version, error) {
	if err := check(ctx, objstore.ValidatePut(key, body)); err != nil {
		return "", fmt.Errorf("put: %w", err)
	}
	e := entry{key: key, body: body, version: versionOf(body)}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.findLocked(key)
	switch {
	case cond.Absent() && found,
		cond.Version() != "" && (!found || s.mu.entries[i].version != cond.Version()):
		return "", fmt.Errorf("put %s %s: %w", key, cond, objstore.ErrPrecondition)
	case found:
		s.ownLocked()
		s.mu.changes++
		e.stamp = s.mu.changes
		s.mu.entries[i] = e
	default:
		if err := s.nestedLocked(key); err != nil {
			return "", fmt.Errorf("put %s: %w", key, err)
		}
		s.ownLocked()
		s.mu.changes++
		e.stamp, s.mu.listing = s.mu.changes, s.mu.changes
		s.mu.entries = slices.Insert(s.mu.entries, i, e)
	}
	return e.version, nil
}

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, r objstore.Range) (objstore.Object, error) {
	if err := check(ctx, objstore.ValidateKey(key), r.Validate()); err != nil {
		return objstore.Object{}, fmt.Errorf("get: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.findLocked(key)
	if !found {
		return objstore.Object{}, fmt.Errorf("get %s: %w", key, objstore.ErrNotFound)
	}
	e := s.mu.entries[i]
	size := int64(len(e.body))
	if r.Whole() {
		r.End = size
	} else if r.Start >= size {
		return objstore.Object{}, fmt.Errorf("get %s [%d, %d): %w", key, r.Start, r.End, objstore.ErrRange)
	}
	end := min(r.End, size)
	return objstore.Object{Data: e.body[r.Start:end:end], Version: e.version, Size: size}, nil
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	if err := check(ctx, objstore.ValidateDelete(keys)); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if i, found := s.findLocked(key); found {
			s.ownLocked()
			s.mu.changes++
			s.mu.listing = s.mu.changes
			s.mu.entries = slices.Delete(s.mu.entries, i, i+1)
		}
	}
	return nil
}

// List implements objstore.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (objstore.Page, error) {
	if err := check(ctx, objstore.ValidateList(prefix, after, limit)); err != nil {
		return objstore.Page{}, fmt.Errorf("list: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.findLocked(max(prefix, after))
	if found && after >= prefix {
		i++
	}
	var page objstore.Page
	for ; i < len(s.mu.entries) && strings.HasPrefix(s.mu.entries[i].key, prefix); i++ {
		if len(page.Objects) == limit {
			page.More = true
			break
		}
		e := s.mu.entries[i]
		page.Objects = append(page.Objects, objstore.Info{Key: e.key, Size: int64(len(e.body)), Version: e.version})
	}
	return page, nil
}

// Equal says whether two stores hold the same objects.
func (s *Store) Equal(o *Store) bool {
	return slices.EqualFunc(s.Clone().mu.entries, o.Clone().mu.entries, func(a, b entry) bool {
		return a.key == b.key && bytes.Equal(a.body, b.body)
	})
}

// findLocked is where key is, or would be.
func (s *Store) findLocked(key string) (int, bool) {
	return sort.Find(len(s.mu.entries), func(i int) int { return strings.Compare(key, s.mu.entries[i].key) })
}

// ownLocked makes the slice of entries ours alone.
func (s *Store) ownLocked() {
	if s.mu.shared {
		s.mu.entries, s.mu.shared = slices.Clone(s.mu.entries), false
	}
}

// nestedLocked refuses a new key that is a directory of another, or has one in use as
// a directory.
func (s *Store) nestedLocked(key string) error {
	for i := range len(key) {
		if key[i] == '/' {
			if _, found := s.findLocked(key[:i]); found {
				return fmt.Errorf("%w: %s is an object", objstore.ErrKey, key[:i])
			}
		}
	}
	i, _ := s.findLocked(key + "/")
	if i < len(s.mu.entries) && strings.HasPrefix(s.mu.entries[i].key, key+"/") {
		return fmt.Errorf("%w: it is a directory of %s", objstore.ErrKey, s.mu.entries[i].key)
	}
	return nil
}

func versionOf(body []byte) objstore.Version {
	sum := sha256.Sum256(body)
	return objstore.Version(hex.EncodeToString(sum[:16]))
}

// check is the first of the errors, or why ctx ended.
func check(ctx context.Context, errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
