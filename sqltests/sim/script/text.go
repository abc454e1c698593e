package script

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// header begins the text of a schedule; the number is its version.
const header = "sim 1"

// recordsMax bounds what is read.
const recordsMax = 4096

// Format renders a schedule: a line for each record, defaults left out.
func Format(s Schedule, faultName func(uint8) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nseed %d\nconfig %x\n", header, s.Seed, s.Config)
	for _, r := range s.Records {
		b.WriteString(r.Op.String())
		if r.Arg != 0 {
			fmt.Fprintf(&b, " %d", r.Arg)
		}
		if r.Rand != 0 {
			fmt.Fprintf(&b, " rand=%d", r.Rand)
		}
		if r.Fault != 0 {
			fmt.Fprintf(&b, " fault=%s", faultName(r.Fault))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse reads what Format wrote. Lines that begin with # and empty ones are skipped.
func Parse(r io.Reader, faultByName func(string) (uint8, bool)) (Schedule, error) {
	var s Schedule
	begun := false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var err error
		switch {
		case !begun:
			if strings.Join(words, " ") != header {
				return s, fmt.Errorf("line %d: not a schedule of version 1", n)
			}
			begun = true
		case words[0] == "seed" && len(words) == 2:
			s.Seed, err = strconv.ParseUint(words[1], 10, 64)
		case words[0] == "config" && len(words) == 2:
			err = s.parseConfig(words[1])
		default:
			if len(s.Records) == recordsMax {
				return s, fmt.Errorf("line %d: more than %d records", n, recordsMax)
			}
			var rec Record
			rec, err = parseRecord(words, faultByName)
			s.Records = append(s.Records, rec)
		}
		if err != nil {
			return s, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return s, err
	}
	if !begun {
		return s, errors.New("empty schedule")
	}
	return s, nil
}

func (s *Schedule) parseConfig(text string) error {
	if len(text) != 2*ConfigBytes {
		return fmt.Errorf("config has %d digits, not %d", len(text), 2*ConfigBytes)
	}
	for i := range s.Config {
		b, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		if err != nil {
			return err
		}
		s.Config[i] = byte(b)
	}
	return nil
}

func parseRecord(words []string, faultByName func(string) (uint8, bool)) (Record, error) {
	var r Record
	found := false
	for op, name := range opNames {
		if name == words[0] {
			r.Op, found = Op(op), true
		}
	}
	if !found {
		return r, fmt.Errorf("unknown operation %q", words[0])
	}
	for _, w := range words[1:] {
		name, value, named := strings.Cut(w, "=")
		switch {
		case named && name == "fault":
			f, ok := faultByName(value)
			if !ok {
				return r, fmt.Errorf("unknown fault %q", value)
			}
			r.Fault = f
		case named && name == "rand":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return r, err
			}
			r.Rand = uint16(n)
		default:
			n, err := strconv.ParseUint(w, 10, 8)
			if err != nil {
				return r, err
			}
			r.Arg = uint8(n)
		}
	}
	return r, nil
}
