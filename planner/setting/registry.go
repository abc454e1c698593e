package setting

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Kind is the type of a setting, as pg_settings.vartype says it.
type Kind string

// The kinds.
const (
	Bool   Kind = "bool"
	Int    Kind = "integer"
	Real   Kind = "real"
	String Kind = "string"
	Enum   Kind = "enum"
)

// Context says who may change a setting, as pg_settings.context says it.
type Context string

// The contexts.
const (
	User       Context = "user"
	Superuser  Context = "superuser"
	Internal   Context = "internal" // nobody
	Startup    Context = "backend"  // only the server, at the start of a session
	SuperStart Context = "superuser-backend"
	Sighup     Context = "sighup"     // only the server, at any time
	Postmaster Context = "postmaster" // only the server, when it starts
)

// Setting describes a setting. Immutable.
type Setting struct {
	Name        string
	Kind        Kind
	Default     string
	Description string
	Category    string
	Context     Context
	// Reported says that changes are told to the client as ParameterStatus.
	Reported bool
	// Unit is what a number is in: "ms", "s", "min", "B", "kB", "8kB", "MB", "" for none.
	Unit string
	// Min and Max bound an Int, Low and High a Real; the texts are as pg_settings has them.
	Min, Max          int64
	Low, High         float64
	LowText, HighText string
	// Values are those of an Enum; Listed, when not nil, those of them that pg_settings has.
	Values, Listed []string
	// Extra is what pg_settings says beside the Description.
	Extra string
	// Hidden says that SHOW ALL and pg_settings leave it out.
	Hidden bool
	// List says that SET takes several values.
	List bool
	// check normalises a value; nil: by Kind.
	check func(old, value string) (string, error)
	// inherited says that it is one of PostgreSQL's that has no meaning of its own here.
	inherited bool
}

const maxInt4 = 1<<31 - 1

var isolationLevels = []string{"serializable", "repeatable read", "read committed", "read uncommitted"}

// registry holds all settings, by name.
var registry = sync.OnceValue(func() map[string]*Setting {
	out := maps.Clone(inherited())
	for _, s := range slices.Concat(clientSettings(), formatSettings(), transactionSettings(), compatibilitySettings(),
		readSettings(), logSettings(), presetSettings()) {
		name := strings.ToLower(s.Name)
		switch from := out[name]; {
		case from != nil:
			s.inherit(from)
		case !strings.Contains(name, ".") && !strings.HasPrefix(name, "server_version"):
			s.Hidden = true
		}
		if s.Context == "" {
			s.Context = User
		}
		out[name] = &s
	}
	return out
})

func clientSettings() []Setting {
	const category = "Client Connection Defaults / Statement Behavior"
	return []Setting{
		{
			Name: "application_name", Kind: String, Reported: true, Category: "Reporting and Logging",
			Description: "Sets the application name to be reported in statistics and logs.", check: checkApplicationName,
		},
		{
			Name: "client_encoding", Kind: String, Default: "UTF8", Reported: true, Category: category,
			Description: "Sets the client's character set encoding.", check: checkEncoding,
		},
		{
			Name: "search_path", Kind: String, Default: `"$user", public`, List: true, Category: category,
			Description: "Sets the schema search order for names that are not schema-qualified.", check: checkSearchPath,
		},
		{
			Name: "statement_timeout", Kind: Int, Default: "0", Unit: "ms", Max: maxInt4, Category: category,
			Description: "Sets the maximum allowed duration of any statement.",
		},
		{
			Name: "lock_timeout", Kind: Int, Default: "0", Unit: "ms", Max: maxInt4, Category: category,
			Description: "Sets the maximum allowed duration of any wait for a lock.",
		},
		{ // which is checked at once here
			Name: "deadlock_timeout", Kind: Int, Default: "1s", Unit: "ms", Min: 1, Max: maxInt4, Category: category,
			Description: "Sets the time to wait on a lock before checking for deadlock.",
		},
		{
			Name: "idle_in_transaction_session_timeout", Kind: Int, Default: "0", Unit: "ms", Max: maxInt4, Category: category,
			Description: "Sets the maximum allowed idle time between queries, when in a transaction.",
		},
		{
			Name: "idle_session_timeout", Kind: Int, Default: "0", Unit: "ms", Max: maxInt4, Category: category,
			Description: "Sets the maximum allowed idle time between queries, when not in a transaction.",
		},
		{
			Name: "client_min_messages", Kind: Enum, Default: "notice",
			Values: []string{
				"debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning",
				"error",
			}, Category: category, Description: "Sets the message levels that are sent to the client.",
		},
		{
			Name: "session_authorization", Kind: String, Context: Startup, Reported: true, Category: category,
			Description: "Sets the current session's user name.",
		},
		{
			Name: "role", Kind: String, Default: "none", Category: category, Description: "Sets the current role.",
			check: checkRole,
		},
	}
}

func formatSettings() []Setting {
	const category = "Client Connection Defaults / Locale and Formatting"
	return []Setting{
		{
			Name: "DateStyle", Kind: String, Default: "ISO, MDY", Reported: true, List: true, Category: category,
			Description: "Sets the display format for date and time values.", check: checkDateStyle,
		},
		{
			Name: "IntervalStyle", Kind: Enum, Default: "postgres", Reported: true,
			Values: []string{
				"postgres", "postgres_verbose", "sql_standard",
				"iso_8601",
			}, Category: category, Description: "Sets the display format for interval values.",
		},
		{
			Name: "TimeZone", Kind: String, Default: "UTC", Reported: true, Category: category,
			Description: "Sets the time zone for displaying and interpreting time stamps.", check: checkTimeZone,
		},
		{
			Name: "extra_float_digits", Kind: Int, Default: "1", Min: -15, Max: 3, Category: category,
			Description: "Sets the number of digits displayed for floating-point values.",
		},
		{
			Name: "bytea_output", Kind: Enum, Default: "hex", Values: []string{"escape", "hex"}, Category: category,
			Description: "Sets the output format for bytea.",
		},
		{
			Name: "xmloption", Kind: Enum, Default: "content", Values: []string{"content", "document"}, Category: category,
			Description: "Sets whether XML data in implicit parsing is to be considered as documents or content fragments.",
		},
		{
			Name: "lc_messages", Kind: String, Default: "C", Category: category,
			Description: "Sets the language in which messages are displayed.",
		},
		{
			Name: "lc_monetary", Kind: String, Default: "C", Category: category,
			Description: "Sets the locale for formatting monetary amounts.",
		},
		{
			Name: "lc_numeric", Kind: String, Default: "C", Category: category,
			Description: "Sets the locale for formatting numbers.",
		},
		{
			Name: "lc_time", Kind: String, Default: "C", Category: category,
			Description: "Sets the locale for formatting date and time values.",
		},
	}
}

func transactionSettings() []Setting {
	const category = "Client Connection Defaults / Statement Behavior"
	return []Setting{
		{
			Name: "transaction_isolation", Kind: Enum, Default: "read committed", Values: isolationLevels, Category: category,
			Description: "Sets the current transaction's isolation level.",
		},
		{
			Name: "transaction_read_only", Kind: Bool, Default: "off", Category: category,
			Description: "Sets the current transaction's read-only status.",
		},
		{
			Name: "transaction_deferrable", Kind: Bool, Default: "off", Category: category,
			Description: "Whether to defer a read-only serializable transaction.",
		},
		{
			Name: "default_transaction_isolation", Kind: Enum, Default: "read committed", Values: isolationLevels,
			Category: category, Description: "Sets the transaction isolation level of each new transaction.",
		},
		{
			Name: "default_transaction_read_only", Kind: Bool, Default: "off", Reported: true, Category: category,
			Description: "Sets the default read-only status of new transactions.",
		},
		{
			Name: "default_transaction_deferrable", Kind: Bool, Default: "off", Category: category,
			Description: "Sets the default deferrable status of new transactions.",
		},
		{
			Name: "synchronous_commit", Kind: Enum, Default: "on", Values: []string{
				"local", "remote_write", "remote_apply",
				"on", "off",
			}, Category: "Write-Ahead Log / Settings",
			Description: "Sets the current transaction's synchronization level.",
		},
	}
}

func compatibilitySettings() []Setting {
	const category = "Version and Platform Compatibility"
	return []Setting{
		{
			Name: "standard_conforming_strings", Kind: Bool, Default: "on", Reported: true, Category: category,
			Description: "Causes '...' strings to treat backslashes literally.", check: checkAlwaysOn,
		},
		{
			Name: "escape_string_warning", Kind: Bool, Default: "on", Category: category,
			Description: "Warn about backslash escapes in ordinary string literals.",
		},
		{
			Name: "backslash_quote", Kind: Enum, Default: "safe_encoding", Values: []string{"safe_encoding", "on", "off"},
			Category: category, Description: "Sets whether \"\\'\" is allowed in string literals.",
		},
		{
			Name: "session_replication_role", Kind: Enum, Default: "origin", Values: []string{"origin", "replica", "local"}, Category: category,
			Description: "Whether foreign keys are checked: replica, they are not.",
		},
		{Name: "row_security", Kind: Bool, Default: "on", Category: category, Description: "Enable row security."},
		{
			Name: "check_function_bodies", Kind: Bool, Default: "on", Category: category,
			Description: "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.",
		},
		{
			Name: "default_table_access_method", Kind: String, Default: "heap", Category: category,
			Description: "Sets the default table access method for new tables.",
		},
		{
			Name: "default_tablespace", Kind: String, Category: category,
			Description: "Sets the default tablespace to create tables and indexes in.",
		},
		{
			Name: "synchronize_seqscans", Kind: Bool, Default: "on", Category: category,
			Description: "Enable synchronized sequential scans.",
		},
		{
			Name: "quote_all_identifiers", Kind: Bool, Default: "off", Category: category,
			Description: "When generating SQL fragments, quote all identifiers.",
		},
		{
			Name: "jit", Kind: Bool, Default: "off", Category: "Query Tuning / Other Planner Options",
			Description: "Allow JIT compilation.",
		},
		{
			Name: "enable_seqscan", Kind: Bool, Default: "on", Category: "Query Tuning / Planner Method Configuration",
			Description: "Enables the planner's use of sequential-scan plans.",
		},
		{
			Name: "plan_cache_mode", Kind: Enum, Default: "auto", Values: []string{
				"auto", "force_generic_plan",
				"force_custom_plan",
			}, Category: "Query Tuning / Other Planner Options",
			Description: "Controls the planner's selection of custom or generic plan.",
		},
		{
			Name: "max_parallel_workers_per_gather", Kind: Int, Default: "2", Max: 1024,
			Category:    "Resource Usage / Asynchronous Behavior",
			Description: "Sets the maximum number of parallel processes per executor node.",
		},
	}
}

func readSettings() []Setting {
	const category = "Reading of Pipelines"
	return []Setting{
		{
			Name: "skippr.read_position", Kind: String, List: true, Category: category,
			Description: "Sets the position of the source that a query waits to see.", check: checkReadPosition,
		},
		{
			Name: "skippr.read_timeout", Kind: Int, Default: "10s", Unit: "ms", Max: maxInt4, Category: category,
			Description: "Sets the maximum allowed wait for skippr.read_position; 0 is no limit.",
		},
	}
}

// logSettings say what is logged of statements. What may be in them that is secret is not: so
// values of parameters never are.
func logSettings() []Setting {
	return []Setting{
		{Name: "log_min_error_statement", Kind: Enum, Default: "panic", Values: []string{
			"debug5", "debug4", "debug3", "debug2", "debug1", "debug", "info", "notice", "warning", "error", "log", "fatal", "panic",
		}, Context: Superuser},
		{Name: "log_parameter_max_length", Kind: Int, Default: "0", Context: Superuser},
		{Name: "log_parameter_max_length_on_error", Kind: Int, Default: "0"},
	}
}

func presetSettings() []Setting {
	const category = "Preset Options"
	preset := func(name string, kind Kind, value, description string, reported bool) Setting {
		return Setting{
			Name: name, Kind: kind, Default: value, Description: description, Reported: reported,
			Context: Internal, Category: category, Max: maxInt4,
		}
	}
	return []Setting{
		preset("server_version", String, "15.8", "Shows the server version.", true),
		preset("server_version_num", Int, "150008", "Shows the server version as an integer.", false),
		preset("server_encoding", String, "UTF8", "Shows the server (database) character set encoding.", true),
		preset("integer_datetimes", Bool, "on", "Shows whether datetimes are integer based.", true),
		preset("in_hot_standby", Bool, "off", "Shows whether hot standby is currently active.", true),
		preset("is_superuser", Bool, "on", "Shows whether the current user is a superuser.", true),
		preset("max_identifier_length", Int, "63", "Shows the maximum identifier length.", false),
		preset("max_index_keys", Int, "32", "Shows the maximum number of index keys.", false),
		preset("max_function_args", Int, "100", "Shows the maximum number of function arguments.", false),
		preset("block_size", Int, "8192", "Shows the size of a disk block.", false),
		preset("lc_collate", String, "C.UTF-8", "Shows the collation order locale.", false),
		preset("lc_ctype", String, "C.UTF-8", "Shows the character classification and case conversion locale.", false),
		preset("max_connections", Int, "100", "Sets the maximum number of concurrent connections.", false),
		preset("wal_level", Enum, "replica", "Sets the level of information written to the WAL.", false),
		preset("ssl", Bool, "off", "Enables SSL connections.", false),
		{Name: "password_encryption", Kind: Enum, Default: "scram-sha-256", Values: []string{"scram-sha-256"}},
	}
}

// Lookup finds a setting by its name in any case.
func Lookup(name string) (*Setting, bool) {
	s, ok := registry()[strings.ToLower(name)]
	return s, ok
}

// examined are settings that not everybody may look at.
var examined = strings.Fields(`config_file data_directory dynamic_library_path external_pid_file hba_file ident_file jit_provider
	krb_server_keyfile log_directory log_filename primary_conninfo session_preload_libraries shared_preload_libraries ssl_ciphers
	ssl_dh_params_file ssl_ecdh_curve ssl_max_protocol_version ssl_min_protocol_version ssl_passphrase_command unix_socket_directories`)

// Examined says whether a setting is one that superusers alone, and members of pg_read_all_settings,
// may look at.
func Examined(name string) bool { return slices.Contains(examined, strings.ToLower(name)) }

// sorted holds all settings, by name as SHOW ALL sorts them.
var sorted = sync.OnceValue(func() []*Setting {
	out := slices.Collect(maps.Values(registry()))
	slices.SortFunc(out, func(a, b *Setting) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return out
})

// reported holds the settings whose changes are told to the client, by name.
var reported = sync.OnceValue(func() []*Setting {
	return slices.DeleteFunc(slices.Clone(sorted()), func(s *Setting) bool { return !s.Reported })
})

// All returns all settings, sorted by name as SHOW ALL does.
func All() []*Setting { return slices.Clone(sorted()) }
