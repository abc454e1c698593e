package copyin

import "bytes"

// splitCSV splits a line of csv, which may hold line ends in quotes.
func splitCSV(d *Decoder, line []byte) (int, error) {
	o := &d.options
	if bytes.IndexByte(line, o.Quote) < 0 {
		return d.splitPlain(line)
	}
	d.scratchFor(line)
	for i := 0; ; i++ {
		at := plainPart(line, o)
		raw, v := line[:at], line[:at]
		bare := at == len(line) || line[at] != o.Quote
		if !bare {
			start := len(d.scratch)
			var err error
			if d.scratch, at, err = unquote(d.scratch, line, at, o); err != nil {
				return i, err
			}
			v = d.scratch[start:len(d.scratch):len(d.scratch)]
		}
		if err := d.add(i, raw, v, bare); err != nil || at == len(line) {
			return i + 1, err
		}
		line = line[at+1:]
	}
}

// plainPart is how far a line goes without a delimiter or a quote.
func plainPart(line []byte, o *Options) int {
	for i, c := range line {
		if c == o.Delimiter || c == o.Quote {
			return i
		}
	}
	return len(line)
}

// unquote appends the value of the field at the begin of a line whose first quote is
// at an index, and returns where the field ends. Quotes may begin and end anywhere.
func unquote(dst, line []byte, quote int, o *Options) (out []byte, end int, err error) {
	dst = append(dst, line[:quote]...)
	inQuote := true
	for i := quote + 1; i < len(line); i++ {
		c := line[i]
		switch {
		case !inQuote && c == o.Delimiter:
			return dst, i, nil
		case !inQuote && c == o.Quote:
			inQuote = true
		case inQuote && c == o.Escape && i+1 < len(line) && (line[i+1] == o.Escape || line[i+1] == o.Quote):
			i++
			dst = append(dst, line[i])
		case inQuote && c == o.Quote:
			inQuote = false
		default:
			dst = append(dst, c)
		}
	}
	if inQuote {
		return dst, 0, badFormat("unterminated CSV quoted field")
	}
	return dst, len(line), nil
}
