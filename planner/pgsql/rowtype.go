package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// rowType is the relation whose row type a name means, nil for any other type.
func (a *analyzer) rowType(n *pg.TypeName) *Relation {
	if len(n.ArrayBounds) > 0 || len(n.Typmods) > 0 || n.Setof || len(n.Names) > 2 {
		return nil
	}
	if _, err := a.env.ResolveType(n); err == nil {
		return nil
	}
	schema, name := "", n.Names[len(n.Names)-1].GetString_().GetSval()
	if len(n.Names) > 1 {
		schema = n.Names[0].GetString_().GetSval()
	}
	rel, err := a.relation(schema, name, n.Location)
	if err != nil || rel.System || rel.Sequence {
		return nil
	}
	return rel
}

// castRow is a cast to the row type of a relation.
func (a *analyzer) castRow(n *pg.TypeCast, rel *Relation, s *scope) (expr, error) {
	out := expr{typ: plain(OIDRecord), scale: -1, whole: true, name: rel.Name, loc: n.Location}
	var fields []expr
	switch c := n.Arg.GetAConst(); {
	case c.GetIsnull():
		out.there = "false"
		for range rel.Columns {
			fields = append(fields, expr{typ: plain(OIDUnknown), null: true, con: true, scale: -1, loc: -1})
		}
	case c.GetSval() != nil:
		texts, err := readRecord(c.GetSval().Sval, len(rel.Columns))
		if err != nil {
			return out, a.errAt(c.Location, err)
		}
		for _, t := range texts {
			fields = append(fields, expr{typ: plain(OIDUnknown), null: t == nil, lit: t, con: true, scale: -1, loc: c.Location})
		}
	default:
		e, err := a.expr(n.Arg, s)
		if err != nil {
			return out, err
		}
		if !isRecord(e) {
			return out, a.errAt(e.loc, unsupported("this cast to the type of rows of \"%s\" is not supported", rel.Name))
		}
		fields, out.there = rowOf(e), e.there
		if e.row == nil {
			out.there = e.sql + " IS NOT NULL"
		}
		if len(fields) != len(rel.Columns) {
			detail := "Input has too few columns."
			if len(fields) > len(rel.Columns) {
				detail = "Input has too many columns."
			}
			return out, a.errAt(e.loc, pgerr.New(codes.CannotCoerce, "cannot cast type record to %s", rel.Name).WithDetail("%s", detail))
		}
	}
	for i, c := range rel.Columns {
		f, err := a.coerce(fields[i], c.Type, explicit)
		if err != nil {
			return out, a.errAt(n.Location, err)
		}
		f.name = c.Name
		out.row = append(out.row, f)
	}
	out.sql = out.ifThere("row(" + strings.Join(sqlOf(out.row), ", ") + ")")
	return out, nil
}

// readRecord takes the text of a row apart, nil being null.
func readRecord(text string, columns int) ([]*string, error) {
	malformed := func(detail string) error {
		return pgerr.New(codes.InvalidTextRepresentation, "malformed record literal: \"%s\"", text).WithDetail("%s", detail)
	}
	const blanks = " \t\n\r\v\f"
	in := strings.TrimLeft(text, blanks)
	if !strings.HasPrefix(in, "(") {
		return nil, malformed("Missing left parenthesis.")
	}
	in = in[1:]
	var out []*string
	for {
		if columns == 0 {
			break
		}
		if in != "" && (in[0] == ',' || in[0] == ')') {
			out = append(out, nil)
		} else {
			var b strings.Builder
			quoted := false
			for ; in == "" || quoted || in[0] != ',' && in[0] != ')'; in = in[1:] {
				switch {
				case in == "", in == `\`:
					return nil, malformed("Unexpected end of input.")
				case in[0] == '\\':
					in = in[1:]
					b.WriteByte(in[0])
				case in[0] == '"' && quoted && strings.HasPrefix(in, `""`):
					in = in[1:]
					b.WriteByte('"')
				case in[0] == '"':
					quoted = !quoted
				default:
					b.WriteByte(in[0])
				}
			}
			item := b.String()
			out = append(out, &item)
		}
		if len(out) == columns || in[0] == ')' {
			break
		}
		in = in[1:]
	}
	switch {
	case len(out) < columns:
		return nil, malformed("Too few columns.")
	case !strings.HasPrefix(in, ")"):
		return nil, malformed("Too many columns.")
	case strings.Trim(in[1:], blanks) != "":
		return nil, malformed("Junk after right parenthesis.")
	}
	return out, nil
}

// populates are the functions that fill a row from JSON.
var populates = []string{"json_populate_record", "jsonb_populate_record", "json_populate_recordset", "jsonb_populate_recordset"}

// systemCall is the name of a call of a function of the system.
func systemCall(call *pg.FuncCall) (name string, ok bool) {
	for i, n := range call.GetFuncname() {
		if i > 0 && name != "pg_catalog" {
			return "", false
		}
		name = n.GetString_().GetSval()
	}
	return name, call != nil
}

// populated are the fields of a row, of which those come from a JSON object that are in it.
func (a *analyzer) populated(base expr, object, form string, loc int32) ([]expr, error) {
	var out []expr
	for _, f := range rowOf(base) {
		v, err := a.memberOf(object, form, f.name, f.typ, loc)
		if err != nil {
			return nil, err
		}
		if base.there != "false" {
			t, err := a.unify([]*expr{&v, &f}, "CASE")
			if err != nil {
				return nil, err
			}
			has := "skippr_j_field(" + object + ", " + quote.Text(f.name) + ", 'has') IS NOT NULL"
			v = choiceOf(t, []expr{v, f}, func(parts []string) string {
				return "CASE WHEN " + has + " THEN " + parts[0] + " ELSE " + parts[1] + " END"
			})
		}
		v.name = f.name
		out = append(out, v)
	}
	return out, nil
}

// populateArgs analyses the arguments of such a function.
func (a *analyzer) populateArgs(name string, args []expr) (base, j expr, form string, err error) {
	form, _, _ = strings.Cut(name, "_")
	if len(args) != 2 {
		return base, j, form, noFunction(name, args, false)
	}
	base = args[0]
	if !isRecord(base) {
		if base.undecided() {
			return base, j, form, polymorphicUnknown()
		}
		return base, j, form, pgerr.New(codes.DatatypeMismatch, "first argument of %s must be a row type", name)
	}
	oid, _ := TypeNamed(form)
	j, err = a.coerce(args[1], plain(oid), implicit)
	return base, j, form, err
}

// populateRecord analyses json_populate_record as a value.
func (a *analyzer) populateRecord(name string, args []expr, loc int32) (expr, error) {
	base, j, form, err := a.populateArgs(name, args)
	if err != nil {
		return base, err
	}
	out := expr{typ: plain(OIDRecord), scale: -1, whole: true, loc: loc}
	if out.row, err = a.populated(base, j.sql, form, loc); err != nil {
		return out, err
	}
	switch {
	case base.row != nil && base.there == "":
	case base.row == nil:
		out.there = "(" + j.sql + " IS NOT NULL OR " + base.sql + " IS NOT NULL)"
	default:
		out.there = "(" + j.sql + " IS NOT NULL OR " + base.there + ")"
	}
	out.sql = out.ifThere("row(" + strings.Join(sqlOf(out.row), ", ") + ")")
	return out, nil
}

func (a *analyzer) populates(name string) func([]expr, *pg.FuncCall, *scope) (expr, error) {
	return func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) {
		return a.populateRecord(name, args, n.Location)
	}
}

// populatedSource is such a function in FROM.
func (a *analyzer) populatedSource(n *pg.RangeFunction, name string, call *pg.FuncCall, s *scope) (*source, error) {
	args, err := a.exprList(call.Args, s)
	if err != nil {
		return nil, err
	}
	base, j, form, err := a.populateArgs(name, args)
	if err != nil {
		return nil, a.errAt(call.Location, err)
	}
	list := "[" + j.sql + "]"
	if strings.HasSuffix(name, "set") {
		list = "CAST(CAST(skippr_j_records(" + j.sql + ", '" + name + "') AS JSON) AS VARCHAR[])"
	}
	row := a.alias("r")
	fields, err := a.populated(base, row+".c1", form, call.Location)
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, f := range fields {
		targets = append(targets, target{name: f.name, expr: f})
	}
	return a.recordRows(n, name, targets, list, row)
}
