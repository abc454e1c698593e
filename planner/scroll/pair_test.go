package scroll_test

import (
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/scroll"
)

func TestPairs(t *testing.T) {
	const null = "\xff\xff\xff\xff"
	row := "D\x00\x00\x00\x1b\x00\x04\x00\x00\x00\x017" + null + "\x00\x00\x00\x04\x00\x00\x00\x07" + null
	for name, test := range map[string]struct {
		formats []int16
		want    string
	}{
		"text":   {nil, "D\x00\x00\x00\x0f\x00\x02\x00\x00\x00\x017" + null},
		"binary": {[]int16{1, 1}, "D\x00\x00\x00\x12\x00\x02\x00\x00\x00\x04\x00\x00\x00\x07" + null},
		"a part": {[]int16{1}, "D\x00\x00\x00\x0e\x00\x01\x00\x00\x00\x04\x00\x00\x00\x07"},
		"mixed":  {[]int16{0, 1}, "D\x00\x00\x00\x0f\x00\x02\x00\x00\x00\x017" + null},
	} {
		got := ""
		shown := 2
		if name == "a part" {
			shown = 1
		}
		p := scroll.Pairs{Columns: 2, Shown: shown, Formats: test.formats, Send: func(messages []byte, n int) error {
			if n != 2 {
				t.Errorf("%s: %d rows", name, n)
			}
			got = string(messages)
			return nil
		}}
		if err := p.Rows([]byte(row+row), 2); err != nil || got != test.want+test.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	none := "D\x00\x00\x00\x0f\x00\x02\x00\x00\x00\x017" + null
	p := scroll.Pairs{Columns: 1, Shown: 1, Formats: []int16{1}, Send: func([]byte, int) error { return nil }}
	if e, ok := pgerr.As(p.Rows([]byte(none), 1)); !ok || e.Code != "0A000" {
		t.Errorf("without a binary form: %v", e)
	}
	p.Columns = 3
	if p.Rows([]byte(none), 1) == nil {
		t.Error("a row of another number of values is taken")
	}
}
