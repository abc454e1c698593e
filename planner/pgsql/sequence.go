package pgsql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Fill is a column of the rows that a statement writes whose values a sequence gives, one
// for each row, in their order.
type Fill struct {
	// Column is an index into the relation's columns.
	Column   int
	Sequence *Relation
	// Identity says that the column gives its own value: that takes no right on the sequence.
	Identity bool
}

// Stage is the call of nextval, setval or a function that the session does itself which is all
// that a query selects: it is made for each row that the rest of the query has.
type Stage struct {
	Kind EffectKind
	// Name is the function of an EffectCall, whose arguments are Rows' columns.
	Name string
	// Sequence is which; nil: the first column of Rows names it.
	Sequence *Relation
	// Rows are the calls' rows: the name, the value and whether it was given, as far as the
	// call has them.
	Rows *Analysis
}

// StageMark stands in Analysis.SQL for the results of a Stage, as rows of VALUES.
const StageMark = "\x01stage\x01"

// codeGeneratedAlways is that of a value for what is GENERATED ALWAYS.
const codeGeneratedAlways = codes.Code("428C9")

// sequenceKinds are the functions of sequences.
var sequenceKinds = map[string]EffectKind{
	"nextval": EffectNextval, "currval": EffectCurrval, "lastval": EffectLastval, "setval": EffectSetval,
}

// sequenceCall analyses a function of sequences. It happens once, before the engine runs: so
// it must stand where it is computed once.
func (a *analyzer) sequenceCall(name string, n *pg.FuncCall, s *scope) (expr, error) {
	out := expr{typ: plain(OIDInt8), scale: -1}
	e := Effect{Kind: sequenceKinds[name], Mark: fmt.Sprintf("\x01effect%d\x01", len(a.effects))}
	if e.Kind == EffectLastval {
		if len(n.Args) != 0 {
			return a.noSequenceFunction(name, n, s)
		}
		a.effects, out.sql = append(a.effects, e), e.Mark
		return out, nil
	}
	most := 1
	if e.Kind == EffectSetval {
		most = 3
	}
	if len(n.Args) == 0 || len(n.Args) > most || most == 3 && len(n.Args) == 1 {
		return a.noSequenceFunction(name, n, s)
	}
	var err error
	if e.Sequence, err = a.sequenceArg(n.Args[0]); err != nil {
		return out, err
	}
	switch {
	case e.Sequence == nil:
		return out, unsupported("%s of a sequence whose name is computed is not supported here", name).
			WithHint("SELECT %s(…); alone takes such a name.", name)
	case e.Kind != EffectCurrval && !once(s):
		return out, unsupported("%s is not supported here", name).
			WithDetail("It would be called for each row.").
			WithHint("It may be all that a query selects, or a whole column that INSERT or UPDATE writes.")
	case e.Kind != EffectCurrval && a.maybe > 0:
		return out, unsupported("%s is not supported here", name).
			WithDetail("It would be called though what is around it may not need its value.")
	case e.Kind == EffectSetval:
		if err := a.setvalArgs(&e, n, s); err != nil {
			return out, err
		}
	}
	a.effects, out.sql = append(a.effects, e), e.Mark
	return out, nil
}

// mayBe returns what ends a part of an expression that need not be computed.
func (a *analyzer) mayBe() (end func()) {
	before := a.maybe
	return func() { a.maybe = before }
}

// selected are the targets of a query, which it computes for its rows: one without FROM may have
// none all the same.
func (a *analyzer) selected(sel *pg.SelectStmt, s *scope) ([]target, error) {
	defer a.mayBe()()
	limit := sel.LimitCount.GetAConst()
	if sel.WhereClause != nil || sel.HavingClause != nil || sel.LimitOffset != nil ||
		sel.LimitCount != nil && !limit.GetIsnull() && limit.GetIval().GetIval() < 1 {
		a.maybe++
	}
	return a.targets(sel.TargetList, s)
}

// drawsItself refuses currval and lastval where the statement itself gives the sequence its
// newest value: they happen before it.
func (w *writer) drawsItself() error {
	for _, e := range w.effects {
		name := "currval"
		if e.Kind == EffectLastval {
			name = "lastval"
		} else if e.Kind != EffectCurrval {
			continue
		}
		for _, f := range w.out.Fills {
			if e.Sequence == nil || e.Sequence.OID == f.Sequence.OID {
				return unsupported("%s of a sequence from which the same statement draws is not supported", name).
					WithHint("RETURNING the column has its value; or SELECT %s(…) in a statement of its own.", name)
			}
		}
	}
	return nil
}

func (a *analyzer) noSequenceFunction(name string, n *pg.FuncCall, s *scope) (expr, error) {
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return expr{}, err
	}
	return expr{}, noFunction(name, args, false)
}

// once says whether an expression of a scope is computed once for each time that it is
// written.
func once(s *scope) bool {
	for ; s != nil; s = s.parent {
		if len(s.items) > 0 {
			return false
		}
	}
	return true
}

// setvalArgs are the value of setval, and whether it was given.
func (a *analyzer) setvalArgs(e *Effect, n *pg.FuncCall, s *scope) error {
	args, err := a.exprList(n.Args[1:], s)
	if err != nil {
		return err
	}
	value, err := a.coerce(args[0], plain(OIDInt8), implicit)
	if err != nil {
		return err
	}
	e.Local = true
	text := strings.TrimSuffix(strings.TrimPrefix(value.sql, "CAST("), " AS BIGINT)")
	if value.num != nil {
		text = strconv.FormatInt(*value.num, 10)
	}
	if e.Number, err = strconv.ParseInt(strings.Trim(text, "'"), 10, 64); err != nil {
		return unsupported("setval of a value that is computed is not supported here").WithHint("SELECT setval(…); alone takes such a value.")
	}
	if len(args) == 1 {
		return nil
	}
	called, err := a.coerce(args[1], plain(OIDBool), implicit)
	if err != nil {
		return err
	}
	switch strings.ToLower(called.sql) {
	case "true":
	case "false":
		e.Local = false
	default:
		return unsupported("setval with a condition that is computed is not supported here").WithHint("SELECT setval(…); alone takes such a condition.")
	}
	return nil
}

// sequenceArg finds the sequence that an argument names; nil when that is computed.
func (a *analyzer) sequenceArg(n *pg.Node) (*Relation, error) {
	name, ok := a.sequenceName(n)
	if !ok {
		return nil, nil
	}
	if oid, err := strconv.ParseUint(name, 10, 32); err == nil {
		return nil, pgerr.New(codes.UndefinedTable, "could not open relation with OID %d", oid)
	}
	return FindSequence(name, a.env)
}

// FindSequence finds the sequence that a text names, as a regclass.
func FindSequence(text string, env *Env) (*Relation, error) {
	names := splitName(strings.TrimSpace(text))
	schema := ""
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	a := &analyzer{env: env}
	rel, err := a.relation(schema, names[len(names)-1], -1)
	if err != nil {
		return nil, err
	}
	if !rel.Sequence {
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a sequence", rel.Name)
	}
	return rel, nil
}

// sequenceName is the constant text of an argument that names a sequence.
func (a *analyzer) sequenceName(n *pg.Node) (string, bool) {
	switch v := n.Node.(type) {
	case *pg.Node_AConst:
		return v.AConst.GetSval().GetSval(), v.AConst.GetSval() != nil
	case *pg.Node_TypeCast:
		t, err := ResolveTypeName(v.TypeCast.TypeName)
		if err != nil || t.OID != OIDRegclass && !isString(t.OID) {
			return "", false
		}
		return a.sequenceName(v.TypeCast.Arg)
	case *pg.Node_FuncCall:
		f := v.FuncCall
		if len(f.Args) != 2 || f.Funcname[len(f.Funcname)-1].GetString_().GetSval() != "pg_get_serial_sequence" {
			return "", false
		}
		table, ok := a.sequenceName(f.Args[0])
		column, also := a.sequenceName(f.Args[1])
		if !ok || !also {
			return "", false
		}
		names := splitName(table)
		schema := ""
		if len(names) > 1 {
			schema = names[len(names)-2]
		}
		rel, err := a.relation(schema, names[len(names)-1], -1)
		if err != nil {
			return "", false
		}
		for _, c := range rel.Columns {
			if c.Name == column && c.Serial != "" {
				return c.Serial, true
			}
		}
	}
	return "", false
}

// drawn is the sequence of an expression that is nextval of a constant name and nothing
// else, nil for another.
func (a *analyzer) drawn(n *pg.Node) (*Relation, error) {
	if c := n.GetTypeCast(); c != nil {
		if t, err := ResolveTypeName(c.TypeName); err == nil && isInt(t.OID) {
			return a.drawn(c.Arg)
		}
	}
	f := n.GetFuncCall()
	if f == nil || len(f.Args) != 1 || callName(f) != "nextval" {
		return nil, nil
	}
	return a.sequenceArg(f.Args[0])
}

// callName is the name of a built-in function that is called, "" of another's.
func callName(f *pg.FuncCall) string {
	if len(f.Funcname) == 2 && f.Funcname[0].GetString_().GetSval() != "pg_catalog" || len(f.Funcname) > 2 {
		return ""
	}
	return f.Funcname[len(f.Funcname)-1].GetString_().GetSval()
}

// fill notes that a sequence gives the values of a column, and is what stands there until
// then; ok is false for an expression that is no such call.
func (w *writer) fill(n *pg.Node, c RelationColumn) (sql string, ok bool, err error) {
	at := slices.IndexFunc(w.out.Relation.Columns, func(o RelationColumn) bool { return o.AttNum == c.AttNum })
	if !isInt(c.Type.OID) || at < 0 {
		return "", false, nil
	}
	seq, err := w.drawn(n)
	if seq == nil || err != nil {
		return "", false, err
	}
	w.out.Fills = append(w.out.Fills, Fill{Column: at, Sequence: seq})
	return "CAST(0 AS " + c.Engine + ")", true, nil
}

// fillDefault is fill for the default of a column.
func (w *writer) fillDefault(c RelationColumn) (sql string, ok bool, err error) {
	if !strings.Contains(c.Default, "nextval") {
		return "", false, nil
	}
	n, err := ParseExpression(c.Default)
	if err != nil {
		return "", false, fmt.Errorf("default of column %s: %w", quote.Name(c.Name), err)
	}
	if sql, ok, err = w.fill(n, c); ok {
		w.out.Fills[len(w.out.Fills)-1].Identity = c.Identity != ""
	}
	return sql, ok, err
}

// staged analyses a query that selects a call of nextval, setval or set_config for each of its
// rows, or with arguments that are computed; nil for any other.
func staged(sql string, sel *pg.SelectStmt, params []uint32, env *Env) (*Analysis, error) {
	if len(sel.TargetList) != 1 || sel.Op > pg.SetOperation_SETOP_NONE || len(sel.DistinctClause) > 0 {
		return nil, nil
	}
	target := sel.TargetList[0].GetResTarget()
	f := target.GetVal().GetFuncCall()
	if f == nil {
		return nil, nil
	}
	name := callName(f)
	if _, ok := effectCalls[name]; ok && (len(sel.FromClause) > 0 || sel.WhereClause != nil) {
		return stagedEffect(sql, sel, f, params, env)
	}
	kind := sequenceKinds[name]
	types, result, engine := []string{"text", "int8", "bool"}, plain(OIDInt8), "BIGINT"
	if name == "set_config" && len(f.Args) == 3 && (len(sel.FromClause) > 0 || sel.WhereClause != nil) {
		kind, types, result, engine = EffectSetConfig, []string{"text", "text", "bool"}, plain(OIDText), "VARCHAR"
	} else if kind != EffectNextval && kind != EffectSetval || len(f.Args) == 0 || kind == EffectNextval && len(f.Args) != 1 ||
		kind == EffectSetval && len(f.Args) != 2 && len(f.Args) != 3 {
		return nil, nil
	}
	a := &analyzer{env: env, sql: sql}
	var seq *Relation
	var err error
	if kind != EffectSetConfig {
		if seq, err = a.sequenceArg(f.Args[0]); err != nil {
			return nil, a.errAt(f.Location, err)
		}
	}
	st := &Stage{Kind: kind, Sequence: seq}
	if target.Name != "" {
		name = target.Name
	}
	list := sel.TargetList
	defer func() { sel.TargetList = list }() // the statement may be analysed again
	sel.TargetList = nil
	for i, arg := range f.Args {
		if i == 0 && seq != nil {
			arg = pg.MakeAConstStrNode("", -1)
		}
		sel.TargetList = append(sel.TargetList, pg.MakeResTargetNodeWithVal(castNode(arg, types[i]), -1))
	}
	if st.Rows, err = AnalyzeSelect(sql, sel, params, env); err != nil {
		return nil, err
	}
	return &Analysis{
		SQL: "SELECT CAST(v AS " + engine + ") FROM (VALUES " + StageMark + ") AS s(v)", Stage: st, Params: st.Rows.Params,
		Columns: []OutputColumn{{Name: name, Type: result}},
	}, nil
}

func castNode(n *pg.Node, to string) *pg.Node {
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{
		Arg: n, TypeName: &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(to)}, Typemod: -1, Location: -1}, Location: -1,
	}}}
}

// DefaultSequences rewrites a default so that the sequences it draws from are named with
// their schemas, and says which they are.
func DefaultSequences(n *pg.Node, env *Env) (used []*Relation, err error) {
	a := &analyzer{env: env}
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		f, ok := m.(*pg.FuncCall)
		if !ok || err != nil || len(f.Args) == 0 || sequenceKinds[callName(f)] == 0 {
			return
		}
		var seq *Relation
		if seq, err = a.sequenceArg(f.Args[0]); err != nil {
			return
		}
		if seq == nil {
			err = unsupported("a default that computes the name of its sequence is not supported")
			return
		}
		used = append(used, seq)
		f.Args[0] = regclassNode(seq)
	})
	return used, err
}

func regclassNode(seq *Relation) *pg.Node {
	name := quote.NameIfNeeded(seq.Schema) + "." + quote.NameIfNeeded(seq.Name)
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{
		Arg: pg.MakeAConstStrNode(name, -1), Location: -1,
		TypeName: &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("regclass")}, Typemod: -1, Location: -1},
	}}}
}

// Nextval is the default that draws from a sequence.
func Nextval(schema, name string) string {
	return "nextval(" + quote.Text(quote.NameIfNeeded(schema)+"."+quote.NameIfNeeded(name)) + "::regclass)"
}

// Draws says whether a default draws from the sequence that another one (Nextval) does.
func Draws(text, nextval string) bool {
	return text != "" && strings.Contains(text, strings.TrimSuffix(strings.TrimPrefix(nextval, "nextval("), ")"))
}

// RenameNextval is a default that draws from after instead of before (Nextval); ok is false
// when it draws from another one.
func RenameNextval(text, before, after string) (renamed string, ok bool) {
	if !Draws(text, before) {
		return text, false
	}
	inner := func(s string) string { return strings.TrimSuffix(strings.TrimPrefix(s, "nextval("), ")") }
	return strings.ReplaceAll(text, inner(before), inner(after)), true
}

// onlyDefaults says whether a column of VALUES is DEFAULT in each row.
func onlyDefaults(sel *pg.SelectStmt, i int) bool {
	for _, n := range sel.ValuesLists {
		if items := n.GetList().GetItems(); i >= len(items) || items[i].GetSetToDefault() == nil {
			return false
		}
	}
	return true
}

// overriding are the columns given, with -1 for those whose values do not count: DEFAULT in
// every row, and, by OVERRIDING USER VALUE, identities.
func (w *writer) overriding(rel *Relation, n *pg.InsertStmt, given []int) ([]int, error) {
	out := slices.Clone(given)
	sel := n.SelectStmt.GetSelectStmt()
	for at, i := range given {
		if len(sel.GetValuesLists()) > 0 && onlyDefaults(sel, at) {
			out[at] = -1
			continue
		}
		takes, err := takesValue(rel.Columns[i], n.Override)
		if err != nil {
			return nil, err
		}
		if !takes {
			out[at] = -1
		}
	}
	return out, nil
}

// takesValue says whether a value that a new row is given for a column counts.
func takesValue(c RelationColumn, override pg.OverridingKind) (bool, error) {
	switch {
	case c.Generated != "":
		return false, pgerr.New(codeGeneratedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", c.Name).
			WithDetail("Column \"%s\" is a generated column.", c.Name)
	case c.Identity == "":
	case override == pg.OverridingKind_OVERRIDING_USER_VALUE:
		return false, nil
	case c.Identity == "a" && override != pg.OverridingKind_OVERRIDING_SYSTEM_VALUE:
		return false, pgerr.New(codeGeneratedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", c.Name).
			WithDetail("Column \"%s\" is an identity column defined as GENERATED ALWAYS.", c.Name).
			WithHint("Use OVERRIDING SYSTEM VALUE to override.")
	}
	return true, nil
}
