package pgsql

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/planner/pgfunc"
)

// The lower half of an interval's modifier is the digits of its seconds; the upper one has its fields.
const (
	anyPrecision  = 0xffff
	precisionMost = 6
)

// intervalMod is the modifier of interval(p), interval day to hour and their like.
func intervalMod(mods []int) int32 {
	switch {
	case len(mods) > 1:
		return int32(mods[0]&pgfunc.FieldsAll<<16 | min(mods[1], precisionMost))
	case mods[0] == pgfunc.FieldsAll:
		return -1
	}
	return int32(mods[0]&pgfunc.FieldsAll<<16 | anyPrecision)
}

// intervalUnit is the unit of a number without one, by the fields of the type.
func intervalUnit(fields int32) string {
	for _, u := range []struct {
		field int32
		name  string
	}{
		{pgfunc.FieldSecond, "seconds"}, {pgfunc.FieldMinute, "minutes"}, {pgfunc.FieldHour, "hours"}, {pgfunc.FieldDay, "days"}, {pgfunc.FieldMonth, "months"}, {pgfunc.FieldYear, "years"},
	} {
		if fields&u.field != 0 && fields != pgfunc.FieldsAll {
			return u.name
		}
	}
	return ""
}

var (
	endsBare  = regexp.MustCompile(`(?:^|\s)[-+]?[0-9.]+\s*$`)
	twoFields = regexp.MustCompile(`(?:^|\s)[-+]?[0-9]+:[0-9.]+\s*$`)
)

// intervalField applies the unit of INTERVAL '1' DAY to a bare number.
func intervalField(e expr, mod int32) (expr, error) {
	fields := mod >> 16
	unit := intervalUnit(fields)
	switch {
	case unit == "" || e.typ.OID == OIDInterval || e.null:
		return e, nil
	case e.lit == nil:
		return e, unsupported("casts to intervals of some fields are supported of intervals and literals only")
	}
	text := strings.TrimSpace(*e.lit)
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		s := text + " " + unit
		e.lit = &s
		return e, nil
	}
	if endsBare.MatchString(text) || fields == pgfunc.FieldMinute|pgfunc.FieldSecond && twoFields.MatchString(text) {
		return e, unsupported("interval literals of this kind are not supported").WithHint("Write the unit of each number: interval '1 day 2 hours'.")
	}
	return e, nil
}
