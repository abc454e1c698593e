package dump

import "testing"

func TestSettingValue(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"application_name", "it's, \\ odd", `E'it''s, \\ odd'`},
		{"search_path", `"$user", public`, `'$user', 'public'`},
		{"search_path", `"a ""b"", c",  Public,"d"`, `'a "b", c', 'public', 'd'`},
		{"search_path", "", "''"},
		{"search_path", `""`, "''"},
	} {
		if got := settingValue(c.name, c.value); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.name, c.value, got, c.want)
		}
	}
}
