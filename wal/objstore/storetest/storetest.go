// Package storetest is the suite that every objstore.Store must pass, so that what the
// simulator shows on one store holds on the others.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
)

// Run tests the stores that open makes; each must be empty.
func Run(t *testing.T, open func(t *testing.T) objstore.Store) {
	t.Helper()
	cases := []struct {
		name string
		test func(t *testing.T, s objstore.Store)
	}{
		{"put and get", testPutGet},
		{"missing objects", testMissing},
		{"put if absent", testIfAbsent},
		{"put if match", testIfMatch},
		{"versions", testVersions},
		{"ranges", testRanges},
		{"big object", testBig},
		{"keys", testKeys},
		{"arguments", testArguments},
		{"ended context", testEndedContext},
		{"answers stand alone", testAliasing},
		{"delete", testDelete},
		{"list order", testListOrder},
		{"list pages", testListPages},
		{"list while it changes", testListChanging},
		{"one winner of put if absent", testRaceAbsent},
		{"no lost update", testRaceCounter},
		{"overwrite is atomic", testRaceOverwrite},
		{"delete against put if absent", testRaceDelete},
		{"same as memory", testAgainstMemory},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// put stores an object and fails the test on an error.
func put(t *testing.T, s objstore.Store, key, body string, cond objstore.Condition) objstore.Version {
	t.Helper()
	v, err := s.Put(t.Context(), key, []byte(body), cond)
	if err != nil {
		t.Fatalf("put %s %s: %v", key, cond, err)
	}
	if v == "" {
		t.Fatalf("put %s %s: no version", key, cond)
	}
	return v
}

// get reads a whole object and fails the test on an error.
func get(t *testing.T, s objstore.Store, key string) objstore.Object {
	t.Helper()
	o, err := s.Get(t.Context(), key, objstore.Range{})
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	if o.Size != int64(len(o.Data)) || o.Version == "" {
		t.Fatalf("get %s: size %d, %d bytes, version %q", key, o.Size, len(o.Data), o.Version)
	}
	return o
}

// is fails the test unless err wraps want.
func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// random gives n bytes that look like nothing.
func random(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // never fails
	return b
}

func testPutGet(t *testing.T, s objstore.Store) {
	bodies := map[string]string{
		"empty": "", "text": "hello", "zeros": string(make([]byte, 60)), "dir/deep/er/binary": string(random(1, 70_000)),
		"newlines": "\r\n\r\n0\r\n\r\n", // would end a chunked body, if a store kept framing
	}
	for key, body := range bodies {
		put(t, s, key, body, objstore.Condition{})
	}
	for key, body := range bodies {
		if o := get(t, s, key); string(o.Data) != body {
			t.Errorf("%s: %d bytes came back for %d, or others", key, len(o.Data), len(body))
		}
	}
	put(t, s, "text", "longer than before", objstore.Condition{})
	put(t, s, "dir/deep/er/binary", "shorter", objstore.Condition{})
	for key, want := range map[string]string{"text": "longer than before", "dir/deep/er/binary": "shorter"} {
		if o := get(t, s, key); string(o.Data) != want {
			t.Errorf("%s after overwriting: %.40q, want %q", key, o.Data, want)
		}
	}
}

func testMissing(t *testing.T, s objstore.Store) {
	put(t, s, "a/b", "x", objstore.Condition{})
	for _, key := range []string{"b", "a/c", "a/bb", "A/b"} {
		_, err := s.Get(t.Context(), key, objstore.Range{})
		is(t, "get "+key, err, objstore.ErrNotFound)
		_, err = s.Get(t.Context(), key, objstore.Range{Start: 0, End: 4})
		is(t, "get range of "+key, err, objstore.ErrNotFound)
	}
	page, err := s.List(t.Context(), "c", "", 10)
	if err != nil || len(page.Objects) != 0 || page.More {
		t.Errorf("list of nothing: %+v, %v", page, err)
	}
	if err := remove(t, s, []string{"never/was"}); err != nil {
		t.Errorf("delete of a missing key: %v", err)
	}
}

func testIfAbsent(t *testing.T, s objstore.Store) {
	put(t, s, "k", "first", objstore.IfAbsent())
	for _, body := range []string{"second", "first", ""} {
		_, err := s.Put(t.Context(), "k", []byte(body), objstore.IfAbsent())
		is(t, "put if absent over an object", err, objstore.ErrPrecondition)
	}
	if o := get(t, s, "k"); string(o.Data) != "first" {
		t.Errorf("a failed put left %q", o.Data)
	}
	put(t, s, "empty", "", objstore.IfAbsent())
	_, err := s.Put(t.Context(), "empty", []byte("x"), objstore.IfAbsent())
	is(t, "put if absent over an empty object", err, objstore.ErrPrecondition)
	if err := remove(t, s, []string{"k"}); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", "third", objstore.IfAbsent())
}

func testIfMatch(t *testing.T, s objstore.Store) {
	v1 := put(t, s, "k", "one", objstore.IfAbsent())
	v2 := put(t, s, "k", "two", objstore.IfMatch(v1))
	_, err := s.Put(t.Context(), "k", []byte("three"), objstore.IfMatch(v1))
	is(t, "put if match of an old version", err, objstore.ErrPrecondition)
	other := put(t, s, "other", "other", objstore.Condition{})
	_, err = s.Put(t.Context(), "k", []byte("three"), objstore.IfMatch(other))
	is(t, "put if match of another key's version", err, objstore.ErrPrecondition)
	if o := get(t, s, "k"); string(o.Data) != "two" || o.Version != v2 {
		t.Errorf("failed puts left %q version %s, want %s", o.Data, o.Version, v2)
	}
	_, err = s.Put(t.Context(), "missing", []byte("x"), objstore.IfMatch(v1))
	is(t, "put if match without an object", err, objstore.ErrPrecondition)
	_, err = s.Get(t.Context(), "missing", objstore.Range{})
	is(t, "get after that", err, objstore.ErrNotFound)
	v3 := put(t, s, "k", "three", objstore.Condition{})
	_, err = s.Put(t.Context(), "k", []byte("four"), objstore.IfMatch(v2))
	is(t, "put if match after an unconditional one", err, objstore.ErrPrecondition)
	put(t, s, "k", "four", objstore.IfMatch(v3))
	if err := remove(t, s, []string{"k"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Put(t.Context(), "k", []byte("five"), objstore.IfMatch(v3))
	is(t, "put if match of a deleted object", err, objstore.ErrPrecondition)
}

func testVersions(t *testing.T, s objstore.Store) {
	seen := map[objstore.Version]string{}
	for i := range 20 {
		body := fmt.Sprint("state ", i)
		v := put(t, s, "k", body, objstore.Condition{})
		if old, ok := seen[v]; ok {
			t.Fatalf("version %s is of %q and of %q", v, old, body)
		}
		seen[v] = body
		ranged, err := s.Get(t.Context(), "k", objstore.Range{Start: 2, End: 4})
		if err != nil {
			t.Fatal(err)
		}
		page, err := s.List(t.Context(), "k", "", 1)
		if err != nil || len(page.Objects) != 1 {
			t.Fatalf("list: %+v, %v", page, err)
		}
		for from, got := range map[string]objstore.Version{
			"get": get(t, s, "k").Version, "get of a range": ranged.Version, "list": page.Objects[0].Version,
		} {
			if got != v {
				t.Errorf("version by %s: %s, by put: %s", from, got, v)
			}
		}
	}
}

func testRanges(t *testing.T, s objstore.Store) {
	body := random(2, 100_000)
	put(t, s, "k", string(body), objstore.Condition{})
	put(t, s, "empty", "", objstore.Condition{})
	size := int64(len(body))
	for _, r := range []objstore.Range{{Start: 0, End: 1}, {Start: 0, End: 10}, {Start: 5, End: 6}, {Start: 4095, End: 8193}, {Start: size - 60, End: size}, {Start: size - 1, End: size + 1}, {Start: 0, End: size}, {Start: 1, End: size * 2}, {Start: 0, End: 1 << 40}} {
		o, err := s.Get(t.Context(), "k", r)
		if err != nil {
			t.Errorf("get [%d, %d): %v", r.Start, r.End, err)
			continue
		}
		if want := body[r.Start:min(r.End, size)]; !bytes.Equal(o.Data, want) || o.Size != size {
			t.Errorf("get [%d, %d): %d bytes of %d, want %d of %d", r.Start, r.End, len(o.Data), o.Size, len(want), size)
		}
	}
	for _, r := range []objstore.Range{{Start: size, End: size + 1}, {Start: size + 100, End: size + 200}} {
		_, err := s.Get(t.Context(), "k", r)
		is(t, fmt.Sprintf("get [%d, %d)", r.Start, r.End), err, objstore.ErrRange)
	}
	_, err := s.Get(t.Context(), "empty", objstore.Range{Start: 0, End: 10})
	is(t, "range of an empty object", err, objstore.ErrRange)
}

func testBig(t *testing.T, s objstore.Store) {
	const size = 20 << 20
	body := random(3, size)
	v := put(t, s, "big", string(body), objstore.IfAbsent())
	if o := get(t, s, "big"); !bytes.Equal(o.Data, body) || o.Version != v {
		t.Errorf("%d bytes came back, or others; version %s, want %s", len(o.Data), o.Version, v)
	}
	o, err := s.Get(t.Context(), "big", objstore.Range{Start: size - 4096, End: size})
	if err != nil || !bytes.Equal(o.Data, body[size-4096:]) {
		t.Errorf("its end: %d bytes, %v", len(o.Data), err)
	}
	_, err = putSettled(t.Context(), s, "big", random(4, size), objstore.IfAbsent())
	is(t, "put another", err, objstore.ErrPrecondition)
	if o := get(t, s, "big"); o.Version != v {
		t.Errorf("version is %s after that, want %s", o.Version, v)
	}
}

func testEndedContext(t *testing.T, s objstore.Store) {
	v := put(t, s, "k", "before", objstore.Condition{})
	cause := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := s.Put(ctx, "k", []byte("after"), objstore.Condition{})
	is(t, "put", err, cause)
	_, err = s.Get(ctx, "k", objstore.Range{})
	is(t, "get", err, cause)
	is(t, "delete", s.Delete(ctx, []string{"k"}), cause)
	_, err = s.List(ctx, "", "", 1)
	is(t, "list", err, cause)
	if o := get(t, s, "k"); o.Version != v {
		t.Errorf("a request that never began left %q", o.Data)
	}
}

func testAliasing(t *testing.T, s objstore.Store) {
	put(t, s, "k", "0123456789", objstore.Condition{})
	o, err := s.Get(t.Context(), "k", objstore.Range{Start: 2, End: 5})
	if err != nil {
		t.Fatal(err)
	}
	_ = append(o.Data, "xyz"...)
	put(t, s, "k", "overwritten", objstore.Condition{})
	if string(o.Data) != "234" {
		t.Errorf("an answer changed to %q with the object", o.Data)
	}
	keys := []string{"k"}
	if err := remove(t, s, keys); err != nil || keys[0] != "k" {
		t.Errorf("delete: %v, keys %v", err, keys)
	}
	put(t, s, "k", "0123456789", objstore.Condition{})
	if o := get(t, s, "k"); string(o.Data) != "0123456789" {
		t.Errorf("appending to an answer changed the object to %q", o.Data)
	}
}
