package planner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// Prepare implements pgwire.Session.
func (s *session) Prepare(ctx context.Context, sql string, types []uint32) (pgwire.Statement, error) {
	offset := s.offset(sql)
	st, err := s.prepare(ctx, sql, types)
	if e, ok := pgerr.As(err); ok && e.Position > 0 && offset > 0 {
		return nil, e.WithPosition(e.Position + offset)
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (s *session) prepare(ctx context.Context, sql string, types []uint32) (pgwire.Statement, error) {
	if ddl.IsOurs(sql) {
		return s.prepareDDL(sql)
	}
	p, err := pgsql.Parse(sql)
	if err != nil {
		return nil, err
	}
	if p.Node == nil {
		return &utility{empty: true, anyTime: true}, nil
	}
	if s.tx.aborted && p.Node.GetTransactionStmt() == nil {
		return nil, errAborted
	}
	return s.prepareNode(ctx, p, types)
}

// prepareNode dispatches on the kind of statement.
func (s *session) prepareNode(ctx context.Context, p *pgsql.Parsed, types []uint32) (pgwire.Statement, error) {
	if st := s.prepareRights(p.Node); st != nil {
		return st, nil
	}
	switch n := p.Node.Node.(type) {
	case *pg.Node_SelectStmt:
		if into := n.SelectStmt.IntoClause; into != nil {
			return s.prepareCreateAs(p.SQL, p.Node, into, false, false)
		}
		if pgsql.Modifies(n.SelectStmt) {
			return s.prepareWrite(p, types, "SELECT")
		}
		return s.prepareQuery(p.SQL, n.SelectStmt, types)
	case *pg.Node_TransactionStmt:
		return s.prepareTransaction(n.TransactionStmt)
	case *pg.Node_VariableSetStmt:
		return s.prepareSet(n.VariableSetStmt)
	case *pg.Node_VariableShowStmt:
		return s.prepareShow(n.VariableShowStmt)
	case *pg.Node_DiscardStmt:
		return s.prepareDiscard(n.DiscardStmt)
	case *pg.Node_ExplainStmt:
		return s.prepareExplain(p.SQL, n.ExplainStmt, types)
	case *pg.Node_InsertStmt, *pg.Node_MergeStmt:
		return s.prepareWrite(p, types, pgsql.Word(p.Node))
	case *pg.Node_UpdateStmt:
		return s.prepareWrite(p.AtRow(), types, "UPDATE")
	case *pg.Node_DeleteStmt:
		return s.prepareWrite(p.AtRow(), types, "DELETE")
	case *pg.Node_TruncateStmt:
		return s.prepareTruncate(n.TruncateStmt)
	case *pg.Node_CreateTableAsStmt:
		return s.prepareMade(p.SQL, n.CreateTableAsStmt)
	case *pg.Node_RefreshMatViewStmt:
		return s.prepareRefresh(p.SQL, n.RefreshMatViewStmt)
	case *pg.Node_LockStmt:
		return s.prepareLock(n.LockStmt)
	case *pg.Node_CopyStmt:
		return s.prepareCopy(p.SQL, n.CopyStmt, types)
	case *pg.Node_PrepareStmt:
		return s.preparePrepare(p.SQL, n.PrepareStmt)
	case *pg.Node_ExecuteStmt:
		return s.prepareExecute(ctx, p.SQL, n.ExecuteStmt)
	case *pg.Node_DeallocateStmt:
		return s.prepareDeallocate(n.DeallocateStmt)
	case *pg.Node_DeclareCursorStmt:
		return s.prepareDeclare(p.SQL, n.DeclareCursorStmt, types)
	case *pg.Node_FetchStmt:
		return s.prepareFetch(n.FetchStmt)
	case *pg.Node_ClosePortalStmt:
		return s.prepareClose(n.ClosePortalStmt)
	case *pg.Node_ListenStmt, *pg.Node_UnlistenStmt, *pg.Node_NotifyStmt:
		return s.prepareNotes(p.Node), nil
	case *pg.Node_DoStmt:
		return s.prepareDo(p.SQL, n.DoStmt)
	case *pg.Node_ConstraintsSetStmt:
		return s.prepareConstraints(n.ConstraintsSetStmt)
	case *pg.Node_VacuumStmt:
		return s.prepareVacuum(n.VacuumStmt)
	case *pg.Node_CheckPointStmt:
		return s.prepareCheckpoint(), nil
	}
	if extension := s.prepareExtension(p.Node); extension != nil {
		return extension, nil
	}
	if define.Planned(p.Node) {
		return s.prepareDefine(p.SQL, p.Node)
	}
	return nil, s.refuse(p.Node)
}

// prepareNotes prepares LISTEN, UNLISTEN and NOTIFY.
func (s *session) prepareNotes(n *pg.Node) pgwire.Statement {
	if l := n.GetListenStmt(); l != nil {
		return s.prepareListen("LISTEN", l.Conditionname)
	}
	if u := n.GetUnlistenStmt(); u != nil {
		return s.prepareListen("UNLISTEN", u.Conditionname)
	}
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		return &result{tag: "NOTIFY"}, s.notes.Notify(n.GetNotifyStmt().Conditionname, n.GetNotifyStmt().Payload)
	}}
}

// refuse is the error of a statement that PostgreSQL has and we do not; its hint says how
// the same is done here.
func (s *session) refuse(n *pg.Node) error {
	e := pgerr.New(codes.FeatureNotSupported, "%s is not supported", pgsql.Word(n))
	if d := n.GetDropStmt(); d != nil {
		return e.WithHint("%s", s.dropHint(d))
	}
	switch {
	case n.GetAlterSystemStmt() != nil:
		return e.WithHint("%s", settingHint(n.GetAlterSystemStmt().Setstmt))
	case n.GetCallStmt() != nil, n.GetCreateFunctionStmt() != nil:
		return e.WithHint("There are no procedural languages. Send the statements themselves, in a transaction.")
	}
	return e
}

// settingHint says how a value is set for all sessions.
func settingHint(n *pg.VariableSetStmt) string {
	value, err := setValue(n)
	if n.Kind != pg.VariableSetKind_VAR_SET_VALUE || err != nil {
		return "Start the server without it in --settings."
	}
	return fmt.Sprintf("Start the server with --settings '%s=%s', or set it for a role: ALTER ROLE postgres SET %s = %s;",
		n.Name, value, n.Name, quote.Text(value))
}

// dropHint says how what a DROP names is dropped here: a table leaves its pipeline, a schema
// goes with its pipelines; "" when neither is meant.
func (s *session) dropHint(d *pg.DropStmt) string {
	snap, release := s.snapshotForNames()
	defer release()
	var out []string
	for _, object := range d.Objects {
		var parts []string
		for _, item := range object.GetList().GetItems() {
			parts = append(parts, item.GetString_().GetSval())
		}
		switch {
		case d.RemoveType == pg.ObjectType_OBJECT_TABLE && len(parts) > 0:
			out = append(out, s.dropTableHint(snap, parts)...)
		case d.RemoveType == pg.ObjectType_OBJECT_SCHEMA:
			out = append(out, dropSchemaHint(snap, object.GetString_().GetSval())...)
		}
	}
	if len(out) == 0 {
		return ""
	}
	effect := "takes it out of its pipeline, with its rows here."
	if d.RemoveType == pg.ObjectType_OBJECT_SCHEMA {
		effect = "drops the tables in it."
	}
	return strings.Join(out, " ") + " " + effect
}

// dropTableHint is the statement that takes a table out of its pipeline. parts are its name,
// looked up as a query's.
func (s *session) dropTableHint(snap *catalog.Snapshot, parts []string) []string {
	schemas := parts[max(0, len(parts)-2) : len(parts)-1]
	if len(schemas) == 0 {
		schemas = s.env(s.namesOf(snap)).SearchPath
	}
	for _, name := range schemas {
		t, err := snap.TableByName(name, parts[len(parts)-1])
		if err != nil {
			continue
		}
		if t.Own {
			return nil
		}
		if p, err := snap.PipelineByID(t.Pipeline); err == nil {
			return []string{t.Exact("ALTER PIPELINE … DROP TABLE …;", p.Name)}
		}
	}
	return nil
}

// dropSchemaHint are the statements that drop the pipelines whose tables are in a schema.
func dropSchemaHint(snap *catalog.Snapshot, schemaName string) []string {
	var out []string
	for _, p := range snap.Pipelines() {
		if p.Name == catalog.OwnPipeline {
			continue
		}
		if slices.ContainsFunc(snap.Tables(p.ID), func(t *catalog.Table) bool { return t.Schema == schemaName }) {
			out = append(out, p.Exact("DROP PIPELINE …;"))
		}
	}
	return out
}

// prepareDDL prepares a statement of ours.
func (s *session) prepareDDL(sql string) (pgwire.Statement, error) {
	st, err := ddl.Parse(sql)
	if err != nil {
		return nil, err
	}
	if s.tx.aborted {
		return nil, errAborted
	}
	if u, err := s.prepareOwnRights(st); u != nil || err != nil {
		return u, err
	}
	u := &utility{session: s}
	for _, c := range ddl.Describe(st) {
		u.columns = append(u.columns, column(c.Name, c.TypeOID))
	}
	u.run = func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		if s.tx.open && !st.Transactional() {
			return nil, pgerr.New(codes.ActiveSQLTransaction, "%s cannot run inside a transaction block", st.Tag())
		}
		r, err := s.engine.deps.DDL.Execute(ctx, st, ddlSession{session: s, sink: sink})
		if err != nil {
			return nil, err
		}
		return &result{tag: r.Tag, rows: r.Rows}, nil
	}
	return u, nil
}

// ddlSession is a session as ddl sees it.
type ddlSession struct {
	session *session
	sink    pgwire.Sink
}

func (d ddlSession) Notice(e *pgerr.Error) error { return d.session.notice(d.sink, e) }
func (d ddlSession) User() string                { return d.session.user() }
func (d ddlSession) Role() uint32                { return d.session.who(d.session.book()).Current }

// column describes a result column of the server's own.
func column(name string, oid uint32) pgwire.Column {
	return pgwire.Column{Name: name, TypeOID: oid, TypeSize: pgsql.TypeSize(oid), TypMod: -1}
}

// typeOf is the type that a statement names.
func (s *session) typeOf(n *pg.TypeName) (pgsql.Type, error) {
	snap, release := s.snapshotForNames()
	defer release()
	return s.env(s.namesOf(snap)).ResolveType(n)
}

func (s *session) preparePrepare(sql string, n *pg.PrepareStmt) (pgwire.Statement, error) {
	var types []uint32
	for _, a := range n.Argtypes {
		t, err := s.typeOf(a.GetTypeName())
		if err != nil {
			return nil, err
		}
		types = append(types, t.OID)
	}
	word, source := writeWord(n.Query), s.source
	if n.Query.GetSelectStmt() == nil && word == "" {
		return nil, s.refuse(n.Query)
	}
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		if s.prepared.Get(n.Name) != nil {
			return nil, pgerr.New(codes.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", n.Name)
		}
		st, err := s.prepareInner(sql, n.Query, types, word)
		if err != nil {
			return nil, err
		}
		s.prepared.Put(n.Name, &pgwire.Prepared{Statement: st, Text: source, At: s.engine.deps.Clock.Now(), FromSQL: true})
		return &result{tag: "PREPARE"}, nil
	}}, nil
}

// prepareInner prepares a query, or what writes when word names it, that is part of sql.
func (s *session) prepareInner(sql string, n *pg.Node, types []uint32, word string) (pgwire.Statement, error) {
	if word != "" {
		return s.prepareWrite((&pgsql.Parsed{SQL: sql, Node: n}).AtRow(), types, word)
	}
	return s.prepareQuery(sql, n.GetSelectStmt(), types)
}

// writeWord names a statement that writes, "" for any other.
func writeWord(n *pg.Node) string {
	switch n.GetNode().(type) {
	case *pg.Node_InsertStmt:
		return "INSERT"
	case *pg.Node_UpdateStmt:
		return "UPDATE"
	case *pg.Node_DeleteStmt:
		return "DELETE"
	case *pg.Node_MergeStmt:
		return "MERGE"
	}
	if pgsql.Modifies(n.GetSelectStmt()) {
		return "SELECT"
	}
	return ""
}

// executeStatement is EXECUTE name(args): a prepared statement with its values.
type executeStatement struct {
	pgwire.Statement
	values [][]byte
}

// Params implements pgwire.Statement.
func (e *executeStatement) Params() []uint32 { return nil }

// Bind implements pgwire.Statement.
func (e *executeStatement) Bind(ctx context.Context, _ [][]byte, _, resultFormats []int16) (pgwire.Portal, error) {
	return e.Statement.Bind(ctx, e.values, make([]int16, len(e.values)), resultFormats)
}

func (s *session) prepareExecute(_ context.Context, sql string, n *pg.ExecuteStmt) (pgwire.Statement, error) {
	p := s.prepared.Get(n.Name)
	if p == nil {
		return nil, pgerr.New(codes.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", n.Name)
	}
	if want := len(p.Params()); want != len(n.Params) {
		return nil, pgerr.New(codes.Syntax, "wrong number of parameters for prepared statement \"%s\"", n.Name).
			WithDetail("Expected %d parameters but got %d.", want, len(n.Params))
	}
	e := &executeStatement{Statement: p.Statement}
	for i, node := range n.Params {
		v, err := pgsql.ConstantText(s.input(), sql, node, p.Params()[i])
		if err != nil {
			return nil, err
		}
		e.values = append(e.values, v)
	}
	return e, nil
}

func (s *session) prepareDeallocate(n *pg.DeallocateStmt) (pgwire.Statement, error) {
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		if n.Name == "" {
			s.prepared.DropNamed()
			return &result{tag: "DEALLOCATE ALL"}, nil
		}
		if s.prepared.Get(n.Name) == nil {
			return nil, pgerr.New(codes.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", n.Name)
		}
		s.prepared.Drop(n.Name)
		return &result{tag: "DEALLOCATE"}, nil
	}}, nil
}

// Function implements pgwire.FunctionCaller.
func (s *session) Function(ctx context.Context, oid uint32) (sql string, types []uint32, err error) {
	text := fmt.Sprintf("SELECT proname, proargtypes::text, prokind = 'f' AND NOT proretset FROM pg_catalog.pg_proc WHERE oid = %d", oid)
	p, err := pgsql.Parse(text)
	if err != nil {
		return "", nil, err
	}
	q, err := s.prepareQuery(text, p.Node.GetSelectStmt(), nil)
	if err != nil {
		return "", nil, err
	}
	var row []string
	err = q.pinned(func(a *pgsql.Analysis) error {
		return s.records(ctx, a, nil, func() { row = nil }, func(rec arrow.RecordBatch) error {
			for _, c := range rec.Columns() {
				if rec.NumRows() > 0 {
					row = append(row, strings.Clone(c.ValueStr(0)))
				}
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return "", nil, clientError(ctx, err)
	case row == nil:
		return "", nil, pgerr.New(codes.UndefinedFunction, "function with OID %d does not exist", oid)
	case row[2] != "true":
		return "", nil, pgerr.New(codes.FeatureNotSupported, "cannot call function \"%s\" via fastpath interface", row[0])
	}
	var args []string
	for i, t := range strings.Fields(row[1]) {
		n, err := strconv.ParseUint(t, 10, 32)
		if err != nil {
			return "", nil, fmt.Errorf("arguments of function %d: %w", oid, err)
		}
		types = append(types, uint32(n))
		args = append(args, fmt.Sprintf("$%d", i+1))
	}
	return "SELECT pg_catalog." + quote.NameIfNeeded(row[0]) + "(" + strings.Join(args, ", ") + ")", types, nil
}
