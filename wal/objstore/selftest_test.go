package objstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
)

// careless is a store that does not do what it is asked, in the ways of real ones.
type careless struct {
	objstore.Store
	noAbsent, noMatch, noVersion, noRange, staleList, keepsDeleted bool
	err                                                            error
}

func (c *careless) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Version, error) {
	if c.err != nil {
		return "", c.err
	}
	if cond.Absent() && c.noAbsent || cond.Version() != "" && c.noMatch {
		cond = objstore.Condition{}
	}
	v, err := c.Store.Put(ctx, key, body, cond)
	if c.noVersion {
		v = ""
	}
	return v, err
}

func (c *careless) Get(ctx context.Context, key string, r objstore.Range) (objstore.Object, error) {
	if c.noRange {
		r = objstore.Range{}
	}
	return c.Store.Get(ctx, key, r)
}

func (c *careless) List(ctx context.Context, prefix, after string, limit int) (objstore.Page, error) {
	if c.staleList {
		return objstore.Page{}, nil
	}
	return c.Store.List(ctx, prefix, after, limit)
}

func (c *careless) Delete(ctx context.Context, keys []string) error {
	if c.keepsDeleted {
		return nil
	}
	return c.Store.Delete(ctx, keys)
}

func TestSelfTest(t *testing.T) {
	down := errors.New("nobody answers")
	for _, c := range []struct {
		name  string
		store careless
		is    error
		says  string
	}{
		{"good", careless{}, nil, ""},
		{"ignores if-absent", careless{noAbsent: true}, objstore.ErrUnsuitable, "put if absent of an existing key succeeds"},
		{"ignores if-match", careless{noMatch: true}, objstore.ErrUnsuitable, "put if match of an old version succeeds"},
		{"no versions", careless{noVersion: true}, objstore.ErrUnsuitable, "gives no version"},
		{"ignores ranges", careless{noRange: true}, objstore.ErrUnsuitable, "bytes 1 and 2"},
		{"lists late", careless{staleList: true}, objstore.ErrUnsuitable, "list shows"},
		{"does not delete", careless{keepsDeleted: true}, objstore.ErrUnsuitable, "deleted object"},
		{"does not answer", careless{err: down}, down, "self-test/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memstore.New()
			c.store.Store = m
			err := objstore.SelfTest(t.Context(), &c.store, "p/self-test/1")
			if !errors.Is(err, c.is) || c.is != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v that says %q", err, c.is, c.says)
			}
			if errors.Is(err, objstore.ErrUnsuitable) != (c.is == objstore.ErrUnsuitable) {
				t.Errorf("unsuitable: %v", err)
			}
			if m.Len() != 0 && !c.store.keepsDeleted {
				t.Errorf("%d objects are left", m.Len())
			}
		})
	}
}
