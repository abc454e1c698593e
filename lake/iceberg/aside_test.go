package iceberg_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
)

// TestKeptTableIsSetAside: a lake table that was kept when its pipeline was dropped is
// there still, under another name, after a new table has taken its own.
func TestKeptTableIsSetAside(t *testing.T) {
	clock := env.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1)
	w := openWarehouse(t, newStore(t), t.TempDir(), clock)
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, NotNull: true},
	}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	ident := lake.Ident{Namespace: "public", Name: "people"}
	for id := range 2 {
		spec := lake.Spec{Ident: ident, Table: 7, Schema: s}
		if id > 0 {
			spec.Table = 8
		}
		if _, err := w.Table(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for ident, err := range w.Catalog().ListTables(t.Context(), []string{"public"}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, ident[1])
	}
	if len(names) != 2 {
		t.Errorf("tables are %v, want the new one and the kept one", names)
	}
	if err := w.Drop(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	names = names[:0]
	for ident, err := range w.Catalog().ListTables(t.Context(), []string{"public"}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, ident[1])
	}
	if len(names) != 1 || names[0] != "people" {
		t.Errorf("tables are %v after the kept one was dropped", names)
	}
}

// TestDroppedWhileSetAside: a table is dropped while a new one takes its name. Whoever
// comes first, the new one has the name, and of the old one nothing is left. The drop
// could find the new table under the name and take that, or the new one fail since the
// old was gone.
func TestDroppedWhileSetAside(t *testing.T) {
	clock := env.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1)
	w := openWarehouse(t, newStore(t), t.TempDir(), clock)
	spec := lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 1, Schema: laketest.People(t)}
	if _, err := w.Table(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for round := range 60 {
		old := spec.Table
		spec.Table++
		dropped := make(chan error, 1) // one answer
		go func() { dropped <- w.Drop(t.Context(), old) }()
		_, err := w.Table(t.Context(), spec)
		if err := errors.Join(err, <-dropped); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		var names []string
		for ident, err := range w.Catalog().ListTables(t.Context(), []string{"public"}) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, ident[1])
		}
		have, err := w.Catalog().LoadTable(t.Context(), []string{"public", "people"})
		if err != nil || len(names) != 1 {
			t.Fatalf("round %d: tables are %v, %v", round, names, err)
		}
		if id := have.Properties()[lake.KeyTableID]; id != strconv.Itoa(int(spec.Table)) {
			t.Fatalf("round %d: the name is table %s's, not %d's", round, id, spec.Table)
		}
	}
}
