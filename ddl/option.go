package ddl

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// OptionDoc describes an option for SHOW DOCS and for hints.
type OptionDoc struct {
	Name, Type, Default, Help string
	check                     func(string) (string, error)
}

// connectionOptions are those of each kind of connection.
var connectionOptions = map[string][]OptionDoc{
	"postgres": {
		{"HOST", "text", "localhost", "host name, address or socket directory; several, with commas, are tried in turn", checkText},
		{"PORT", "integer", "5432", "port, or one for each host, with commas", checkPorts},
		{"DATABASE", "text", "the user's name", "database", checkText},
		{"USER", "text", "", "role with LOGIN and REPLICATION", checkText},
		{"PASSWORD", "secret", "", "password, best PASSWORD SECRET name", checkText},
		{
			"SSLMODE", "enum", "prefer", "disable, allow, prefer, require, verify-ca, verify-full",
			checkEnum("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
		},
		{"SSLROOTCERT", "text", "", "file with the trusted certificates", checkText},
		{"SSLCERT", "text", "", "file with the client certificate", checkText},
		{"SSLKEY", "text", "", "file with the client key", checkText},
		{"CONNECT_TIMEOUT", "integer", "10", "seconds", checkInt(1, 3600)},
		{"APPLICATION_NAME", "text", "skipprd", "shown in the source's pg_stat_activity", checkText},
		{"CHANNEL_BINDING", "enum", "prefer", "disable, prefer, require", checkEnum("disable", "prefer", "require")},
		{"REQUIRE_AUTH", "text", "any", "how the server must ask who connects, as in libpq: scram-sha-256, password, …", checkText},
		{"TARGET_SESSION_ATTRS", "text", "any", "which of several hosts to use, as in libpq", checkText},
		{"OPTIONS", "text", "", "command-line options for the source's server", checkText},
	},
	"generator": {
		{"SEED", "integer", "1", "everything that is generated is a function of it", checkInt(0, 1<<62)},
		{"RATE", "integer", "100", "transactions a second; 0 is as fast as possible", checkInt(0, 10_000_000)},
		{"SCALE", "integer", "1", "thousands of customers", checkInt(1, 100_000)},
		{"BACKFILL", "integer", "5 times the customers", "orders that exist at first", checkInt(0, 1_000_000_000)},
		{"TRANSACTIONS", "integer", "0", "stop after so many transactions; 0 never stops", checkInt(0, 1_000_000_000_000)},
		{"CHUNK_ROWS", "integer", "50000", "rows that the initial copy takes at a time", checkInt(1, 10_000_000)},
	},
}

// secretOptions are never stored or shown in clear.
var secretOptions = []string{"PASSWORD"}

// laterKinds are kinds of connection that this version does not have.
var laterKinds = []string{"mysql", "s3", "file", "http", "kafka", "iceberg", "plugin"}

func checkText(s string) (string, error) { return s, nil }

func checkName(s string) (string, error) {
	if s == "" || len(s) > identifierBytesMax {
		return "", fmt.Errorf("a name of 1 to %d bytes is needed", identifierBytesMax)
	}
	return s, nil
}

func checkSlotName(s string) (string, error) {
	for _, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return "", fmt.Errorf("a slot name has only lower case letters, digits and underscores")
		}
	}
	return checkName(s)
}

func checkBool(s string) (string, error) {
	switch strings.ToLower(s) {
	case "true", "t", "on", "yes", "1":
		return "true", nil
	case "false", "f", "off", "no", "0":
		return "false", nil
	}
	return "", fmt.Errorf("a Boolean value is needed")
}

func checkInt(lo, hi int64) func(string) (string, error) {
	return func(s string) (string, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < lo || n > hi {
			return "", fmt.Errorf("an integer from %d to %d is needed", lo, hi)
		}
		return strconv.FormatInt(n, 10), nil
	}
}

// checkPorts checks one port or several with commas between them.
func checkPorts(s string) (string, error) {
	ports := strings.Split(s, ",")
	for i, p := range ports {
		n, err := checkInt(1, 65535)(strings.TrimSpace(p))
		if err != nil {
			return "", err
		}
		ports[i] = n
	}
	return strings.Join(ports, ","), nil
}

func checkEnum(values ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if v := strings.ToLower(s); slices.Contains(values, v) {
			return v, nil
		}
		if len(values) == 1 {
			return "", fmt.Errorf("this version supports only %s", values[0])
		}
		return "", fmt.Errorf("one of %s is needed", strings.Join(values, ", "))
	}
}

func checkDuration(lo, hi time.Duration) func(string) (string, error) {
	return func(s string) (string, error) {
		d, err := ParseDuration(s)
		if err != nil || d < lo || d > hi {
			return "", fmt.Errorf("a duration from %s to %s is needed, for example '10 s'", lo, hi)
		}
		return d.String(), nil
	}
}

// ParseDuration reads '10 min', '1h30m', '500ms', '5 seconds', or a bare number of
// seconds.
func ParseDuration(s string) (time.Duration, error) {
	units := []struct {
		names []string
		unit  time.Duration
	}{
		{[]string{"ms", "millisecond", "milliseconds", "msec"}, time.Millisecond},
		{[]string{"s", "sec", "secs", "second", "seconds"}, time.Second},
		{[]string{"m", "min", "mins", "minute", "minutes"}, time.Minute},
		{[]string{"h", "hour", "hours", "hr", "hrs"}, time.Hour},
		{[]string{"d", "day", "days"}, 24 * time.Hour},
	}
	rest := strings.ToLower(strings.TrimSpace(s))
	var total float64
	for first := true; rest != "" || first; first = false {
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		v, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil {
			return 0, fmt.Errorf("parse duration %q", s)
		}
		rest = strings.TrimSpace(rest[n:])
		n = strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) })
		if n < 0 {
			n = len(rest)
		}
		unit := time.Duration(0)
		if n == 0 && first && rest == "" {
			unit = time.Second
		}
		for _, u := range units {
			if slices.Contains(u.names, rest[:n]) {
				unit = u.unit
			}
		}
		if unit == 0 {
			return 0, fmt.Errorf("parse duration %q", s)
		}
		total += v * float64(unit)
		rest = strings.TrimSpace(rest[n:])
	}
	if total > float64(1<<62) {
		return 0, fmt.Errorf("duration %q is too long", s)
	}
	return time.Duration(total), nil
}

// checkOption validates one option against docs and returns its canonical value.
func checkOption(docs []OptionDoc, o Option, what string) (string, error) {
	for _, d := range docs {
		if d.Name != o.Name {
			continue
		}
		v, err := d.check(o.Value)
		if err != nil {
			return "", pgerr.New(codes.InvalidParameterValue, "invalid value for %s option \"%s\": \"%s\"", what, o.Name, shownValue(o)).
				WithDetail("%s.", capital(err.Error())).WithPosition(o.Pos)
		}
		return v, nil
	}
	return "", knownOption(docs, o, what)
}

// knownOption refuses an option that docs have not.
func knownOption(docs []OptionDoc, o Option, what string) error {
	names := make([]string, len(docs))
	for i, d := range docs {
		names[i] = d.Name
	}
	if slices.Contains(names, o.Name) {
		return nil
	}
	e := pgerr.New(codes.InvalidParameterValue, "unrecognized %s option \"%s\"", what, o.Name).WithPosition(o.Pos)
	if near := nearest(o.Name, names); near != "" {
		return e.WithHint("Perhaps you meant the option \"%s\".", near)
	}
	return e.WithHint("The options are %s.", strings.Join(names, ", "))
}

func shownValue(o Option) string {
	if slices.Contains(secretOptions, strings.ToUpper(o.Name)) {
		return "********"
	}
	return o.Value
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// nearest returns the name at the smallest edit distance from s, if it is close.
func nearest(s string, names []string) string {
	best, bestDistance := "", len(s)/2+1
	for _, n := range names {
		if d := editDistance(strings.ToLower(s), strings.ToLower(n)); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// expandURL adds to the options what a postgres:// URL or a libpq key=value string
// says; options given outright win.
func expandURL(spec ConnectionSpec) ([]Option, error) {
	out := slices.Clone(spec.Options)
	if spec.URL == "" {
		return out, nil
	}
	given := map[string]bool{}
	for _, o := range out {
		given[o.Name] = true
	}
	add := func(name, value string) {
		if value != "" && !given[name] {
			given[name] = true
			out = append(out, Option{Name: name, Value: value, Pos: spec.Pos})
		}
	}
	bad := pgerr.New(codes.InvalidParameterValue, "invalid connection string for %s", strings.ToUpper(spec.Kind)).
		WithPosition(spec.Pos).WithHint("Write postgres://user@host:port/database?sslmode=… or host=… dbname=… .")
	if strings.HasPrefix(spec.URL, "postgres://") || strings.HasPrefix(spec.URL, "postgresql://") {
		one, hosts, ports := splitHosts(spec.URL)
		u, err := url.Parse(one)
		if err != nil {
			return nil, bad
		}
		password, _ := u.User.Password()
		if hosts == "" {
			hosts, ports = u.Hostname(), u.Port()
		}
		add("HOST", hosts)
		add("PORT", ports)
		add("DATABASE", strings.TrimPrefix(u.Path, "/"))
		add("USER", u.User.Username())
		add("PASSWORD", password)
		for k, v := range u.Query() {
			add(libpqName(k), v[0])
		}
		return out, nil
	}
	pairs, err := keyValues(spec.URL)
	if err != nil {
		return nil, bad.WithDetail("%s.", capital(err.Error()))
	}
	for _, kv := range pairs {
		add(libpqName(kv[0]), kv[1])
	}
	return out, nil
}

// splitHosts takes the hosts out of a URL that has several, as libpq reads it, with their
// ports, and returns it without them; of any other URL there are none.
func splitHosts(text string) (one, hosts, ports string) {
	scheme, rest, _ := strings.Cut(text, "://")
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user, list := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		user, list = authority[:i+1], authority[i+1:]
	}
	if !strings.Contains(list, ",") {
		return text, "", ""
	}
	var names, numbers []string
	for _, h := range strings.Split(list, ",") {
		name, port := h, "5432"
		if i := strings.LastIndex(h, ":"); i > strings.LastIndex(h, "]") {
			name, port = h[:i], h[i+1:]
		}
		names, numbers = append(names, strings.Trim(name, "[]")), append(numbers, port)
	}
	return scheme + "://" + user + path, strings.Join(names, ","), strings.Join(numbers, ",")
}

func libpqName(k string) string {
	if strings.EqualFold(k, "dbname") {
		return "DATABASE"
	}
	return strings.ToUpper(k)
}

// keyValues parses a libpq connection string: key=value, value quoted by '…' with
// backslash escapes.
func keyValues(s string) ([][2]string, error) {
	var out [][2]string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		k, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("missing \"=\" in connection string")
		}
		rest = strings.TrimLeft(rest, " ")
		var v strings.Builder
		quoted := strings.HasPrefix(rest, "'")
		i := 0
		if quoted {
			i = 1
		}
		for ; i < len(rest); i++ {
			c := rest[i]
			if c == '\\' && i+1 < len(rest) {
				i++
				v.WriteByte(rest[i])
				continue
			}
			if quoted && c == '\'' || !quoted && c == ' ' {
				break
			}
			v.WriteByte(c)
		}
		if quoted && i >= len(rest) {
			return nil, fmt.Errorf("unterminated quoted value in connection string")
		}
		out = append(out, [2]string{strings.TrimSpace(k), v.String()})
		s = rest[min(i+1, len(rest)):]
	}
	return out, nil
}
