package pgsql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// What a literal of a time or an interval means depends on TimeZone, DateStyle and
// IntervalStyle. Those of a view, a default or a check mean what they meant to who defined
// it: as PostgreSQL keeps their values, we keep texts that every session reads alike.

// settleLiteral gives a literal of the statement such a text.
func (a *analyzer) settleLiteral(e expr, to Type) error {
	oid := to.OID
	elem := ElemOf(oid)
	if elem != 0 {
		oid = elem
	}
	_, _, ranges := span.KindOf(oid)
	switch oid {
	case OIDDate, OIDTimestamp, OIDTimestamptz, OIDInterval:
	default:
		if !ranges {
			return nil
		}
	}
	if e.node == nil {
		return nil
	}
	zone, _ := a.env.Setting("TimeZone")
	settle := func(text string) (string, error) {
		if ranges {
			return a.spanText(oid, text)
		}
		if _, relative := relativeWord(text); relative {
			return "", unsupported("date/time input \"%s\" is not supported in a definition", text).
				WithHint("Use current_date or now(), which are computed when they are needed.")
		}
		return pgfunc.Settled(a.literals(), oid, text, zone)
	}
	if elem == 0 {
		text, err := settle(*e.lit)
		if err == nil {
			e.node.Sval, *e.lit = text, text
		}
		return err
	}
	items, err := parseArray(*e.lit)
	if err != nil {
		return err
	}
	parts := make([]string, len(items))
	for i, it := range items {
		if it == nil {
			parts[i] = "NULL"
			continue
		}
		text, err := settle(*it)
		if err != nil {
			return err
		}
		parts[i] = arrayElement(text)
	}
	text := "{" + strings.Join(parts, ",") + "}"
	e.node.Sval, *e.lit = text, text
	return nil
}

// relativeWord is a text that names a moment by that of its reading.
func relativeWord(text string) (string, bool) {
	word := strings.ToLower(strings.TrimSpace(text))
	switch word {
	case "now", "today", "tomorrow", "yesterday":
		return word, true
	}
	return "", false
}

// relativeMoment renders such a literal.
func (a *analyzer) relativeMoment(text string, to Type) (string, bool) {
	word, ok := relativeWord(text)
	if !ok {
		return "", false
	}
	now := "CAST(" + NowMark + " AS TIMESTAMPTZ)"
	day := "CAST(" + now + " AS DATE)"
	switch word {
	case "tomorrow":
		day = "skippr_d_add(" + day + ", CAST(1 AS BIGINT))"
	case "yesterday":
		day = "skippr_d_add(" + day + ", CAST(-1 AS BIGINT))"
	}
	switch {
	case to.OID == OIDDate:
		return day, true
	case to.OID == OIDTimestamp && word == "now":
		return "CAST(" + now + " AS TIMESTAMP)", true
	case to.OID == OIDTimestamp:
		return "skippr_d_ts(" + day + ")", true
	case to.OID == OIDTimestamptz && word == "now":
		return now, true
	case to.OID == OIDTimestamptz:
		return "CAST(skippr_d_ts(" + day + ") AS TIMESTAMPTZ)", true
	}
	return "", false
}

// SettleDefault is an expression that is to be the default of a column, with its literals
// settled.
func SettleDefault(n *pg.Node, c RelationColumn, env *Env) (string, error) {
	if constantOnly(n, "DEFAULT expression") != nil {
		return ExpressionText(n) // for CheckDefault to refuse
	}
	a := &analyzer{env: env, fold: true}
	e, err := a.expr(n, &scope{noAgg: "DEFAULT expressions"})
	if err == nil && e.undecided() {
		_, err = a.coerce(e, bare(c.Type), assignment)
	}
	return settledText(n, err)
}

// SettleCondition is an expression that is to be a condition of a relation's rows, with its
// literals settled.
func SettleCondition(n *pg.Node, rel *Relation, env *Env) (string, error) {
	query := false
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		_, sub := m.(*pg.SubLink)
		query = query || sub
	})
	if query {
		return ExpressionText(n) // for CheckCondition to refuse
	}
	a := &analyzer{env: env, fold: true}
	src, err := a.relationSource(rel, &pg.RangeVar{Relname: rel.Name, Location: -1})
	if err != nil {
		return "", err
	}
	s := &scope{noAgg: "check constraints", columns: src.columns}
	if err := a.addItems(s, src.items); err != nil {
		return "", err
	}
	_, err = a.condition(n, s, "CHECK")
	return settledText(n, err)
}

// settledText prints an expression whose literals are settled, or are not since err tells
// what is wrong with it.
func settledText(n *pg.Node, err error) (string, error) {
	if e, ok := pgerr.As(err); ok {
		return "", e.WithPosition(0) // it is one in the expression, not in the statement
	}
	if err != nil {
		return "", err
	}
	return ExpressionText(n)
}
