package pgsql

import "testing"

// TestUserArrayLiteral: a literal of an array of enums is kept as PostgreSQL writes it, and has
// labels of the type only.
func TestUserArrayLiteral(t *testing.T) {
	mood := &UserType{Schema: "public", Name: "mood", Labels: []string{"sad", `happy, "very"`, "null", `a\b`, "größe", ""}}
	array := ArrayType(mood, 2)
	for text, want := range map[string]string{
		"{}": "{}", "{sad,NULL}": "{sad,NULL}", `{"sad", "null"}`: `{sad,"null"}`, `{"happy, \"very\"",größe}`: `{"happy, \"very\"",größe}`,
		`{"a\\b",""}`: `{"a\\b",""}`,
	} {
		if got, err := new(Env).userArrayLiteral(text, array); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"{nope}", "sad", "{sad"} {
		if got, err := new(Env).userArrayLiteral(text, array); err == nil {
			t.Errorf("%s: got %s, no error", text, got)
		}
	}
}

// TestOrderKey: the places of labels, those under which rows may have them still, and an error
// for one that is not known yet.
func TestOrderKey(t *testing.T) {
	own := &UserType{Labels: []string{"b", "a"}}
	if got, want := own.orderKey("x"), "list_position(['b', 'a'], x)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	foreign := &UserType{Schema: "s", Name: "m", Labels: []string{"b", "a"}, Former: map[string]string{"c": "a"}, Foreign: true}
	const place = "list_extract([1, 2, 2], list_position(['b', 'a', 'c'], x))"
	want := "CASE WHEN x IS NOT NULL THEN coalesce(nullif(" + place + ", 0), CAST(error('55000: the place of a label of enum s.m is not known yet: \"' || x || '\"') AS INTEGER)) END"
	if got := foreign.orderKey("x"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
