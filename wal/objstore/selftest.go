package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// SelfTest asks a store whether it honours conditions, which some that speak S3
// accept and ignore, and reads its own writes. It wraps ErrUnsuitable if not; any
// other error says that the answer is not known. It leaves nothing under key, which
// must never have been used before and takes six small writes.
func SelfTest(ctx context.Context, s Store, key string) error {
	t := &selfTest{ctx: ctx, store: s, key: key}
	t.run()
	if err := s.Delete(context.WithoutCancel(ctx), []string{key}); err != nil && t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return fmt.Errorf("self test of the object store at %s: %w", key, t.err)
	}
	return nil
}

// selfTest latches its first error.
type selfTest struct {
	ctx   context.Context
	store Store
	key   string
	err   error
}

func (t *selfTest) run() {
	one := t.put("one", IfAbsent(), true, "put if absent of a new key")
	t.put("two", IfAbsent(), false, "put if absent of an existing key")
	t.holds("one", one)
	two := t.put("three", IfMatch(one), true, "put if match of the current version")
	t.put("four", IfMatch(one), false, "put if match of an old version")
	t.holds("three", two)
	if t.err == nil {
		t.err = t.store.Delete(t.ctx, []string{t.key})
	}
	t.put("five", IfMatch(two), false, "put if match of a deleted object")
	if t.err != nil {
		return
	}
	if _, err := t.store.Get(t.ctx, t.key, Range{}); err == nil {
		t.unsuitable("a deleted object is still there")
	} else if !errors.Is(err, ErrNotFound) {
		t.err = err
	}
}

// put expects the condition to hold, or not to.
func (t *selfTest) put(body string, cond Condition, holds bool, what string) Version {
	if t.err != nil {
		return ""
	}
	v, err := t.store.Put(t.ctx, t.key, []byte(body), cond)
	switch refused := errors.Is(err, ErrPrecondition); {
	case err != nil && !refused:
		t.err = err
	case refused && holds:
		t.unsuitable(what + " is refused")
	case err == nil && !holds:
		t.unsuitable(what + " succeeds")
	case holds && v == "":
		t.unsuitable(what + " gives no version")
	}
	return v
}

// holds expects the object to be in a state, as seen by each way to look at it.
func (t *selfTest) holds(body string, v Version) {
	if t.err != nil {
		return
	}
	o, err := t.store.Get(t.ctx, t.key, Range{})
	if err != nil {
		t.err = err
		return
	}
	part, err := t.store.Get(t.ctx, t.key, Range{Start: 1, End: 3})
	if err != nil {
		t.err = err
		return
	}
	page, err := t.store.List(t.ctx, t.key, "", 2)
	switch {
	case err != nil:
		t.err = err
	case string(o.Data) != body || o.Version != v:
		t.unsuitable(fmt.Sprintf("object is %.40q version %s after writing %q version %s", o.Data, o.Version, body, v))
	case !bytes.Equal(part.Data, o.Data[1:3]) || part.Size != int64(len(body)) || part.Version != v:
		t.unsuitable(fmt.Sprintf("bytes 1 and 2 of %q are %.40q", body, part.Data))
	case len(page.Objects) != 1 || page.More || page.Objects[0] != Info{Key: t.key, Size: int64(len(body)), Version: v}:
		t.unsuitable(fmt.Sprintf("list shows %v", page.Objects))
	}
}

func (t *selfTest) unsuitable(what string) {
	t.err = fmt.Errorf("%w: %s", ErrUnsuitable, what)
}
