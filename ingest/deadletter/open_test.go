package deadletter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// letterOf is a letter of table 1 with a token, a key and a row.
func letterOf(t *Table, token int64, key, row string) *catalog.DeadLetter {
	r := &Refused{Op: change.Insert, Token: token, Key: key, Row: row}
	l := t.Letter(r, 1, false, 0)
	l.ID = uint64(token)
	return l
}

func ids(refs []catalog.DeadLetterRef) string {
	var out []string
	for _, r := range refs {
		out = append(out, fmt.Sprint(r.ID))
	}
	return strings.Join(out, ",")
}

// TestOpen: which letters a change supersedes, and that everything can be taken back.
func TestOpen(t *testing.T) {
	table := NewOpen(3, map[change.TableID]uint32{1: 0}).Table(1)
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	if table.Any() || (*Open)(nil).Table(1).Any() {
		t.Error("letters where there are none")
	}
	closes, _ := table.Add(letterOf(table, 5, "a", "r5"))
	want("first of a key", ids(closes), "")
	closes, undo := table.Add(letterOf(table, 7, "a", "r7"))
	want("newer of the key", ids(closes), "5")
	undo()
	row, open := table.Row("a")
	want("after it was taken back", fmt.Sprint(row, open), "r5true")
	closes, _ = table.Add(letterOf(table, 5, "a", "r5"))
	want("the same again", ids(closes), "")
	closes, undo = table.Add(letterOf(table, 3, "a", "r3"))
	want("older than the open one", ids(closes), "3")
	undo()
	table.Add(letterOf(table, 8, "", "x"))
	table.Add(letterOf(table, 9, "", "x"))
	want("full", fmt.Sprint(table.Full() != ""), "true")

	closes, undo = table.PassRow("x", &schema.Table{Version: 1})
	want("a row without a key", ids(closes), "9")
	undo()
	closes, _ = table.PassRow("x", &schema.Table{Version: 1})
	want("it again", ids(closes), "9")
	closes, _ = table.PassRow("y", &schema.Table{Version: 1})
	want("another row", ids(closes), "")
	closes, undo = table.Pass("a")
	want("a change of the key", ids(closes), "5")
	undo()
	closes, _ = table.Pass("b")
	want("a change of another key", ids(closes), "")
	closes, undo = table.PassAll()
	want("truncate", ids(closes), "8,5")
	if table.Any() || table.Full() != "" {
		t.Error("letters after a truncate")
	}
	undo()
	closes, _ = table.PassAll()
	want("truncate again", ids(closes), "8,5")
	if table.bytes != 0 {
		t.Errorf("%d bytes of no letters", table.bytes)
	}
}

// TestRow: rows and keys as they are kept, and what is too large for it.
func TestRow(t *testing.T) {
	text := func(s string) *string { return &s }
	for want, values := range map[string][]Value{
		`{}`:                                    {},
		`{"b":"<1 & \"2\">","a":null,"ü\n":""}`: {{"b", text(`<1 & "2">`)}, {"a", nil}, {"ü\n", text("")}},
		"":                                      {{"a", text(strings.Repeat("x", RowBytesMax))}},
	} {
		got := Row(values)
		if got != want {
			t.Errorf("row is %.80q, want %q", got, want)
		}
		if got == "" {
			continue
		}
		back, err := ParseRow(got)
		if err != nil || len(back) != len(values) {
			t.Errorf("%s is read as %v, %v", got, back, err)
		}
		for _, v := range values {
			if p := back[v.Name]; (p == nil) != (v.Text == nil) || p != nil && *p != *v.Text {
				t.Errorf("%s: column %q is read as another", got, v.Name)
			}
		}
	}
	if k := Text("1", `a"b`, ""); k != `["1","a\"b",""]` {
		t.Errorf("key is %s", k)
	}
}

// TestNotUTF8: bytes that are no text are kept as they are, and none is taken for another.
func TestNotUTF8(t *testing.T) {
	a, b := "x\xff", "x\xfe"
	if k := Text(a, "y"); k != `["\\x78ff","y"]` || k == Text(b, "y") {
		t.Errorf("key is %s", k)
	}
	if r := Row([]Value{{"v", &a}}); r != `{"v":"\\x78ff"}` {
		t.Errorf("row is %s", r)
	}
}

// TestFit: a long row is not kept where there is no room for it; a short one always is.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		row    int
		bytes  int64 // of the table's letters
		left   int64
		kept   bool
		within bool // its group, in the end
	}{
		{10, 0, 1000, true, true},
		{10, OpenBytesMax, 1000, true, true},
		{10, 0, 10, true, false},
		{5 << 20, 0, 6 << 20, true, true},
		{5 << 20, 0, 4 << 20, false, true},
		{5 << 20, OpenBytesMax - 1<<20, 6 << 20, false, true},
	} {
		table := NewOpen(3, map[change.TableID]uint32{1: 0}).Table(1)
		table.bytes = c.bytes
		l := letterOf(table, 5, "a", strings.Repeat("x", c.row))
		id := l.ID
		size, err := table.Fit(l, c.left)
		if err != nil || l.ID != id || (l.Row != "") != c.kept || (size <= c.left) != c.within {
			t.Errorf("%+v: %d bytes, row kept %v, %v", c, size, l.Row != "", err)
		}
	}
}

// TestLetterID: the same change has the same number, another has another.
func TestLetterID(t *testing.T) {
	o := NewOpen(1, map[change.TableID]uint32{1: 0, 2: 0})
	again := NewOpen(1, map[change.TableID]uint32{1: 1})
	r := Refused{Token: 7, Ordinal: 2, Key: "k", Row: "r"}
	seen := map[uint64]string{}
	for name, id := range map[string]uint64{
		"streamed":           o.Table(1).Letter(&r, 1, false, 0).ID,
		"of another table":   o.Table(2).Letter(&r, 1, false, 0).ID,
		"of a later copy":    again.Table(1).Letter(&r, 1, false, 0).ID,
		"of another ordinal": o.Table(1).Letter(&Refused{Token: 7, Ordinal: 3, Key: "k", Row: "r"}, 1, false, 0).ID,
		"copied":             o.Table(1).Letter(&r, 1, true, 0).ID,
		"copied, equal":      o.Table(1).Letter(&r, 1, true, 1).ID,
		"copied, other row":  o.Table(1).Letter(&Refused{Token: 7, Ordinal: 2, Key: "k", Row: "s"}, 1, true, 0).ID,
	} {
		if other, taken := seen[id]; taken || id == 0 || id >= 1<<63 {
			t.Errorf("%s has number %d, as %q", name, id, other)
		}
		seen[id] = name
	}
	if o.Table(1).Letter(&r, 9, false, 5).ID != o.Table(1).Letter(&r, 1, false, 0).ID {
		t.Error("the same change has another number")
	}
}

// TestPrior: what is known of a key's letter, for a change that leaves values out. A row
// that is not what was sent is none.
func TestPrior(t *testing.T) {
	for name, c := range map[string]struct {
		letter catalog.DeadLetter
		want   Prior
	}{
		"of the stream":  {catalog.DeadLetter{Row: "r", SchemaVersion: 3}, Prior{Row: "r", SchemaVersion: 3}},
		"of the copy":    {catalog.DeadLetter{Row: "r", SchemaVersion: 1, Copied: true}, Prior{Row: "r", SchemaVersion: 1, Copied: true}},
		"not its text":   {catalog.DeadLetter{Row: "r\uFFFD", SchemaVersion: 1, Code: CodeEncoding}, Prior{SchemaVersion: 1}},
		"without values": {catalog.DeadLetter{SchemaVersion: 1}, Prior{SchemaVersion: 1}},
	} {
		table := NewOpen(3, map[change.TableID]uint32{1: 0}).Table(1)
		c.letter.Key = "a"
		table.Add(&c.letter)
		if p, _ := table.Prior("a"); p.Pending != c.letter.Copied {
			t.Errorf("%s: pending %v", name, p.Pending)
		}
		table.Settle(&c.letter)
		if got, open := table.Prior("a"); got != c.want || !open {
			t.Errorf("%s: %+v, open %v", name, got, open)
		}
		if _, open := table.Prior("b"); open {
			t.Errorf("%s: a letter of another key", name)
		}
	}
}
