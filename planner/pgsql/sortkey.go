package pgsql

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// sortKey renders what sorts and compares as the type does.
func sortKey(e expr) string {
	switch {
	case isRecord(e):
		return recordKey(e, sortKey)
	case ElemOf(e.typ.OID) == OIDRecord && e.fields != nil:
		return "list_transform(" + e.sql + ", lambda w: " + recordKey(elementOf(e, expr{scale: -1, loc: e.loc}, "w"), sortKey) + ")"
	case shaped(e):
		return shapedKey(e)
	case e.typ.OID == OIDNumeric:
		return numericKey(e)
	case e.typ.OID == OIDInterval:
		return "skippr_iv_key(" + native(e) + ")"
	case e.text && e.typ.OID == OIDTimetz, e.text && isDateLike(e.typ.OID):
		return exactValue(e)
	case e.typ.OID == OIDBpchar:
		return "rtrim(" + e.sql + ", ' ')"
	case e.typ.OID == OIDJSONB:
		return "skippr_j_key(" + e.sql + ")"
	case ElemOf(e.typ.OID) == OIDNumeric && !e.text:
		return "list_transform(CAST(" + e.sql + " AS VARCHAR[]), lambda v: skippr_n_key(v))"
	}
	if key := typeKey(e); key != "" {
		return key
	}
	if e.typ.isArray() && !isVector(e.typ) {
		item := elementOf(e, expr{scale: -1, loc: e.loc, typ: plain(ElemOf(e.typ.OID))}, "v")
		if key := sortKey(item); key != item.sql {
			return "list_transform(" + e.sql + ", lambda v: " + key + ")"
		}
	}
	return e.sql
}

// equalKey renders what is the same for equal values.
func equalKey(e expr) string {
	if e.typ.User != nil {
		return e.typ.User.equalKey(e.sql)
	}
	if isRecord(e) {
		return recordKey(e, equalKey)
	}
	return sortKey(e)
}

// keyed reports whether equal values may differ in the engine.
func keyed(e expr) bool {
	if e.typ.User != nil {
		return e.typ.User.Kind == Folded
	}
	if ElemOf(e.typ.OID) == OIDRecord {
		return true
	}
	if isRecord(e) {
		return slices.ContainsFunc(rowOf(e), keyed)
	}
	return e.text || typeKey(e) != "" || e.typ.OID == OIDJSONB || e.typ.OID == OIDInterval || e.typ.isArray() && sortKey(e) != e.sql
}

// sortable refuses to sort what the engine would sort otherwise than PostgreSQL: enums, whose
// order is that of their definition, and other types that are text here.
func (a *analyzer) sortable(e expr) error {
	if isRecord(e) {
		for _, f := range rowOf(e) {
			if err := a.sortable(f); err != nil {
				return err
			}
		}
		return nil
	}
	t := lookupType(e.typ.OID)
	if e.typ.OID >= firstUserOID {
		return a.errAt(e.loc, withoutOrder(e.typ))
	}
	switch {
	case isString(e.typ.OID) || e.typ.OID == OIDChar || t.textOrdered() || typeKey(e) != "":
		return nil
	case e.typ.OID == OIDJSON || e.typ.OID == OIDXML || t.category == 'G':
		return a.errAt(e.loc, pgerr.New(codes.UndefinedFunction, "could not identify an ordering operator for type %s", t.name).
			WithHint("Use an explicit ordering operator or modify the query."))
	case t.engine == "VARCHAR" && e.typ.OID != OIDJSONB:
		return a.errAt(e.loc, unsupported("ordering of %s values is not supported", t.name).WithHint("Order by the value cast to text."))
	}
	return nil
}

// equatable refuses to tell values apart that PostgreSQL does not tell apart, or in a way that is
// not known here.
func (a *analyzer) equatable(e expr) error {
	if isRecord(e) {
		for _, f := range rowOf(e) {
			if err := a.equatable(f); err != nil {
				return err
			}
		}
		return nil
	}
	t := e.typ
	if elem := ElemOf(t.OID); elem != 0 {
		t = plain(elem)
	}
	if !t.equatable() {
		return a.errAt(e.loc, pgerr.New(codes.UndefinedFunction, "could not identify an equality operator for type %s", e.typ.Name()))
	}
	return a.errAt(e.loc, uncompared(e.typ))
}
