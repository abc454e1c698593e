package dump

import (
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/env"
)

// TestStatementsSay: what a dump of a dump cannot tell that it is missing.
func TestStatementsSay(t *testing.T) {
	clock := env.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: clock, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	key, err := schema.New([]schema.NewField{{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: schema.OIDInt8, TypMod: -1}}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Update(t.Context(), func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: catalog.OwnPipeline, Connection: catalog.OwnPipeline}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		tbl := &catalog.Table{Pipeline: p.ID, Schema: "public", Name: "Free", Own: true, Current: key, State: catalog.TableReady, Unchecked: true}
		if err := txn.CreateTable(tbl); err != nil {
			return err
		}
		return txn.PutView(&catalog.View{
			ID: txn.ReserveTable(), Schema: "public", Name: "v", SQL: "SELECT id FROM public.\"Free\"",
			Columns: []catalog.ViewColumn{{Name: "The id", OID: schema.OIDInt8, TypMod: -1, Default: "7"}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	snap := c.Snapshot()
	defer snap.Close()
	all, err := Statements(Source{Snapshot: snap, Rights: snap.Rights(), Database: "lake"})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range all {
		out = append(out, s.Kind+": "+s.SQL)
	}
	text := strings.Join(out, "\n")
	for _, want := range []string{
		`state: ALTER TABLE public."Free" DISABLE TRIGGER ALL;`,
		`default: ALTER VIEW public.v ALTER COLUMN "The id" SET DEFAULT 7;`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}
