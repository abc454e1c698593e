package encode

import (
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// dayOfYear reads 2024.015: a year and its day, of three digits.
func (p *dateTimeParser) dayOfYear(year, day string) *pgerr.Error {
	const yearDigits, dayDigits, longest = 3, 3, 366
	y, err1 := strconv.ParseUint(year, 10, 31)
	d, err2 := strconv.ParseUint(day, 10, 31)
	if err1 != nil || err2 != nil || len(year) < yearDigits || len(day) != dayDigits || d < 1 || d > longest {
		return p.syntax()
	}
	p.setDay(daysFromCivil(int64(y), 1, 1) + int64(d) - 1)
	return nil
}

// julian reads J2451187: a number of days since the beginning of 4713 BC, and perhaps a part of
// one.
func (p *dateTimeParser) julian(number string) *pgerr.Error {
	const epoch, last = 2440588, 2147483493
	whole, frac, part := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	switch {
	case strings.Trim(whole+frac, "0123456789") != "" || p.out.hasDate:
		return p.syntax()
	case err != nil || n > last:
		return errFieldRange(p.text)
	}
	p.setDay(int64(n) - epoch)
	if part && p.typeName != "date" {
		f, err := strconv.ParseFloat("0."+frac+"0", 64)
		if err != nil || p.out.hasTime {
			return p.syntax()
		}
		p.out.micros, p.out.hasTime = int64(f*float64(dayMicros)+0.5), true
	}
	return nil
}

// setDay takes a day, counted from 1970.
func (p *dateTimeParser) setDay(days int64) {
	year, month, day := civil(days)
	p.year, p.month, p.day = year, month, day
	if year <= 0 {
		p.year, p.bc = 1-year, true
	}
	p.hasYear, p.twoDigits, p.out.hasDate = true, false, true
}
