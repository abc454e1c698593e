// Package objstore is the contract of an object store: whole objects under keys, with
// put-if-absent and compare-and-swap. The log on an object store needs nothing else
// of it. Nothing here retries: a retry changes what an answer means (see ErrUnknown),
// so retries belong to the protocol above.
//
// What a caller may rely on:
//
//   - Get, List and conditions see every write that returned before they began.
//   - A write happens whole or not at all, and a reader sees one state of an object
//     from its first to its last byte.
//   - Of racing writes with IfAbsent of one key exactly one succeeds; of racing
//     writes with IfMatch of one version too.
//
// What it may not rely on: that a write which returned ErrUnknown, or whose caller
// gave up, has happened or has not, or will not happen later. The network may deliver
// a request late, or twice. Hence the rules of the protocol: no key is used again for
// other bytes once it was deleted, an object that is compared and swapped never
// returns to bytes it had before, and nothing is overwritten without a condition.
package objstore

import (
	"context"
	"fmt"
)

// Version names one state of an object. It is opaque, and made by the store. Equal
// versions of a key mean equal bytes, and a state that comes back may come back with
// its old version. Empty is no version.
type Version string

// Condition is what must hold for a Put to happen. The zero value always holds.
type Condition struct {
	absent  bool
	version Version
}

// IfAbsent holds if the key has no object.
func IfAbsent() Condition { return Condition{absent: true} }

// IfMatch holds if the key's object is in state v, which must not be empty.
func IfMatch(v Version) Condition { return Condition{version: v} }

// Absent says whether this is IfAbsent.
func (c Condition) Absent() bool { return c.absent }

// Version is that of IfMatch, else empty.
func (c Condition) Version() Version { return c.version }

// String is for messages.
func (c Condition) String() string {
	switch {
	case c.absent:
		return "if absent"
	case c.version != "":
		return "if match " + string(c.version)
	default:
		return "unconditional"
	}
}

// Range is the bytes [Start, End) of an object, 0 <= Start < End. The zero value is
// the whole object.
type Range struct {
	Start, End int64
}

// Whole says whether r is the whole object.
func (r Range) Whole() bool { return r == Range{} }

// Validate says what is wrong with r.
func (r Range) Validate() error {
	if !r.Whole() && (r.Start < 0 || r.End <= r.Start) {
		return fmt.Errorf("range [%d, %d) is not one", r.Start, r.End)
	}
	return nil
}

// Object is the answer of a Get.
type Object struct {
	// Data is the object, or the range of it that was asked for, shorter where the
	// object ends. It must not be modified.
	Data []byte
	// Version is the state that Data is of or, if a write was under way, one before
	// it, which IfMatch then refuses. It is never one after it.
	Version Version
	// Size is that of the whole object.
	Size int64
}

// Info is what a List says of an object.
type Info struct {
	Key     string
	Size    int64
	Version Version
}

// Page is one answer of a List.
type Page struct {
	// Objects are in ascending byte order of their keys. There may be fewer than
	// the limit although More is set, but then there is at least one.
	Objects []Info
	// More says that keys may follow the last of Objects.
	More bool
}

// Limits of a request.
const (
	// ObjectBytesMax is the most that an object may hold. Get does not read a larger one.
	ObjectBytesMax = 1 << 30
	// DeleteKeysMax is the most keys of a Delete.
	DeleteKeysMax = 1000
	// ListLimitMax is the most that a List returns.
	ListLimitMax = 1000
)

// Store is an object store, or a part of one under a prefix. All methods are safe for
// concurrent use, none retries, and each ends soon after its context does. Errors
// name the key; besides the sentinels that each method lists, any may wrap
// ErrUnavailable or an error of the setup (credentials, bucket), which no retry heals.
// A malformed argument (key, range, size, limit) is an error without effect.
type Store interface {
	// Put stores body under key, replacing what is there, if cond holds.
	//
	// Ownership: nobody modifies body from now on, whatever Put returns: the store may
	// keep it, or still be sending it.
	// Durability: when Put returns nil, the object survives whatever the store
	// survives.
	// Concurrency: any; conditions are checked and the object is replaced in one step.
	// Errors: ErrPrecondition if cond does not hold (with IfMatch also if there is no
	// object); ErrConflict if the store gave way to a concurrent write; both without
	// effect, as is ErrUnavailable. ErrUnknown if the object may be stored, now or later.
	// Retry: with IfAbsent or IfMatch, with the same bytes, after any of IsRetryable.
	// After ErrUnknown or ErrConflict a retry's ErrPrecondition may be the doing of an
	// earlier attempt: Get and compare all bytes. After ErrUnknown Get first and put
	// again only what is not there: a store that refuses a large body before it has
	// read it may cut the connection, which is ErrUnknown each time.
	Put(ctx context.Context, key string, body []byte, cond Condition) (Version, error)

	// Get reads an object, or a range of it.
	//
	// Ownership: Object.Data may be shared, and must not be modified.
	// Durability: what is returned was durable.
	// Concurrency: any; the bytes are of one state of the object.
	// Errors: ErrNotFound; ErrRange if r begins at or beyond the end; ErrDamaged if
	// the bytes that arrived are not those that were stored, where the store can tell.
	// Retry: after any of IsRetryable. Digests are the caller's to check.
	Get(ctx context.Context, key string, r Range) (Object, error)

	// Delete removes keys, at most DeleteKeysMax. A key without an object counts as
	// removed.
	//
	// Ownership: keys is not kept.
	// Durability: when Delete returns nil, all are gone for good.
	// Concurrency: any; keys are removed one by one in no order, so a caller that
	// needs an order makes several calls.
	// Errors: *DeleteError if some are not removed, or may not be: all others are.
	// Any other error: with ErrUnknown each key may be gone, now or later, else none is.
	// Retry: always, for keys that are not used again.
	Delete(ctx context.Context, keys []string) error

	// List returns objects whose keys begin with prefix and are greater than after,
	// at most limit of them (1 to ListLimitMax). An empty after begins at the start.
	//
	// Ownership: the page is the caller's.
	// Durability: what is listed was durable.
	// Concurrency: any; a page is of one state of the store, two pages are of two.
	// An object that is there from before the first page to after the last is in
	// exactly one page.
	// Errors: only those of every method.
	// Retry: always.
	List(ctx context.Context, prefix, after string, limit int) (Page, error)
}
