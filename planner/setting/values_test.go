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
		{name: "work_mem", value: "64MB", want: "64MB"},
		{name: "work_mem", value: "1.5MB", want: "1536kB"},
		{name: "work_mem", value: "63kB", code: codes.InvalidParameterValue},
		{name: "work_mem", value: "3TB", code: codes.InvalidParameterValue},
		{name: "work_mem", value: "1s", code: codes.InvalidParameterValue},
		{name: "effective_cache_size", value: "524288", want: "4GB"},
		{name: "random_page_cost", value: "1.10", want: "1.1"},
		{name: "random_page_cost", value: "-1", code: codes.InvalidParameterValue},
		{name: "vacuum_cost_delay", value: "1.5ms", want: "1500us"},
		{name: "log_min_duration_statement", value: "-1", want: "-1"},
		{name: "tcp_user_timeout", value: "1min", want: "1min"},
		{name: "enable_nestloop", value: "off", want: "off"},
		{name: "transform_null_equals", value: "off", want: "off"},
		{name: "transform_null_equals", value: "on", code: codes.FeatureNotSupported},
		{name: "session_replication_role", value: "Replica", want: "replica"},
		{name: "session_replication_role", value: "none", code: codes.InvalidParameterValue},
		{name: "log_parameter_max_length", value: "10", code: codes.InvalidParameterValue},
		{name: "max_connections", value: "7", code: codes.CantChangeRuntimeParam},
		{name: "autovacuum", value: "off", code: codes.CantChangeRuntimeParam},
		{name: "log_connections", value: "on", code: codes.CantChangeRuntimeParam},
		{name: "datestyle", value: "German", want: "German, DMY"},
		{name: "DateStyle", value: "iso, dmy", want: "ISO, DMY"},
		{name: "datestyle", value: "nonsense", code: codes.InvalidParameterValue},
		{name: "client_encoding", value: "'utf-8'", want: "UTF8"},
		{name: "client_encoding", value: "LATIN1", want: "LATIN1"},
		{name: "client_encoding", value: "iso-8859-2", want: "LATIN2"},
		{name: "client_encoding", value: "mule internal", code: codes.FeatureNotSupported},
		{name: "client_encoding", value: "UNICODE", want: "UNICODE"},
		{name: "client_encoding", value: "latin11", code: codes.InvalidParameterValue},
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

// Every setting's default is one that it takes, and is shown again as itself; what pg_settings has
// of it reads back as the same.
func TestDefaults(t *testing.T) {
	all := setting.All()
	if len(all) < 350 {
		t.Fatalf("%d settings", len(all))
	}
	v, err := setting.NewValues(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Context != setting.User && s.Context != setting.Superuser || s.Name == "role" || s.Name == "session_authorization" || s.Default == "" {
			continue
		}
		for _, value := range []string{s.Default, s.Raw(s.Default)} {
			if err := v.Set(s.Name, value, false); err != nil {
				t.Errorf("%s = %s: %v", s.Name, value, err)
			} else if got := v.Value(s.Name); got != s.Default {
				t.Errorf("%s = %s is shown as %s", s.Name, value, got)
			}
		}
	}
	if work, _ := setting.Lookup("WORK_MEM"); work.Raw("64MB") != "65536" || work.Raw(work.Default) != "4096" {
		t.Errorf("work_mem is %s and %s", work.Raw("64MB"), work.Raw(work.Default))
	}
}

// What others than superusers may not set, when a session begins neither; and where values are from.
func TestWhoMaySet(t *testing.T) {
	server := map[string]string{"is_superuser": "off", "log_statement": "ddl", "work_mem": "8MB"}
	if _, err := setting.NewValues(server, map[string]string{"ignore_system_indexes": "on"}); err == nil { // which is fixed here
		t.Error("a fixed setting was changed")
	}
	v, err := setting.NewValues(server, map[string]string{"statement_timeout": "5s"})
	if err != nil {
		t.Fatal(err)
	}
	v.From("user", map[string]string{"work_mem": ""})
	if _, err := setting.NewValues(server, map[string]string{"log_statement": "none"}); err == nil {
		t.Error("log_statement was set at the start")
	}
	for _, name := range []string{"log_statement", "log_duration", "log_min_duration_statement"} {
		if e, ok := pgerr.As(v.Set(name, "0", false)); !ok || e.Code != codes.InsufficientPrivilege {
			t.Errorf("%s: %v", name, e)
		}
		if e, ok := pgerr.As(v.Reset(name)); !ok || e.Code != codes.InsufficientPrivilege {
			t.Errorf("reset %s: %v", name, e)
		}
	}
	want := map[string]string{"log_statement": "configuration file", "work_mem": "user", "statement_timeout": "client", "lock_timeout": "session", "jit": "default"}
	if err := v.Set("lock_timeout", "1s", false); err != nil {
		t.Fatal(err)
	}
	for _, s := range v.All() {
		if w := want[s.Name]; w != "" && s.Source != w {
			t.Errorf("%s is from %s", s.Name, s.Source)
		}
	}
}
