package setting

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/encname"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func invalid(name, value string) *pgerr.Error {
	return pgerr.New(codes.InvalidParameterValue, "invalid value for parameter \"%s\": \"%s\"", name, value)
}

// normalise checks a value and renders it as SHOW does. old is the value in force.
func (s *Setting) normalise(old, value string) (string, error) {
	n, err := s.parse(old, value)
	if err == nil && s.fixed() && n != s.Default {
		return "", pgerr.New(codes.FeatureNotSupported, "parameter \"%s\" is not supported with another value than \"%s\"", s.Name, s.Default)
	}
	return n, err
}

func (s *Setting) parse(old, value string) (string, error) {
	if s.check != nil {
		return s.check(old, value)
	}
	switch s.Kind {
	case Bool:
		b, ok := parseBool(value)
		if !ok {
			return "", pgerr.New(codes.InvalidParameterValue, "parameter \"%s\" requires a Boolean value", s.Name)
		}
		return onOff(b), nil
	case Enum:
		for _, v := range s.Values {
			if strings.EqualFold(v, value) {
				return v, nil
			}
		}
		return "", invalid(s.Name, value).WithHint("Available values: %s.", strings.Join(s.Values, ", "))
	case Int:
		return s.integer(value)
	case Real:
		return s.real(value)
	}
	return value, nil
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func parseBool(v string) (value, ok bool) {
	v = strings.ToLower(strings.TrimSpace(v))
	if v == "" || v == "o" {
		return false, false
	}
	for _, w := range []string{"true", "yes", "on", "1"} {
		if strings.HasPrefix(w, v) {
			return true, true
		}
	}
	for _, w := range []string{"false", "no", "off", "0"} {
		if strings.HasPrefix(w, v) {
			return false, true
		}
	}
	return false, false
}

func checkAlwaysOn(_, value string) (string, error) {
	if b, ok := parseBool(value); !ok || !b {
		return "", pgerr.New(codes.FeatureNotSupported, "standard_conforming_strings cannot be turned off")
	}
	return "on", nil
}

func checkRole(_, value string) (string, error) { return value, nil }

func checkApplicationName(_, value string) (string, error) {
	const nameBytes = 63
	v := strings.ToValidUTF8(value, "?")
	if len(v) > nameBytes {
		v = strings.ToValidUTF8(v[:nameBytes], "")
	}
	return v, nil
}

func checkEncoding(_, value string) (string, error) {
	switch name, ok := encname.Own(value); {
	case !ok:
		return "", invalid("client_encoding", value)
	case name == mule:
		e := invalid("client_encoding", value).WithDetail("Conversion between %s and %s is not supported.", name, encname.UTF8)
		e.Code = codes.FeatureNotSupported
		return "", e
	case value == unicodeName:
		return value, nil
	default:
		return name, nil
	}
}

// Starting is an error of NewValues as PostgreSQL tells a client of it that starts with values.
func Starting(client map[string]string, err error) error {
	name, _ := encname.Own(client["client_encoding"])
	if e, ok := pgerr.As(err); ok && name == mule && e.Code == codes.FeatureNotSupported {
		return pgerr.New(e.Code, "conversion between %s and %s is not supported", mule, encname.UTF8)
	}
	return err
}

const (
	// mule is an encoding that PostgreSQL has no conversion from UTF-8 to.
	mule = "MULE_INTERNAL"
	// unicodeName is a name of UTF8 that is kept as it is, for old drivers.
	unicodeName = "UNICODE"
)

// checkSearchPath keeps the list as it was written, after checking its quotes.
func checkSearchPath(_, value string) (string, error) {
	if strings.Count(value, `"`)%2 != 0 {
		return "", invalid("search_path", value).WithDetail("List syntax is invalid.")
	}
	return value, nil
}

func checkDateStyle(old, value string) (string, error) {
	style, order, _ := strings.Cut(old, ", ")
	for _, w := range strings.Split(value, ",") {
		w = strings.TrimSpace(w)
		switch u := strings.ToUpper(w); {
		case u == "ISO" || u == "SQL":
			style = u
		case strings.HasPrefix(u, "POSTGRES"):
			style = "Postgres"
		case strings.HasPrefix(u, "GERMAN"):
			style, order = "German", "DMY"
		case u == "YMD" || u == "DMY" || u == "MDY":
			order = u
		case strings.HasPrefix(u, "EURO"):
			order = "DMY"
		case u == "US" || strings.HasPrefix(u, "NONEURO"):
			order = "MDY"
		case u == "DEFAULT":
			style, order = "ISO", "MDY"
		default:
			return "", invalid("DateStyle", value).WithDetail("Unrecognized key word: \"%s\".", strings.ToLower(w))
		}
	}
	return style + ", " + order, nil
}

// checkTimeZone accepts names of the time zone database and whole hours east of
// Greenwich, which it renders as the database's Etc names.
func checkTimeZone(_, value string) (string, error) {
	v := strings.TrimSpace(value)
	switch strings.ToUpper(v) {
	case "LOCAL", "DEFAULT", "UTC", "Z", "ZULU", "UCT", "UNIVERSAL":
		return "UTC", nil
	case "GMT":
		return "GMT", nil
	}
	if n, err := strconv.ParseFloat(strings.TrimSuffix(v, ":00"), 64); err == nil {
		if n != math.Trunc(n) || n < -12 || n > 14 {
			return "", pgerr.New(codes.FeatureNotSupported, "time zone offset \"%s\" is not supported",
				value).WithHint("Use a name such as Asia/Kolkata.")
		}
		if n == 0 {
			return "UTC", nil
		}
		return fmt.Sprintf("Etc/GMT%+d", -int(n)), nil
	}
	if _, err := encode.LoadZone(v); err != nil || v == "" {
		return "", invalid("TimeZone", value)
	}
	return canonicalZone(v), nil
}

// canonicalZone writes a zone's name with the database's capitals, which the engine
// insists on.
func canonicalZone(v string) string {
	loc, err := encode.LoadZone(v)
	if err != nil {
		return v
	}
	if name := loc.String(); strings.EqualFold(name, v) {
		return name
	}
	return v
}
