package setting

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// settingsTSV is PostgreSQL's pg_settings: name, kind, unit, context, default, bounds, values of
// an enum, category and descriptions. Written by planner/syscat/gen.
//
//go:embed data/settings.tsv
var settingsTSV string

// inherited are PostgreSQL's settings, by lower-case name.
var inherited = sync.OnceValue(func() map[string]*Setting {
	out := map[string]*Setting{}
	for line := range strings.Lines(settingsTSV) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i := range f {
			if f[i] == `\N` {
				f[i] = ""
			}
			f[i] = strings.ReplaceAll(f[i], `\\`, `\`)
		}
		const fields = 11
		if len(f) != fields {
			continue // a test counts them
		}
		s := &Setting{
			Name: f[0], Kind: Kind(f[1]), Unit: f[2], Context: Context(f[3]), LowText: f[5], HighText: f[6],
			Category: f[8], Description: f[9], Extra: f[10], inherited: true,
		}
		if f[7] != "" {
			s.Values = strings.Split(f[7], ",")
		}
		s.Min, _ = strconv.ParseInt(f[5], 10, 64) // of an integer
		s.Max, _ = strconv.ParseInt(f[6], 10, 64) // of an integer
		s.Low, _ = strconv.ParseFloat(f[5], 64)   // of a real
		s.High, _ = strconv.ParseFloat(f[6], 64)  // of a real
		s.Default = s.show(f[4])
		out[strings.ToLower(s.Name)] = s
	}
	return out
})

// tunable are the beginnings of categories whose settings change how PostgreSQL gets its answers
// and not which: they take every value that they take there.
var tunable = []string{"Query Tuning /", "Resource Usage /", "Statistics /", "Write-Ahead Log /", "Autovacuum"}

// alsoTunable are such settings of other categories, and those that are done here.
var alsoTunable = map[string]bool{
	"client_connection_check_interval": true, "commit_delay": true, "default_toast_compression": true, "gin_fuzzy_search_limit": true,
	"gin_pending_list_limit": true, "log_duration": true, "log_min_duration_statement": true, "log_min_error_statement": true,
	"log_statement": true, "restrict_nonsystem_relation_kind": true, "stats_fetch_consistency": true, "tcp_keepalives_count": true, "tcp_keepalives_idle": true,
	"tcp_keepalives_interval": true, "tcp_user_timeout": true, "update_process_title": true, "log_connections": true, "log_disconnections": true,
	"vacuum_failsafe_age": true, "vacuum_freeze_min_age": true, "vacuum_freeze_table_age": true, "vacuum_multixact_failsafe_age": true,
	"vacuum_multixact_freeze_min_age": true, "vacuum_multixact_freeze_table_age": true,
}

// fixed reports whether a setting has no other value than its default here.
func (s *Setting) fixed() bool {
	if !s.inherited || alsoTunable[s.Name] {
		return false
	}
	for _, c := range tunable {
		if strings.HasPrefix(s.Category, c) {
			return false
		}
	}
	return true
}

// inherit gives a setting of ours what PostgreSQL says of it.
func (s *Setting) inherit(from *Setting) {
	s.Category, s.Description, s.Extra, s.Unit, s.LowText, s.HighText = from.Category, from.Description, from.Extra, from.Unit, from.LowText, from.HighText
	s.Listed = from.Values
	if s.Context == "" || s.Context == Internal {
		s.Context = from.Context
	}
}
