package setting

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// unit is a unit that a value may be given in, and its size in the family's smallest.
type unit struct {
	name string
	size float64
}

// The families, largest first, as SHOW chooses from them; hints list them from the smallest on.
var (
	timeUnits  = []unit{{"d", 86_400e6}, {"h", 3600e6}, {"min", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}}
	bytesUnits = []unit{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}, {"B", 1}}
)

// family is the units of a setting, and the size of the one that its numbers are in; nil for none.
func (s *Setting) family() (units []unit, base float64) {
	if s.Unit == "8kB" {
		return bytesUnits, 8 << 10
	}
	for _, f := range [][]unit{timeUnits, bytesUnits} {
		for _, u := range f {
			if u.name == s.Unit {
				return f, u.size
			}
		}
	}
	return nil, 1
}

// number reads a value in the setting's own unit.
func (s *Setting) number(value string) (float64, error) {
	v := strings.TrimSpace(value)
	end := 0
	for end < len(v) && strings.IndexByte("+-0123456789.eE", v[end]) >= 0 {
		end++
	}
	n, err := strconv.ParseFloat(v[:end], 64)
	name := strings.TrimSpace(v[end:])
	if err != nil && s.Kind == Int && strings.HasPrefix(v, "0x") {
		h, errHex := strconv.ParseInt(v, 0, 64)
		n, err, name = float64(h), errHex, ""
	}
	units, base := s.family()
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || name != "" && units == nil {
		return 0, invalid(s.Name, value)
	}
	if name == "" {
		return n, nil
	}
	hint := "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."
	if units[0].name == "TB" {
		hint = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."
	}
	for _, u := range units {
		if u.name == name {
			return n * u.size / base, nil
		}
	}
	return 0, invalid(s.Name, value).WithHint("%s", hint)
}

// ranged is a number's error when it is out of the setting's bounds.
func (s *Setting) ranged(shown string, out bool, low, high string) error {
	if !out {
		return nil
	}
	if s.Unit != "" {
		shown += " " + s.Unit
	}
	return pgerr.New(codes.InvalidParameterValue, "%s is outside the valid range for parameter \"%s\" (%s .. %s)", shown, s.Name, low, high)
}

func (s *Setting) integer(value string) (string, error) {
	n, err := s.number(value)
	if err != nil {
		return "", err
	}
	n = math.RoundToEven(n)
	if math.Abs(n) > math.MaxInt32 {
		return "", invalid(s.Name, value).WithHint("Value exceeds integer range.")
	}
	err = s.ranged(strconv.FormatInt(int64(n), 10), n < float64(s.Min) || n > float64(s.Max), strconv.FormatInt(s.Min, 10), strconv.FormatInt(s.Max, 10))
	return s.showInteger(int64(n)), err
}

// octal are the integers that are shown as modes of files.
var octal = map[string]bool{"unix_socket_permissions": true, "log_file_mode": true, "data_directory_mode": true}

// showInteger renders a number with the largest unit that divides it.
func (s *Setting) showInteger(n int64) string {
	units, base := s.family()
	if octal[s.Name] {
		return "0" + strconv.FormatInt(n, 8)
	}
	if units == nil || n <= 0 {
		return strconv.FormatInt(n, 10)
	}
	whole := float64(n) * base
	for _, u := range units {
		if math.Mod(whole, u.size) == 0 {
			return strconv.FormatInt(int64(whole/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// realDigits is how many digits of a real are shown.
const realDigits = 6

func (s *Setting) real(value string) (string, error) {
	n, err := s.number(value)
	if err != nil {
		return "", err
	}
	text := func(f float64) string { return strconv.FormatFloat(f, 'g', realDigits, 64) }
	err = s.ranged(text(n), n < s.Low || n > s.High, text(s.Low), text(s.High))
	return s.showReal(n), err
}

func (s *Setting) showReal(n float64) string {
	units, base := s.family()
	if units == nil || n <= 0 {
		return strconv.FormatFloat(n, 'g', realDigits, 64)
	}
	for i, u := range units {
		v := n * base / u.size
		if i == len(units)-1 || v == math.Trunc(v) {
			return strconv.FormatFloat(v, 'g', realDigits, 64) + u.name
		}
	}
	return ""
}

// show renders a value that is a plain number in the setting's unit as SHOW does.
func (s *Setting) show(raw string) string {
	switch s.Kind {
	case Int:
		if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
			return s.showInteger(n)
		}
	case Real:
		if n, err := strconv.ParseFloat(raw, 64); err == nil {
			return s.showReal(n)
		}
	}
	return raw
}

// Raw is a value that SHOW renders as shown, as pg_settings has it: a number in the setting's
// unit.
func (s *Setting) Raw(shown string) string {
	if s.Unit == "" || s.Kind != Int && s.Kind != Real {
		return shown
	}
	n, err := s.number(shown)
	if err != nil {
		return shown
	}
	if s.Kind == Int {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatFloat(n, 'g', realDigits, 64)
}

// Duration reads the value of a time setting as SHOW renders it; zero is off.
func Duration(shown string) time.Duration {
	for _, u := range timeUnits {
		if num, ok := strings.CutSuffix(shown, u.name); ok {
			if n, err := strconv.ParseInt(num, 10, 64); err == nil {
				return time.Duration(float64(n)*u.size) * time.Microsecond
			}
		}
	}
	return 0
}
