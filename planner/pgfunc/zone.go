package pgfunc

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// cache keeps what was made of the constants of statements. It forgets all when it is full.
type cache[T any] struct {
	mu   sync.RWMutex
	made map[string]T
}

const cacheMax = 1000

// get returns what was made of a key, or makes it; what cannot be made is not kept.
func (c *cache[T]) get(key string, create func() (T, bool)) (T, bool) {
	c.mu.RLock()
	v, ok := c.made[key]
	c.mu.RUnlock()
	if ok {
		return v, true
	}
	if v, ok = create(); !ok {
		return v, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= cacheMax {
		c.made = map[string]T{}
	}
	c.made[strings.Clone(key)] = v
	return v, true
}

var zoneCache cache[*time.Location]

// abbreviations are the zone abbreviations that PostgreSQL knows by default and that mean
// one offset, in minutes.
var abbreviations = map[string]int{
	"utc": 0, "gmt": 0, "z": 0, "zulu": 0, "ut": 0, "wet": 0, "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360,
	"pst": -480, "pdt": -420, "cet": 60, "cest": 120, "eet": 120, "eest": 180, "bst": 60, "west": 60, "jst": 540, "hst": -600,
	"akst": -540, "akdt": -480, "ast": -240, "adt": -180, "nst": -210, "ist": 120, "msk": 180, "aest": 600, "aedt": 660, "acst": 570,
	"awst": 480, "nzst": 720, "nzdt": 780, "kst": 540, "met": 60, "mest": 120,
}

// findZone finds a zone by its name, an abbreviation, or an offset in POSIX's sign: "+03"
// lies west.
func findZone(name string) (*time.Location, bool) {
	low := strings.ToLower(name)
	if m, ok := abbreviations[low]; ok {
		return time.FixedZone(strings.ToUpper(name), m*60), true
	}
	if low == "" || low == "local" {
		return nil, false
	}
	if seconds, ok := zoneOffset(name); ok {
		return time.FixedZone(name, -seconds), true
	}
	if low[0] >= '0' && low[0] <= '9' { // hours, which only a setting may be
		return nil, false
	}
	loc, err := encode.LoadZone(name)
	return loc, err == nil
}

// easternZone finds a zone by its name, or an offset in ISO's sign: "+03" lies east.
func easternZone(name string) (*time.Location, error) {
	if seconds, ok := zoneOffset(name); ok {
		return time.FixedZone("", seconds), nil
	}
	return zoneNamed(name)
}

// zoneOffset reads ±hh[:mm[:ss]].
func zoneOffset(s string) (seconds int, ok bool) {
	sign := 1
	switch {
	case strings.HasPrefix(s, "-"):
		sign = -1
	case !strings.HasPrefix(s, "+"):
		return 0, false
	}
	unit := 3600
	for _, part := range strings.Split(s[1:], ":") {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || unit == 0 {
			return 0, false
		}
		seconds += int(n) * unit
		unit /= 60
	}
	return sign * seconds, true
}

// julianText is a Julian day with its fraction, as PostgreSQL's numeric division shows it.
func julianText(day, micros int64) string {
	q, err := numeric.Div(numeric.FromInt(micros), numeric.FromInt(dayTime))
	if err != nil {
		return strconv.FormatInt(day, 10)
	}
	sum, err := numeric.Add(numeric.FromInt(day), q)
	if err != nil {
		return strconv.FormatInt(day, 10)
	}
	return sum.Text()
}

// intervalEpoch is the seconds of an interval: a year has 365.25 days.
func intervalEpoch(v value) (value, error) {
	days := int64(v.Months/12)*36525 + int64(v.Months%12)*3000 + int64(v.Days)*100 // in hundredths
	sum := new(big.Int).Mul(big.NewInt(days), big.NewInt(dayTime/100))
	n, err := numeric.FromBig(sum.Add(sum, big.NewInt(v.Int)), 6)
	return scalar.OfText(n.Text()), err
}

// zoneAt is the abbreviation and the offset of a zone at a moment.
func zoneAt(t int64, loc *time.Location) (string, int) {
	return time.UnixMicro(t).In(loc).Zone()
}

// zonedText is timestamptz_out in a zone, in the ISO style.
func zonedText(t int64, loc *time.Location) string {
	switch {
	case t >= futureMoment:
		return "infinity"
	case t <= pastMoment:
		return "-infinity"
	}
	_, offset := zoneAt(t, loc)
	local := floorDiv(t, second) + int64(offset) // seconds, which cannot overflow
	day, left := floorDiv(local, 86400), floorMod(local, 86400)
	year, month, mday := civil(day)
	era := ""
	if year <= 0 {
		year, era = 1-year, " BC"
	}
	s := fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", year, month, mday, left/3600, left/60%60, left%60)
	if us := floorMod(t, second); us != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%06d", us), "0")
	}
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	s += fmt.Sprintf("%c%02d", sign, offset/3600)
	if offset%3600 != 0 {
		s += fmt.Sprintf(":%02d", offset/60%60)
	}
	if offset%60 != 0 {
		s += fmt.Sprintf(":%02d", offset%60)
	}
	return s + era
}

// addZoned is timestamptz + interval: months and days are those of the zone.
func addZoned(t int64, iv value, loc *time.Location) (value, error) {
	if infiniteMoment(t) {
		return scalar.OfInt(t), nil
	}
	for _, step := range []value{{Months: iv.Months}, {Days: iv.Days}} {
		if step.Months == 0 && step.Days == 0 {
			continue
		}
		_, offset := zoneAt(t, loc)
		local, err := addMoment(t+int64(offset)*second, step)
		if err != nil {
			return value{}, err
		}
		t = local.Int - localOffset(local.Int, loc)*second
	}
	return addMoment(t, value{Int: iv.Int})
}
