package catalog_test

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/segment"
)

// everything renders all facts of a snapshot.
func everything(t *testing.T, s *catalog.Snapshot) string {
	t.Helper()
	out := ""
	for _, p := range s.Pipelines() {
		out += fmt.Sprintf("%+v\n", *p)
		out += fmt.Sprintf("%+v\n", get[catalog.Offset](t)(s.Offset(p.ID)))
		out += fmt.Sprintf("%+v\n", get[[]catalog.Segment](t)(s.Segments(p.ID)))
		out += fmt.Sprintf("%+v\n", get[[]catalog.Slice](t)(s.Slices(p.ID)))
	}
	for _, tbl := range s.AllTables() {
		versions := ""
		for _, v := range tbl.Versions {
			versions += fmt.Sprintf("%+v", *v)
		}
		out += fmt.Sprintf("%+v %+v %s\n", tbl.Backfill, *tbl.Current, versions)
		c := tbl.Clone()
		c.Current, c.Versions = nil, nil
		out += fmt.Sprintf("%+v %+v\n", *c, s.LakeState(tbl.ID))
		for _, c := range get[[]*catalog.Compaction](t)(s.Compactions(tbl.ID)) {
			out += fmt.Sprintf("%+v\n", *c)
		}
		for _, c := range s.PlannedCompactions(tbl.ID) {
			out += fmt.Sprintf("planned %+v\n", *c)
		}
	}
	for _, c := range s.Connections() {
		out += fmt.Sprintf("%+v\n", *c)
	}
	for _, x := range s.Secrets() {
		out += fmt.Sprintf("%s %s %x %s\n", x.Name, x.Source, x.Sealed, x.CreatedAt)
	}
	for _, r := range s.Roles() {
		out += fmt.Sprintf("%+v\n", *r)
	}
	for _, x := range s.Schemas() {
		out += fmt.Sprintf("%+v\n", *x)
	}
	for _, n := range s.Settings() {
		v, _ := s.Setting(n)
		out += n + "=" + v + "\n"
	}
	return out + fmt.Sprintf("%+v\n", get[[]catalog.Event](t)(s.Events(100)))
}

// Reopening the store gives the same facts, and numbers go on where they were.
func TestReopen(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	publish(t, c, group(1, 0, 1, 2), group(1, 1, 1), group(2, 0, 2))
	update(t, c, func(txn *catalog.Txn) error {
		tbl := get[*catalog.Table](t)(txn.TableByName("s", "a"))
		tbl.Current = get[*schema.Table](t)(schema.Evolve(tbl.Current, []schema.NewField{
			{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: schema.OIDInt8, TypMod: -1, AttNum: 1},
		}, []string{"id"}))
		tbl.Backfill = catalog.BackfillProgress{
			Token: 5, Plan: []string{"x", "y", "z"}, Done: []bool{true, false, true}, RowsDone: 9,
			Horizon: "h", StartedAt: testStart,
		}
		ack := []segment.SliceRef{{Seq: 1, Start: 0}}
		steps := []error{
			txn.PutTable(tbl),
			txn.CreateConnection(&catalog.Connection{Name: "pg", Kind: "postgres", Options: map[string]string{"HOST": "h"}}),
			txn.CreateSecret(&catalog.Secret{Name: "pw", Source: "literal", Sealed: c.Seal([]byte("x"))}),
			txn.CreateRole(&catalog.Role{Name: "ann", CanLogin: true, Verifier: "v"}),
			txn.PutSetting("work_mem", "4MB"),
			txn.AddEvent(catalog.Event{Level: "info", Kind: "pipeline created"}),
			txn.PlanCompaction(&catalog.Compaction{ID: "c1", Table: 1, Slices: ack, Rows: 2}),
			txn.AckCompaction("c1", catalog.LakeState{Snapshot: 7, MaxToken: 1000}, ack),
			txn.PlanCompaction(&catalog.Compaction{ID: "c2", Table: 2, Slices: []segment.SliceRef{{Seq: 2}}}),
		}
		for i, err := range steps {
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	})
	want := everything(t, snapshot(t, c))
	c2 := open(t, store)
	equal(t, "after reopening", everything(t, snapshot(t, c2)), want)
	update(t, c2, func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "next"}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		equal(t, "next pipeline id", p.ID > 1, true)
		tbl := &catalog.Table{Pipeline: p.ID, Schema: "n", Name: "t", Current: testTable(t)}
		if err := txn.CreateTable(tbl); err != nil {
			return err
		}
		equal(t, "next table id", tbl.ID > 2, true)
		return nil
	})
}

// Object ids are unique over all kinds, from 16384 on, and stay over renames.
func TestOIDs(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	s := snapshot(t, c)
	seen := map[uint32]string{}
	add := func(oid uint32, what string) {
		t.Helper()
		if other, ok := seen[oid]; ok || oid < 16384 {
			t.Errorf("%s has oid %d, as has %q", what, oid, other)
		}
		seen[oid] = what
	}
	for _, p := range s.Pipelines() {
		add(p.OID, p.Name)
	}
	for _, tbl := range s.AllTables() {
		add(tbl.OID, tbl.Name)
	}
	add(get[*catalog.Schema](t)(s.Schema("s")).OID, "schema s")
	update(t, c, func(txn *catalog.Txn) error {
		tbl := get[*catalog.Table](t)(txn.TableByName("s", "a"))
		tbl.Name = "renamed"
		return txn.PutTable(tbl)
	})
	after := snapshot(t, c)
	equal(t, "oid", get[*catalog.Table](t)(after.TableByName("s", "renamed")).OID,
		get[*catalog.Table](t)(s.TableByName("s", "a")).OID)
	_, err := after.TableByName("s", "a")
	is(t, "old name", err, catalog.ErrTableNotFound)
}

func TestNames(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	exists := catalog.ErrExists
	cases := []struct {
		name string
		do   func(*catalog.Txn) error
		want error
	}{
		{"pipeline twice", func(x *catalog.Txn) error {
			return x.CreatePipeline(&catalog.Pipeline{Name: "shop"})
		}, exists},
		{"table twice", func(x *catalog.Txn) error {
			return x.CreateTable(&catalog.Table{Pipeline: 1, Schema: "s", Name: "a"})
		}, exists},
		{"rename to another's", func(x *catalog.Txn) error {
			tbl := get[*catalog.Table](t)(x.TableByID(1))
			tbl.Name = "b"
			return x.PutTable(tbl)
		}, exists},
		{"table of no pipeline", func(x *catalog.Txn) error {
			return x.CreateTable(&catalog.Table{Pipeline: 9, Schema: "s", Name: "c"})
		}, catalog.ErrPipelineNotFound},
		{"role twice", func(x *catalog.Txn) error {
			return x.CreateRole(&catalog.Role{Name: "postgres"})
		}, exists},
		{"schema twice", func(x *catalog.Txn) error {
			return x.CreateSchema(&catalog.Schema{Name: "s"})
		}, exists},
		{"put no table", func(x *catalog.Txn) error {
			return x.PutTable(&catalog.Table{ID: 9})
		}, catalog.ErrTableNotFound},
		{"put no pipeline", func(x *catalog.Txn) error {
			return x.PutPipeline(&catalog.Pipeline{ID: 9})
		}, catalog.ErrPipelineNotFound},
		{"put no secret", func(x *catalog.Txn) error {
			return x.PutSecret(&catalog.Secret{Name: "x"})
		}, catalog.ErrSecretNotFound},
		{"put no connection", func(x *catalog.Txn) error {
			return x.PutConnection(&catalog.Connection{Name: "x"})
		}, catalog.ErrConnectionNotFound},
		{"delete no secret", func(x *catalog.Txn) error {
			return x.DeleteSecret("x")
		}, catalog.ErrSecretNotFound},
		{"delete no connection", func(x *catalog.Txn) error {
			return x.DeleteConnection("x")
		}, catalog.ErrConnectionNotFound},
		{"delete no role", func(x *catalog.Txn) error {
			return x.DeleteRole("x")
		}, catalog.ErrRoleNotFound},
		{"delete no schema", func(x *catalog.Txn) error {
			return x.DeleteSchema("x")
		}, catalog.ErrSchemaNotFound},
		{"delete no table", func(x *catalog.Txn) error {
			return x.DeleteTable(9)
		}, catalog.ErrTableNotFound},
		{"delete no pipeline", func(x *catalog.Txn) error {
			return x.DeletePipeline(9)
		}, catalog.ErrPipelineNotFound},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { is(t, "update", c.Update(t.Context(), tc.do), tc.want) })
	}
}

// Dropping a pipeline takes all that hangs on it, and a later one of the same name starts
// afresh.
func TestDeletePipeline(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	empty := everything(t, snapshot(t, c))
	shop(t, c)
	publish(t, c, group(1, 0, 1, 2), group(2, 0, 1))
	ackAll(t, c, 1, "c1", catalog.LakeState{Snapshot: 1})
	update(t, c, func(txn *catalog.Txn) error {
		return txn.PlanCompaction(&catalog.Compaction{ID: "c2", Table: 2, Slices: []segment.SliceRef{{Seq: 1, Start: 10}}})
	})
	update(t, c, func(txn *catalog.Txn) error { return txn.DeletePipeline(1) })
	equal(t, "facts", everything(t, snapshot(t, c)), empty)
	equal(t, "facts after reopening", everything(t, snapshot(t, open(t, store))), empty)
	is(t, "publish", c.Publish(t.Context(), 1, nil), catalog.ErrPipelineNotFound)
	equal(t, "rows left", leftRows(t, store), 0)
}

// leftRows counts rows that belong to pipelines.
func leftRows(t *testing.T, store *memkv.Store) int {
	t.Helper()
	n := 0
	err := store.Iterate([]byte{0x10}, nil, func(key, _ []byte) error {
		switch key[0] {
		case 0x16, 0x18: // role postgres, schema public
		default:
			t.Logf("left: %x", key)
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEventsBounded(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	const batch, batches = 500, 21
	for i := range batches {
		update(t, c, func(txn *catalog.Txn) error {
			for j := range batch {
				if err := txn.AddEvent(catalog.Event{Kind: fmt.Sprint(i*batch + j)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, c := range []*catalog.Catalog{c, open(t, store)} {
		s := snapshot(t, c)
		all := get[[]catalog.Event](t)(s.Events(1 << 20))
		equal(t, "events", len(all), 10_000)
		equal(t, "newest", all[0].Kind, fmt.Sprint(batch*batches-1))
		equal(t, "oldest", all[len(all)-1].Kind, fmt.Sprint(batch*batches-10_000))
		equal(t, "limited", len(get[[]catalog.Event](t)(s.Events(3))), 3)
		equal(t, "none", len(get[[]catalog.Event](t)(s.Events(0))), 0)
	}
}
