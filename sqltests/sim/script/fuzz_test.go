package script_test

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/sim/script"
)

func faultName(f uint8) string { return "f" + strconv.Itoa(int(f)) }

func faultByName(name string) (uint8, bool) {
	digits, ok := strings.CutPrefix(name, "f")
	n, err := strconv.ParseUint(digits, 10, 8)
	return uint8(n), ok && err == nil
}

// A compact schedule is refused, or says the same as its text and as its own compact form.
func FuzzDecode(f *testing.F) {
	f.Add(script.Encode(script.Generate(1, 0)))
	f.Add(script.Encode(script.Schedule{Store: true, Records: []script.Record{{Op: script.Do, Arg: 21, Rand: 700, Fault: 3}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := script.Decode(b)
		if err != nil {
			return
		}
		if len(s.Records) > script.RecordsMax {
			t.Fatalf("%d records", len(s.Records))
		}
		if back, err := script.Decode(script.Encode(s)); err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%+v became %+v, %v", s, back, err)
		}
		text := script.Format(s, faultName)
		back, err := script.Parse(strings.NewReader(text), faultByName)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !bytes.Equal(script.Encode(back), script.Encode(s)) {
			t.Fatalf("text\n%s\ngives %+v, not %+v", text, back, s)
		}
	})
}

// A text is refused, or its schedule is written so that it reads the same.
func FuzzParse(f *testing.F) {
	f.Add("sim 1\n# about\nwant mark x y\nset rows 12\nstore\nseed 7\nchange move ints 1-2 odd\ncommit parts\nstop any at sync\n" +
		"go any fault=f3\nwait 5\ndo clock_ahead 9\ntick 3 rand=9\ndo query b\n")
	f.Add("sim 1\nconfig 000102030405060708090a0b\nstop arg=200 rand=999\nchange arg=31 rand=65535\ndo arg=99\nwait arg=3\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := script.Parse(strings.NewReader(text), faultByName)
		if err != nil {
			return
		}
		again := script.Format(s, faultName)
		back, err := script.Parse(strings.NewReader(again), faultByName)
		if err != nil || !bytes.Equal(script.Encode(back), script.Encode(s)) {
			t.Fatalf("%+v is written as\n%s\nwhich reads as %+v, %v", s, again, back, err)
		}
	})
}

// Every patch of every schedule is a schedule.
func FuzzPatch(f *testing.F) {
	f.Add(uint64(1), []byte{3, 0, 255, 0, 0, 0, 0, 1, 0, 254, 0, 0, 0, 0, 9, 9, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, seed uint64, patch []byte) {
		s := script.Generate(seed, 0)
		before := script.Encode(s)
		p := script.Patch(s, patch)
		if !bytes.Equal(script.Encode(s), before) {
			t.Fatal("the schedule itself was changed")
		}
		if back, err := script.Decode(script.Encode(p)); err != nil || len(back.Records) != len(p.Records) {
			t.Fatalf("%d records became %d, %v", len(p.Records), len(back.Records), err)
		}
	})
}
