package define_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// world is a catalog that statements are planned against and done to.
type world struct {
	*testing.T
	cat    *catalog.Catalog
	tables *own.Tables
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock, ids := env.System()
	cat, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: ids, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, cat: cat, tables: &own.Tables{Catalog: cat}}
}

// resolver finds what a snapshot has.
type resolver struct{ snap *catalog.Snapshot }

func (r resolver) HasSchema(name string) bool {
	_, err := r.snap.Schema(name)
	return err == nil
}

func (r resolver) Relation(schema, name string) (*pgsql.Relation, bool) {
	if t, err := r.snap.TableByName(schema, name); err == nil {
		return define.RelationOf(t), true
	}
	if v, err := r.snap.ViewByName(schema, name); err == nil {
		return define.ViewOf(v), true
	}
	return nil, false
}

// plan plans a statement against the present.
func (w *world) plan(sql string) (*define.Change, error) {
	w.Helper()
	p, err := pgsql.Parse(sql)
	if err != nil {
		w.Fatal(err)
	}
	snap := w.cat.Snapshot()
	defer snap.Close()
	return define.Plan(p.Node, &define.Context{
		SQL: sql, Snapshot: snap,
		Env:     &pgsql.Env{Resolver: resolver{snap}, SearchPath: []string{"pg_catalog", "public"}, User: "postgres", Database: "lake"},
		Reserve: func() (change.PipelineID, change.TableID, error) { return w.tables.Reserve(w.Context()) },
		Initial: func(pgsql.RelationColumn) (*string, error) { text := "7"; return &text, nil },
	})
}

func (w *world) apply(changes ...*define.Change) error {
	return w.cat.Update(w.Context(), func(txn *catalog.Txn) error {
		for _, c := range changes {
			if err := c.Apply(txn); err != nil {
				return err
			}
		}
		return nil
	})
}

// do plans statements and commits each.
func (w *world) do(statements ...string) {
	w.Helper()
	for _, sql := range statements {
		c, err := w.plan(sql)
		if err == nil && c.Apply != nil {
			err = w.apply(c)
		}
		if err != nil {
			w.Fatalf("%s: %v", sql, err)
		}
	}
}

// fails says that an error has a code and tells something.
func (w *world) fails(what string, err error, code, message string) {
	w.Helper()
	var e *pgerr.Error
	if !errors.As(err, &e) || string(e.Code) != code || !strings.Contains(e.Message, message) {
		w.Errorf("%s: %v, want %s %s", what, err, code, message)
	}
}

// Two sessions change definitions at the same time: each plans against what there is, and
// the second to commit must not make what neither could have made alone.
func TestMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		before, mine, theirs, code, message string
	}{
		"views in a circle": {
			"CREATE VIEW a AS SELECT 1 AS x; CREATE VIEW b AS SELECT 1 AS x", "CREATE OR REPLACE VIEW a AS SELECT x FROM b",
			"CREATE OR REPLACE VIEW b AS SELECT x FROM a", "42P17", "infinite recursion",
		},
		"a table in a schema that goes": {
			"CREATE SCHEMA s", "CREATE TABLE s.t (a int)", "DROP SCHEMA s", "3F000", "schema \"s\" does not exist",
		},
		"a view in a schema that goes": {
			"CREATE SCHEMA s", "CREATE VIEW s.v AS SELECT 1 AS a", "DROP SCHEMA s", "3F000", "schema \"s\" does not exist",
		},
		"a table that moves into a schema that goes": {
			"CREATE SCHEMA s; CREATE TABLE t (a int)", "ALTER TABLE t SET SCHEMA s", "DROP SCHEMA s", "3F000", "schema \"s\" does not exist",
		},
		"a view that moves into a schema that goes": {
			"CREATE SCHEMA s; CREATE VIEW v AS SELECT 1 AS a", "ALTER VIEW v SET SCHEMA s", "DROP SCHEMA s", "3F000", "schema \"s\" does not exist",
		},
		"a schema that gets a table": {
			"CREATE SCHEMA s", "DROP SCHEMA s", "CREATE TABLE s.t (a int)", "2BP01", "cannot drop schema s",
		},
		"a schema that gets a view": {
			"CREATE SCHEMA s", "DROP SCHEMA s", "CREATE VIEW s.v AS SELECT 1 AS a", "2BP01", "cannot drop schema s",
		},
		"a view of what goes": {
			"CREATE VIEW a AS SELECT 1 AS x", "CREATE VIEW b AS SELECT x FROM a", "DROP VIEW a", "42P01", "dropped meanwhile",
		},
		"a view of what gets another name": {
			"CREATE TABLE t (x int)", "CREATE VIEW b AS SELECT x FROM t", "ALTER TABLE t RENAME TO u", "42P01", "dropped meanwhile",
		},
		"a view that is read meanwhile": {
			"CREATE VIEW a AS SELECT 1 AS x", "DROP VIEW a", "CREATE VIEW b AS SELECT x FROM a", "2BP01", "cannot drop view a",
		},
		"a column that a view reads meanwhile": {
			"CREATE TABLE t (x int, y int)", "ALTER TABLE t DROP COLUMN x", "CREATE VIEW b AS SELECT x FROM t", "55000", "was changed meanwhile",
		},
		"a column of a view that is read meanwhile": {
			"CREATE VIEW a AS SELECT 1 AS x", "ALTER VIEW a RENAME COLUMN x TO y", "CREATE VIEW b AS SELECT x FROM a", "55000", "was changed meanwhile",
		},
		"a view with more columns meanwhile": {
			"CREATE VIEW a AS SELECT 1 AS x", "CREATE OR REPLACE VIEW a AS SELECT 2 AS x", "CREATE OR REPLACE VIEW a AS SELECT 1 AS x, 2 AS y", "42P16", "cannot drop columns",
		},
		"another view of that name": {
			"CREATE VIEW a AS SELECT 1 AS x", "CREATE OR REPLACE VIEW a AS SELECT 2 AS x", "DROP VIEW a", "42P01", "dropped meanwhile",
		},
		"a name that is taken": {
			"CREATE VIEW a AS SELECT 1 AS x", "ALTER VIEW a RENAME TO c", "CREATE TABLE c (a int)", "42P07", "already exists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(strings.Split(c.before, ";")...)
			mine, err := w.plan(c.mine)
			if err != nil {
				t.Fatal(err)
			}
			w.do(c.theirs)
			w.fails(c.mine, w.apply(mine), c.code, c.message)
		})
	}
}

// A relation gets another name: views that read it have it in their texts, and mean what they
// meant.
func TestRenameInViews(t *testing.T) {
	for name, c := range map[string]struct{ view, rename, want string }{
		"its name is that of its columns": {
			"SELECT t.x, public.t.y FROM t", "ALTER TABLE t RENAME TO u", "SELECT t.x, t.y FROM public.u t",
		},
		"with an alias": {
			"SELECT q.x FROM t AS q", "ALTER TABLE t RENAME TO u", "SELECT q.x FROM public.u q",
		},
		"in sub-queries": {
			"SELECT (SELECT max(t.x) FROM t) AS m FROM (SELECT 1) s WHERE EXISTS (SELECT FROM t WHERE t.x = 1)", "ALTER TABLE t SET SCHEMA s",
			"SELECT (SELECT max(t.x) FROM s.t t) AS m FROM (SELECT 1) s WHERE EXISTS (SELECT FROM s.t t WHERE t.x = 1)",
		},
		"a name of WITH": {
			"WITH t AS (SELECT 1 AS x) SELECT t.x, o.y FROM t, public.t o", "ALTER TABLE public.t RENAME TO u",
			"WITH t AS (SELECT 1 AS x) SELECT t.x, o.y FROM t, public.u o",
		},
		"there and back": {
			"SELECT t.x FROM t", "ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t", "SELECT t.x FROM public.t t",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do("CREATE SCHEMA s", "CREATE TABLE t (x int, y int)", "CREATE VIEW v AS "+c.view)
			w.do(strings.Split(c.rename, ";")...)
			snap := w.cat.Snapshot()
			defer snap.Close()
			v, err := snap.ViewByName("public", "v")
			if err != nil || v.SQL != c.want {
				t.Errorf("%v %v, want %s", v, err, c.want)
			}
		})
	}
}

// Two tables of one name are told apart by their schemas: a query that reads both cannot have
// one of them renamed.
func TestRenameAmbiguous(t *testing.T) {
	w := newWorld(t)
	w.do("CREATE SCHEMA s", "CREATE TABLE t (x int)", "CREATE TABLE s.t (x int)",
		"CREATE VIEW v AS SELECT public.t.x, s.t.x AS y FROM public.t, s.t")
	c, err := w.plan("ALTER TABLE public.t RENAME TO u")
	if err == nil {
		err = w.apply(c)
	}
	w.fails("rename", err, "0A000", "of two schemas")
}

// Names of checks that have none are PostgreSQL's.
func TestCheckNames(t *testing.T) {
	w := newWorld(t)
	w.do("CREATE TABLE t (a int CHECK (a > 0) CHECK (a < 9), b int, CHECK (a < b), CHECK (b > 0), CHECK (1 = 1), CONSTRAINT t_b_check1 CHECK (b < 99))")
	snap := w.cat.Snapshot()
	defer snap.Close()
	tbl, err := snap.TableByName("public", "t")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range tbl.Checks {
		got = append(got, k.Name)
	}
	if want := "t_a_check t_a_check1 t_check t_b_check t_check1 t_b_check1"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}
