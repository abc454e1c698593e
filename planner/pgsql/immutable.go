package pgsql

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// immutableFunctions give the same value for the same arguments, whoever calls them when and with what
// settings, as pg_proc says; those of sometimesImmutable do unless an argument is a moment, which has
// another date in each zone.
var (
	immutableFunctions = strings.Fields(`abs acos acosh array_append array_cat array_dims array_fill array_length array_lower array_ndims
		array_position array_positions array_prepend array_remove array_replace array_upper ascii asin asinh atan atan2 atanh bit_count
		bit_length btrim cardinality cbrt ceil ceiling char_length character_length chr cos cosh cot date_bin decode degrees div encode
		exp factorial floor gcd get_bit get_byte initcap json_array_length json_extract_path json_extract_path_text json_strip_nulls
		json_typeof jsonb_array_length jsonb_contains jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_insert
		jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_typeof justify_days justify_hours justify_interval lcm left length like_escape
		ln log log10 lower lpad ltrim make_date make_interval make_time make_timestamp md5 min_scale mod num_nonnulls num_nulls
		octet_length overlay parse_ident pi position pow power quote_ident radians regexp_count regexp_instr regexp_like regexp_match
		regexp_replace regexp_split_to_array regexp_substr repeat replace reverse right round rpad rtrim scale set_bit set_byte sha224
		sha256 sha384 sha512 sign similar_escape similar_to_escape sin sinh split_part sqrt starts_with string_to_array strpos substr
		substring tan tanh to_hex translate trim_array trim_scale trunc unistr upper width_bucket isfinite`)
	sometimesImmutable = strings.Fields("date date_part date_trunc extract age overlaps")
	mutableFunctions   = append(strings.Fields(`array_to_json array_to_string concat concat_ws convert convert_from convert_to
		current_database current_schema current_schemas current_setting format getdatabaseencoding json_build_array json_build_object
		jsonb_build_array jsonb_build_object make_timestamptz now pg_backend_pid row_to_json statement_timestamp to_char to_date
		to_json to_jsonb to_number to_timestamp transaction_timestamp version`), volatileFunctions...)
)

var errMutable = pgerr.New(codes.InvalidObjectDefinition, "generation expression is not immutable")

// unknownMutable is what we do not know enough of.
type unknownMutable struct{ what string }

func (e unknownMutable) Error() string { return e.what + " may not be immutable" }

func errUnknownMutable(what string) error { return unknownMutable{what} }

// generates refuses in the expression of a generated column what may not be immutable.
func (e unknownMutable) generates() error {
	return unsupported("%s in column generation expressions is not supported", e.what).
		WithHint("A view can compute the column: CREATE VIEW … AS SELECT *, … FROM …")
}

// immutable refuses an analysed expression for a column of a type that may have another value later, or
// in another session: by what its parts are, and what the types of these are.
func (a *analyzer) immutable(n *pg.Node, to Type) error {
	err := a.mutableCast(n, to)
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		v, ok := m.(*pg.Node)
		if !ok || err != nil {
			return
		}
		err = a.immutablePart(v)
	})
	return err
}

func (a *analyzer) immutablePart(n *pg.Node) error {
	switch n.Node.(type) {
	case *pg.Node_ColumnRef, *pg.Node_TypeCast, *pg.Node_FuncCall, *pg.Node_AExpr:
		if _, known := a.types[n]; !known {
			return errUnknownMutable("an expression of this kind")
		}
	}
	switch v := n.Node.(type) {
	case *pg.Node_SqlvalueFunction:
		return errMutable
	case *pg.Node_TypeCast:
		return a.mutableCast(v.TypeCast.Arg, a.types[n])
	case *pg.Node_FuncCall:
		return a.immutableCall(v.FuncCall)
	case *pg.Node_AExpr:
		return a.immutableOperator(v.AExpr)
	case *pg.Node_CoalesceExpr:
		return a.oneKind(v.CoalesceExpr.Args)
	case *pg.Node_MinMaxExpr:
		return a.oneKind(v.MinMaxExpr.Args)
	case *pg.Node_CaseExpr:
		list := []*pg.Node{v.CaseExpr.Defresult}
		var compared []*pg.Node
		for _, w := range v.CaseExpr.Args {
			list = append(list, w.GetCaseWhen().Result)
			if v.CaseExpr.Arg != nil {
				compared = append(compared, w.GetCaseWhen().Expr)
			}
		}
		if err := a.oneKind(append(compared, v.CaseExpr.Arg)); err != nil {
			return err
		}
		return a.oneKind(list)
	case *pg.Node_RowExpr:
		return errUnknownMutable("ROW")
	}
	return nil
}

// immutableCall refuses a call of a function that is not known to be immutable.
func (a *analyzer) immutableCall(f *pg.FuncCall) error {
	name := callName(f)
	moment := slices.ContainsFunc(f.Args, func(n *pg.Node) bool { return a.kindOf(n) == kindMoment })
	switch {
	case slices.Contains(mutableFunctions, name):
		return errMutable
	case slices.Contains(immutableFunctions, name), name == "timezone", slices.Contains(sometimesImmutable, name) && !moment:
		if name == "age" && len(f.Args) == 1 {
			return errMutable
		}
		return nil
	case slices.Contains(sometimesImmutable, name):
		return errMutable
	}
	return errUnknownMutable("function " + f.Funcname[len(f.Funcname)-1].GetString_().GetSval())
}

// immutableOperator refuses operators that depend on a zone: between moments and dates or times without
// one, and of moments and intervals. What || makes a text of is a cast.
func (a *analyzer) immutableOperator(e *pg.A_Expr) error {
	operands := []*pg.Node{e.Lexpr, e.Rexpr}
	if list := e.Rexpr.GetList(); list != nil {
		operands = append(slices.Clone(list.Items), e.Lexpr)
	}
	if err := a.oneKind(operands); err != nil {
		return err
	}
	l, r := a.kindOf(e.Lexpr), a.kindOf(e.Rexpr)
	if l == kindMoment && r == kindInterval || l == kindInterval && r == kindMoment {
		return errMutable
	}
	if len(e.Name) > 0 && e.Name[len(e.Name)-1].GetString_().GetSval() == "||" {
		lt, rt := a.types[e.Lexpr], a.types[e.Rexpr]
		switch {
		case isString(lt.OID) || lt.OID == OIDUnknown:
			return a.mutableCast(e.Rexpr, plain(OIDText))
		case isString(rt.OID) || rt.OID == OIDUnknown:
			return a.mutableCast(e.Lexpr, plain(OIDText))
		}
	}
	return nil
}

// oneKind refuses moments beside dates and times without a zone, as which they would be seen, or which
// would be moments.
func (a *analyzer) oneKind(list []*pg.Node) error {
	moment, day := false, false
	for _, n := range list {
		moment = moment || a.kindOf(n) == kindMoment
		day = day || a.kindOf(n) == kindDay
	}
	if moment && day {
		return errMutable
	}
	return nil
}

// The kinds of types that settings have to do with: moments have another date and time in each zone, and
// days, as intervals, another text in each style.
const (
	kindPlain = iota
	kindMoment
	kindDay
	kindInterval
	kindText
	kindOther // another's: enumerations, arrays, names of objects
)

func (a *analyzer) kindOf(n *pg.Node) int {
	t, known := a.types[n]
	if n == nil || !known {
		return kindPlain
	}
	return kindOfType(t)
}

func kindOfType(t Type) int {
	switch t.OID {
	case OIDTimestamptz, OIDTimetz:
		return kindMoment
	case OIDDate, OIDTimestamp, OIDTime:
		return kindDay
	case OIDInterval:
		return kindInterval
	case OIDText, OIDVarchar, OIDBpchar, OIDName:
		return kindText
	case OIDUnknown, OIDBool, OIDInt2, OIDInt4, OIDInt8, OIDFloat4, OIDFloat8, OIDNumeric, OIDBytea, OIDUUID, OIDJSON, OIDJSONB:
		return kindPlain
	}
	return kindOther
}

// mutableCast refuses a cast that settings have to do with. A literal is read once, when it is settled.
func (a *analyzer) mutableCast(n *pg.Node, to Type) error {
	from, known := a.types[n]
	if !known || from.OID == OIDUnknown || from.OID == to.OID {
		return nil
	}
	f, t := kindOfType(from), kindOfType(to)
	if ElemOf(from.OID) != 0 && ElemOf(to.OID) != 0 { // of their elements
		f, t = kindOfType(plain(ElemOf(from.OID))), kindOfType(plain(ElemOf(to.OID)))
	}
	switch {
	case f == kindMoment || t == kindMoment, f == kindText && (t == kindDay || t == kindInterval || t == kindOther),
		t == kindText && (f == kindDay || f == kindInterval || f == kindOther):
		if from.OID == OIDTime && t == kindText || to.OID == OIDTime && from.OID == OIDTimestamp {
			return nil
		}
		return errMutable
	}
	return nil
}
