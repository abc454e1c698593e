package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
)

// listAll pages through the keys with a prefix.
func listAll(t *testing.T, s objstore.Store, prefix string, limit int) []string {
	t.Helper()
	var keys []string
	after := ""
	for {
		page, err := s.List(t.Context(), prefix, after, limit)
		if err != nil {
			t.Fatalf("list %q after %q: %v", prefix, after, err)
		}
		if len(page.Objects) > limit || page.More && len(page.Objects) == 0 {
			t.Fatalf("list %q after %q, limit %d: %d objects, more: %t", prefix, after, limit, len(page.Objects), page.More)
		}
		for _, o := range page.Objects {
			if o.Key <= after || !strings.HasPrefix(o.Key, prefix) {
				t.Fatalf("list %q after %q gave %q", prefix, after, o.Key)
			}
			after = o.Key
			keys = append(keys, o.Key)
		}
		if !page.More {
			return keys
		}
	}
}

func testListOrder(t *testing.T, s objstore.Store) {
	keys := []string{"o-", "o-a", "o.a", "o/-", "o/0", "o/00", "o/A", "o/a", "o/a-", "o/a-b", "o/a.b", "o/a0", "o/aa/a", "o/aa=", "o/b/c/d", "o/b-", "o/z", "o0", "oa", "p/a", "P/a"}
	slices.Sort(keys)
	for i := range keys {
		put(t, s, keys[(i*8)%len(keys)], strings.Repeat("x", (i*8)%len(keys)), objstore.IfAbsent()) // 8 and 21 are coprime
	}
	afters := append([]string{"", "a", "o", "o/", "o/a/", "o/aa", "o/b", "o/zz", "q", "o/b/c/d/e"}, keys...)
	for _, prefix := range []string{"", "o", "o/", "o/a", "o/a-", "o/aa/", "o/b/c/d", "p", "p/", "P/", "q", "o/a/"} {
		for _, after := range afters {
			var want []string
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) && key > after {
					want = append(want, key)
				}
			}
			page, err := s.List(t.Context(), prefix, after, 1000)
			if err != nil {
				t.Fatalf("list %q after %q: %v", prefix, after, err)
			}
			var got []string
			for _, o := range page.Objects {
				got = append(got, o.Key)
				if i, _ := slices.BinarySearch(keys, o.Key); o.Size != int64(i) {
					t.Errorf("list: %s has %d bytes, want %d", o.Key, o.Size, i)
				}
			}
			if !slices.Equal(got, want) || page.More {
				t.Errorf("list %q after %q: %q, more %t, want %q", prefix, after, got, page.More, want)
			}
		}
	}
}

func testListPages(t *testing.T, s objstore.Store) {
	var keys []string
	for i := range 230 {
		for _, suffix := range []string{"", ".commit"} {
			key := fmt.Sprintf("p/s/%016x.seg%s", i*7, suffix)
			put(t, s, key, "x", objstore.IfAbsent())
			keys = append(keys, key)
		}
	}
	put(t, s, "p/fence", "x", objstore.IfAbsent())
	put(t, s, "p/t", "x", objstore.IfAbsent())
	for _, limit := range []int{1, 2, 7, 100, 459, 460, 461, 1000} {
		if limit == 1 && testing.Short() {
			continue
		}
		if got := listAll(t, s, "p/s/", limit); !slices.Equal(got, keys) {
			t.Errorf("pages of %d: %d keys, want %d", limit, len(got), len(keys))
		}
	}
	page, err := s.List(t.Context(), "p/s/", keys[len(keys)-2], 1)
	if err != nil || len(page.Objects) != 1 || page.Objects[0].Key != keys[len(keys)-1] {
		t.Errorf("the last page: %+v, %v", page, err)
	}
}

// An object that is there all the time is listed once, whatever is added and removed
// between the pages.
func testListChanging(t *testing.T, s objstore.Store) {
	var stay []string
	for i := range 40 {
		key := fmt.Sprintf("k/%03d", i*10)
		put(t, s, key, "x", objstore.IfAbsent())
		if i%4 != 1 {
			stay = append(stay, key)
		}
	}
	var got []string
	after := ""
	for n := 0; ; n++ {
		page, err := s.List(t.Context(), "k/", after, 6)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			if slices.Contains(stay, o.Key) {
				got = append(got, o.Key)
			}
			after = o.Key
		}
		if !page.More {
			break
		}
		put(t, s, fmt.Sprintf("k/%03d", n*50+5), "new", objstore.Condition{})
		put(t, s, after, "changed", objstore.Condition{})
		if err := remove(t, s, []string{fmt.Sprintf("k/%03d", n*80+10), fmt.Sprintf("k/%03d", n*80+50)}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, stay) {
		t.Errorf("%q, want %q", got, stay)
	}
}
