package setting_test

import (
	"testing"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/setting"
)

func newValues(t *testing.T) *setting.Values {
	t.Helper()
	v, err := setting.NewValues(nil, map[string]string{"application_name": "test"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSetNormalises(t *testing.T) {
	for _, c := range []struct {
		name, value, want string
		code              codes.Code
	}{
		{name: "statement_timeout", value: "1500", want: "1500ms"},
		{name: "statement_timeout", value: "77s", want: "77s"},
		{name: "statement_timeout", value: "2 min", want: "2min"},
		{name: "statement_timeout", value: "0", want: "0"},
		{name: "statement_timeout", value: "-1", code: codes.InvalidParameterValue},
		{name: "statement_timeout", value: "5 parsecs", code: codes.InvalidParameterValue},
		{name: "datestyle", value: "German", want: "German, DMY"},
		{name: "DateStyle", value: "iso, dmy", want: "ISO, DMY"},
		{name: "datestyle", value: "nonsense", code: codes.InvalidParameterValue},
		{name: "client_encoding", value: "'utf-8'", want: "UTF8"},
		{name: "client_encoding", value: "LATIN1", code: codes.FeatureNotSupported},
		{name: "client_encoding", value: "klingon", code: codes.InvalidParameterValue},
		{name: "extra_float_digits", value: "3", want: "3"},
		{name: "extra_float_digits", value: "4", code: codes.InvalidParameterValue},
		{name: "jit", value: "t", want: "on"},
		{name: "jit", value: "o", code: codes.InvalidParameterValue},
		{name: "bytea_output", value: "HEX", want: "hex"},
		{name: "timezone", value: "europe/paris", want: "Europe/Paris"},
		{name: "timezone", value: "Mars/Base", code: codes.InvalidParameterValue},
		{name: "timezone", value: "-7", want: "Etc/GMT+7"},
		{name: "server_version", value: "16", code: codes.CantChangeRuntimeParam},
		{name: "no_such", value: "1", code: codes.UndefinedObject},
		{name: "my.own", value: "x", want: "x"},
		{name: "skippr.unknown", value: "x", code: codes.UndefinedObject},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			v := newValues(t)
			err := v.Set(c.name, c.value, false)
			if c.code != "" {
				e, ok := pgerr.As(err)
				if !ok || e.Code != c.code {
					t.Fatalf("got %v, want %s", err, c.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := v.Get(c.name); got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A rolled back transaction takes its settings with it, a committed one only the
// local ones; savepoints do the same inside.
func TestTransactions(t *testing.T) {
	v := newValues(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) {
		t.Helper()
		if got, _ := v.Get("application_name"); got != want {
			t.Fatalf("application_name is %q, want %q", got, want)
		}
	}
	v.Begin()
	must(v.Set("application_name", "a", false))
	v.Rollback()
	is("test")
	v.Begin()
	must(v.Set("application_name", "a", false))
	must(v.Set("application_name", "b", true))
	is("b")
	v.Commit()
	is("a")
	v.Begin()
	n := v.Mark()
	must(v.Set("application_name", "c", false))
	v.RollbackTo(n)
	is("a")
	must(v.Set("application_name", "d", false))
	v.Release(n)
	v.Commit()
	is("d")
	must(v.Reset("application_name"))
	is("test")
}

func TestChangesReportOnce(t *testing.T) {
	v := newValues(t)
	if got := v.Reported()["application_name"]; got != "test" {
		t.Fatalf("reported %q at start", got)
	}
	if err := v.Set("application_name", "x", false); err != nil {
		t.Fatal(err)
	}
	c := v.Changes()
	if len(c) != 1 || c[0].Name != "application_name" || c[0].Value != "x" {
		t.Fatalf("changes %v", c)
	}
	if c := v.Changes(); len(c) != 0 {
		t.Fatalf("told twice: %v", c)
	}
}

func TestDuration(t *testing.T) {
	for shown, want := range map[string]time.Duration{
		"0": 0, "1500ms": 1500 * time.Millisecond, "77s": 77 * time.Second, "2min": 2 * time.Minute, "1d": 24 * time.Hour,
	} {
		if got := setting.Duration(shown); got != want {
			t.Errorf("%s is %v, want %v", shown, got, want)
		}
	}
}
