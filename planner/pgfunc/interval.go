package pgfunc

import (
	"fmt"
	"math"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func intervalFunctions() []scalar.Function {
	iv, float := scalar.Interval, scalar.Float64
	return []scalar.Function{
		{Name: "skippr_iv_text", Params: kinds(iv), Result: scalar.Text, Call: func(a []value) (value, error) {
			return scalar.OfText(intervalText(a[0].Months, a[0].Days, a[0].Int)), nil
		}},
		{Name: "skippr_iv_mul", Params: kinds(iv, float), Result: iv, Call: func(a []value) (value, error) {
			return scaleInterval(a[0], a[1].Float, false)
		}},
		{Name: "skippr_iv_div", Params: kinds(iv, float), Result: iv, Call: func(a []value) (value, error) {
			if a[1].Float == 0 {
				return value{}, pgerr.New(codes.DivisionByZero, "division by zero")
			}
			return scaleInterval(a[0], a[1].Float, true)
		}},
		{Name: "skippr_iv_add", Params: kinds(iv, iv), Result: iv, Call: func(a []value) (value, error) {
			return addIntervals(a[0], a[1])
		}},
		{Name: "skippr_iv_neg", Params: kinds(iv), Result: iv, Call: func(a []value) (value, error) { return negInterval(a[0]) }},
		{Name: "skippr_iv_sub", Params: kinds(iv, iv), Result: iv, Call: func(a []value) (value, error) {
			b, err := negInterval(a[1])
			if err != nil {
				return value{}, err
			}
			return addIntervals(a[0], b)
		}},
		{Name: "skippr_iv_key", Params: kinds(iv), Result: scalar.Text, Call: func(a []value) (value, error) {
			return scalar.OfText(intervalKey(a[0])), nil
		}},
		{Name: "skippr_iv_justify_hours", Params: kinds(iv), Result: iv, Call: func(a []value) (value, error) { return justifyHours(a[0]) }},
		{Name: "skippr_iv_justify_days", Params: kinds(iv), Result: iv, Call: func(a []value) (value, error) { return justifyDays(a[0]) }},
		{Name: "skippr_iv_justify", Params: kinds(iv), Result: iv, Call: func(a []value) (value, error) { return justify(a[0]) }},
		{Name: "skippr_iv_trunc", Params: kinds(scalar.Text, iv), Result: iv, Call: func(a []value) (value, error) {
			return truncInterval(a[0].Text, a[1])
		}},
		{Name: "skippr_iv_time", Params: kinds(iv), Result: scalar.Time, Call: func(a []value) (value, error) {
			return scalar.OfInt(floorMod(a[0].Int, dayTime)), nil
		}},
		{Name: "skippr_iv_make", Params: kinds(scalar.Int32, scalar.Int32, scalar.Int32, scalar.Int32, scalar.Int32, scalar.Int32, float), Result: iv, Call: makeInterval},
		{Name: "skippr_time_add", Params: kinds(scalar.Time, iv), Result: scalar.Time, Call: func(a []value) (value, error) {
			return scalar.OfInt(floorMod(a[0].Int+a[1].Int%dayTime, dayTime)), nil
		}},
		{Name: "skippr_time_iv", Params: kinds(scalar.Time), Result: iv, Call: func(a []value) (value, error) { return a[0], nil }},
		{Name: "skippr_time_sub", Params: kinds(scalar.Time, scalar.Time), Result: iv, Call: func(a []value) (value, error) {
			return value{Int: a[0].Int - a[1].Int}, nil
		}},
		{Name: "skippr_iv_micros", Params: kinds(iv), Result: scalar.Int64, Call: func(a []value) (value, error) { return scalar.OfInt(a[0].Int), nil }},
		{Name: "skippr_iv_of", Params: kinds(scalar.Int64, scalar.Int64, scalar.Int64), Result: iv, Call: func(a []value) (value, error) {
			if a[0].Int != int64(int32(a[0].Int)) || a[1].Int != int64(int32(a[1].Int)) {
				return value{}, errIntervalRange
			}
			return value{Months: int32(a[0].Int), Days: int32(a[1].Int), Int: a[2].Int}, nil
		}},
	}
}

// intervalKey is a text that orders by bytes as intervals do: a month has 30 days, a day 24
// hours.
func intervalKey(v value) string {
	days := int64(v.Months)*daysPerMonth + int64(v.Days)
	over := floorDiv(v.Int, dayTime)
	// The sum of days is far from overflow; it is shifted to be positive.
	const shift = 1 << 40
	return fmt.Sprintf("%014d%012d", days+over+shift, v.Int-over*dayTime)
}

// roundMicros is PostgreSQL's TSROUND.
func roundMicros(f float64) float64 { return math.RoundToEven(f*1e6) / 1e6 }

// scaleInterval multiplies an interval, or divides it.
func scaleInterval(iv value, by float64, divide bool) (value, error) {
	apply := func(x float64) float64 {
		if divide {
			return x / by
		}
		return x * by
	}
	months, days := apply(float64(iv.Months)), apply(float64(iv.Days))
	if !fits32(months) || !fits32(days) {
		return value{}, errIntervalRange
	}
	out := value{Months: int32(months), Days: int32(days)}
	over := roundMicros((months - float64(out.Months)) * 30)
	seconds := roundMicros((days - float64(out.Days) + over - math.Trunc(over)) * 86400)
	if math.Abs(seconds) >= 86400 {
		out.Days += int32(seconds / 86400)
		seconds -= math.Trunc(seconds/86400) * 86400
	}
	out.Days += int32(over)
	micros := math.RoundToEven(apply(float64(iv.Int)) + seconds*1e6)
	if math.IsNaN(micros) || micros >= 9223372036854775807 || micros < -9223372036854775808 {
		return value{}, errIntervalRange
	}
	out.Int = int64(micros)
	return out, nil
}

func fits32(f float64) bool { return f >= math.MinInt32 && f <= math.MaxInt32 }

func addIntervals(a, b value) (value, error) {
	months, days, micros := int64(a.Months)+int64(b.Months), int64(a.Days)+int64(b.Days), a.Int+b.Int
	if months != int64(int32(months)) || days != int64(int32(days)) || (micros < a.Int) != (b.Int < 0) {
		return value{}, errIntervalRange
	}
	return value{Months: int32(months), Days: int32(days), Int: micros}, nil
}

func negInterval(a value) (value, error) {
	if a.Months == math.MinInt32 || a.Days == math.MinInt32 || a.Int == math.MinInt64 {
		return value{}, errIntervalRange
	}
	return value{Months: -a.Months, Days: -a.Days, Int: -a.Int}, nil
}

// addCount adds to a number of days or months.
func addCount(to *int32, n int64) error {
	sum := int64(*to) + n
	if sum != int64(int32(sum)) {
		return errIntervalRange
	}
	*to = int32(sum)
	return nil
}

func justifyHours(v value) (value, error) {
	days := v.Int / dayTime
	v.Int -= days * dayTime
	if err := addCount(&v.Days, days); err != nil {
		return value{}, err
	}
	return signTime(v), nil
}

// signTime gives the time of day the sign of the days.
func signTime(v value) value {
	switch {
	case v.Days > 0 && v.Int < 0:
		v.Int += dayTime
		v.Days--
	case v.Days < 0 && v.Int > 0:
		v.Int -= dayTime
		v.Days++
	}
	return v
}

const daysPerMonth = 30

// carryDays makes months of thirty days each.
func carryDays(v *value) error {
	months := v.Days / daysPerMonth
	v.Days -= months * daysPerMonth
	return addCount(&v.Months, int64(months))
}

func justifyDays(v value) (value, error) {
	if err := carryDays(&v); err != nil {
		return value{}, err
	}
	switch {
	case v.Months > 0 && v.Days < 0:
		v.Days += daysPerMonth
		v.Months--
	case v.Months < 0 && v.Days > 0:
		v.Days -= daysPerMonth
		v.Months++
	}
	return v, nil
}

// justify is justify_interval.
func justify(v value) (value, error) {
	if v.Days > 0 && v.Int > 0 || v.Days < 0 && v.Int < 0 { // as PostgreSQL keeps clear of overflow
		if err := carryDays(&v); err != nil {
			return value{}, err
		}
	}
	days := v.Int / dayTime
	v.Int -= days * dayTime
	v.Days += int32(days) // cannot overflow: it is below 30, or of the other sign
	if err := carryDays(&v); err != nil {
		return value{}, err
	}
	switch {
	case v.Months > 0 && (v.Days < 0 || v.Days == 0 && v.Int < 0):
		v.Days += daysPerMonth
		v.Months--
	case v.Months < 0 && (v.Days > 0 || v.Days == 0 && v.Int > 0):
		v.Days -= daysPerMonth
		v.Months++
	}
	return signTime(v), nil
}

// monthUnits are the units of date_trunc above days, in months.
var monthUnits = map[string]int32{
	"month": 1, "months": 1, "quarter": 3, "year": 12, "years": 12, "decade": 120, "decades": 120, "century": 1200, "centuries": 1200,
	"millennium": 12000, "millennia": 12000,
}

// timeUnits are those below, in microseconds.
var timeUnits = map[string]int64{
	"hour": hour, "hours": hour, "minute": minute, "minutes": minute, "second": second, "seconds": second,
	"milliseconds": 1000, "millisecond": 1000, "microseconds": 1, "microsecond": 1,
}

func truncInterval(unit string, v value) (value, error) {
	u := strings.ToLower(unit)
	switch {
	case monthUnits[u] != 0:
		return value{Months: v.Months / monthUnits[u] * monthUnits[u]}, nil
	case u == "day" || u == "days":
		return value{Months: v.Months, Days: v.Days}, nil
	case timeUnits[u] != 0:
		v.Int = v.Int / timeUnits[u] * timeUnits[u]
		return v, nil
	case u == "week" || u == "weeks":
		return value{}, pgerr.New(codes.FeatureNotSupported, "unit \"%s\" not supported for type interval", unitName(u))
	}
	return value{}, unknownUnit(u, "interval")
}

func unitName(u string) string { return strings.Clone(u) }

func unknownUnit(u, typ string) error {
	return pgerr.New(codes.InvalidParameterValue, "unit \"%s\" not recognized for type %s", unitName(u), typ)
}

func makeInterval(a []value) (value, error) {
	f := a[6].Float
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return value{}, errIntervalRange
	}
	months := a[0].Int*12 + a[1].Int
	days := a[2].Int*7 + a[3].Int
	micros := float64(a[4].Int)*float64(hour) + float64(a[5].Int)*float64(minute) + math.RoundToEven(f*1e6)
	if months != int64(int32(months)) || days != int64(int32(days)) {
		return value{}, errIntervalRange
	}
	if math.Abs(micros) > math.MaxInt64 { // PostgreSQL 15 does not notice
		return value{}, unsupported("intervals of that many seconds are not supported")
	}
	exact := a[4].Int*hour + a[5].Int*minute + int64(math.RoundToEven(f*1e6))
	return value{Months: int32(months), Days: int32(days), Int: exact}, nil
}

// The fields of an interval type, as its modifier has them in the upper half: PostgreSQL's masks.
const (
	FieldMonth  = 1 << 1
	FieldYear   = 1 << 2
	FieldDay    = 1 << 3
	FieldHour   = 1 << 10
	FieldMinute = 1 << 11
	FieldSecond = 1 << 12
	FieldsAll   = 0x7fff
)

func intervalModFunctions() []scalar.Function {
	return []scalar.Function{{
		Name: "skippr_iv_mod", Params: kinds(scalar.Interval, scalar.Int32), Result: scalar.Interval,
		Call: func(a []value) (value, error) { return limitInterval(a[0], int32(a[1].Int)), nil },
	}}
}

// limitInterval leaves what an interval of a modifier holds: PostgreSQL's
// AdjustIntervalForTypmod.
func limitInterval(v value, mod int32) value {
	const monthsPerYear, hour, minute = 12, 3600 * 1e6, 60 * 1e6
	whole := func(unit int64) { v.Int = v.Int / unit * unit }
	fields := mod >> 16
	switch {
	case fields == FieldsAll || fields&FieldSecond != 0:
	case fields&FieldMinute != 0:
		whole(minute)
	case fields&FieldHour != 0:
		whole(hour)
	case fields&FieldDay != 0:
		v.Int = 0
	default:
		v.Days, v.Int = 0, 0
		if fields == FieldYear {
			v.Months = v.Months / monthsPerYear * monthsPerYear
		}
	}
	if p := mod & 0xffff; p < 6 {
		scale := int64(1)
		for range 6 - p {
			scale *= 10
		}
		if v.Int >= 0 {
			v.Int = (v.Int + scale/2) / scale * scale
		} else {
			v.Int = -((-v.Int + scale/2) / scale * scale)
		}
	}
	return v
}
