package deadletter

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// wholeVersions are those of a table without a key: (v, n); v renamed and w added; n dropped.
func wholeVersions(t *testing.T) []*schema.Table {
	t.Helper()
	initial := "7"
	field := func(name string, att int16, initial *string) schema.NewField {
		return schema.NewField{Name: name, Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, AttNum: att, Initial: initial}
	}
	first, err := schema.New([]schema.NewField{field("v", 1, nil), field("n", 2, nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := schema.Evolve(first, []schema.NewField{field("u", 1, nil), field("n", 2, nil), field("w", 3, &initial)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	third, err := schema.Evolve(second, []schema.NewField{field("u", 1, nil), field("w", 3, &initial)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return []*schema.Table{first, second, third}
}

func wholeTable(t *testing.T, state catalog.TableState) (*Table, []*schema.Table) {
	versions := wholeVersions(t)
	table := NewOpen(3, map[change.TableID]uint32{1: 0}).Table(1)
	table.owed.open = copying(&catalog.Table{Current: versions[0], State: state})
	for _, v := range versions {
		table.Know(v)
	}
	return table, versions
}

// TestPassRowOfAnotherVersion: the whole row that a delete names is that of a letter from
// before columns came, went and changed their names.
func TestPassRowOfAnotherVersion(t *testing.T) {
	for _, c := range []struct {
		row     string
		version int
		want    string
	}{
		{`{"v":"1","n":"x"}`, 0, "5"},
		{`{"u":"1","n":"x","w":"7"}`, 1, "5"},
		{`{"u":"1","w":"7"}`, 2, "5"},
		{`{"u":"1","n":"x","w":"8"}`, 1, ""},
		{`{"u":"1","n":"x"}`, 1, ""},
		{`{"v":"1","n":null}`, 0, ""},
		{``, 0, ""},
	} {
		table, versions := wholeTable(t, catalog.TableReady)
		table.Add(letterOf(table, 5, "", `{"v":"1","n":"x"}`))
		closes, _ := table.PassRow(c.row, versions[c.version])
		if got := ids(closes); got != c.want {
			t.Errorf("%s as version %d takes %q", c.row, c.version+1, got)
		}
	}
}

// TestOwed: the delete of a row that the copy is yet to set aside takes its letter as it
// comes, once for each, under whatever columns; and what is owed is known in the end.
func TestOwed(t *testing.T) {
	table, versions := wholeTable(t, catalog.TableBackfill)
	copied := func(id uint64, row string) *catalog.DeadLetter {
		l := table.Letter(&Refused{Op: change.Insert, Token: 1, Row: row}, 1, true, 0)
		l.ID = id
		return l
	}
	row := `{"v":"1","n":"x"}`
	for range 2 {
		if !table.MayOwe(row) {
			t.Fatal("nothing may be owed")
		}
		if closes, _ := table.PassRowOrOwe(row, versions[0], "7"); len(closes) != 0 {
			t.Fatalf("%v of no letters", closes)
		}
	}
	table.PassRowOrOwe(`{"u":"2","n":"x","w":"7"}`, versions[1], "8")
	if table.MayOwe(row) || table.MayOwe("") {
		t.Error("more is owed than a table may have letters")
	}
	add := func(id uint64, row, want string) (undo func()) {
		t.Helper()
		closes, undo := table.Add(copied(id, row))
		if got := ids(closes); got != want {
			t.Errorf("letter %d of %s closes %q", id, row, got)
		}
		return undo
	}
	_, undo := table.PassRowOrOwe(`{"v":"9","n":"x"}`, versions[0], "9")
	undo() // the stream begins again
	add(10, `{"v":"9","n":"x"}`, "")
	add(11, row, "11")
	add(12, row, "12")() // its chunk is not durable
	add(13, row, "13")
	add(14, row, "")
	add(15, `{"v":"2","n":"x"}`, "15")
	add(16, `{"v":"2","n":"x"}`, "")
	if n := table.Copied(); n != 0 || table.MayOwe(row) {
		t.Errorf("%d are owed after the copy", n)
	}
	if closes, _ := table.PassRowOrOwe(row, versions[0], "7"); fmt.Sprint(ids(closes)) != "14" {
		t.Errorf("after all a delete takes %v", closes)
	}
	if table, _ := wholeTable(t, catalog.TableReady); table.MayOwe(row) {
		t.Error("a table that is not copied owes")
	}
}

// TestTruncatedWhileCopied: what the copy of a table without a key sets aside, of before a
// TRUNCATE, is closed as it comes, and what came since the statement with its commit; other
// letters stay.
func TestTruncatedWhileCopied(t *testing.T) {
	table, versions := wholeTable(t, catalog.TableBackfill)
	row := `{"v":"1","n":"x"}`
	add := func(id int64, copied bool) string {
		l := letterOf(table, id, "", row)
		l.Copied, l.SchemaVersion = copied, versions[0].Version
		closes, _ := table.Add(l)
		return ids(closes)
	}
	add(1, true)
	if closes, _ := table.PassAll(); ids(closes) != "1" {
		t.Errorf("the statement closes %q", ids(closes))
	}
	add(2, true)
	add(3, false)
	closes, undo := table.Truncated("5")
	if ids(closes) != "2" || !table.Gone() || table.OwedUntil() != "5" {
		t.Errorf("its commit closes %q", ids(closes))
	}
	if got := add(4, true) + add(5, false); got != "4" {
		t.Errorf("later letters close %q", got)
	}
	undo()
	if got := add(6, true); got != "" || table.Gone() {
		t.Errorf("taken back, a letter closes %q", got)
	}
	table.Truncated("7")
	if table.Copied() != 0 {
		t.Error("something is owed after a TRUNCATE")
	}
	if table, _ := wholeTable(t, catalog.TableReady); table != nil {
		if _, undo := table.Truncated("5"); undo != nil {
			t.Error("a table that is not copied owes")
		}
	}
}

// TestPassRowWithoutUnsent: columns that the source computes and does not send are in no
// letter, and in no row that a delete names.
func TestPassRowWithoutUnsent(t *testing.T) {
	field := func(name string, att int16, computed *schema.Computed) schema.NewField {
		return schema.NewField{Name: name, Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, AttNum: att, Computed: computed}
	}
	twice := &schema.Computed{Expr: "v * 2", Type: "int8", Form: "f"}
	first, err := schema.New([]schema.NewField{field("v", 1, nil), field("g", 2, twice)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := schema.Evolve(first, []schema.NewField{field("u", 1, nil), field("g", 2, twice), field("w", 3, nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := NewOpen(3, map[change.TableID]uint32{1: 0}).Table(1)
	table.Know(first)
	table.Know(second)
	table.Add(letterOf(table, 5, "", `{"v":"1"}`))
	closes, _ := table.PassRow(`{"u":"1","w":null}`, second)
	if got := ids(closes); got != "5" {
		t.Errorf("the delete of its row takes %q", got)
	}
}
