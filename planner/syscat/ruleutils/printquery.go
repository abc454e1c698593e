package ruleutils

import (
	"slices"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// query prints a query. names are those of its columns where it is a view's, and shown says that
// a column's name is written even if it would have it without.
func (p *printer) query(q *query, names []string, shown bool) {
	outer := *p
	p.prefix = true
	defer func() { p.indent, p.prefix = outer.indent, outer.prefix }()
	p.with(q)
	if q.op != "" {
		p.setOperation(q, names, shown)
	} else {
		p.plain(q, names, shown)
	}
	if len(q.sort) > 0 {
		p.keyword(" ORDER BY ", -indentStep, indentStep, 1)
		p.orderBy(q.sort, q.op != "")
	}
	if q.offset != nil {
		p.keyword(" OFFSET ", -indentStep, indentStep, 0)
		p.expr(q.offset, false)
	}
	switch {
	case q.limitAll:
		p.keyword(" LIMIT ", -indentStep, indentStep, 0)
		p.text("ALL")
	case q.limit != nil && q.ties:
		p.keyword(" FETCH FIRST (", -indentStep, indentStep, 0)
		p.expr(q.limit, false)
		p.text(") ROWS WITH TIES")
	case q.limit != nil:
		p.keyword(" LIMIT ", -indentStep, indentStep, 0)
		p.expr(q.limit, false)
	}
}

func (p *printer) with(q *query) {
	if len(q.ctes) == 0 {
		return
	}
	p.indent += indentStep
	p.text(" ")
	sep := "WITH "
	if q.recursive {
		sep = "WITH RECURSIVE "
	}
	for _, c := range q.ctes {
		p.text(sep + quote.NameIfNeeded(c.name))
		sep = ", "
		if len(c.columns) > 0 {
			p.text("(" + quotedList(c.columns) + ")")
		}
		p.text(" AS " + c.materialized + "(")
		p.keyword("", 0, 0, 0)
		p.query(c.query, nil, true)
		p.keyword("", 0, 0, 0)
		p.text(")")
	}
	p.indent -= indentStep
	p.keyword("", 0, 0, 0)
}

func quotedList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote.NameIfNeeded(n)
	}
	return strings.Join(out, ", ")
}

func (p *printer) plain(q *query, names []string, shown bool) {
	p.indent += indentStep
	p.text(" ")
	if len(q.values) > 0 {
		for i, t := range q.targets {
			if i < len(names) && names[i] != t.name {
				p.err = unknown("VALUES with names")
			}
		}
		p.values(q.values)
		return
	}
	p.text("SELECT")
	if len(q.on) > 0 {
		p.text(" DISTINCT ON (")
		for i, e := range q.on {
			if i > 0 {
				p.text(", ")
			}
			p.key(e)
		}
		p.text(")")
	} else if q.distinct {
		p.text(" DISTINCT")
	}
	p.targets(q, names, shown)
	p.from(q)
	if q.where != nil {
		p.keyword(" WHERE ", -indentStep, indentStep, 1)
		p.expr(q.where, false)
	}
	p.groups(q)
	if q.having != nil {
		p.keyword(" HAVING ", -indentStep, indentStep, 0)
		p.expr(q.having, false)
	}
	for i, w := range q.windows {
		if i == 0 {
			p.keyword(" WINDOW ", -indentStep, indentStep, 1)
		} else {
			p.text(", ")
		}
		p.text(quote.NameIfNeeded(w.name) + " AS ")
		p.window(w)
	}
}

func (p *printer) values(rows [][]node) {
	p.text("VALUES ")
	for i, row := range rows {
		if i > 0 {
			p.text(", ")
		}
		p.text("(")
		for j, e := range row {
			if j > 0 {
				p.text(",")
			}
			p.expr(e, false)
		}
		p.text(")")
	}
}

// apart prints a part of a list into a text of its own.
func (p *printer) apart(f func()) string {
	own := &strings.Builder{}
	whole := p.buf
	p.buf = own
	f()
	p.buf = whole
	return own.String()
}

func (p *printer) targets(q *query, names []string, shown bool) {
	sep := " "
	for i, t := range q.targets {
		p.text(sep)
		sep = ", "
		name := t.name
		if i < len(names) {
			name = names[i]
		}
		text := p.apart(func() {
			own := "?column?"
			if shown {
				own = ""
			}
			if v, ok := t.expr.(*variable); ok {
				own = v.name
			}
			p.expr(t.expr, true)
			if own != name {
				p.text(" AS " + quote.NameIfNeeded(name))
			}
		})
		if strings.HasPrefix(text, "\n") {
			p.trim()
		} else if i > 0 {
			p.keyword("", -indentStep, indentStep, indentVar)
		}
		p.text(text)
	}
}

func (p *printer) from(q *query) {
	for i, j := range q.from {
		if i == 0 {
			p.keyword(" FROM ", -indentStep, indentStep, 2)
			p.join(j)
			continue
		}
		p.text(", ")
		text := p.apart(func() { p.join(j) })
		if strings.HasPrefix(text, "\n") {
			p.trim()
		} else {
			p.keyword("", -indentStep, indentStep, indentVar)
		}
		p.text(text)
	}
}

func (p *printer) join(j *join) {
	if j.rel != nil {
		p.relation(j.rel)
		return
	}
	p.open()
	p.join(j.left)
	p.keyword(j.word, -indentStep, indentStep, indentJoin)
	need := p.pretty && j.right.rel == nil
	if need {
		p.text("(")
	}
	p.join(j.right)
	if need {
		p.text(")")
	}
	switch {
	case len(j.using) > 0:
		p.text(" USING (" + quotedList(j.using) + ")")
	case j.on != nil:
		p.text(" ON ")
		p.open()
		p.expr(j.on, false)
		p.shut()
	case j.word != " CROSS JOIN ":
		p.text(" ON TRUE")
	}
	p.shut()
}

func (p *printer) relation(r *relation) {
	if r.lateral {
		p.text("LATERAL ")
	}
	named := r.alias != ""
	aliases := r.aliasColumns
	switch r.kind {
	case tableRelation:
		if r.only {
			p.text("ONLY ")
		}
		if !p.d.visible(r.schema, r.name) {
			p.text(quote.NameIfNeeded(r.schema) + ".")
		}
		p.text(quote.NameIfNeeded(r.name))
		named = named || r.shown != r.name
		if len(aliases) > 0 {
			aliases = r.allNames()
		}
	case withRelation:
		p.text(quote.NameIfNeeded(r.name))
		named = named || r.shown != r.name
		if len(aliases) > 0 {
			aliases = r.allNames()
		}
	case queryRelation:
		p.text("(")
		p.query(r.query, nil, true)
		p.text(")")
		named = true
		if len(aliases) > 0 {
			aliases = r.allNames()
		}
	case callRelation:
		p.expr(r.call, true)
		if r.ordinality {
			p.text(" WITH ORDINALITY")
		}
		named, aliases = true, r.allNames()
	}
	if named {
		p.text(" " + quote.NameIfNeeded(r.shown))
	}
	if len(aliases) > 0 {
		p.text("(" + quotedList(aliases) + ")")
	}
}

// allNames are the names of all its columns.
func (r *relation) allNames() []string {
	out := slices.Clone(r.aliasColumns)
	for _, c := range r.columns[min(len(out), len(r.columns)):] {
		out = append(out, c.name)
	}
	return out
}

func (p *printer) groups(q *query) {
	if len(q.group) == 0 {
		return
	}
	p.keyword(" GROUP BY ", -indentStep, indentStep, 1)
	if q.distinctG {
		p.text("DISTINCT ")
	}
	for i, g := range q.group {
		if i > 0 {
			p.text(", ")
		}
		p.group(g, true, q.groupSets)
	}
}

// group prints a part of GROUP BY, as get_rule_groupingset does where there are sets.
func (p *printer) group(g groupItem, bare, sets bool) {
	switch g.word {
	case "":
		parens := sets && (!bare || len(g.exprs) != 1)
		if parens {
			p.text("(")
		}
		for i, e := range g.exprs {
			if i > 0 {
				p.text(", ")
			}
			p.key(e)
		}
		if parens {
			p.text(")")
		}
		return
	case "()":
		p.text("()")
		return
	case "GROUPING SETS":
		p.text("GROUPING SETS (")
	default:
		p.text(g.word + "(")
	}
	for i, x := range g.list {
		if i > 0 {
			p.text(", ")
		}
		p.group(x, g.word != "GROUPING SETS", sets)
	}
	p.text(")")
}

func (p *printer) setOperation(q *query, names []string, shown bool) {
	leaf := func(x *query, shown bool) {
		need := len(x.ctes) > 0 || len(x.sort) > 0 || x.limit != nil || x.offset != nil || x.limitAll
		if x.op != "" && !need {
			p.setOperation(x, names, shown)
			return
		}
		if need {
			p.text("(")
		}
		p.query(x, names, shown)
		if need {
			p.text(")")
		}
	}
	nested := func(x *query) bool {
		return x.op != "" && len(x.ctes) == 0 && len(x.sort) == 0 && x.limit == nil && x.offset == nil && !x.limitAll
	}
	need, step := nested(q.left) && (q.left.op != q.op || q.left.all != q.all), 0
	if need {
		p.text("(")
		step = indentStep
		p.keyword("", step, 0, 0)
	}
	leaf(q.left, shown)
	if need {
		p.keyword(") ", -step, 0, 0)
	} else {
		p.keyword("", -step, 0, 0)
	}
	p.text(q.op)
	if q.all {
		p.text("ALL ")
	}
	if need, step = nested(q.right), 0; need {
		p.text("(")
		step = indentStep
	}
	p.keyword("", step, 0, 0)
	leaf(q.right, false)
	p.indent -= step
	if need {
		p.keyword(")", 0, 0, 0)
	}
}
