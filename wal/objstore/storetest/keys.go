package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
)

func testKeys(t *testing.T, s objstore.Store) {
	element := strings.Repeat("e", 200)
	keys := []string{
		"a", "A", "0", "-", "_", "=", "a.b", "a..b", "a.", "a=b", "a-b_c.d=e", element, "x/" + element + "/" + element,
		"tenant/pipe/s/0000000000000001.seg.commit", "tenant/pipe/s/0000000000000001-00000001.seg",
		"100", "1e2", "con", "null", "tenant/fence", "tenant2/fence", "tenant-2/fence",
		"1/2/3/4/5/6/7/8/9/10/11/12", "m/" + strings.Repeat("d/", 154) + "z",
	}
	for _, key := range keys {
		put(t, s, key, "of "+key, objstore.IfAbsent())
	}
	for _, key := range keys {
		if o := get(t, s, key); string(o.Data) != "of "+key {
			t.Errorf("%.40s: %.40q", key, o.Data)
		}
	}
	slices.Sort(keys)
	if got := listAll(t, s, "", 7); !slices.Equal(got, keys) {
		t.Errorf("listed %d keys %.200q, want %d", len(got), got, len(keys))
	}
}

func testArguments(t *testing.T, s objstore.Store) {
	keys := []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", ".a", "a/.b", "a b", "a%2fb", "ä", "a\x00", "a\n", "a*", "a:b", "a\\b", "a+b", strings.Repeat("e", 201), strings.Repeat("d/", 256) + "z"}
	for _, key := range keys {
		_, err := s.Put(t.Context(), key, nil, objstore.Condition{})
		is(t, fmt.Sprintf("put %q", key), err, objstore.ErrKey)
		_, err = s.Get(t.Context(), key, objstore.Range{})
		is(t, fmt.Sprintf("get %q", key), err, objstore.ErrKey)
		is(t, fmt.Sprintf("delete %q", key), s.Delete(t.Context(), []string{"fine", key}), objstore.ErrKey)
	}
	for _, prefix := range []string{"a b", "ä", "a%"} {
		_, err := s.List(t.Context(), prefix, "", 1)
		is(t, fmt.Sprintf("list %q", prefix), err, objstore.ErrKey)
		_, err = s.List(t.Context(), "", prefix, 1)
		is(t, fmt.Sprintf("list after %q", prefix), err, objstore.ErrKey)
	}
	put(t, s, "fine", "x", objstore.Condition{})
	for _, r := range []objstore.Range{{Start: -1, End: 2}, {Start: 2, End: 2}, {Start: 3, End: 2}, {Start: 0, End: -1}} {
		if _, err := s.Get(t.Context(), "fine", r); err == nil || errors.Is(err, objstore.ErrRange) {
			t.Errorf("get [%d, %d): %v", r.Start, r.End, err)
		}
	}
	for _, limit := range []int{-1, 0, objstore.ListLimitMax + 1} {
		if _, err := s.List(t.Context(), "", "", limit); err == nil {
			t.Errorf("list of %d keys is not refused", limit)
		}
	}
	many := slices.Repeat([]string{"fine"}, objstore.DeleteKeysMax+1)
	if err := s.Delete(t.Context(), many); err == nil {
		t.Errorf("delete of %d keys is not refused", len(many))
	}
	get(t, s, "fine")
}

// remove deletes keys, again when a store cannot tell what became of them: a real one may be
// cut off in the midst of its answer. A delete may be repeated.
func remove(t *testing.T, s objstore.Store, keys []string) (err error) {
	t.Helper()
	for range 5 {
		if err = s.Delete(t.Context(), keys); !errors.Is(err, objstore.ErrUnknown) {
			return err
		}
		t.Logf("delete of %d keys: %v", len(keys), err)
	}
	return err
}

func testDelete(t *testing.T, s objstore.Store) {
	if err := s.Delete(t.Context(), nil); err != nil {
		t.Errorf("delete of nothing: %v", err)
	}
	var keys, left []string
	for i := range 300 {
		key := fmt.Sprintf("s/%04d", i)
		put(t, s, key, key, objstore.IfAbsent())
		if i%3 == 0 {
			left = append(left, key)
		} else {
			keys = append(keys, key)
		}
	}
	asked := append(slices.Clone(keys), "s/never", keys[0], "other/never")
	if err := remove(t, s, asked); err != nil {
		t.Fatalf("delete of %d keys, some missing, one twice: %v", len(asked), err)
	}
	if got := listAll(t, s, "s/", 1000); !slices.Equal(got, left) {
		t.Errorf("%d keys are left, want %d", len(got), len(left))
	}
	for _, key := range keys[:5] {
		_, err := s.Get(t.Context(), key, objstore.Range{})
		is(t, "get deleted "+key, err, objstore.ErrNotFound)
	}
	for _, key := range left[:5] {
		get(t, s, key)
	}
	if err := remove(t, s, asked); err != nil {
		t.Errorf("delete again: %v", err)
	}
	// As many as there may be, and no directory is left that would hinder an object.
	most := slices.Clone(left)
	for i := len(most); i < objstore.DeleteKeysMax; i++ {
		most = append(most, fmt.Sprintf("s/none-%d", i))
	}
	if err := remove(t, s, most); err != nil {
		t.Fatalf("delete of %d keys: %v", len(most), err)
	}
	put(t, s, "s", "was a directory", objstore.IfAbsent())
}
