package catalog

import "testing"

// TestCasts: a name that only begins as the type's is another one.
func TestCasts(t *testing.T) {
	for sql, want := range map[string]bool{
		"":                                 false,
		"m = 'sad'::public.mood":           true,
		"(a)::public.mood[] = b":           true,
		"CAST(a AS public.mood)":           true,
		"a::public.mood2 = 'x'":            false,
		"a::public.mood2 = b::public.mood": true,
		`a::public."mood" = b`:             false,
		"public.mood.a = 1":                false,
		"a::xpublic.mood":                  false,
	} {
		if got := casts(sql, "public.mood"); got != want {
			t.Errorf("%s: %t", sql, got)
		}
	}
}
