package copying

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCopies(t *testing.T) {
	var c Copies
	in, out := c.Begin(9, 20_001, true), c.Begin(4, 0, false)
	if n, err := io.Copy(io.Discard, in.Reader(strings.NewReader("12345"))); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	in.Add(0, 3)
	in.Of("FILE", 12)
	in.Exclude(1)
	out.Add(100, 7)
	if got, want := c.List(), []Info{{4, 0, false, 100, 7, 0, "PIPE", 0}, {9, 20_001, true, 5, 2, 1, "FILE", 12}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	out.End()
	next := c.Begin(4, 1, false)
	out.End() // again, when the session is at another
	if got := c.List(); len(got) != 2 || got[0].Relation != 1 {
		t.Errorf("%+v", got)
	}
	next.End()
	in.End()
	if got := c.List(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
