package pgfunc

import (
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// dateFunctions are those that make moments, and arithmetic on dates.
func dateFunctions() []scalar.Function {
	ts, date, i32, i64, text, float := scalar.Timestamp, scalar.Date, scalar.Int32, scalar.Int64, scalar.Text, scalar.Float64
	return []scalar.Function{
		{Name: "skippr_d_make", Params: kinds(i32, i32, i32), Result: date, Call: func(a []value) (value, error) {
			d, err := makeDate(a[0].Int, a[1].Int, a[2].Int)
			return scalar.OfInt(d), err
		}},
		{Name: "skippr_t_make", Params: kinds(i32, i32, float), Result: scalar.Time, Call: func(a []value) (value, error) {
			t, err := makeTime(a[0].Int, a[1].Int, a[2].Float)
			return scalar.OfInt(t), err
		}},
		{Name: "skippr_ts_make", Params: kinds(i32, i32, i32, i32, i32, float), Result: ts, Call: func(a []value) (value, error) {
			d, err := makeDate(a[0].Int, a[1].Int, a[2].Int)
			if err != nil {
				return value{}, err
			}
			t, err := makeTime(a[3].Int, a[4].Int, a[5].Float)
			if err != nil {
				return value{}, err
			}
			return momentOf(float64(d), d*dayTime+t)
		}},
		{Name: "skippr_d_sub", Params: kinds(date, date), Result: i32, Call: func(a []value) (value, error) {
			if infiniteDay(a[0].Int) || infiniteDay(a[1].Int) {
				return value{}, fieldRange("cannot subtract infinite dates")
			}
			return scalar.OfInt(a[0].Int - a[1].Int), nil
		}},
		{Name: "skippr_d_add", Params: kinds(date, i64), Result: date, Call: func(a []value) (value, error) {
			if infiniteDay(a[0].Int) {
				return a[0], nil
			}
			d := a[0].Int + a[1].Int
			if d < firstDay || d >= endDay {
				return value{}, fieldRange("date out of range")
			}
			return scalar.OfInt(d), nil
		}},
		{Name: "skippr_d_when", Params: kinds(date), Result: ts, Call: func(a []value) (value, error) {
			switch d := a[0].Int; {
			case d >= futureDay:
				return scalar.OfInt(futureMoment), nil
			case d <= pastDay:
				return scalar.OfInt(pastMoment), nil
			case d >= endMoment/dayTime:
				return scalar.OfInt(futureMoment - 1), nil
			}
			return scalar.OfInt(a[0].Int * dayTime), nil
		}},
		{Name: "skippr_d_ts", Params: kinds(date), Result: ts, Call: func(a []value) (value, error) {
			switch d := a[0].Int; {
			case d >= futureDay:
				return scalar.OfInt(futureMoment), nil
			case d <= pastDay:
				return scalar.OfInt(pastMoment), nil
			case d < firstDay || d >= endMoment/dayTime:
				return value{}, fieldRange("date out of range for timestamp")
			}
			return scalar.OfInt(a[0].Int * dayTime), nil
		}},
		{Name: "skippr_d_part", Params: kinds(text, date), Result: text, Call: func(a []value) (value, error) {
			return datePart(strings.ToLower(a[0].Text), a[1].Int)
		}},
	}
}

// momentFunctions are arithmetic on timestamps.
func momentFunctions() []scalar.Function {
	ts, date, i32, text, iv := scalar.Timestamp, scalar.Date, scalar.Int32, scalar.Text, scalar.Interval
	return []scalar.Function{
		{Name: "skippr_ts_sub", Params: kinds(ts, ts), Result: iv, Call: func(a []value) (value, error) {
			if infiniteMoment(a[0].Int) || infiniteMoment(a[1].Int) {
				return value{}, fieldRange("cannot subtract infinite timestamps")
			}
			return justifyHours(value{Int: a[0].Int - a[1].Int})
		}},
		{Name: "skippr_ts_add", Params: kinds(ts, iv), Result: ts, Call: func(a []value) (value, error) { return addMoment(a[0].Int, a[1]) }},
		{Name: "skippr_ts_time", Params: kinds(ts), Result: scalar.Time, Call: func(a []value) (value, error) {
			if infiniteMoment(a[0].Int) {
				return scalar.Null, nil
			}
			return scalar.OfInt(floorMod(a[0].Int, dayTime)), nil
		}},
		{Name: "skippr_ts_date", Params: kinds(ts), Result: date, Call: func(a []value) (value, error) {
			switch t := a[0].Int; {
			case t >= futureMoment:
				return scalar.OfInt(futureDay), nil
			case t <= pastMoment:
				return scalar.OfInt(pastDay), nil
			}
			return scalar.OfInt(floorDiv(a[0].Int, dayTime)), nil
		}},
		{Name: "skippr_ts_age", Params: kinds(ts, ts), Result: iv, Call: func(a []value) (value, error) {
			if infiniteMoment(a[0].Int) || infiniteMoment(a[1].Int) {
				return value{}, unsupported("age of an infinite timestamp is not supported")
			}
			return age(a[0].Int, a[1].Int), nil
		}},
		{Name: "skippr_ts_trunc", Params: kinds(text, ts, text), Result: ts, Call: func(a []value) (value, error) {
			return truncMoment(a[0].Text, a[1].Int, strings.Clone(a[2].Text))
		}},
		{Name: "skippr_ts_bin", Params: kinds(iv, ts, ts), Result: ts, Call: func(a []value) (value, error) {
			return binMoment(a[0], a[1].Int, a[2].Int)
		}},
		{Name: "skippr_ts_round", Params: kinds(ts, i32), Result: ts, Call: func(a []value) (value, error) {
			return scalar.OfInt(roundMoment(a[0].Int, int(a[1].Int))), nil
		}},
		{Name: "skippr_t_round", Params: kinds(scalar.Time, i32), Result: scalar.Time, Call: func(a []value) (value, error) {
			unit := int64(1)
			for range max(0, 6-a[1].Int) {
				unit *= 10
			}
			return scalar.OfInt((a[0].Int + unit/2) / unit * unit), nil
		}},
		{Name: "skippr_ts_overlaps", Params: kinds(ts, ts, ts, ts), Result: scalar.Bool, Nulls: true, Call: overlaps},
	}
}

// styled gives a value's text the style of a session: DateStyle, IntervalStyle, bytea_output
// and extra_float_digits, joined by bars.
func styled(text string, oid uint32, style, zone string) (value, error) {
	part := strings.SplitN(style, "|", 4)
	if len(part) < 4 {
		return value{}, invalid("invalid style \"%s\"", strings.Clone(style))
	}
	digits, err := strconv.Atoi(part[3])
	if err != nil {
		return value{}, invalid("invalid style \"%s\"", strings.Clone(style))
	}
	f := encode.Format{
		DateStyle: part[0], IntervalStyle: part[1], ByteaOutput: part[2], ExtraFloatDigits: digits, TimeZone: strings.Clone(zone),
	}
	if _, _, ok := span.KindOf(oid); ok {
		out, err := span.Restyled(oid, text, func(oid uint32, text string) (string, error) { return encode.Styled(oid, text, f) })
		return scalar.OfText(out), err
	}
	out, err := encode.Styled(oid, text, f)
	return scalar.OfText(out), err
}

// Local gives the offset of a zone, in seconds, at a local time in microseconds since 1970.
func Local(zone string) (func(int64) int64, error) {
	loc, err := encode.LoadZone(zone)
	if err != nil {
		return nil, err
	}
	return func(t int64) int64 { return localOffset(t, loc) }, nil
}

// Settled gives the text of a literal a form that every session reads alike: what a session
// with the settings of in, in a time zone, means by it.
func Settled(in encode.Input, oid uint32, text, zone string) (string, error) {
	local, err := Local(zone)
	if err != nil {
		return "", err
	}
	out, failed := in.Settled(oid, text, local)
	if failed != nil {
		return "", failed
	}
	return out, nil
}

// zoneFunctions take moments apart, and bring them into other zones.
func zoneFunctions() []scalar.Function {
	ts, i64, text, float, iv := scalar.Timestamp, scalar.Int64, scalar.Text, scalar.Float64, scalar.Interval
	return []scalar.Function{
		{Name: "skippr_ts_part", Params: kinds(text, ts, text), Result: text, Call: func(a []value) (value, error) {
			return momentPart(strings.ToLower(a[0].Text), a[1].Int, strings.Clone(a[2].Text))
		}},
		{Name: "skippr_iv_part", Params: kinds(text, iv), Result: text, Call: func(a []value) (value, error) {
			return intervalPart(strings.ToLower(a[0].Text), a[1])
		}},
		{Name: "skippr_tz_of", Params: kinds(float), Result: scalar.TimestampTZ, Call: func(a []value) (value, error) { return epochMoment(a[0].Float) }},
		{Name: "skippr_ts_east", Params: kinds(ts, text), Result: scalar.TimestampTZ, Call: func(a []value) (value, error) {
			loc, err := easternZone(a[1].Text)
			if err != nil || infiniteMoment(a[0].Int) {
				return a[0], err
			}
			return inZone(a[0].Int, loc, false)
		}},
		{Name: "skippr_ts_in", Params: kinds(ts, text), Result: scalar.TimestampTZ, Call: func(a []value) (value, error) {
			return zoneMoment(a[0].Int, a[1].Text, false)
		}},
		{Name: "skippr_ts_at", Params: kinds(scalar.TimestampTZ, text), Result: ts, Call: func(a []value) (value, error) {
			return zoneMoment(a[0].Int, a[1].Text, true)
		}},
		{Name: "skippr_tz_shift", Params: kinds(scalar.TimestampTZ, iv), Result: ts, Call: func(a []value) (value, error) {
			return shiftMoment(a[0].Int, a[1], 1)
		}},
		{Name: "skippr_ts_shift", Params: kinds(ts, iv), Result: scalar.TimestampTZ, Call: func(a []value) (value, error) {
			return shiftMoment(a[0].Int, a[1], -1)
		}},
		{Name: "skippr_styled", Params: kinds(text, i64, text, text), Result: text, Call: func(a []value) (value, error) {
			return styled(a[0].Text, uint32(a[1].Int), a[2].Text, a[3].Text)
		}},
		{Name: "skippr_text_in", Params: kinds(text, i64), Result: text, Call: func(a []value) (value, error) {
			in := encode.NumberedInput(a[1].Int >> 32)
			out, err := in.Decode(uint32(a[1].Int), 0, []byte(a[0].Text))
			if err != nil {
				return value{}, err
			}
			return scalar.OfText(out), nil
		}},
	}
}
