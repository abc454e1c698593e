package encode

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zone names must work on machines without a zone database

	"github.com/skipprd/skipprd/pgwire/pgerr"

	"github.com/jeroenrinzema/psql-wire/codes"
)

// zoneCache remembers the transition interval that was asked for last.
type zoneCache struct {
	loc          *time.Location
	from, to     int64 // unix seconds; empty at first
	offset       int
	abbreviation string
}

// at returns the offset east of UTC, in seconds, and the abbreviation at an instant.
func (z *zoneCache) at(unix int64) (offset int, abbreviation string) {
	if z.loc == time.UTC {
		return 0, "UTC"
	}
	if unix >= z.from && unix < z.to {
		return z.offset, z.abbreviation
	}
	t := time.Unix(unix, 0).In(z.loc)
	z.abbreviation, z.offset = t.Zone()
	from, to := t.ZoneBounds()
	z.from, z.to = -1<<62, 1<<62
	if !from.IsZero() {
		z.from = from.Unix()
	}
	if !to.IsZero() {
		z.to = to.Unix()
	}
	return z.offset, z.abbreviation
}

// LoadZone finds the zone of a TimeZone setting: an IANA name in any case, a number
// of hours east ("-7"), or a POSIX form whose sign counts west ("<+02>-02",
// "UTC+3"). The error is 22023.
func LoadZone(name string) (*time.Location, error) {
	switch strings.ToUpper(name) {
	case "", "UTC", "GMT", "ETC/UTC", "ZULU", "UCT":
		if strings.EqualFold(name, "GMT") {
			return time.FixedZone("GMT", 0), nil
		}
		return time.UTC, nil
	case "LOCAL":
		return nil, badSetting("TimeZone", name)
	}
	if hours, err := strconv.ParseFloat(name, 64); err == nil && hours > -168 && hours < 168 {
		offset := int(hours * 3600)
		return time.FixedZone(string(appendOffset(nil, offset)), offset), nil
	}
	if loc, err := time.LoadLocation(name); err == nil && !strings.Contains(name, "..") {
		return loc, nil
	}
	if loc, err := time.LoadLocation(zoneCase(name)); err == nil {
		return loc, nil
	}
	if loc, err := time.LoadLocation(strings.ToUpper(name)); err == nil {
		return loc, nil
	}
	if loc := posixZone(name); loc != nil {
		return loc, nil
	}
	return nil, pgerr.New(codes.InvalidParameterValue, "invalid value for parameter \"%s\": \"%s\"", "TimeZone", name)
}

// zoneCase gives a zone name the usual spelling: europe/berlin to Europe/Berlin.
func zoneCase(name string) string {
	b := []byte(strings.ToLower(name))
	up := true
	for i, c := range b {
		if up && c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
		up = c == '/' || c == '_' || c == '-'
	}
	return string(b)
}

// posixZone reads ABC[+-]h[h][:mm[:ss]] and <abc>[+-]…, without daylight saving.
func posixZone(name string) *time.Location {
	abbreviation, rest := "", ""
	if after, ok := strings.CutPrefix(name, "<"); ok {
		abbreviation, rest, ok = strings.Cut(after, ">")
		if !ok {
			return nil
		}
	} else {
		n := 0
		for n < len(name) && (name[n]|0x20) >= 'a' && (name[n]|0x20) <= 'z' {
			n++
		}
		if n < 3 {
			return nil
		}
		abbreviation, rest = name[:n], name[n:]
	}
	offset, ok := parseOffset(rest)
	if !ok || rest == "" {
		return nil
	}
	return time.FixedZone(abbreviation, -offset)
}

// parseOffset reads [+-]h[h][[:]mm[[:]ss]], in seconds, at most 15:59:59.
func parseOffset(s string) (offset int, ok bool) {
	sign := 1
	switch {
	case s == "":
		return 0, false
	case s[0] == '+':
		s = s[1:]
	case s[0] == '-':
		sign, s = -1, s[1:]
	}
	var parts []string
	switch {
	case strings.Contains(s, ":"):
		parts = strings.Split(s, ":")
	case len(s) <= 2:
		parts = []string{s}
	case len(s) <= 4:
		parts = []string{s[:len(s)-2], s[len(s)-2:]}
	case len(s) == 6:
		parts = []string{s[:2], s[2:4], s[4:]}
	}
	if len(parts) == 0 || len(parts) > 3 {
		return 0, false
	}
	unit := 3600
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil || len(p) > 2 || i == 0 && n > 15 || i > 0 && n > 59 {
			return 0, false
		}
		offset += int(n) * unit
		unit /= 60
	}
	return sign * offset, true
}

// zoneField reads a zone behind a time.
func (p *dateTimeParser) zoneField(f string) *pgerr.Error {
	if p.out.hasZone && p.zone == nil && f != "z" {
		return p.syntax()
	}
	switch f {
	case "z", "zulu", "utc", "gmt", "ut", "uct":
		p.out.hasZone = true
		return nil
	}
	if f[0] == '+' || f[0] == '-' {
		offset, ok := parseOffset(f)
		if !ok {
			return p.syntax()
		}
		p.out.offset, p.out.hasZone = offset, true
		return nil
	}
	if offset, ok := zoneAbbreviation(f); ok {
		p.out.offset, p.out.hasZone = offset*900, true
		return nil
	}
	if !strings.Contains(f, "/") {
		return p.syntax()
	}
	loc, err := LoadZone(f)
	if err != nil {
		return pgerr.New(codes.InvalidParameterValue, "time zone \"%s\" not recognized", f)
	}
	p.zone, p.out.hasZone = loc, true
	return nil
}

// zoneAbbreviation gives an abbreviation's offset in quarters of an hour.
func zoneAbbreviation(f string) (int, bool) {
	switch f {
	case "edt":
		return -16, true
	case "est", "cdt":
		return -20, true
	case "cst", "mdt":
		return -24, true
	case "mst", "pdt":
		return -28, true
	case "pst":
		return -32, true
	case "cet", "bst", "met":
		return 4, true
	case "cest", "eet", "mest":
		return 8, true
	case "eest", "msk":
		return 12, true
	case "wet":
		return 0, true
	case "jst", "kst":
		return 36, true
	}
	return 0, false
}

// zoneOffset is the offset in force at a local time.
func zoneOffset(loc *time.Location, local int64) int {
	t := time.UnixMicro(local).UTC()
	_, offset := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, loc).Zone()
	return offset
}
