package copyin

import (
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// lineEnding is what ends the lines of the data: what ended the first one.
type lineEnding byte

const (
	endUnknown lineEnding = iota
	endNL
	endCR
	endCRNL
)

// lines finds the lines of text and csv.
type lines struct {
	csv           bool
	quote, escape byte // escape is 0 where quotes are doubled
	special       [256]bool
	ending        lineEnding
	used          int  // bytes of the current line, with its end
	done          bool // there are no lines behind the current one
}

func newLines(o Options) lines {
	l := lines{csv: o.Format == CSV}
	special := []byte{'\r', '\n', '\\'}
	if l.csv {
		if l.quote = o.Quote; o.Escape != o.Quote {
			l.escape = o.Escape
		}
		special = []byte{'\r', '\n', o.Quote, o.Escape}
	}
	for _, c := range special {
		l.special[c] = true
	}
	return l
}

// skip is the index of the next special byte, or where the window ends.
func (l *lines) skip(w []byte, at int) int {
	for at < len(w) && !l.special[w[at]] {
		at++
	}
	return at
}

// text finds the end of a line of the text format: the length of what is before it.
func (l *lines) text(in *input) (int, error) {
	at := 0
	for {
		w := in.window()
		at = l.skip(w, at)
		if at > in.max {
			return 0, in.tooLong()
		}
		if at >= len(w) {
			if ok, err := in.more(); err != nil {
				return 0, err
			} else if !ok {
				return l.last(in)
			}
			continue
		}
		if w[at] != '\\' {
			return at, l.end(in, at)
		}
		switch c, err := in.peek(at + 1); {
		case err != nil:
			return 0, err
		case c == '.':
			_, err := l.marker(in, at)
			return at, err
		}
		at += 2 // an escaped line end is data, and so is the second of two backslashes
	}
}

// quoted finds the end of a line of csv, which may hold line ends in quotes. It counts
// those in line.
func (l *lines) quoted(in *input, line *uint64) (int, error) {
	inQuote, escaped := false, false
	if end, err := l.markerLine(in); end || err != nil {
		return 0, err
	}
	for at := 0; ; at++ {
		w := in.window()
		if next := l.skip(w, at); next > at {
			at, escaped = next, false
		}
		if at > in.max {
			return 0, in.tooLong()
		}
		if at >= len(w) {
			if ok, err := in.more(); err != nil {
				return 0, err
			} else if !ok {
				return l.last(in)
			}
			at--
			continue
		}
		c := w[at]
		if c == '\r' { // PostgreSQL looks ahead before it counts
			if _, err := in.peek(at + 1); err != nil {
				return 0, err
			}
		}
		if inQuote && l.escape != 0 && c == l.escape {
			escaped = !escaped
		}
		if c == l.quote && !escaped {
			inQuote = !inQuote
		}
		if c != l.escape {
			escaped = false
		}
		if c != '\r' && c != '\n' {
			continue
		}
		if !inQuote {
			return at, l.end(in, at)
		}
		if (c == '\n') == (l.ending == endNL) {
			*line++
		}
	}
}

// Both look at the limit where they stop, not at how much has been read: how the data
// is cut must not matter.

// last is the line that the end of the data ends.
func (l *lines) last(in *input) (int, error) {
	l.used, l.done = len(in.window()), true
	return l.used, nil
}

// end takes the line end at an index; all must be alike.
func (l *lines) end(in *input, at int) error {
	l.used = at + 1
	if in.window()[at] == '\n' {
		if l.ending == endCR || l.ending == endCRNL {
			return l.wrongEnd("newline", `\n`)
		}
		l.ending = endNL
		return nil
	}
	switch l.ending {
	case endNL:
		return l.wrongEnd("carriage return", `\r`)
	case endCR:
		return nil
	}
	c, err := in.peek(at + 1)
	switch {
	case err != nil:
		return err
	case c == '\n':
		l.used, l.ending = at+2, endCRNL
	case l.ending == endCRNL:
		return l.wrongEnd("carriage return", `\r`)
	default:
		l.ending = endCR
	}
	return nil
}

func (l *lines) wrongEnd(name, escape string) *pgerr.Error {
	if l.csv {
		return badFormat("unquoted %s found in data", name).WithHint("Use quoted CSV field to represent %s.", name)
	}
	return badFormat("literal %s found in data", name).WithHint("Use \"%s\" to represent %s.", escape, name)
}

// markerLine tells whether a line of csv is the end marker.
func (l *lines) markerLine(in *input) (bool, error) {
	for i, want := range []int{'\\', '.'} {
		if c, err := in.peek(i); c != want {
			return false, err
		}
	}
	return l.marker(in, 0)
}

// marker looks at the \. at an index, which ends the data if a line end follows. In
// csv it is data otherwise; in text it is an error.
func (l *lines) marker(in *input, at int) (bool, error) {
	mismatch := badFormat("end-of-copy marker does not match previous newline style")
	refused := badFormat("end-of-copy marker corrupt")
	c, err := in.peek(at + 2)
	ok := true
	if l.ending == endCRNL && err == nil {
		if c == '\n' {
			refused = mismatch
		}
		if ok = c == '\r'; ok {
			c, err = in.peek(at + 3)
		}
	}
	switch ok = ok && (c == '\r' || c == '\n'); {
	case err != nil:
		return false, err
	case !ok && l.csv:
		return false, nil
	case !ok:
		return false, refused
	case (l.ending == endNL || l.ending == endCRNL) && c != '\n', l.ending == endCR && c != '\r':
		return false, mismatch
	}
	l.used, l.done = at, true
	return true, in.drain(at)
}
