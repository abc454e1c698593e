package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal/change"
)

// tableRows are rows of one table; nil cells are null.
type tableRows []Cells

func row(values ...any) Cells {
	var c Cells
	for _, v := range values {
		if v == nil {
			c = append(c, nil)
			continue
		}
		c = append(c, []byte(fmt.Sprint(v)))
	}
	return c
}

// Rows implements Here.
func (r tableRows) Rows(_ context.Context, _ *Table, emit func(Cells) error) error {
	for _, c := range r {
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

// fakeSource has rows, and counts the most that it was asked for in one go.
type fakeSource struct {
	rows   tableRows
	bounds []string
	table  *Table
	most   int
	open   error
	passes int
}

func (*fakeSource) Before() int64             { return 1 }
func (*fakeSource) Position() change.Position { return "0/1" }
func (f *fakeSource) Open(_ context.Context, t *Table) (Reader, error) {
	f.table = t
	return f, f.open
}
func (*fakeSource) Done(context.Context) error                          { return nil }
func (*fakeSource) Close()                                              {}
func (f *fakeSource) Bounds(_ context.Context, n int) ([]string, error) { return f.bounds, nil }

func (f *fakeSource) Sums(_ context.Context, q *Query, tick func(float64)) (map[Unit]Sum, error) {
	out := map[Unit]Sum{}
	c := &cutter{table: f.table, query: q}
	f.passes++
	tick(0.5)
	return out, f.rows.Rows(context.Background(), nil, func(r Cells) error {
		u, _, h, wanted, err := c.unit(r)
		if wanted {
			a, b := h.halves()
			out[u] = Sum{Rows: out[u].Rows + 1, A: out[u].A + a, B: out[u].B + b}
		}
		return err
	})
}

func (f *fakeSource) Rows(_ context.Context, q *Query, emit func(Cells, Hash) error) error {
	c := &cutter{table: f.table, query: q}
	n := 0
	f.passes++
	err := f.rows.Rows(context.Background(), nil, func(r Cells) error {
		_, _, h, wanted, err := c.unit(r)
		if err != nil || !wanted {
			return err
		}
		n++
		return emit(slices.Clone(c.key), h)
	})
	f.most = max(f.most, n)
	return err
}

func (f *fakeSource) Columns(_ context.Context, keys [][]string, emit func(Cells, []string) error) error {
	for _, r := range f.rows {
		var key Cells
		for _, k := range f.table.Key {
			key = append(key, r[k])
		}
		if slices.ContainsFunc(keys, func(k []string) bool { return slices.Equal(k, texts(key)) }) {
			v := &verifier{table: f.table}
			if err := emit(key, v.hashes(r)); err != nil {
				return err
			}
		}
	}
	return nil
}

func lineText(l Line) string {
	bound := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	out := fmt.Sprintf("%s..%s %s", bound(l.Low), bound(l.High), l.State)
	if l.Counted() {
		out += fmt.Sprintf(" %d/%d", l.RowsSource, l.RowsHere)
	}
	return strings.TrimRight(out+" "+l.Key+" "+l.Detail, " ")
}

// compareRows runs a comparison and renders its lines.
func compareRows(t *testing.T, table *Table, theirs, ours tableRows, bounds []string, o Options) (lines []string, source *fakeSource) {
	t.Helper()
	source = &fakeSource{rows: theirs, bounds: bounds}
	got, err := Run(t.Context(), []*Table{table}, source, ours, o, func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range got {
		lines = append(lines, lineText(l))
	}
	return lines, source
}

// TestCompare: what is not the same is named, and nothing else is.
func TestCompare(t *testing.T) {
	keyed := func() *Table {
		return &Table{Name: "s.t", Columns: []string{"id", "v", "w"}, Key: []int{0}, IntegerKey: true}
	}
	rows := func(skip ...int) tableRows {
		var out tableRows
		for i := range 100 {
			if !slices.Contains(skip, i) {
				out = append(out, row(i, "v"+strconv.Itoa(i), nil))
			}
		}
		return out
	}
	bounds := []string{"50", "9", "75", "50"}
	for name, c := range map[string]struct {
		table        *Table
		theirs, ours tableRows
		want         []string
	}{
		"equal, in another order": {keyed(), rows(), reversed(rows()), []string{"-..- equal 100/100"}},
		"empty":                   {keyed(), nil, nil, []string{"-..- equal 0/0"}},
		"missing, extra, different": {
			keyed(), append(rows(70), row(200, "", "")), append(rows(5, 60), row(60, "v60", "")), []string{
				"-..9 differs 9/8", "-..9 missing here 5", "9..50 equal 41/41", "50..75 differs 24/25", "50..75 different 60 w",
				"50..75 extra here 70", "75..- differs 26/25", "75..- missing here 200",
			},
		},
		"a key twice": {
			keyed(), rows(), append(rows(), row(30, "v30", nil)),
			[]string{"-..9 equal 9/9", "9..50 differs 41/42", "9..50 extra here 30", "50..- equal 50/50"},
		},
		"one row for another": {
			keyed(), rows(), append(rows(31), row(30, "v30", nil)),
			[]string{"-..9 equal 9/9", "9..50 differs 41/41", "9..50 extra here 30", "9..50 missing here 31", "50..- equal 50/50"},
		},
		"null is not empty": {
			keyed(),
			tableRows{row(1, nil, nil)},
			tableRows{row(1, "", nil)},
			[]string{"-..9 differs 1/1", "-..9 different 1 v", "9..- equal 0/0"},
		},
		"cells do not run together": {
			keyed(),
			tableRows{row(1, "a,b", "c")},
			tableRows{row(1, "a", "b,c")},
			[]string{"-..9 differs 1/1", "-..9 different 1 v, w", "9..- equal 0/0"},
		},
		"set aside": {
			func() *Table { t := keyed(); t.SetAside = map[string]string{"(5)": "is infinite"}; return t }(), rows(), rows(5),
			[]string{"-..- equal 99/99", "-..- dead letter 5 is infinite"},
		},
		"skipped": {
			func() *Table { t := keyed(); t.Skip = "its state is backfill"; return t }(), rows(), nil,
			[]string{"-..- skipped  its state is backfill"},
		},
		"no key": {
			&Table{Name: "s.t", Columns: []string{"a"}},
			tableRows{row(1), row(1), row(1), row(2), row(nil)},
			tableRows{row(1), row(2), row(nil), row(3)},
			[]string{
				"-..- differs 5/4", "-..- missing here md5 " + HashText([]byte("(1)")).String() + " 2 times",
				"-..- extra here md5 " + HashText([]byte("(3)")).String(),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := compareRows(t, c.table, c.theirs, c.ours, bounds, Options{})
			if len(c.table.Key) == 0 {
				slices.Sort(got)
				slices.Sort(c.want)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func reversed(r tableRows) tableRows {
	r = slices.Clone(r)
	slices.Reverse(r)
	return r
}

// TestCompareBounded: of random differences in a range that does not fit in memory all are
// named, and none else, without more rows in memory than asked for.
func TestCompareBounded(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		table := &Table{Name: "s.t", Columns: []string{"k", "n", "v"}, Key: []int{0, 1}}
		var theirs, ours tableRows
		var want []string
		for i := range 3000 {
			k := row(fmt.Sprintf("k%03d", r.IntN(300)), i, r.IntN(1000))
			name := string(AppendRecord(nil, k[:2]))
			other := row(string(k[0]), i, "other")
			switch r.IntN(300) {
			case 0:
				theirs, want = append(theirs, k), append(want, "missing here "+name)
			case 1:
				ours, want = append(ours, k), append(want, "extra here "+name)
			case 2:
				theirs, ours, want = append(theirs, k), append(ours, other), append(want, "different "+name)
			default:
				theirs, ours = append(theirs, k), append(ours, k)
			}
		}
		got, source := compareRows(t, table, theirs, reversed(ours), []string{"k150"}, Options{RowsMost: 200, Keys: 1000})
		var named []string
		for _, l := range got {
			for _, state := range []State{Missing, Extra, Different} {
				if _, rest, ok := strings.Cut(l, " "+string(state)+" "); ok {
					named = append(named, string(state)+" "+strings.Fields(rest)[0])
				}
			}
		}
		slices.Sort(named)
		slices.Sort(want)
		if !slices.Equal(named, want) {
			t.Fatalf("seed %d: named %q\nwant %q", seed, named, want)
		}
		if source.most > 250 {
			t.Errorf("seed %d: %d rows at once", seed, source.most)
		}
	}
}

// TestCompareLimit: when everything differs, a few keys are named and the rest is told.
func TestCompareLimit(t *testing.T) {
	table := &Table{Name: "s.t", Columns: []string{"id"}, Key: []int{0}, IntegerKey: true}
	var theirs tableRows
	for i := range 5000 {
		theirs = append(theirs, row(i))
	}
	got, source := compareRows(t, table, theirs, nil, nil, Options{Keys: 3, RowsMost: 100})
	if len(got) != 5 || got[0] != "-..- differs 5000/0" || got[4] != "-..- differs  more keys differ than the 3 named" {
		t.Errorf("got %q", got)
	}
	if source.passes > 4 {
		t.Errorf("%d passes over the source", source.passes)
	}
}

// TestRunErrors: a table that cannot be read is skipped and others are compared; other
// errors end the comparison.
func TestRunErrors(t *testing.T) {
	table := &Table{Name: "s.t", Columns: []string{"id"}, Key: []int{0}, IntegerKey: true}
	source := &fakeSource{open: fmt.Errorf("open: %w", &SkipError{Reason: "it is locked"})}
	got, err := Run(t.Context(), []*Table{table}, source, tableRows{}, Options{}, func(string, float64) {})
	if err != nil || len(got) != 1 || lineText(got[0]) != "-..- skipped  it is locked" {
		t.Errorf("%v, %v", got, err)
	}
	source.open = errors.New("gone")
	if _, err := Run(t.Context(), []*Table{table}, source, tableRows{}, Options{}, func(string, float64) {}); !errors.Is(err, source.open) {
		t.Errorf("%v", err)
	}
	source.open = nil
	if _, err := Run(t.Context(), []*Table{table}, source, tableRows{row("x")}, Options{}, func(string, float64) {}); err != nil {
		t.Errorf("an integer key of one range is not read: %v", err)
	}
	source.bounds = []string{"5"}
	if _, err := Run(t.Context(), []*Table{table}, source, tableRows{row("x")}, Options{}, func(string, float64) {}); err == nil {
		t.Error("an integer key that is none was compared")
	}
}

// TestRecord: a field of a record goes back and forth.
func TestRecord(t *testing.T) {
	for _, text := range []string{"", "a", `"`, `\`, `\"`, "(", ")", ",", " ", "a b", "ä", "\x00", `""\\`} {
		record := AppendRecord(nil, Cells{[]byte(text)})
		if got := Unrecord(string(record)); got != text {
			t.Errorf("%q: %q comes back as %q", text, record, got)
		}
	}
	if got := AppendRecord(nil, Cells{nil, []byte(""), []byte("x")}); !bytes.Equal(got, []byte(`(,"",x)`)) {
		t.Errorf("%s", got)
	}
}
