package ingest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// look is a description of the sink world's table: "id text …", or, with "!", one with
// another key or an id of another type.
func look(names string) SchemaChange {
	var c SchemaChange
	for i, name := range strings.Fields(names) {
		col := SourceColumn{Name: name, OID: 25, Type: schema.Type{Kind: schema.String}}
		if i == 0 {
			col.OID, col.Type = 20, schema.Type{Kind: schema.Int64}
		}
		if strings.HasSuffix(name, "!") {
			col.OID, col.Type = 16, schema.Type{Kind: schema.Bool}
		}
		col.Name = strings.TrimSuffix(name, "!")
		c.Columns = append(c.Columns, col)
	}
	c.Key = []string{"id"}
	return c
}

func (w *sinkWorld) evolve(table change.TableID, names string) *schema.Table {
	w.t.Helper()
	s, err := w.Evolve(table, look(names))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// add inserts a row of any version: its id, everything else null.
func (w *sinkWorld) add(table change.TableID, ids ...int64) {
	w.t.Helper()
	for _, id := range ids {
		b, err := w.Builder(table)
		if err != nil {
			w.t.Fatal(err)
		}
		b.Add(change.Insert, w.token, 0)
		b.Column(0).(*array.Int64Builder).Append(id)
		for i := range w.tables[table].schema.Fields[1:] {
			b.Column(1 + i).AppendNull()
		}
	}
}

// versions renders a group: "table:version:ids" of its batches, then "table=version" of
// the versions that begin in it.
func versions(g *group) string {
	if g == nil {
		return "none"
	}
	defer g.release()
	var out []string
	for _, b := range g.batches {
		text := fmt.Sprintf("%d:%d:%v", b.Table, b.SchemaVersion,
			b.Record.Column(change.SystemColumns).(*array.Int64).Int64Values())
		if b.Truncate {
			text += "!"
		}
		out = append(out, text)
	}
	for _, s := range g.schemas {
		out = append(out, fmt.Sprintf("%d=%d", s.Table, s.Schema.Version))
	}
	for _, s := range g.stops {
		out = append(out, fmt.Sprintf("%d stopped at %s", s.Table, s.At))
	}
	return strings.Join(out, " ")
}

// A change of schema cuts the table's rows where it stands, and is part of its
// transaction (S1).
func TestSinkEvolve(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second func(*sinkWorld) // transactions of one group
		want          string
	}{
		"between transactions": {
			func(w *sinkWorld) { w.add(1, 1) },
			func(w *sinkWorld) { w.evolve(1, "id v more"); w.add(1, 2) },
			"1:1:[1] 1:2:[2] 1=2",
		},
		"inside one, twice": {
			func(w *sinkWorld) {
				w.add(1, 1)
				w.evolve(1, "id v more")
				w.add(1, 2)
				w.evolve(1, "id more")
				w.add(1, 3)
			},
			func(w *sinkWorld) { w.add(1, 4) },
			"1:1:[1] 1:2:[2] 1:3:[3 4] 1=2 1=3",
		},
		"said again": {
			func(w *sinkWorld) {
				w.evolve(1, "id v")
				w.add(1, 1)
				w.evolve(1, "id v x")
				w.add(1, 2)
				w.evolve(1, "id v x")
			},
			func(w *sinkWorld) { w.add(1, 3); w.evolve(1, "id v x"); w.add(1, 4) },
			"1:1:[1] 1:2:[2 3 4] 1=2",
		},
		"without rows": {
			func(w *sinkWorld) { w.evolve(1, "id v x"); w.add(2, 9) },
			func(w *sinkWorld) { w.evolve(1, "id v") },
			"2:1:[9] 1=2 1=3",
		},
		"beside a truncate": {
			func(w *sinkWorld) { w.add(1, 1); w.mustTruncate(1); w.evolve(1, "id v x"); w.add(1, 2) },
			func(w *sinkWorld) { w.mustTruncate(1) },
			"1:1:[1] 1:1:[]! 1:2:[2] 1:2:[]! 1=2",
		},
		"one table of two": {
			func(w *sinkWorld) { w.add(1, 1); w.add(2, 1); w.evolve(2, "id v x"); w.add(1, 2); w.add(2, 2) },
			func(w *sinkWorld) { w.add(2, 3) },
			"1:1:[1 2] 2:1:[1] 2:2:[2 3] 2=2",
		},
		"and stopped in the transaction": {
			func(w *sinkWorld) { w.add(1, 1); w.evolve(1, "id v x"); w.add(1, 2) },
			func(w *sinkWorld) {
				w.evolve(1, "id v x y")
				w.add(1, 3)
				_ = w.StopTable(1, &TableError{Reason: "reason", Hint: "hint"})
			},
			"1:1:[1] 1:2:[2] 1=2 1 stopped at p1",
		},
		"and aborted": {
			func(w *sinkWorld) { w.add(1, 1); w.evolve(1, "id v x"); w.add(1, 2) },
			func(w *sinkWorld) {
				w.evolve(1, "id v x y")
				w.add(1, 3)
				if err := w.Abort(); err != nil {
					w.t.Fatal(err)
				}
				w.begin()
				w.add(1, 4)
				w.evolve(1, "id v x z")
				w.add(1, 5)
			},
			"1:1:[1] 1:2:[2] 1:2:[4] 1:4:[5] 1=2 1=4", // 3 is given up
		},
		"of a type that old values cannot follow": {
			func(w *sinkWorld) { w.add(1, 1) },
			func(w *sinkWorld) {
				w.add(1, 2)
				if _, err := w.Evolve(1, look("id v!")); !errors.Is(err, ErrTableStopped) {
					w.t.Errorf("incompatible change: %v", err)
				}
				w.add(2, 9)
			},
			"1:1:[1] 2:1:[9] 1 stopped at p1",
		},
		"of the key": {
			func(w *sinkWorld) { w.add(1, 1) },
			func(w *sinkWorld) {
				other := look("id v")
				other.Key = []string{"v"}
				if _, err := w.Evolve(1, other); !errors.Is(err, ErrTableStopped) {
					w.t.Errorf("change of the key: %v", err)
				}
			},
			"1:1:[1] 1 stopped at p1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSinkWorld(t, batcherConfig{from: "p0"})
			w.begin()
			w.add(2, 0)
			w.commit("p")
			first, _, _ := w.take() // in flight, so that the others make one group
			defer first.release()
			w.begin()
			tc.first(w)
			w.commit("p1")
			w.begin()
			tc.second(w)
			w.commit("p2")
			g, _, _ := w.take()
			if got := versions(g); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestSinkEvolveRefuses(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{from: "p0"})
	if _, err := w.Evolve(1, look("id v x")); err == nil {
		t.Error("a change outside a transaction was taken")
	}
	w.begin()
	if _, err := w.Evolve(3, look("id v x")); !errors.Is(err, ErrUnknownTable) {
		t.Errorf("unknown table: %v", err)
	}
	if _, err := w.Evolve(1, look("id v v")); !errors.Is(err, schema.ErrInvalid) {
		t.Errorf("a column twice: %v", err)
	}
	if err := w.StopTable(1, &TableError{Reason: "reason", Hint: ""}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Evolve(1, look("id v x")); !errors.Is(err, ErrTableStopped) {
		t.Errorf("stopped table: %v", err)
	}
}

// The versions of a transaction in parts become durable with its commit, and with no part.
func TestSinkEvolveInParts(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{from: "p0", part: 1 << 40})
	w.begin()
	w.add(1, 1)
	w.evolve(1, "id v x")
	w.add(1, 2, 3)
	w.sealPart()
	w.evolve(1, "id x")
	w.add(1, 4)
	w.sealPart()
	w.add(1, 5)
	w.commit("p1")
	var got []string
	for {
		g, _, _ := w.take()
		if g == nil {
			break
		}
		part := g.part != ""
		got = append(got, fmt.Sprintf("%s part %t", versions(g), part))
	}
	const last = "1:3:[5] 1=2 1=3 part false"
	if n := len(got); n == 0 || got[n-1] != last {
		t.Errorf("groups %q, want the last %q", got, last)
	}
	for _, g := range got[:len(got)-1] {
		if !strings.HasSuffix(g, "part true") || strings.Contains(g, "=") {
			t.Errorf("part %q has versions", g)
		}
	}
}
