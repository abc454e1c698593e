package pgwire

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func validUTF8(params map[string]string) error {
	for k, v := range params {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fatal(codes.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\" in startup packet")
		}
	}
	return nil
}

// request turns start-up parameters into what the engine is asked for: user and
// database by themselves, options still as one.
func (st *startup) request() (Startup, error) {
	p := maps.Clone(st.params)
	out := Startup{User: p["user"], Database: p["database"], Params: p}
	if out.Database == "" {
		out.Database = out.User
	}
	replication := strings.ToLower(p["replication"])
	for _, name := range []string{"user", "database", "replication"} {
		delete(p, name)
	}
	switch {
	case out.User == "":
		return out, fatal(codes.InvalidAuthorizationSpecification, "no PostgreSQL user name specified in startup packet")
	case replication != "" && replication != "false" && replication != "off" && replication != "no" && replication != "0":
		return out, fatal(codes.FeatureNotSupported, "replication connections are not supported")
	}
	return out, nil
}

// splitOptions makes the options of a request settings.
func splitOptions(request Startup) error {
	settings, err := parseOptions(request.Params["options"])
	if err != nil {
		return err
	}
	delete(request.Params, "options")
	for k, v := range settings { // parameters of their own win
		if _, ok := request.Params[k]; !ok {
			request.Params[k] = v
		}
	}
	return nil
}

// parseOptions reads command-line options: -c name=value and --name=value. Blanks
// separate arguments; a backslash takes the next character literally.
func parseOptions(options string) (map[string]string, error) {
	settings := map[string]string{}
	args := splitArguments(options)
	for i := 0; i < len(args); i++ {
		a := args[i]
		flag := "--"
		setting, ok := strings.CutPrefix(a, flag)
		if !ok {
			flag = "-c "
			if setting, ok = strings.CutPrefix(a, "-c"); ok && setting == "" && i+1 < len(args) {
				i++
				setting = args[i]
			}
		}
		name, value, assigned := strings.Cut(setting, "=")
		switch {
		case !ok || name == "":
			return nil, errBadOption(a)
		case !assigned:
			return nil, fatal(codes.Syntax, "%s%s requires a value", flag, setting)
		}
		settings[strings.ReplaceAll(name, "-", "_")] = value
	}
	return settings, nil
}

func errBadOption(a string) *pgerr.Error {
	return fatal(codes.Syntax, "invalid command-line argument for server process: %s", a)
}

func splitArguments(s string) []string {
	var args []string
	var b strings.Builder
	inside := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			inside = true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inside {
				args = append(args, b.String())
				b.Reset()
			}
			inside = false
		default:
			b.WriteByte(c)
			inside = true
		}
	}
	if inside {
		args = append(args, b.String())
	}
	return args
}
