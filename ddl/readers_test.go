package ddl

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/change"
)

// queryingSession is a session whose queries are noted, in the order with what is told.
type queryingSession struct {
	fakeSession
	err error
}

func (s *queryingSession) Query(_ context.Context, sql string) ([][]string, error) {
	s.notices = append(s.notices, sql)
	return nil, s.err
}

// viewed is an executor with pipeline p, whose table a is read by views, and b by none.
func viewed(t *testing.T) (*Executor, *fakeController) {
	t.Helper()
	x, f := newExecutor(t)
	run(t, x, f, "CREATE PIPELINE p FROM POSTGRES 'postgres://u@h/d' FOR ALL TABLES WITH (start = false)")
	err := x.Catalog.Update(t.Context(), func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("p")
		if err != nil {
			return err
		}
		var ids []change.TableID
		for i, name := range []string{"a", "b"} {
			s, err := schema.New([]schema.NewField{{Name: "id", Type: schema.Type{Kind: schema.Int32}, OID: 23, TypMod: -1}}, nil)
			if err != nil {
				return err
			}
			tbl := &catalog.Table{
				Pipeline: p.ID, Schema: "p", Name: name, SourceSchema: "public", SourceName: name, SourceOID: uint32(i + 1),
				Current: s, Versions: []*schema.Table{s}, State: catalog.TableReady,
			}
			if err := txn.CreateTable(tbl); err != nil {
				return err
			}
			ids = append(ids, tbl.Face())
		}
		first := &catalog.View{ID: txn.ReserveTable(), Schema: "public", Name: "z", SQL: "SELECT 1", Reads: ids[:1]}
		second := &catalog.View{ID: txn.ReserveTable(), Schema: "public", Name: "Both", SQL: "SELECT 1", Reads: []change.TableID{ids[0], first.ID}}
		third := &catalog.View{ID: txn.ReserveTable(), Schema: "public", Name: "last", SQL: "SELECT 1", Reads: []change.TableID{second.ID}}
		return errors.Join(txn.PutView(first), txn.PutView(second), txn.PutView(third))
	})
	if err != nil {
		t.Fatal(err)
	}
	f.calls = nil
	return x, f
}

func execute(t *testing.T, x *Executor, sql string, session Session) *pgerr.Error {
	t.Helper()
	s, err := Parse(sql)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Execute(t.Context(), s, session)
	e, _ := pgerr.As(err)
	return e
}

const viewedWhy = `view public."Both" depends on table p.a
view public.last depends on view public."Both"
view public.z depends on table p.a`

// What views read goes with them, or not at all.
func TestDropWhatViewsRead(t *testing.T) {
	for sql, want := range map[string][2]string{
		"DROP PIPELINE p": {
			"cannot drop pipeline p because other objects depend on it", "Use DROP ... CASCADE to drop the dependent objects too.",
		},
		"DROP PIPELINE p CASCADE RESTRICT": {
			"cannot drop pipeline p because other objects depend on it", "Use DROP ... CASCADE to drop the dependent objects too.",
		},
		"ALTER PIPELINE p DROP TABLE b, a": {"cannot drop table p.a because other objects depend on it", "Drop the views first."},
	} {
		x, f := viewed(t)
		e := execute(t, x, sql, &fakeSession{})
		if e == nil || e.Code != "2BP01" || e.Message != want[0] || e.Hint != want[1] || e.Detail != viewedWhy || len(f.calls) > 0 {
			t.Errorf("%s: %+v, calls %q", sql, e, f.calls)
		}
	}
	x, f := viewed(t)
	if e := execute(t, x, "ALTER PIPELINE p DROP TABLE b", &fakeSession{}); e != nil || len(f.calls) != 1 {
		t.Errorf("what nobody reads: %v, calls %q", e, f.calls)
	}
	session := &queryingSession{}
	e := execute(t, x, "DROP PIPELINE p CASCADE", session)
	told := []string{"NOTICE drop cascades to 3 other objects", "DROP VIEW public.last", `DROP VIEW public."Both"`, "DROP VIEW public.z"}
	if e != nil || len(session.notices) < len(told) || !slices.Equal(session.notices[:len(told)], told) {
		t.Errorf("cascade: %v, %q", e, session.notices)
	}
	if !strings.HasPrefix(strings.Join(f.calls, " "), "droptable p .b drop p") {
		t.Errorf("calls %q", f.calls)
	}
	x, f = viewed(t)
	denied := pgerr.New("42501", "must be owner of view z")
	if e := execute(t, x, "DROP PIPELINE p CASCADE", &queryingSession{err: denied}); e != denied || len(f.calls) > 0 {
		t.Errorf("a view of somebody else's: %v, calls %q", e, f.calls)
	}
}

// A table that has not stopped is not resumed, which is told.
func TestResumeWhatRuns(t *testing.T) {
	x, _ := viewed(t)
	session := &fakeSession{}
	if e := execute(t, x, "ALTER PIPELINE p RESUME TABLE a", session); e != nil || !slices.Equal(session.notices, []string{`NOTICE table "p.a" is not stopped, skipping`}) {
		t.Errorf("%v, %q", e, session.notices)
	}
}
