package pgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// An array of one dimension that begins at 1 is a list of the engine. Any other is shaped: the
// exact text that PostgreSQL writes (expr.text), which functions in Go take apart. Which of the two
// an expression has is known when it is analysed: a shaped one may have a plain array for a value,
// a list never has a shaped one. Where nothing is said of shaped ones they are read as lists, which
// is refused of a value that is none.

func shaped(e expr) bool { return e.text && e.typ.isArray() }

func isVector(t Type) bool { return t.OID == OIDInt2Vector || t.OID == OIDOidVector }

// shapedLiteral makes the constant of a literal; ok is false for one that is a list.
func (a *analyzer) shapedLiteral(text string, to Type, out expr) (e expr, ok bool, err error) {
	if !to.isArray() || isVector(to) {
		return out, false, nil
	}
	arr, err := encode.ParseArray(text, ElemOf(to.OID))
	if err != nil || arr.Plain() {
		return out, false, nil // what is wrong with it is said of a list
	}
	flat := encode.Array{Dims: []int{len(arr.Elements)}, Lower: []int32{1}, Elements: arr.Elements}
	list, err := a.literal(flat.String(), to, out)
	if err != nil {
		return out, true, err
	}
	arr.Elements = make([]*string, len(arr.Elements))
	out, err = a.shapedAs(quote.Text(arr.String()), list)
	return out, true, err
}

// shapedAs gives the elements of a list the dimensions of an array, of which shape is the text.
func (a *analyzer) shapedAs(shape string, list expr) (expr, error) {
	texts, err := a.canonicalList(list)
	out := list
	out.text, out.col = true, nil
	out.sql = "skippr_a_shape(" + shape + ", CAST(to_json(" + texts + ") AS VARCHAR))"
	return out, err
}

// canonicalList is the list of the texts of an array's elements, in the style in which they are
// stored.
func (a *analyzer) canonicalList(e expr) (string, error) {
	before := a.canonical
	a.canonical = true
	defer func() { a.canonical = before }()
	return a.textList(e)
}

// flat is the list of the elements of a shaped array.
func flat(e expr) expr {
	if !shaped(e) {
		return e
	}
	out := e
	out.text, out.col = false, nil
	out.sql = fmt.Sprintf("CAST(skippr_a_flat(%s, %d) AS %s)", e.sql, e.typ.OID, e.typ.engineType())
	return out
}

// arrayText is the text of an array of either kind.
func (a *analyzer) arrayText(e expr) (string, error) {
	if shaped(e) {
		return e.sql, nil
	}
	return a.canonicalText(e)
}

// toShaped makes arrays shaped.
func (a *analyzer) toShaped(list ...*expr) error {
	for _, e := range list {
		if shaped(*e) {
			continue
		}
		sql, err := a.arrayText(*e)
		if err != nil {
			return err
		}
		e.sql, e.text, e.col = sql, true, nil
	}
	return nil
}

// shapedKey compares and sorts as a shaped array does: by its elements, then by its shape.
func shapedKey(e expr) string {
	list := flat(e)
	return "CASE WHEN " + e.sql + " IS NOT NULL THEN struct_pack(v := " + sortKey(list) + ", s := skippr_a_key(" + e.sql + ")) END"
}

// nestedArray makes an array of arrays.
func (a *analyzer) nestedArray(list []expr, out expr) (expr, error) {
	t, err := a.unify(pointers(list), "ARRAY")
	if err != nil {
		return out, err
	}
	parts := make([]string, len(list))
	for i, e := range list {
		if parts[i], err = a.arrayText(e); err != nil {
			return out, err
		}
	}
	out.typ, out.text = bare(t.typ), true
	out.sql = "skippr_a_nest(CAST(to_json(CAST([" + strings.Join(parts, ", ") + "] AS VARCHAR[])) AS VARCHAR), false)"
	return out, nil
}

// shapedTemplates are the functions of shaped arrays whose results are none.
var shapedTemplates = map[string]string{
	"array_dims": "skippr_a_dims($1)", "array_ndims": "skippr_a_ndims($1)", "cardinality": "skippr_a_cardinality($1)",
	"array_length": "skippr_a_length($1, $2)", "array_lower": "skippr_a_lower($1, $2)", "array_upper": "skippr_a_upper($1, $2)",
	"generate_subscripts": "unnest(CAST(CAST(skippr_a_subscripts($1, $2, false) AS JSON) AS INTEGER[]))",
}

// shapedCall analyses the functions that know shaped arrays; ok is false for others, and for
// those that take the elements only, of which args are lists then.
func (a *analyzer) shapedCall(c *signature, args []expr, d decoration, out expr) (e expr, ok bool, err error) {
	array := -1
	for i, e := range args {
		if shaped(e) || c.name == "array_agg" && c.kind == 'a' && e.typ.isArray() {
			array = i
			break
		}
	}
	if array < 0 {
		return out, false, nil
	}
	template := shapedTemplates[c.name]
	parts := make([]string, len(args))
	for i, e := range args {
		parts[i] = e.sql
	}
	switch c.name {
	case "unnest", "array_to_string":
		args[array] = flat(args[array])
		return out, false, nil
	case "array_agg":
		if parts[0], err = a.arrayText(args[0]); err != nil {
			return out, true, err
		}
		out.typ, out.text, template = bare(args[0].typ), true, "skippr_a_nest(CAST(to_json(@list($1)) AS VARCHAR), true)"
	case "array_position", "array_positions":
		if len(args) == 2 && isInt(ElemOf(args[0].typ.OID)) { // by subscript
			out.sql, err = shapedPosition(c, args, a)
			return out, true, err
		}
	case "array_cat":
		out, err = a.shapedConcat(args[0], args[1], out.loc)
		return out, true, err
	case "array_append":
		out, err = a.shapedAdd(args[0], args[1], false)
		return out, true, err
	case "array_prepend":
		out, err = a.shapedAdd(args[1], args[0], true)
		return out, true, err
	case "max", "min":
		parts = []string{args[0].sql, shapedKey(args[0])}
		out.typ, out.text, d.before, template = bare(args[0].typ), true, "", "@arg_"+c.name+"($1, $2)"
	case "trim_array":
		out.typ, out.text, template = bare(args[0].typ), true, "skippr_a_trim($1, $2)"
	}
	if template == "" {
		return out, false, nil
	}
	out.sql, err = a.expand(template, parts, d)
	return out, true, err
}

// shapedPosition finds elements in an array of one dimension that may begin anywhere.
func shapedPosition(c *signature, args []expr, a *analyzer) (string, error) {
	at, err := a.expand(c.engine, []string{flat(args[0]).sql, args[1].sql}, decoration{})
	shift := "skippr_a_lower(" + args[0].sql + ", 1) - 1"
	found := "CAST(" + at + " + " + shift + " AS INTEGER)"
	if c.name == "array_positions" {
		found = "list_transform(" + at + ", lambda p: CAST(p + " + shift + " AS INTEGER))"
	}
	return "CASE WHEN skippr_a_ndims(" + args[0].sql + ") > 1 THEN error('0A000: searching for elements in multidimensional arrays is not supported') " +
		"ELSE " + found + " END", err
}

func (a *analyzer) shapedConcat(l, r expr, loc int32) (expr, error) {
	out := expr{typ: bare(l.typ), scale: -1, text: true, loc: loc}
	err := a.toShaped(&l, &r)
	out.sql = "CASE WHEN " + l.sql + " IS NULL THEN " + r.sql + " WHEN " + r.sql + " IS NULL THEN " + l.sql + " ELSE skippr_a_cat(" + l.sql + ", " +
		r.sql + ") END"
	return out, err
}

// shapedAdd adds an element to an array, behind the others or before them.
func (a *analyzer) shapedAdd(array, e expr, before bool) (expr, error) {
	one := expr{typ: bare(array.typ), scale: -1, sql: "[" + elementSQL(e) + "]"}
	if eng := one.typ.engineType(); eng != "" {
		one.sql = "CAST(" + one.sql + " AS " + eng + ")"
	}
	list, err := a.canonicalList(one)
	return expr{
		typ: bare(array.typ), scale: -1, text: true, loc: array.loc,
		sql: fmt.Sprintf("skippr_a_append(coalesce(%s, '{}'), CAST(to_json(%s) AS VARCHAR), %t)", array.sql, list, before),
	}, err
}

// subscriptRun are the subscripts that follow each other at the head of a list.
func subscriptRun(list []*pg.Node) (run []*pg.A_Indices, slice bool) {
	for _, n := range list {
		idx := n.GetAIndices()
		if idx == nil {
			break
		}
		run = append(run, idx)
		slice = slice || idx.IsSlice
	}
	return run, slice
}

// subscripts analyses several subscripts of an array, or those of a shaped one.
func (a *analyzer) subscripts(e expr, run []*pg.A_Indices, slice bool, s *scope) (expr, error) {
	out := e
	out.col = nil
	var bounds, given []string
	for _, idx := range run {
		lo, hi := "NULL", "NULL"
		for _, b := range []struct {
			n  *pg.Node
			to *string
		}{{idx.Lidx, &lo}, {idx.Uidx, &hi}} {
			if b.n == nil {
				continue
			}
			v, err := a.expr(b.n, s)
			if err == nil {
				v, err = a.coerce(v, plain(OIDInt4), assignment)
			}
			if err != nil {
				return e, err
			}
			*b.to = v.sql
			given = append(given, v.sql)
		}
		if !idx.IsSlice {
			lo = "1"
		}
		null := "NULL"
		if len(given) > 0 {
			null = "CASE WHEN " + strings.Join(given, " IS NULL OR ") + " IS NULL THEN 1 END"
		}
		if slice {
			bounds = append(bounds, "["+lo+", "+hi+", "+null+"]")
		} else {
			bounds = append(bounds, hi)
		}
	}
	list := "CAST(to_json([" + strings.Join(bounds, ", ") + "]) AS VARCHAR)"
	switch {
	case slice && shaped(e):
		out.sql = "skippr_a_slice(" + e.sql + ", " + list + ")"
	case slice:
		out.sql = "CASE WHEN " + strings.Join(append(given, e.sql), " IS NOT NULL AND ") + " IS NOT NULL THEN [] END"
	case shaped(e):
		item, err := a.coerce(expr{typ: plain(OIDText), scale: -1, loc: e.loc, sql: "skippr_a_item(" + e.sql + ", " + list + ")"}, plain(ElemOf(e.typ.OID)), explicit)
		item.name = e.name
		return item, err
	default:
		return elementOf(e, out, "list_extract("+e.sql+", NULL)"), nil
	}
	return out, nil
}
