package pgsql

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Modifies says whether statements in the WITH of a query write.
func Modifies(sel *pg.SelectStmt) bool { return modifies(sel.GetWithClause()) }

func modifies(with *pg.WithClause) bool {
	return slices.ContainsFunc(with.GetCtes(), func(n *pg.Node) bool {
		return n.GetCommonTableExpr().GetCtequery().GetSelectStmt() == nil
	})
}

// Steps are the statements in the order in which they run: those of WITH, then the statement itself.
func (w *Write) Steps() []*Write { return append(slices.Clip(w.With), w) }

// Acts are what the statement does to rows of its relation: itself, or the clauses of a MERGE.
func (w *Write) Acts() []*Write {
	if w.Word != "MERGE" {
		return []*Write{w}
	}
	return slices.DeleteFunc(slices.Clone(w.Actions), func(a *Write) bool { return a.Word == "" })
}

// queries are all of a statement's but for those of its WITH.
func (w *Write) queries() []*Analysis {
	list := []*Analysis{w.Rows, w.Returning}
	if w.Conflict != nil {
		list = append(list, w.Conflict.Update)
	}
	if w.CheckOption != nil {
		list = append(list, w.CheckOption.Rows)
	}
	return slices.DeleteFunc(list, func(a *Analysis) bool { return a == nil })
}

// Reads are the uses of relations whose rows the statement reads, its WITH not counted.
func (w *Write) Reads() []*Use {
	var out []*Use
	for _, a := range w.queries() {
		for _, u := range a.Uses {
			if u.From == nil {
				out = append(out, u)
			}
		}
	}
	return out
}

// modification is a statement of WITH that writes.
type modification struct {
	*writer
	// target is the relation that it names, list its RETURNING.
	target *pg.RangeVar
	list   []*pg.Node
}

// with is where the WITH of a statement that may have one is kept.
func withOf(n *pg.Node) **pg.WithClause {
	switch v := n.GetNode().(type) {
	case *pg.Node_InsertStmt:
		return &v.InsertStmt.WithClause
	case *pg.Node_UpdateStmt:
		return &v.UpdateStmt.WithClause
	case *pg.Node_DeleteStmt:
		return &v.DeleteStmt.WithClause
	case *pg.Node_MergeStmt:
		return &v.MergeStmt.WithClause
	case *pg.Node_SelectStmt:
		return &v.SelectStmt.WithClause
	}
	return nil
}

// statement analyses a statement, and before those of its WITH that write.
func (w *writer) statement(n *pg.Node) error {
	at := withOf(n)
	if at == nil || !modifies(*at) {
		return w.alone(n)
	}
	clause := *at
	defer func() { *at = clause }()
	if err := w.checkWith(clause, n); err != nil {
		return err
	}
	done := map[*pg.CommonTableExpr]*modification{}
	for i, node := range clause.Ctes {
		c := node.GetCommonTableExpr()
		if c.Ctequery.GetSelectStmt() != nil {
			continue
		}
		m, err := w.modification(c, clause, i, done)
		if err != nil {
			return err
		}
		w.out.With = append(w.out.With, &m.out)
		done[c] = m
	}
	w.modifications = done
	*at = needed(clause, len(clause.Ctes), n, true)
	if err := w.alone(n); err != nil {
		return err
	}
	if w.out.Word == "MERGE" {
		return w.mergedAlone()
	}
	return changedTwice(w.out.Steps())
}

// alone analyses a statement whose WITH has been looked at.
func (w *writer) alone(n *pg.Node) (err error) {
	switch n := n.Node.(type) {
	case *pg.Node_InsertStmt:
		err = w.insert(n.InsertStmt)
	case *pg.Node_UpdateStmt:
		err = w.update(n.UpdateStmt)
	case *pg.Node_DeleteStmt:
		err = w.delete(n.DeleteStmt)
	case *pg.Node_MergeStmt:
		err = w.merge(n.MergeStmt)
	case *pg.Node_SelectStmt:
		var q *query
		if q, err = w.query(n.SelectStmt, nil); err == nil {
			w.out.Word = "SELECT"
			w.out.Returning, err = w.finish(q)
		}
	default:
		err = unsupported("cannot analyze this statement")
	}
	if err != nil {
		return err
	}
	w.out.Effects, w.out.Locks = w.effects, w.locks
	if w.verb.event != "" {
		w.out.Word = w.verb.event
	}
	if slices.ContainsFunc(w.effects, func(e Effect) bool { return e.Kind < EffectNextval }) {
		return unsupported("functions that act on the server are not supported in INSERT, UPDATE, DELETE and MERGE")
	}
	return w.drawsItself()
}

// modification analyses the i-th query of a WITH, which writes.
func (w *writer) modification(c *pg.CommonTableExpr, clause *pg.WithClause, i int, done map[*pg.CommonTableExpr]*modification) (*modification, error) {
	sub := *w.analyzer
	sub.uses, sub.views, sub.effects, sub.locks, sub.modifications = nil, nil, nil, nil, done
	m := &modification{writer: &writer{analyzer: &sub}}
	switch n := c.Ctequery.Node.(type) {
	case *pg.Node_InsertStmt:
		m.target, m.list = n.InsertStmt.Relation, n.InsertStmt.ReturningList
	case *pg.Node_UpdateStmt:
		m.target, m.list = n.UpdateStmt.Relation, n.UpdateStmt.ReturningList
	case *pg.Node_DeleteStmt:
		m.target, m.list = n.DeleteStmt.Relation, n.DeleteStmt.ReturningList
	case *pg.Node_MergeStmt:
		return nil, w.errAt(c.Location, unsupported("MERGE not supported in WITH query"))
	default:
		return nil, w.errAt(c.Location, unsupported("%s in WITH is not supported", Word(c.Ctequery)))
	}
	if calls(returningOf(c.Ctequery), []string{"nextval", "setval"}) { // which each reader would call, or none
		return nil, w.errAt(c.Location, unsupported("nextval and setval in RETURNING of a statement in WITH are not supported"))
	}
	at := withOf(c.Ctequery)
	own := *at
	defer func() { *at = own }()
	if modifies(own) {
		return nil, w.errAt(own.Location, errNotAtTop)
	}
	with := needed(clause, i, c.Ctequery, false)
	for _, n := range own.GetCtes() {
		name := n.GetCommonTableExpr().Ctename
		with.Ctes = slices.DeleteFunc(with.Ctes, func(o *pg.Node) bool { return o.GetCommonTableExpr().Ctename == name })
		with.Ctes = append(with.Ctes, n)
	}
	with.Recursive = with.Recursive || own.GetRecursive()
	if *at = with; len(with.Ctes) == 0 {
		*at = nil
	}
	err := m.alone(c.Ctequery)
	w.params, w.seenParam, w.aliases = sub.params, sub.seenParam, sub.aliases
	return m, err
}

var errNotAtTop = unsupported("WITH clause containing a data-modifying statement must be at the top level")

// needed are those of the first queries of a WITH that a statement names, and what they name in
// turn; all says that those that do not write come even so, as they are analysed once at least.
func needed(clause *pg.WithClause, first int, n *pg.Node, all bool) *pg.WithClause {
	out := &pg.WithClause{Recursive: clause.Recursive, Location: clause.Location}
	named := []*pg.Node{n}
	for i := first - 1; i >= 0; i-- {
		c := clause.Ctes[i].GetCommonTableExpr()
		if all && c.Ctequery.GetSelectStmt() != nil || slices.ContainsFunc(named, func(n *pg.Node) bool { return names(n, c.Ctename) }) {
			out.Ctes = append(out.Ctes, clause.Ctes[i])
			if named = append(named, c.Ctequery); c.Ctequery.GetSelectStmt() == nil { // what it names is done
				named[len(named)-1] = returningOf(c.Ctequery)
			}
		}
	}
	slices.Reverse(out.Ctes)
	return out
}

// returningOf is RETURNING as a node of its own.
func returningOf(n *pg.Node) *pg.Node {
	list := &pg.List{}
	switch v := n.Node.(type) {
	case *pg.Node_InsertStmt:
		list.Items = v.InsertStmt.ReturningList
	case *pg.Node_UpdateStmt:
		list.Items = v.UpdateStmt.ReturningList
	case *pg.Node_DeleteStmt:
		list.Items = v.DeleteStmt.ReturningList
	}
	return &pg.Node{Node: &pg.Node_List{List: list}}
}

// names says whether a tree names a relation without a schema.
func names(n *pg.Node, name string) bool {
	found := false
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		rv, ok := m.(*pg.RangeVar)
		found = found || ok && rv.Relname == name && rv.Schemaname == ""
	})
	return found
}

// checkWith refuses a WITH whose queries cannot run one by one: what is read by several of them
// must be the same for all.
func (w *writer) checkWith(clause *pg.WithClause, main *pg.Node) error {
	for i, node := range clause.Ctes {
		c := node.GetCommonTableExpr()
		readers := 0
		for j, other := range append(slices.Clip(clause.Ctes), main) {
			o := other.GetCommonTableExpr()
			body := other
			if o != nil {
				body = o.Ctequery
			} else if at := withOf(main); at != nil { // without its WITH
				saved := *at
				*at = nil
				defer func() { *at = saved }()
			}
			switch {
			case !names(body, c.Ctename):
			case o != nil && i == j && clause.Recursive && c.Ctequery.GetSelectStmt() == nil:
				return w.errAt(c.Location, pgerr.New(codes.InvalidRecursion, "recursive query \"%s\" must not contain data-modifying statements", c.Ctename))
			case o != nil && j < i && clause.Recursive:
				return w.errAt(c.Location, unsupported("a reference to a later query of WITH beside data-modifying statements is not supported"))
			case j > i || o == nil:
				readers++
			}
		}
		text := c.Ctequery
		if text.GetSelectStmt() == nil {
			text = returningOf(text)
		}
		if readers > 1 && calls(text, volatileFunctions) {
			return w.errAt(c.Location, unsupported("a query of WITH with functions that give other values at each call cannot be read twice beside data-modifying statements").
				WithHint("Put it into a table first: CREATE TEMP TABLE %s AS …", c.Ctename))
		}
	}
	return nil
}

// calls says whether a tree calls one of some functions.
func calls(n *pg.Node, functions []string) bool {
	found := false
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		f, ok := m.(*pg.FuncCall)
		found = found || ok && slices.Contains(functions, f.Funcname[len(f.Funcname)-1].GetString_().GetSval())
	})
	return found
}

// changedTwice refuses statements of which several change rows of a table that has no key: a row
// that both find could not be told from others like it.
func changedTwice(list []*Write) error {
	seen := map[uint32]bool{}
	for _, s := range list {
		if s.Relation == nil || s.Word == "INSERT" || len(s.Relation.Key) > 0 {
			continue
		}
		if seen[s.Relation.OID] {
			return errChangedTwice(s.Relation)
		}
		seen[s.Relation.OID] = true
	}
	return nil
}

func errChangedTwice(rel *Relation) error {
	return unsupported("changing rows of a table without a primary key twice in one statement is not supported").
		WithDetail("It is table \"%s\".", rel.Name).WithHint("Give the table a primary key, or run two statements in a transaction.")
}

// writtenCTE is a query of WITH that has written rows: its RETURNING of these.
func (a *analyzer) writtenCTE(c *pg.CommonTableExpr, m *modification, s *scope) (string, error) {
	entry := &cte{name: c.Ctename, alias: a.alias("w"), silent: len(m.list) == 0}
	s.ctes = append(s.ctes, entry)
	if entry.silent {
		return "", nil
	}
	own, path := m.analyzer, a.modifications
	m.analyzer, a.modifications = a, nil
	defer func() { m.analyzer, a.modifications = own, path }()
	f, err := m.facing(m.target, facing{})
	if err != nil {
		return "", err
	}
	inner := &scope{noAgg: "RETURNING", items: []*item{f.item}, columns: f.item.columns}
	q := &query{head: "SELECT "}
	if q.targets, err = m.targets(m.list, inner); err == nil {
		err = m.settle(q)
	}
	if err != nil {
		return "", err
	}
	f.base.use.From, q.tail = &m.out, " FROM "+f.print()
	entry.columns = q.targets
	if err := a.renameTargets(entry, c); err != nil {
		return "", err
	}
	return entry.alias + " AS MATERIALIZED (" + q.print(false) + ")", nil
}

// silentCTE refuses to read what a statement without RETURNING has written.
func (a *analyzer) silentCTE(c *cte, loc int32) error {
	return a.errAt(loc, pgerr.New(codes.FeatureNotSupported, "WITH query \"%s\" does not have a RETURNING clause", c.name))
}
