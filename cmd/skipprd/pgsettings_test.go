package main

import "testing"

func TestSessionSettings(t *testing.T) {
	got, err := sessionSettings(" log_min_duration_statement = 1500 ;log_connections=on;;search_path='a, b'")
	if err != nil || len(got) != 3 || got["log_min_duration_statement"] != "1500ms" || got["log_connections"] != "on" || got["search_path"] != "a, b" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"x", "=1", "nope=1", "statement_timeout=x", "shared_buffers=1GB", "transform_null_equals=on"} {
		if _, err := sessionSettings(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	c := newConfig()
	c.byName["max-connections"].value = "2"
	if s := c.pgSettings(true); s["superuser_reserved_connections"] != "1" || s["max_connections"] != "2" || s["port"] != "5432" || s["ssl"] != "on" {
		t.Errorf("%v", s)
	}
}
