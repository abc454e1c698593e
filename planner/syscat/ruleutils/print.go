package ruleutils

import (
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// The steps of indentation, as PostgreSQL has them.
const (
	indentStep  = 8
	indentJoin  = 4
	indentVar   = 4
	indentLimit = 40
)

// printer is the state of one printing; used once.
type printer struct {
	d      *Deparser
	pretty bool // without the parentheses that nothing needs
	prefix bool // columns with their relations
	buf    *strings.Builder
	indent int
	err    error
}

func (p *printer) text(s string) { p.buf.WriteString(s) }

// trim takes blanks off the end.
func (p *printer) trim() {
	s := strings.TrimRight(p.buf.String(), " ")
	p.buf.Reset()
	p.buf.WriteString(s)
}

// keyword begins a line with a key word.
func (p *printer) keyword(s string, before, after, plus int) {
	p.indent += before
	p.trim()
	amount := max(p.indent, 0)
	if p.indent >= indentLimit {
		amount = (indentLimit + (p.indent-indentLimit)/(indentStep/2)) % indentLimit
	}
	p.text("\n" + strings.Repeat(" ", amount+plus) + s)
	p.indent = max(p.indent+after, 0)
}

func (p *printer) open() {
	if !p.pretty {
		p.text("(")
	}
}

func (p *printer) shut() {
	if !p.pretty {
		p.text(")")
	}
}

// paren prints an expression in another, in parentheses where pretty printing needs some.
func (p *printer) paren(n node, implicit bool, parent node) {
	need := p.pretty && !simple(n, parent)
	if need {
		p.text("(")
	}
	p.expr(n, implicit)
	if need {
		p.text(")")
	}
}

// expr prints an expression; implicit says that casts which nobody wrote are shown.
func (p *printer) expr(n node, implicit bool) {
	switch v := n.(type) {
	case *variable:
		p.variable(v)
	case *constant:
		p.constant(v, 0)
	case *function:
		p.function(v, implicit)
	case *operator:
		p.operator(v)
	case *logic:
		p.logic(v)
	case *relabel:
		if v.form == formImplicit && !implicit {
			p.paren(v.arg, false, v)
		} else {
			p.cast(v.arg, v.typed, v)
		}
	case *caseOf:
		p.caseOf(v)
	case *listed:
		p.text(v.word + v.open)
		p.list(v.args, true)
		p.text(v.end)
		if v.word == "ARRAY" && len(v.args) == 0 {
			p.text("::" + p.typeName(v.typed))
		}
	case *test:
		p.open()
		p.paren(v.arg, v.isNull, v)
		p.text(v.suffix)
		p.shut()
	case *word:
		p.text(v.text)
	case *aggregate:
		p.aggregate(v)
	case *subLink:
		p.subLink(v)
	case *subscript:
		p.subscript(v, implicit)
	case *collated:
		p.open()
		p.paren(v.arg, implicit, v)
		p.text(" COLLATE " + quote.NameIfNeeded(v.name))
		p.shut()
	case *literalText:
		p.text(v.text)
	default:
		p.err = unknown("cannot print %T", n)
	}
}

func (p *printer) list(list []node, implicit bool) {
	for i, n := range list {
		if i > 0 {
			p.text(", ")
		}
		p.expr(n, implicit)
	}
}

func (p *printer) variable(v *variable) {
	if v.rel != nil && v.rel.shown != "" && p.prefix {
		p.text(quote.NameIfNeeded(v.rel.shown) + ".")
	}
	p.text(quote.NameIfNeeded(v.name))
}

// typeName is format_type_with_typemod.
func (p *printer) typeName(t typed) string {
	if name := p.d.Names.EnumName(t.oid); name != "" {
		return name
	}
	return schema.PostgresTypeName(t.oid, t.typmod)
}

// constant is get_const_expr: show is -1 for without a type, 1 for always with it.
func (p *printer) constant(k *constant, show int) {
	label := ""
	if show >= 0 {
		label = "::" + p.typeName(k.typed)
	}
	if k.null {
		p.text("NULL" + label)
		return
	}
	need := false
	switch k.oid {
	case typInt4:
		if need = strings.HasPrefix(k.text, "-"); need {
			p.text("'" + k.text + "'")
		} else {
			p.text(k.text)
		}
	case typNumeric:
		if c := k.text[0]; c >= '0' && c <= '9' && strings.ContainsAny(k.text, "eE.") {
			need = k.typmod >= 0
			p.text(k.text)
		} else {
			need = true
			p.text(quote.Text(k.text))
		}
	case typBool:
		p.text(k.text)
	case typUnknown:
		p.text(quote.Text(k.text))
	default:
		need = true
		p.text(quote.Text(k.text))
	}
	if need || show > 0 {
		p.text(label)
	}
}

// cast is get_coercion_expr.
func (p *printer) cast(arg node, to typed, parent node) {
	if k, ok := arg.(*constant); ok && k.oid == to.oid && k.typmod == -1 {
		p.constant(k, -1)
	} else {
		p.open()
		p.paren(arg, false, parent)
		p.shut()
	}
	p.text("::" + p.typeName(to))
}

func (p *printer) function(f *function, implicit bool) {
	switch f.form {
	case formImplicit:
		if !implicit {
			p.paren(f.args[0], false, f)
			return
		}
		p.cast(f.args[0], f.typed, f)
		return
	case formExplicit:
		p.cast(f.args[0], f.typed, f)
		return
	case formSQL:
		if p.sqlCall(f) {
			return
		}
	}
	p.text(quote.NameIfNeeded(f.name) + "(")
	p.arguments(f.args, f.variadic)
	p.text(")")
}

func (p *printer) arguments(args []node, variadic bool) {
	for i, n := range args {
		if i > 0 {
			p.text(", ")
		}
		if variadic && i == len(args)-1 {
			p.text("VARIADIC ")
		}
		p.expr(n, true)
	}
}

func (p *printer) operator(o *operator) {
	if o.kind == nullIf {
		p.text("NULLIF(")
		p.list(o.args, true)
		p.text(")")
		return
	}
	p.open()
	name := o.name
	if len(o.args) == 1 {
		p.text(name + " ")
		p.paren(o.args[0], true, o)
		p.shut()
		return
	}
	p.paren(o.args[0], true, o)
	switch o.kind {
	case distinctFrom:
		name = "IS DISTINCT FROM"
	case anyOrAll:
		word := " ALL ("
		if o.any {
			word = " ANY ("
		}
		p.text(" " + name + word)
		p.paren(o.args[1], true, o)
		if s, ok := o.args[1].(*subLink); ok && s.kind == "EXPR" {
			p.text("::" + p.typeName(s.typed))
		}
		p.text(")")
		p.shut()
		return
	}
	p.text(" " + name + " ")
	p.paren(o.args[1], true, o)
	p.shut()
}

func (p *printer) logic(l *logic) {
	p.open()
	if l.word == "NOT" {
		p.text("NOT ")
		p.paren(l.args[0], false, l)
	} else {
		for i, a := range l.args {
			if i > 0 {
				p.text(" " + l.word + " ")
			}
			p.paren(a, false, l)
		}
	}
	p.shut()
}

func (p *printer) caseOf(c *caseOf) {
	p.keyword("CASE", 0, indentVar, 0)
	if c.arg != nil {
		p.text(" ")
		p.expr(c.arg, true)
	}
	for i := range c.conds {
		p.keyword("WHEN ", 0, 0, 0)
		p.expr(c.conds[i], false)
		p.text(" THEN ")
		p.expr(c.values[i], true)
	}
	p.keyword("ELSE ", 0, 0, 0)
	p.expr(c.last, true)
	p.keyword("END", -indentVar, 0, 0)
}

func (p *printer) subscript(s *subscript, implicit bool) {
	_, plain := s.arg.(*variable)
	if !plain {
		p.text("(")
	}
	p.expr(s.arg, implicit)
	if !plain {
		p.text(")")
	}
	for _, bounds := range s.bounds {
		for i, b := range bounds {
			p.text([]string{"[", ":"}[i])
			if b != nil {
				p.expr(b, false)
			}
		}
		p.text("]")
	}
}

func (p *printer) aggregate(a *aggregate) {
	p.text(quote.NameIfNeeded(a.name) + "(")
	if a.distinct {
		p.text("DISTINCT ")
	}
	switch {
	case a.ordered:
		p.list(a.direct, true)
		p.text(") WITHIN GROUP (ORDER BY ")
		p.orderBy(a.order, false)
	case a.star:
		p.text("*")
	default:
		p.arguments(a.args, a.variadic)
		if len(a.order) > 0 {
			p.text(" ORDER BY ")
			p.orderBy(a.order, false)
		}
	}
	if a.filter != nil {
		p.text(") FILTER (WHERE ")
		p.expr(a.filter, false)
	}
	p.text(")")
	if a.isWindow {
		p.text(" OVER ")
		if a.over.name != "" {
			p.text(quote.NameIfNeeded(a.over.name))
		} else {
			p.window(a.over)
		}
	}
}

func (p *printer) window(w *window) {
	p.text("(")
	sep := ""
	if w.refName != "" {
		p.text(quote.NameIfNeeded(w.refName))
		sep = " "
	}
	if len(w.partition) > 0 {
		p.text(sep + "PARTITION BY ")
		for i, n := range w.partition {
			if i > 0 {
				p.text(", ")
			}
			p.key(n)
		}
		sep = " "
	}
	if len(w.order) > 0 {
		p.text(sep + "ORDER BY ")
		p.orderBy(w.order, false)
		sep = " "
	}
	if w.frame != "" {
		p.text(sep + w.frame)
		if w.between {
			p.text("BETWEEN ")
		}
		p.bound(w.start, w.startWord)
		if w.between {
			p.text("AND ")
			p.bound(w.end, w.endWord)
		}
		p.text(w.exclude)
		p.trim()
	}
	p.text(")")
}

func (p *printer) bound(n node, word string) {
	if n != nil {
		p.expr(n, false)
	}
	p.text(word)
}

// key is get_rule_sortgroupclause.
func (p *printer) key(n node) {
	switch v := n.(type) {
	case *constant:
		p.constant(v, 1)
	case *variable:
		p.variable(v)
	default:
		need := p.pretty
		switch v.(type) {
		case *function, *aggregate:
			need = true
		}
		if need {
			p.text("(")
		}
		p.expr(n, true)
		if need {
			p.text(")")
		}
	}
}

func (p *printer) orderBy(keys []sortKey, numbers bool) {
	for i, k := range keys {
		if i > 0 {
			p.text(", ")
		}
		if numbers {
			p.text(itoa(k.number))
		} else {
			p.key(k.expr)
		}
		switch {
		case k.desc && !k.nullsFirst:
			p.text(" DESC NULLS LAST")
		case k.desc:
			p.text(" DESC")
		case k.nullsFirst:
			p.text(" NULLS FIRST")
		}
	}
}

func (p *printer) subLink(s *subLink) {
	if s.kind == "ARRAY" {
		p.text("ARRAY(")
	} else {
		p.text("(")
	}
	need := true
	switch s.kind {
	case "EXISTS":
		p.text("EXISTS ")
	case "ANY", "ALL":
		p.expr(s.left[0], true)
		if s.kind == "ANY" && s.op == "=" {
			p.text(" IN ")
		} else {
			p.text(" " + s.op + " " + s.kind + " ")
		}
	default:
		need = false
	}
	if need {
		p.text("(")
	}
	p.query(s.query, nil, false)
	if need {
		p.text(")")
	}
	p.text(")")
}
