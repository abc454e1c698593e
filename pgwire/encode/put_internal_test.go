package encode

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// numbers are random integers of every length, and the ends of every length.
func numbers(rnd *rand.Rand) []int64 {
	out := []int64{0, math.MaxInt64, math.MinInt64}
	for _, p := range pow10[:19] {
		out = append(out, int64(p), int64(p)-1, -int64(p), 1-int64(p))
	}
	for range 20_000 {
		n := rnd.Int64() >> rnd.IntN(64)
		out = append(out, n, -n)
	}
	return out
}

// TestPutAgreesWithAppend compares what is written in place with the general way.
func TestPutAgreesWithAppend(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	var b [64]byte
	check := func(what string, v any, n int, want []byte) {
		if string(b[:n]) != string(want) {
			t.Fatalf("%s %v: %q, want %q", what, v, b[:n], want)
		}
	}
	for _, v := range numbers(rnd) {
		neg, u := v < 0, uint64(v)
		if neg {
			u = -u
		}
		check("int", v, putInt(b[:], v), appendDecimal(nil, neg, 0, u, 0))
		scale := rnd.IntN(19)
		check("decimal", v, putDecimal(b[:], v, scale), appendDecimal(nil, neg, 0, u, scale))
		check("numeric", v, putNumeric(b[:], v, scale), appendNumericBinary(nil, neg, 0, u, scale))
		for _, f := range []float64{float64(v), float64(v) / float64(pow10[rnd.IntN(9)]), math.Float64frombits(uint64(v))} {
			check("float", f, putFloat(b[:], f), appendFloat(nil, f, 64))
		}
	}
}

// TestPutStampAgreesWithAppend does so for times, in zones with and without offsets.
func TestPutStampAgreesWithAppend(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	lmt, err := LoadZone("Europe/Amsterdam") // with seconds in its old offset
	if err != nil {
		t.Fatal(err)
	}
	var b [64]byte
	for _, loc := range []*time.Location{time.UTC, lmt, time.FixedZone("", -5400)} {
		s := state{zone: zoneCache{loc: loc}, days: new(dayCache)}
		for _, us := range numbers(rnd) {
			us -= us % []int64{1, 10, 1e3, 1e6, dayMicros}[rnd.IntN(5)]
			day := int32(floorDiv(us, dayMicros))
			for name, form := range map[string][2]string{
				"date":        {string(b[:s.putDate(b[:], day)]), string(s.appendDate(nil, day))},
				"timestamp":   {string(b[:s.putStamp(b[:], us, false)]), string(s.appendTimestamp(nil, us))},
				"timestamptz": {string(b[:s.putStamp(b[:], us, true)]), string(s.appendTimestampTZ(nil, us))},
			} {
				if form[0] != form[1] {
					t.Fatalf("%s %d in %v: %q, want %q", name, us, loc, form[0], form[1])
				}
			}
		}
	}
}
