package pgfunc

import "github.com/skipprd/skipprd/lake/scalar"

// The fields of an interval type, as its modifier has them in the upper half.
const (
	fieldMonth  = 1 << 1
	fieldYear   = 1 << 2
	fieldDay    = 1 << 3
	fieldHour   = 1 << 10
	fieldMinute = 1 << 11
	fieldSecond = 1 << 12
	fieldsAll   = 0x7fff
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
	case fields == fieldsAll || fields&fieldSecond != 0:
	case fields&fieldMinute != 0:
		whole(minute)
	case fields&fieldHour != 0:
		whole(hour)
	case fields&fieldDay != 0:
		v.Int = 0
	default:
		v.Days, v.Int = 0, 0
		if fields == fieldYear {
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
