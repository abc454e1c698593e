package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	pgsetting "github.com/skipprd/skipprd/planner/setting"
)

// sessionSettings reads values of PostgreSQL's settings: name=value, parted by semicolons. They
// are returned as SHOW renders them.
func sessionSettings(text string) (map[string]string, error) {
	given := map[string]string{}
	var problems []error
	for part := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		switch {
		case strings.TrimSpace(part) == "":
		case !ok || name == "":
			problems = append(problems, fmt.Errorf("name=value is needed, got %q", part))
		default:
			given[name] = strings.Trim(strings.TrimSpace(value), `'"`)
		}
	}
	out := map[string]string{}
	for name, value := range given {
		v, err := pgsetting.NewValues(nil, map[string]string{name: value})
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out[name] = v.Value(name)
	}
	return out, errors.Join(problems...)
}

func checkSettings(text string) error {
	_, err := sessionSettings(text)
	return err
}

// pgSettings are the values of PostgreSQL's settings that the server's own ones are, and those
// with which sessions begin.
func (c *config) pgSettings(tls bool) map[string]string {
	out, _ := sessionSettings(c.get("settings")) // checked with the settings
	out["max_connections"] = c.get("max-connections")
	out["superuser_reserved_connections"] = strconv.Itoa(c.reserved())
	if host, port, err := net.SplitHostPort(c.get("listen")); err == nil {
		out["listen_addresses"], out["port"] = host, port
	}
	if tls {
		out["ssl"] = "on"
	}
	return out
}

// reservedMax is how many connections are kept for superusers, if there are enough.
const reservedMax = 3

// reserved is how many of the connections only superusers may have.
func (c *config) reserved() int { return min(reservedMax, max(0, c.int("max-connections")-1)) }
