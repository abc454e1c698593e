package pgsql

import (
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// textOf renders a value as PostgreSQL's cast to text does, in the session's style.
func (a *analyzer) textOf(e expr) (string, error) {
	sql, err := a.defaultText(e)
	if err == nil {
		sql = a.styledSpan(e.typ.OID, sql)
	}
	style := a.style()
	if style == "" || err != nil {
		return sql, err
	}
	switch e.typ.OID {
	case OIDDate, OIDTimestamp, OIDTimestamptz, OIDInterval, OIDFloat4, OIDFloat8, OIDBytea:
		sql = fmt.Sprintf("skippr_styled(%s, %d, %s, %s)", sql, e.typ.OID, quote.Text(style), sessionZone)
	}
	return sql, nil
}

// canonicalText is textOf in the style in which values are stored.
func (a *analyzer) canonicalText(e expr) (string, error) {
	a.canonical = true
	defer func() { a.canonical = false }()
	return a.textOf(e)
}

// style is how the session writes values, "" for the style of the engine's functions.
func (a *analyzer) style() string {
	if a.canonical {
		return ""
	}
	if a.styled == nil {
		style := ""
		plain := true
		for i, name := range []string{"DateStyle", "IntervalStyle", "bytea_output", "extra_float_digits"} {
			v, ok := a.env.Setting(name)
			usual := [...]string{"ISO", "postgres", "hex", ""}[i]
			switch {
			case !ok:
				v = [...]string{"ISO", "postgres", "hex", "1"}[i]
			case name == "DateStyle":
				plain = plain && strings.HasPrefix(v, usual)
			case name == "extra_float_digits":
				plain = plain && !strings.HasPrefix(v, "-") && v != "0"
			default:
				plain = plain && v == usual
			}
			style += "|" + v
		}
		style = style[1:]
		if plain {
			style = ""
		}
		a.styled = &style
	}
	return *a.styled
}

// reading is how the session reads values.
func (a *analyzer) reading() encode.Input {
	if a.input == nil {
		dates, _ := a.env.Setting("DateStyle")
		intervals, _ := a.env.Setting("IntervalStyle")
		in := encode.InputOf(dates, intervals)
		a.input = &in
	}
	return *a.input
}

// literals is how the literals of the statement are read: as when it was prepared.
func (a *analyzer) literals() encode.Input {
	if a.env.Literals != nil {
		return *a.env.Literals
	}
	return a.reading()
}

// defaultText is textOf in the style of the engine's functions.
func (a *analyzer) defaultText(e expr) (string, error) {
	if e.text {
		return e.sql, nil
	}
	switch e.typ.OID {
	case OIDJSONPath:
		if e.col == nil || !e.col.stored {
			return "skippr_jp_text(" + e.sql + ")", nil
		}
		return e.sql, nil
	case OIDTimestamptz:
		return "skippr_tz_text(" + e.sql + ", " + sessionZone + ")", nil
	case OIDDate, OIDTimestamp:
		return "skippr_era_text(CAST(" + e.sql + " AS VARCHAR))", nil
	case OIDBpchar:
		return "rtrim(" + e.sql + ", ' ')", nil
	case OIDFloat4, OIDFloat8:
		return "skippr_float_text(" + e.sql + ")", nil
	case OIDBytea:
		return `('\x' || lower(hex(` + e.sql + `)))`, nil
	case OIDInterval:
		return "skippr_iv_text(" + e.sql + ")", nil
	case OIDNumeric:
		return numericText(e), nil
	case OIDRecord:
		return a.recordText(e)
	}
	t := lookupType(e.typ.OID)
	switch {
	case regCatalog[e.typ.OID].relation != "":
		return "", errRegText
	case e.typ.OID == OIDInt2Vector || e.typ.OID == OIDOidVector:
		return "array_to_string(" + e.sql + ", ' ')", nil
	case t.elem != 0:
		if list, ok, err := a.regItems(e); ok || err != nil {
			return "skippr_text_array(" + list + ")", err
		}
		item, err := a.arrayItemText(elementOf(e, expr{scale: -1, loc: e.loc}, "w"))
		if item == "w" || err != nil {
			return "skippr_text_array(" + e.sql + ")", err
		}
		return "skippr_text_array(list_transform(" + e.sql + ", lambda w: " + item + "))", nil
	}
	if t.engine == "VARCHAR" {
		return e.sql, nil
	}
	return "CAST(" + e.sql + " AS VARCHAR)", nil
}

// sessionZone is the session's time zone when the statement runs.
const sessionZone = "current_setting('TimeZone')"

// recordText renders the text of a row: its fields in parentheses.
func (a *analyzer) recordText(e expr) (string, error) {
	row := rowOf(e)
	if row == nil {
		return "", unsupported("text form of these row values is not supported")
	}
	parts := make([]string, len(row))
	for i, f := range row {
		var text string
		switch {
		case f.lit != nil:
			text = quote.Text(*f.lit)
		case f.null:
			text = "CAST(NULL AS VARCHAR)"
		case f.typ.OID == OIDBool:
			text = "CASE WHEN " + f.sql + " THEN 't' WHEN NOT " + f.sql + " THEN 'f' END"
		case f.typ.OID == OIDBpchar:
			text = f.sql // with its blanks
		case f.undecided():
			return "", unsupported("parameters without a type in rows are not supported")
		default:
			var err error
			if text, err = a.textOf(f); err != nil {
				return "", err
			}
		}
		parts[i] = text
	}
	return e.ifThere("skippr_record(CAST(to_json(CAST([" + strings.Join(parts, ", ") + "] AS VARCHAR[])) AS VARCHAR))"), nil
}

// BinaryDiffers says that a column in binary asks for an analysis of its own; see Env.Binary.
func (c OutputColumn) BinaryDiffers() bool {
	return c.Type.OID == OIDRecord || regCatalog[c.Type.OID].relation != ""
}

// recordFields are the types of the fields of a row, as encode.Column has them.
func recordFields(e expr) string {
	if e.row == nil {
		for i := range e.fields {
			e.row = append(e.row, fieldAt(e, i))
		}
	}
	out := make([]string, len(e.row))
	for i, f := range e.row {
		out[i] = fmt.Sprint(announced(f.typ).OID)
		if f.typ.OID == OIDRecord {
			out[i] += recordFields(f)
		}
	}
	return "(" + strings.Join(out, ",") + ")"
}

// textList renders an array as the list of the texts of its elements.
func (a *analyzer) textList(e expr) (string, error) {
	e = flat(e)
	if list, ok, err := a.regItems(e); ok || err != nil {
		return list, err
	}
	item, err := a.arrayItemText(elementOf(e, expr{scale: -1, loc: e.loc}, "w"))
	if item == "w" || err != nil {
		return "CAST(" + e.sql + " AS VARCHAR[])", err
	}
	return "list_transform(" + e.sql + ", lambda w: " + item + ")", nil
}

// arrayItemText renders an element as the text of its array shows it.
func (a *analyzer) arrayItemText(e expr) (string, error) {
	if e.typ.OID == OIDBpchar {
		return e.sql, nil // with its blanks
	}
	if e.typ.OID == OIDBool {
		return "CASE w WHEN true THEN 't' WHEN false THEN 'f' END", nil
	}
	return a.textOf(e)
}

// fromText renders the cast of a non-constant text value.
func (a *analyzer) fromText(e expr, to Type) (expr, error) {
	out := expr{typ: to, scale: -1, sql: e.sql}
	src := e.sql
	if e.typ.OID == OIDBpchar {
		src = "rtrim(" + src + ", ' ')"
	}
	switch to.OID {
	case OIDJSON, OIDJSONB:
		out.sql = jsonFromText(src, to.OID)
	case OIDXML:
		out.sql = src
	case OIDRegclass:
		return a.regOfText(expr{sql: src, typ: plain(OIDText), loc: e.loc, scale: -1}, to)
	default:
		if _, _, ok := span.KindOf(to.OID); ok {
			out.sql = fmt.Sprintf("skippr_span_in(%d, %s)", int64(to.OID)|a.reading().Number()<<32, src)
			return out, nil
		}
		if lookupType(to.OID).engine == "VARCHAR" && !checkedText(to.OID) {
			return out, nil
		}
		out.sql = fmt.Sprintf("CAST(skippr_text_in(%s, %d) AS %s)", src, int64(to.OID)|a.reading().Number()<<32, to.engineType())
		if to.Mod >= 0 {
			out.typ = plain(to.OID)
			return a.applyMod(out, to), nil
		}
	}
	return out, nil
}
