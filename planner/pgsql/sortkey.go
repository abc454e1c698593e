package pgsql

// sortKey renders what sorts and compares as the type does.
func sortKey(e expr) string {
	switch {
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
	return e.sql
}

// equalKey renders what is the same for equal values.
func equalKey(e expr) string {
	if e.typ.User != nil {
		return e.typ.User.equalKey(e.sql)
	}
	return sortKey(e)
}

// keyed reports whether equal values may differ in the engine.
func keyed(e expr) bool {
	if e.typ.User != nil {
		return e.typ.User.Kind == Folded
	}
	return e.text || typeKey(e) != "" || e.typ.OID == OIDJSONB || e.typ.OID == OIDInterval || ElemOf(e.typ.OID) == OIDNumeric
}
