package slt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// directive reads a record of one line.
func (p *parser) directive(rec *Record) error {
	words := rec.Words
	switch words[0] {
	case "halt":
		rec.Kind = Halt
	case "subtest":
		rec.Kind = Subtest
	case "control":
		rec.Kind = Control
		return p.control(words)
	case "hash-threshold":
		rec.Kind = Threshold
		_, err := p.number(words)
		return err
	case "sleep":
		rec.Kind = Sleep
		d, err := duration(words[1:])
		if err != nil {
			return p.errorf("sleep: %w", err)
		}
		rec.Duration = d
	case "user":
		rec.Kind = User
		return p.user(words[1:])
	case "awaitstatement", "awaitquery":
		rec.Kind = Await
		if len(words) != 2 {
			return p.errorf("%s needs a name", words[0])
		}
	case "mode":
		return p.mode(rec)
	case "continue":
		rec.Kind = Continue
		if p.loop == 0 {
			return p.errorf("continue outside of a loop")
		}
	case "require":
		rec.Kind = Require
		if len(words) < 2 {
			return p.errorf("require needs a name")
		}
	case "require-env", "test-env":
		rec.Kind = Env
		if len(words) < 2 || len(words) > 3 || words[0] == "test-env" && len(words) != 3 {
			return p.errorf("%s needs a name and a value", words[0])
		}
	default:
		return p.foreign(rec)
	}
	return nil
}

// foreign reads the words of other engines that have no meaning on a server reached
// over the network.
func (p *parser) foreign(rec *Record) error {
	switch rec.Words[0] {
	case "reconnect":
		rec.Kind = Reconnect
	case "tags", "traceon", "traceoff", "kv-batch-size":
		rec.Kind = Ignored
	case "set", "reset":
		if len(rec.Words) > 1 && strings.HasSuffix(rec.Words[1], "ignore_error_messages") {
			rec.Kind = Ignored
			return nil
		}
		return p.errorf("unknown directive %q", strings.Join(rec.Words, " "))
	case "load", "restart", "unzip", "upgrade", "skip":
		rec.Kind = Rest
	default:
		return p.errorf("unknown directive %q", rec.Words[0])
	}
	return nil
}

func (p *parser) control(words []string) error {
	if len(words) != 3 {
		return p.errorf("control needs a name and a value")
	}
	values := map[string]string{
		"sortmode": " nosort rowsort valuesort ", "resultmode": " rowwise columnwise valuewise ", "substitution": " on off ",
	}[words[1]]
	if !strings.Contains(values, " "+words[2]+" ") {
		return p.errorf("unknown control %q", strings.Join(words[1:], " "))
	}
	return nil
}

// user checks user NAME [newsession] [nodeidx=N].
func (p *parser) user(words []string) error {
	if len(words) == 0 {
		return p.errorf("user needs a name")
	}
	for _, w := range words[1:] {
		if w != "newsession" && !strings.HasPrefix(w, "nodeidx=") {
			return p.errorf("unknown option %q of user", w)
		}
	}
	return nil
}

func (p *parser) mode(rec *Record) error {
	if len(rec.Words) != 2 {
		return p.errorf("mode needs a name")
	}
	switch rec.Words[1] {
	case "skip", "unskip":
		rec.Kind = Mode
	case "output_hash", "output_result", "no_output", "debug":
		rec.Kind = Ignored
	default:
		return p.errorf("unknown mode %q", rec.Words[1])
	}
	return nil
}

var (
	durationPart = regexp.MustCompile(`^(\d+(?:\.\d+)?)([a-zµ]+)`)
	units        = map[string]time.Duration{
		"ns": 1, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute,
		"h": time.Hour, "nanosecond": 1, "microsecond": time.Microsecond, "millisecond": time.Millisecond,
		"msec": time.Millisecond, "usec": time.Microsecond, "nsec": 1,
		"sec": time.Second, "second": time.Second, "min": time.Minute, "minute": time.Minute, "hour": time.Hour, "hr": time.Hour,
	}
)

const durationMax = 24 * time.Hour

// duration reads 2s, 1m30s, "100 milliseconds", 2min.
func duration(words []string) (time.Duration, error) {
	text := strings.ToLower(strings.Join(words, ""))
	if text == "" {
		return 0, fmt.Errorf("a duration is needed, like 2s")
	}
	var sum time.Duration
	for rest := text; rest != ""; {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, fmt.Errorf("%q is no duration, like 2s", text)
		}
		unit, ok := units[m[2]]
		if !ok {
			unit, ok = units[strings.TrimSuffix(m[2], "s")]
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || !ok || n > float64(durationMax) {
			return 0, fmt.Errorf("%q is no duration, like 2s", text)
		}
		if sum += time.Duration(n * float64(unit)); sum > durationMax || n*float64(unit) > float64(durationMax) {
			return 0, fmt.Errorf("%s is longer than a day", text)
		}
		rest = rest[len(m[0]):]
	}
	return sum, nil
}
