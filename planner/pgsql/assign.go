package pgsql

import (
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// assigned gives an expression the type of a column, as an assignment does.
func (w *writer) assigned(e expr, c RelationColumn) (expr, error) {
	loc := e.loc
	if !e.undecided() && !canCoerce(e.typ.OID, c.Type.OID, assignment) {
		return e, w.errAt(loc, pgerr.New(codes.DatatypeMismatch, "column \"%s\" is of type %s but expression is of type %s",
			c.Name, c.Type.Name(), e.typ.Name()).WithHint("You will need to rewrite or cast the expression."))
	}
	out, err := w.coerce(e, bare(c.Type), assignment) // a cast would cut what an assignment refuses
	switch elem := ElemOf(c.Type.OID); {
	case err != nil || c.Type.Mod < 0:
	case elem != 0:
		return w.assignedElements(out, c)
	case c.Type.OID == OIDVarchar, c.Type.OID == OIDBpchar:
		out.typ, out.sql, out.col = c.Type, fitted(out.sql, c.Type), nil
	case c.Type.OID == OIDBit, c.Type.OID == OIDVarbit:
		out.typ, out.sql, out.col = c.Type, fittedBits(out.sql, c.Type), nil
	default:
		out = w.applyMod(out, c.Type)
	}
	return out, err
}

// assignedElements holds the elements of an array to a length or precision.
func (w *writer) assignedElements(e expr, c RelationColumn) (expr, error) {
	if shaped(e) {
		return e, unsupported("assigning an array that is not a plain list to column \"%s\" is not supported", c.Name)
	}
	v := w.alias("v")
	item, err := w.assigned(elementOf(e, expr{scale: -1, loc: e.loc, typ: plain(ElemOf(e.typ.OID))}, v), RelationColumn{Name: c.Name, Type: Type{OID: ElemOf(c.Type.OID), Mod: c.Type.Mod}})
	if err != nil {
		return e, err
	}
	held := elementSQL(item)
	e.sql = "list_transform(" + e.sql + ", lambda " + v + ": " + held + ")"
	e.typ, e.col = c.Type, nil
	return e, nil
}

// fittedBits is a bit string as an assignment to bit(n) or bit varying(n) has it: of that length, or
// no longer.
func fittedBits(sql string, t Type) string {
	over, message := fmt.Sprintf("length(%s) > %d", sql, t.Mod), quote.Text(fmt.Sprintf("22001: bit string too long for type bit varying(%d)", t.Mod))
	if t.OID == OIDBit {
		over = fmt.Sprintf("length(%s) <> %d", sql, t.Mod)
		message = fmt.Sprintf("'22026: bit string length ' || length(%s) || ' does not match type bit(%d)'", sql, t.Mod)
	}
	return fmt.Sprintf("CASE WHEN %s THEN error(%s) ELSE %s END", over, message, sql)
}

// fitted is a text as an assignment to varchar(n) or char(n) has it: blanks beyond the
// length go, anything else there is an error.
func fitted(sql string, t Type) string {
	n := t.Mod - 4
	out := fmt.Sprintf("CASE WHEN %[1]s IS NULL OR length(%[1]s) <= %[2]d THEN %[1]s WHEN rtrim(substr(%[1]s, %[3]d), ' ') = '' THEN left(%[1]s, %[2]d) "+
		"ELSE error(%[4]s) END", sql, n, n+1,
		quote.Text(fmt.Sprintf("%s: value too long for type %s(%d)", codes.StringDataRightTruncation, t.Name(), n)))
	if t.OID == OIDBpchar {
		out = fmt.Sprintf("rpad(%s, %d, ' ')", out, n)
	}
	return out
}

// stored is an expression as the stored value of a column: in the engine's type of the
// lake's.
func (w *writer) stored(e expr, c RelationColumn) (string, error) {
	e, err := w.assigned(e, c)
	if err != nil {
		return "", err
	}
	if e.col != nil && e.col.stored && e.typ == c.Type {
		return e.sql, nil
	}
	sql := native(e)
	if e.typ.OID == OIDInt2 { // the lake has it as an integer
		sql = "CAST(" + sql + " AS SMALLINT)"
	}
	switch text := strings.EqualFold(c.Engine, "VARCHAR"); {
	case text && (isString(e.typ.OID) || e.typ.User != nil):
		sql = e.sql
	case text:
		if sql, err = w.canonicalText(e); err != nil {
			return "", w.errAt(e.loc, err)
		}
	}
	return "CAST(" + sql + " AS " + c.Engine + ")", nil
}
