package pgsql

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// merger analyses MERGE. One query gives the rows to write, each with the number of the clause that
// writes it: the table and the source are joined within, where the number is decided, once.
type merger struct {
	*writer
	rel  *Relation
	face *face
	// both and source are what conditions may name of a row of the source that matches one of the
	// table, and of one that does not; outerBoth and outerSource are the same outside of the join.
	both, source, outerBoth, outerSource *scope
	// inner are the columns of the join, as m.b1, m.b2, …, by their SQL in it.
	inner []string
	alias string
	// cases are the clauses' conditions with their numbers: where a row matches, and where none does.
	cases [2][]string
	// values are the new values of columns by clause.
	values map[int][]string
	// subqueries give several columns their values: columns of the join's rows.
	subqueries []string
}

// merge analyses MERGE.
func (w *writer) merge(n *pg.MergeStmt) error {
	w.verb = verb{"merge into", "merging into", "MERGE"}
	if err := checkMerge(n); err != nil {
		return err
	}
	s := &scope{}
	with, err := w.with(n.WithClause, s)
	if err != nil {
		return err
	}
	if err := w.mergeTarget(n.Relation); err != nil {
		return err
	}
	m := &merger{writer: w, rel: w.out.Relation, values: map[int][]string{}}
	on, src, err := m.join(n, s)
	if err != nil {
		return err
	}
	for i, c := range n.MergeWhenClauses {
		if err := m.clause(c.GetMergeWhenClause(), i+1); err != nil {
			return err
		}
	}
	w.out.Old = identity(m.rel)
	m.face.base.use.Target, m.face.base.use.Reads = true, usedPlaces(m.face.base.use)
	w.out.Rows = w.finished(with + m.rows(on, src))
	return nil
}

// checkMerge refuses what no MERGE has, or none of PostgreSQL 15.
func checkMerge(n *pg.MergeStmt) error {
	if n.WithClause.GetRecursive() {
		return pgerr.New(codes.Syntax, "WITH RECURSIVE is not supported for MERGE statement")
	}
	if len(n.ReturningList) > 0 {
		return unsupported("RETURNING of MERGE is not supported").WithHint("SELECT the rows in a statement of its own, in one transaction.")
	}
	var done [2]bool
	for _, node := range n.MergeWhenClauses {
		c, kind := node.GetMergeWhenClause(), 0
		switch c.MatchKind {
		case pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_TARGET:
			kind = 1
		case pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_SOURCE:
			return unsupported("WHEN NOT MATCHED BY SOURCE is not supported").
				WithHint("UPDATE or DELETE … WHERE NOT EXISTS (…) in a statement of its own, in one transaction.")
		}
		if done[kind] {
			return pgerr.New(codes.Syntax, "unreachable WHEN clause specified after unconditional WHEN clause")
		}
		done[kind] = c.Condition == nil
	}
	return nil
}

// mergeTarget finds the table that MERGE changes.
func (w *writer) mergeTarget(n *pg.RangeVar) error {
	rel, err := w.relation(n.Schemaname, n.Relname, n.Location)
	if err != nil {
		return err
	}
	kind := ""
	switch {
	case rel.Materialized:
		kind = "materialized views"
	case rel.View != "":
		kind = "views"
	case rel.Sequence:
		kind = "sequences"
	}
	if kind != "" {
		return unsupported("cannot execute MERGE on relation \"%s\"", rel.Name).WithDetail("This operation is not supported for %s.", kind)
	}
	_, err = w.target(n)
	return err
}

// mergedAlone refuses a MERGE whose WITH changes rows of its table, or of one that foreign keys tie to
// it: what it then does to a row depends on what comes first.
func (w *writer) mergedAlone() error {
	rel := w.out.Relation
	tied := []uint32{rel.OID}
	for _, f := range rel.Foreign {
		tied = append(tied, f.Parent.OID)
	}
	for _, f := range rel.Referenced {
		tied = append(tied, f.Child.OID)
	}
	for _, step := range w.out.With {
		if slices.Contains(tied, step.Relation.OID) {
			return unsupported("MERGE is not supported beside a statement in WITH that changes table \"%s\"", step.Relation.Name).
				WithHint("Run two statements in a transaction.")
		}
	}
	return nil
}

// join opens the scopes and analyses the source and the condition of the join.
func (m *merger) join(n *pg.MergeStmt, s *scope) (on string, src *source, err error) {
	// Without a key, rows are told apart by numbers that the query gives them.
	if m.face, err = m.facing(n.Relation, facing{checked: len(m.rel.Key) == 0}); err != nil {
		return "", nil, err
	}
	if src, err = m.fromNode(n.SourceRelation, &scope{ctes: s.ctes, unseen: m.face.item}); err != nil {
		return "", nil, err
	}
	target := m.face.item
	if slices.ContainsFunc(src.items, func(it *item) bool { return it.name == target.name }) {
		return "", nil, pgerr.New(codes.DuplicateAlias, "name \"%s\" specified more than once", target.name).
			WithDetail("The name is used both as MERGE target table and data source.")
	}
	m.source = &scope{ctes: s.ctes, items: src.items, columns: src.columns, unseen: target}
	m.both = &scope{ctes: s.ctes, items: append(slices.Clip(src.items), target), columns: append(slices.Clip(src.columns), target.columns...)}
	joined := *m.both
	joined.noAgg = "JOIN conditions"
	e, err := m.condition(n.JoinCondition, &joined, "JOIN/ON")
	if err != nil {
		return "", nil, err
	}
	m.alias = m.writer.alias("m")
	m.outerSource, m.outerBoth = m.outside(m.source), m.outside(m.both)
	return e.sql, src, nil
}

// outside is a scope of the join as what reads the join's rows has it.
func (m *merger) outside(s *scope) *scope {
	out := &scope{ctes: s.ctes, unseen: s.unseen}
	known := map[*column]*column{}
	of := func(list []*column, it *item) (columns []*column) {
		for _, c := range list {
			if known[c] == nil {
				outer := *c
				outer.sql = func() string { return m.also(c.sql()) }
				known[c] = &outer
			}
			if it != nil {
				known[c].item = it
			}
			columns = append(columns, known[c])
		}
		return columns
	}
	for _, it := range s.items {
		outer := *it
		outer.columns = of(it.columns, &outer)
		out.items = append(out.items, &outer)
	}
	out.columns = of(s.columns, nil)
	return out
}

// also is a column of the join, outside of it.
func (m *merger) also(sql string) string {
	at := slices.Index(m.inner, sql)
	if at < 0 {
		at, m.inner = len(m.inner), append(m.inner, sql)
	}
	return fmt.Sprintf("%s.b%d", m.alias, at+1)
}

// which is the number of the clause that a row is for, 0 for none.
func (m *merger) which() string {
	of := func(list []string) string {
		if len(list) == 0 {
			return "0"
		}
		return "CASE " + strings.Join(list, " ") + " ELSE 0 END"
	}
	return "CASE WHEN " + m.matched() + " IS NOT NULL THEN " + of(m.cases[0]) + " ELSE " + of(m.cases[1]) + " END"
}

// matched is null where no row of the table matches.
func (m *merger) matched() string {
	if m.face.row != nil {
		return m.face.row()
	}
	return m.face.base.columns[m.rel.Key[0]].sql()
}

// rows is the query of the rows to write: the columns by which a row is found, all columns as they
// are to be, the clause, and the number of the row that is there, where the table has no key.
func (m *merger) rows(on string, src *source) string {
	var list []string
	for _, i := range m.out.Old {
		list = append(list, m.also(m.face.base.columns[i].sql()))
	}
	for i := range m.rel.Columns {
		sql := m.also(m.face.base.columns[i].sql())
		if cases := m.values[i]; len(cases) > 0 {
			sql = "CASE " + m.alias + ".clause " + strings.Join(cases, " ") + " ELSE " + sql + " END"
		}
		list = append(list, sql)
	}
	number := "NULL"
	if m.face.row != nil {
		number = m.also(m.face.row())
	}
	list = append(list, m.alias+".clause", "CAST("+number+" AS BIGINT)")
	for i, sql := range list {
		list[i] = fmt.Sprintf("%s AS c%d", sql, i+1)
	}
	join := "JOIN"
	if slices.ContainsFunc(m.cases[1], func(c string) bool { return !strings.HasSuffix(c, " THEN 0") }) {
		join = "LEFT JOIN"
	}
	inner := "SELECT CAST(" + m.which() + " AS BIGINT) AS clause"
	for i, sql := range m.inner {
		inner += fmt.Sprintf(", %s AS b%d", sql, i+1)
	}
	from := "(" + inner + " FROM " + src.sql + " " + join + " " + m.face.print() + " ON " + on + ") AS " + m.alias + " WHERE " + m.alias + ".clause > 0"
	if len(m.subqueries) > 0 {
		from = "(SELECT " + m.alias + ".*, " + strings.Join(m.subqueries, ", ") + " FROM " + from + ") AS " + m.alias
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + from
}

// clause analyses a WHEN, the number-th.
func (m *merger) clause(c *pg.MergeWhenClause, number int) error {
	kind, inner, outer := 0, m.both, m.outerBoth
	if c.MatchKind == pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_TARGET {
		kind, inner, outer = 1, m.source, m.outerSource
	}
	condition := "true"
	if c.Condition != nil {
		inner.noAgg = "MERGE WHEN conditions"
		e, err := m.condition(c.Condition, inner, "WHEN")
		if err != nil {
			return err
		}
		condition = e.sql
	}
	act := &writer{analyzer: m.analyzer, named: m.rel, many: true, subAlias: m.alias, subFirst: len(m.subqueries)}
	act.out.Relation = m.rel
	values, err := m.action(act, c, outer)
	if err != nil {
		return err
	}
	for i, sub := range act.subqueries {
		m.subqueries = append(m.subqueries, fmt.Sprintf("CASE %s.clause WHEN %d THEN %s END AS s%d", m.alias, number, sub.sql, act.subFirst+i+1))
	}
	m.out.Actions, m.out.Fills = append(m.out.Actions, &act.out), append(m.out.Fills, act.out.Fills...)
	for _, i := range slices.Sorted(maps.Keys(values)) {
		m.values[i] = append(m.values[i], fmt.Sprintf("WHEN %d THEN %s", number, values[i]))
	}
	if c.CommandType == pg.CmdType_CMD_NOTHING {
		number = 0
	}
	m.cases[kind] = append(m.cases[kind], fmt.Sprintf("WHEN %s THEN %d", condition, number))
	return nil
}

// action analyses what a clause does; it returns the values of columns, by index.
func (m *merger) action(act *writer, c *pg.MergeWhenClause, s *scope) (map[int]string, error) {
	switch c.CommandType {
	case pg.CmdType_CMD_UPDATE:
		act.verb, act.out.Word, act.out.Old = verbUpdate, "UPDATE", identity(m.rel)
		s.noAgg = "UPDATE"
		set, err := act.assignments(c.TargetList, s)
		act.out.Written = slices.Sorted(maps.Keys(set))
		return set, err
	case pg.CmdType_CMD_DELETE:
		act.verb, act.out.Word, act.out.Old = verbDelete, "DELETE", identity(m.rel)
	case pg.CmdType_CMD_INSERT:
		act.verb, act.out.Word = verbInsert, "INSERT"
		s.noAgg = inValues
		return m.inserted(act, c, s)
	}
	return nil, nil
}

// inserted are the values of a new row.
func (m *merger) inserted(act *writer, c *pg.MergeWhenClause, s *scope) (map[int]string, error) {
	columns, err := act.insertColumns(m.rel, c.TargetList)
	if err != nil {
		return nil, err
	}
	if len(c.Values) == 0 { // DEFAULT VALUES
		columns = nil
	} else if columns, err = fits(m.rel, len(c.Values), columns, len(c.TargetList) > 0); err != nil {
		return nil, err
	}
	act.out.Written = columns
	out := map[int]string{}
	for i, rc := range m.rel.Columns {
		at := slices.Index(columns, i)
		given := at >= 0 && c.Values[at].GetSetToDefault() == nil
		if given {
			if given, err = takesValue(rc, c.Override); err != nil {
				return nil, err
			}
		}
		if !given {
			out[i], err = act.omitted(rc)
		} else {
			filled := false
			if out[i], filled, err = act.fill(c.Values[at], rc); err == nil && !filled {
				out[i], err = act.value(c.Values[at], rc, s)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
