package pgfunc

import "github.com/skipprd/skipprd/lake/scalar"

// bitFunctions are the shifts, which wrap as those of C do.
func bitFunctions() []scalar.Function {
	i64, i32 := scalar.Int64, scalar.Int32
	return []scalar.Function{
		{Name: "skippr_shl", Params: kinds(i64, i64, i32), Result: i64, Call: func(a []value) (value, error) {
			return scalar.OfInt(shift(a, func(n int64, by uint) int64 { return n << by })), nil
		}},
		{Name: "skippr_shr", Params: kinds(i64, i64, i32), Result: i64, Call: func(a []value) (value, error) {
			return scalar.OfInt(shift(a, func(n int64, by uint) int64 { return n >> by })), nil
		}},
	}
}

// shift shifts an integer of 16, 32 or 64 bits: those of 16 are shifted as ones of 32.
func shift(a []value, f func(n int64, by uint) int64) int64 {
	bits := a[2].Int
	mask := uint(63)
	if bits <= 32 {
		mask = 31
	}
	n := f(a[0].Int, uint(a[1].Int)&mask)
	return n << (64 - bits) >> (64 - bits)
}
