package ruleutils

import (
	"slices"
	"strconv"
	"strings"
)

// Types that the rules name.
const (
	typBool        uint32 = 16
	typName        uint32 = 19
	typInt8        uint32 = 20
	typInt2        uint32 = 21
	typInt4        uint32 = 23
	typText        uint32 = 25
	typOID         uint32 = 26
	typJSON        uint32 = 114
	typFloat4      uint32 = 700
	typFloat8      uint32 = 701
	typUnknown     uint32 = 705
	typBpchar      uint32 = 1042
	typVarchar     uint32 = 1043
	typDate        uint32 = 1082
	typTime        uint32 = 1083
	typTimestamp   uint32 = 1114
	typTimestamptz uint32 = 1184
	typInterval    uint32 = 1186
	typTimetz      uint32 = 1266
	typBit         uint32 = 1560
	typVarbit      uint32 = 1562
	typNumeric     uint32 = 1700
	typRecord      uint32 = 2249
	typCstring     uint32 = 2275
	typAny         uint32 = 2276
	typAnyArray    uint32 = 2277
	typAnyElement  uint32 = 2283
	typAnyNonarray uint32 = 2776
	typUUID        uint32 = 2950
	typAnyEnum     uint32 = 3500
	typJSONB       uint32 = 3802
	typCompatible  uint32 = 5077
	typCompArray   uint32 = 5078
	typCompNonarr  uint32 = 5079
)

// typeFact is what pg_type says of a type.
type typeFact struct {
	category  byte
	preferred bool
	kind      byte // b, c, d, e, p, r, m
	elem      uint32
	array     uint32
	relation  uint32
}

// procFact is a row of pg_proc.
type procFact struct {
	oid      uint32
	name     string
	args     []uint32
	defaults int
	variadic uint32
	kind     byte // f, a, w, p
	set      bool
	result   uint32
	outs     []string // names of the columns of a set of rows, nil for none
	outTypes []uint32
}

// operFact is a row of pg_operator.
type operFact struct {
	oid                 uint32
	name                string
	left, right, result uint32
}

// castFact is a row of pg_cast.
type castFact struct {
	function uint32
	context  byte // i, a, e
	method   byte // f, b, i
}

// Facts are what PostgreSQL's catalog says of its types, functions, operators and casts.
// Immutable.
type Facts struct {
	types map[uint32]typeFact
	names map[string]uint32 // types by typname
	procs map[string][]procFact
	opers map[string][]operFact
	casts map[[2]uint32]castFact
	// lengths are the functions that apply a length to a type's values.
	lengths map[uint32]uint32
}

// table reads a relation's rows in COPY's text form.
type table func(name string) (columns []string, rows [][]*string, err error)

// NewFacts reads the facts from the rows of pg_type, pg_proc, pg_operator and pg_cast.
func NewFacts(read table) (*Facts, error) {
	f := &Facts{
		types: map[uint32]typeFact{}, names: map[string]uint32{}, procs: map[string][]procFact{}, opers: map[string][]operFact{},
		casts: map[[2]uint32]castFact{}, lengths: map[uint32]uint32{},
	}
	for name, add := range map[string]func(cells){"pg_type": f.addType, "pg_proc": f.addProc, "pg_operator": f.addOperator, "pg_cast": f.addCast} {
		columns, rows, err := read(name)
		if err != nil {
			return nil, err
		}
		at := map[string]int{}
		for i, c := range columns {
			at[c] = i
		}
		for _, r := range rows {
			add(cells{at, r})
		}
	}
	return f, nil
}

// cells are a row by the names of its columns.
type cells struct {
	at  map[string]int
	row []*string
}

func (c cells) text(name string) string {
	if v := c.row[c.at[name]]; v != nil {
		return *v
	}
	return ""
}

func (c cells) oid(name string) uint32 { return parseOID(c.text(name)) }

func (c cells) first(name string) byte {
	if v := c.text(name); v != "" {
		return v[0]
	}
	return 0
}

func parseOID(s string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

func oids(s, sep string) []uint32 {
	var out []uint32
	for _, v := range strings.Split(strings.Trim(s, "{}"), sep) {
		if v != "" {
			out = append(out, parseOID(v))
		}
	}
	return out
}

func (f *Facts) addType(c cells) {
	oid := c.oid("oid")
	f.types[oid] = typeFact{
		category: c.first("typcategory"), preferred: c.text("typispreferred") == "t", kind: c.first("typtype"), array: c.oid("typarray"),
		relation: c.oid("typrelid"),
	}
	if c.text("typlen") == "-1" && c.text("typsubscript") != "0" || c.first("typcategory") == 'A' {
		t := f.types[oid]
		t.elem = c.oid("typelem")
		f.types[oid] = t
	}
	f.names[c.text("typname")] = oid
}

func (f *Facts) addProc(c cells) {
	p := procFact{
		oid: c.oid("oid"), name: c.text("proname"), args: oids(c.text("proargtypes"), " "), variadic: c.oid("provariadic"), kind: c.first("prokind"),
		set: c.text("proretset") == "t", result: c.oid("prorettype"),
	}
	p.defaults = int(c.oid("pronargdefaults"))
	modes := strings.Split(strings.Trim(c.text("proargmodes"), "{}"), ",")
	names := strings.Split(strings.Trim(c.text("proargnames"), "{}"), ",")
	types := oids(c.text("proallargtypes"), ",")
	for i, m := range modes {
		if (m == "o" || m == "b" || m == "t") && i < len(names) && i < len(types) {
			p.outs, p.outTypes = append(p.outs, names[i]), append(p.outTypes, types[i])
		}
	}
	f.procs[p.name] = append(f.procs[p.name], p)
}

func (f *Facts) addOperator(c cells) {
	o := operFact{oid: c.oid("oid"), name: c.text("oprname"), left: c.oid("oprleft"), right: c.oid("oprright"), result: c.oid("oprresult")}
	f.opers[o.name] = append(f.opers[o.name], o)
}

func (f *Facts) addCast(c cells) {
	from, to := c.oid("castsource"), c.oid("casttarget")
	k := castFact{function: c.oid("castfunc"), context: c.first("castcontext"), method: c.first("castmethod")}
	if from == to {
		f.lengths[from] = k.function
		return
	}
	f.casts[[2]uint32{from, to}] = k
}

// typeOf is what is known of a type; those that are not PostgreSQL's are enumerated ones.
func (f *Facts) typeOf(oid uint32) typeFact {
	if t, ok := f.types[oid]; ok {
		return t
	}
	return typeFact{category: 'E', kind: 'e'}
}

func (f *Facts) elemOf(oid uint32) uint32 {
	if t := f.typeOf(oid); t.category == 'A' {
		return t.elem
	}
	return 0
}

func (f *Facts) arrayOf(oid uint32) uint32 { return f.typeOf(oid).array }

func isPolymorphic(t uint32) bool {
	return slices.Contains([]uint32{typAnyArray, typAnyElement, typAnyNonarray, typAnyEnum, typCompatible, typCompArray, typCompNonarr, 3831, 4537, 5080, 4538}, t)
}
