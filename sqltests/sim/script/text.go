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

// storeLine has the hosts' logs on an object store, ownLine clients in place of a source.
const (
	storeLine = "store"
	ownLine   = "own"
)

// configWords name the configuration bytes.
var configWords = [ConfigBytes]string{
	"segment", "rows", "reclaim", "compaction", "group", "retention", "keys", "c7", "c8", "c9", "computed", "whole",
}

// Format renders a schedule: a line for each record, defaults left out.
func Format(s Schedule, faultName func(uint8) string) string {
	var b strings.Builder
	fmt.Fprintln(&b, header)
	for _, line := range s.About {
		fmt.Fprintln(&b, "#", line)
	}
	if s.Store {
		fmt.Fprintln(&b, storeLine)
	}
	if s.Own {
		fmt.Fprintln(&b, ownLine)
	}
	if s.Seed != 0 {
		fmt.Fprintln(&b, "seed", s.Seed)
	}
	for i, v := range s.Config {
		if v != 0 {
			fmt.Fprintln(&b, "set", configWords[i], v)
		}
	}
	for _, w := range s.Want {
		fmt.Fprintln(&b, "want mark", w)
	}
	for _, r := range s.Records {
		formatRecord(&b, r, faultName)
	}
	return b.String()
}

func formatRecord(b *strings.Builder, r Record, faultName func(uint8) string) {
	text, ok := r.directed()
	if ok {
		op := r.Op
		if op == ClientMore {
			op = Client
		}
		b.WriteString(op.String() + " " + text)
	} else {
		b.WriteString(r.Op.String())
		switch {
		case r.Arg == 0:
		case r.Op < Change:
			fmt.Fprintf(b, " %d", r.Arg)
		default:
			fmt.Fprintf(b, " arg=%d", r.Arg)
		}
		if r.Rand != 0 {
			fmt.Fprintf(b, " rand=%d", r.Rand)
		}
	}
	if r.Fault != 0 {
		fmt.Fprintf(b, " fault=%s", faultName(r.Fault))
	}
	b.WriteByte('\n')
}

// Parse reads what Format wrote. Empty lines are skipped. Lines that begin with # say what
// the schedule is about when they come before the first record.
func Parse(r io.Reader, faultByName func(string) (uint8, bool)) (Schedule, error) {
	var s Schedule
	begun := false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		words := strings.Fields(line)
		var err error
		switch {
		case len(words) == 0:
		case line[0] == '#':
			if len(s.Records) == 0 {
				s.About = append(s.About, strings.TrimSpace(line[1:]))
			}
		case !begun:
			if strings.Join(words, " ") != header {
				return s, fmt.Errorf("line %d: not a schedule of version 1", n)
			}
			begun = true
		default:
			err = s.parseLine(words, faultByName)
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

func (s *Schedule) parseLine(words []string, faultByName func(string) (uint8, bool)) (err error) {
	switch {
	case words[0] == storeLine && len(words) == 1:
		s.Store = true
	case words[0] == ownLine && len(words) == 1:
		s.Own = true
	case words[0] == "seed" && len(words) == 2:
		s.Seed, err = strconv.ParseUint(words[1], 10, 64)
	case words[0] == "config" && len(words) == 2:
		err = s.parseConfig(words[1])
	case words[0] == "set" && len(words) == 3:
		err = s.set(words[1], words[2])
	case words[0] == "want" && len(words) > 2 && words[1] == "mark":
		s.Want = append(s.Want, strings.Join(words[2:], " "))
	default:
		if len(s.Records) == RecordsMax {
			return fmt.Errorf("more than %d records", RecordsMax)
		}
		var rec Record
		rec, err = parseRecord(words, faultByName)
		s.Records = append(s.Records, rec)
	}
	return err
}

func (s *Schedule) set(name, value string) error {
	for i, w := range configWords {
		if w == name {
			n, err := strconv.ParseUint(value, 10, 8)
			s.Config[i] = byte(n)
			return err
		}
	}
	return fmt.Errorf("unknown setting %q", name)
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
	words = words[1:]
	var directed []string
	for _, w := range words {
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
		case named && name == "arg":
			n, err := strconv.ParseUint(value, 10, 8)
			if err != nil {
				return r, err
			}
			r.Arg = uint8(n)
		default:
			directed = append(directed, w)
		}
	}
	switch {
	case len(directed) == 0:
		return r, nil
	case r.Op < Change:
		n, err := strconv.ParseUint(directed[0], 10, 8)
		if err != nil || len(directed) > 1 {
			return r, fmt.Errorf("%v takes a number, not %q", r.Op, directed)
		}
		r.Arg = uint8(n)
		return r, nil
	}
	d, err := parseDirected(r.Op, directed)
	d.Fault = r.Fault
	return d, err
}
