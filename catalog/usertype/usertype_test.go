package usertype_test

import (
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/catalog/usertype"
)

// TestFollow: labels are followed by their numbers, and what rows may have still is remembered
// across several renames, until another label has that name.
func TestFollow(t *testing.T) {
	found := func(pairs ...any) *usertype.Found {
		f := &usertype.Found{Source: usertype.Source{Pipeline: 1, OID: 900, Schema: "public", Name: "mood"}}
		for i := 0; i < len(pairs); i += 2 {
			f.LabelOIDs, f.Labels = append(f.LabelOIDs, uint32(pairs[i].(int))), append(f.Labels, pairs[i+1].(string))
		}
		return f
	}
	now := &usertype.Type{ID: 7, Schema: "shop", Name: "mood"}
	step := func(what string, f *usertype.Found, labels []string, former map[string]string) {
		t.Helper()
		next, changed := now.Follow(f)
		if !changed {
			t.Fatalf("%s: nothing has changed", what)
		}
		if !reflect.DeepEqual(next.Labels, labels) || !reflect.DeepEqual(next.Source.Former, former) {
			t.Fatalf("%s: %v, formerly %v; want %v, %v", what, next.Labels, next.Source.Former, labels, former)
		}
		if _, changed := next.Follow(f); changed {
			t.Fatalf("%s: the same is a change", what)
		}
		now = next
	}
	step("first", found(1, "sad", 2, "ok"), []string{"sad", "ok"}, nil)
	step("added before", found(3, "bad", 1, "sad", 2, "ok"), []string{"bad", "sad", "ok"}, nil)
	step("renamed", found(3, "bad", 1, "blue", 2, "ok"), []string{"bad", "blue", "ok"}, map[string]string{"sad": "blue"})
	step("renamed again", found(3, "bad", 1, "low", 2, "ok"), []string{"bad", "low", "ok"}, map[string]string{"sad": "low", "blue": "low"})
	step("an old name is another's", found(3, "bad", 1, "low", 2, "sad"), []string{"bad", "low", "sad"}, map[string]string{"blue": "low", "ok": "sad"})
	left := now.Clone()
	src := *now.Source
	src.Pipeline, left.Source = 0, &src
	now = left // the pipeline goes; at another's source the same numbers are others
	step("another pipeline's", found(3, "mad", 1, "glad"), []string{"mad", "glad"}, nil)
	step("dropped and made anew", found(8, "x"), []string{"x"}, nil)
}

// TestIndex: a number means a type of one pipeline's source, or its arrays; what has no text for
// its binary form can be told by its own.
func TestIndex(t *testing.T) {
	enum := &usertype.Type{ID: 7, Source: &usertype.Source{Pipeline: 1, OID: 900, ArrayOID: 901, Textual: true}}
	opaque := &usertype.Type{ID: 8, Source: &usertype.Source{Pipeline: 2, OID: 900}}
	left := &usertype.Type{ID: 9, Source: &usertype.Source{OID: 900}}
	x := usertype.IndexOf([]*usertype.Type{enum, opaque, left, {ID: 10}})
	got := []uint32{x.Of(1, 900), x.Of(1, 901), x.Of(2, 900), x.Of(2, 901), x.Of(0, 900)}
	want := []uint32{1<<30 + 7, 1<<30 + 1<<29 + 7, 1<<30 + 1<<28 + 8, 0, 0}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
