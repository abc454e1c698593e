package pgsql

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// specialCall analyses the functions whose arguments need more than types.
func (a *analyzer) specialCall(name string, n *pg.FuncCall, s *scope) (expr, bool, error) {
	var fn func([]expr, *pg.FuncCall, *scope) (expr, error)
	switch name {
	case "like_escape":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.likeEscape(args, n.Location) }
	case "similar_to_escape", "similar_escape":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.similarPattern(args, n.Location) }
	case "extract", "date_part":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.extract(name, args) }
	case "quote_literal", "quote_nullable", "concat", "concat_ws", "format":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.textCall(name, args) }
	case "overlay":
		fn = a.overlay
	case "to_char":
		fn = a.toChar
	case "set_config":
		fn = a.setConfig
	case "current_schema", "current_schemas", "current_setting", "current_catalog", "pg_typeof":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.sessionCall(name, args) }
	case "nextval", "currval", "lastval", "setval":
		if n.Over != nil || n.AggFilter != nil || n.AggDistinct || len(n.AggOrder) > 0 || n.AggStar {
			return expr{}, true, pgerr.New(codes.WrongObjectType, "%s is not an aggregate or window function", name)
		}
		e, err := a.sequenceCall(name, n, s)
		return e, true, err
	case "json_build_object", "jsonb_build_object", "json_build_array", "jsonb_build_array", "to_json", "to_jsonb", "row_to_json", "array_to_json":
		fn = func(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) { return a.buildJSON(name, args) }
	case "json_extract_path", "json_extract_path_text", "jsonb_extract_path", "jsonb_extract_path_text":
		fn = func(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) { return a.extractPath(name, args) }
	case "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg":
		e, err := a.aggregateJSON(name, n, s)
		return e, true, err
	case "rank", "dense_rank", "percent_rank", "cume_dist", "percentile_cont", "percentile_disc", "mode":
		return a.withinGroup(name, n, s)
	case "pg_sleep", "pg_cancel_backend", "pg_terminate_backend", "pg_reload_conf":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.signalOrEffect(name, args, n) }
	case "pg_listening_channels":
		e, err := a.listeningChannels(n)
		return e, true, err
	case "to_regprocedure", "to_regoperator":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) {
			return a.toRegSignature(name, args, n.Location)
		}
	case "json_populate_record", "jsonb_populate_record":
		fn = a.populates(name)
	case "enum_first", "enum_last", "enum_range":
		fn = func(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) { return a.enumCall(name, args) }
	case "num_nulls", "num_nonnulls":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.countNulls(name, args) }
	default:
		if _, ok := effectCalls[name]; !ok {
			return expr{}, false, nil
		}
		fn = func(args []expr, n *pg.FuncCall, s *scope) (expr, error) { return a.effectCall(name, args, n, s) }
	}
	if n.Over != nil || n.AggFilter != nil || n.AggDistinct || len(n.AggOrder) > 0 || n.AggStar {
		return expr{}, true, pgerr.New(codes.WrongObjectType, "%s is not an aggregate or window function", name)
	}
	args := a.spread
	a.spread = nil
	var err error
	if args == nil {
		args, err = a.exprList(n.Args, s)
	}
	if err != nil {
		return expr{}, true, err
	}
	e, err := fn(args, n, s)
	return e, true, err
}

func (a *analyzer) signalOrEffect(name string, args []expr, n *pg.FuncCall) (expr, error) {
	if out, ok, err := a.signal(name, args, n); ok || err != nil {
		return out, err
	}
	return a.effect(name, args)
}

// fastParts are the fields of dates and timestamps that the engine takes out as PostgreSQL
// does.
var fastParts = map[string]string{
	"year": "year", "years": "year", "month": "month", "months": "month", "day": "day", "days": "day", "hour": "hour", "hours": "hour",
	"minute": "minute", "minutes": "minute", "quarter": "quarter", "dow": "dow", "isodow": "isodow", "doy": "doy", "week": "week",
}

// extract analyses EXTRACT (numeric) and date_part (float8).
func (a *analyzer) extract(name string, args []expr) (expr, error) {
	if len(args) != 2 || args[0].lit == nil {
		return expr{}, unsupported("%s needs a constant field name", name)
	}
	field := strings.ToLower(*args[0].lit)
	e := args[1]
	var err error
	if e.undecided() {
		if e, err = a.coerce(e, plain(OIDInterval), implicit); err != nil {
			return e, err
		}
	}
	if !isDateLike(e.typ.OID) && e.typ.OID != OIDTime && e.typ.OID != OIDInterval {
		return e, noFunction("pg_catalog."+name, []expr{{typ: plain(OIDUnknown)}, e}, false)
	}
	if name == "date_part" && e.typ.OID == OIDDate { // that one is of its timestamp
		if e, err = a.coerce(e, plain(OIDTimestamp), implicit); err != nil {
			return e, err
		}
	}
	out, err := extractPart(field, e)
	if err != nil || name != "date_part" {
		return out, err
	}
	return expr{typ: plain(OIDFloat8), scale: -1, sql: doubleOf(out)}, nil
}

func extractPart(field string, e expr) (expr, error) {
	out := expr{typ: plain(OIDNumeric)}
	oid, value := e.typ.OID, native(e)
	switch {
	case oid == OIDInterval:
		out.setText("skippr_iv_part(" + quote.Text(field) + ", " + value + ")")
		return out, nil
	case oid == OIDTime:
		return timePart(field, value)
	case oid == OIDDate && dateLacks(field), oid == OIDTimestamp && strings.HasPrefix(field, "timezone"):
		return out, pgerr.New(codes.FeatureNotSupported, "unit \"%s\" not supported for type %s", field, e.typ.Name())
	case oid == OIDTimestamptz && strings.HasPrefix(field, "timezone"):
		return zonePart(field, value)
	case oid == OIDTimestamptz && field == "epoch":
		value = "timezone('UTC', " + value + ")"
	case oid == OIDTimestamptz:
		value = "CAST(" + value + " AS TIMESTAMP)"
	}
	fast, ok := fastParts[field]
	switch {
	case ok && fast != "year":
		out.setDecimal("CAST(date_part('"+fast+"', "+value+") AS DECIMAL(18,0))", 18, 0)
		return out, nil
	case ok:
		out.setDecimal("CAST(skippr_year("+value+") AS DECIMAL(18,0))", 18, 0)
		return out, nil
	}
	typ := e.typ.Name()
	if oid == OIDDate {
		out.setText("skippr_d_part(" + quote.Text(field) + ", " + value + ")")
		return out, nil
	}
	out.setText("skippr_ts_part(" + quote.Text(field) + ", " + value + ", " + quote.Text(typ) + ")")
	return out, nil
}

// zonePart takes the offset of the session's zone at a moment apart.
func zonePart(field, value string) (expr, error) {
	out := expr{typ: plain(OIDNumeric)}
	offset := "CAST(date_part('epoch', CAST(" + value + " AS TIMESTAMP)) - date_part('epoch', timezone('UTC', " + value + ")) AS BIGINT)"
	switch field {
	case "timezone":
	case "timezone_hour", "timezone_h":
		offset = "trunc(" + offset + " / 3600)"
	case "timezone_minute", "timezone_m":
		offset = "trunc(" + offset + " / 60) % 60"
	default:
		return out, pgerr.New(codes.InvalidParameterValue, "unit \"%s\" not recognized for type timestamp with time zone", field)
	}
	out.setDecimal("CAST("+offset+" AS DECIMAL(18,0))", 18, 0)
	return out, nil
}

// dateLacks reports whether a field is one of times.
func dateLacks(field string) bool {
	switch strings.TrimSuffix(field, "s") {
	case "hour", "minute", "second", "millisecond", "microsecond":
		return true
	}
	return strings.HasPrefix(field, "timezone")
}

func timePart(field, value string) (expr, error) {
	out := expr{typ: plain(OIDNumeric)}
	switch strings.TrimSuffix(field, "s") {
	case "hour", "minute", "second", "millisecond", "microsecond", "epoch":
		out.setText("skippr_iv_part(" + quote.Text(field) + ", skippr_time_iv(" + value + "))")
		return out, nil
	case "day", "month", "year", "dow", "doy", "isodow", "isoyear", "week", "quarter", "decade", "centurie", "century", "millennium", "julian",
		"timezone", "timezone_hour", "timezone_minute":
		return out, pgerr.New(codes.FeatureNotSupported, "unit \"%s\" not supported for type time without time zone", field)
	}
	return out, pgerr.New(codes.InvalidParameterValue, "unit \"%s\" not recognized for type time without time zone", field)
}

// quoteCall analyses quote_literal and quote_nullable, which take everything.
func (a *analyzer) quoteCall(name string, args []expr) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1}
	if len(args) != 1 {
		return out, noFunction(name, args, false)
	}
	e, err := a.coerce(args[0], plain(OIDText), explicit)
	if err != nil {
		return out, err
	}
	out.sql = "skippr_quote_literal(" + e.sql + ")"
	if name == "quote_nullable" {
		out.sql = "coalesce(" + out.sql + ", 'NULL')"
	}
	return out, nil
}

// textCall analyses the functions of texts that take everything.
func (a *analyzer) textCall(name string, args []expr) (expr, error) {
	if strings.HasPrefix(name, "quote") {
		return a.quoteCall(name, args)
	}
	return a.concatCall(name, args)
}

// concatCall analyses concat, concat_ws and format.
func (a *analyzer) concatCall(name string, args []expr) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1}
	if len(args) == 0 {
		return out, noFunction(name, args, false)
	}
	parts := make([]string, len(args))
	for i, e := range args {
		c, err := a.coerce(e, plain(OIDText), explicit)
		if err != nil {
			return out, err
		}
		if e.typ.OID == OIDBpchar || e.typ.OID == OIDInet {
			c.sql = e.sql // with its blanks, without its mask
		}
		if e.typ.OID == OIDBool { // these use the output function, which says t and f
			c.sql = "CASE WHEN " + e.sql + " THEN 't' WHEN NOT " + e.sql + " THEN 'f' END"
		}
		parts[i] = c.sql
	}
	if name != "format" {
		out.sql = name + "(" + strings.Join(parts, ", ") + ")"
		return out, nil
	}
	out.sql = "skippr_format(" + parts[0] + ", CAST(to_json(CAST([" + strings.Join(parts[1:], ", ") + "] AS VARCHAR[])) AS VARCHAR))"
	return out, nil
}

func (a *analyzer) overlay(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1}
	if len(args) < 3 || len(args) > 4 {
		return out, noFunction("overlay", args, false)
	}
	kind, fn, size := uint32(OIDText), "skippr_overlay", "CAST(length(%s) AS INTEGER)"
	if args[0].typ.OID == OIDBytea || args[0].undecided() && args[1].typ.OID == OIDBytea {
		kind, fn, size = OIDBytea, "skippr_b_overlay", "CAST(octet_length(%s) AS INTEGER)"
	}
	out.typ = plain(kind)
	parts := make([]string, len(args))
	for i, e := range args {
		to := plain(kind)
		if i >= 2 {
			to = plain(OIDInt4)
		}
		c, err := a.coerce(e, to, implicit)
		if err != nil {
			return out, err
		}
		parts[i] = c.sql
	}
	if len(parts) == 3 {
		parts = append(parts, fmt.Sprintf(size, parts[1]))
	}
	out.sql = fn + "(" + strings.Join(parts, ", ") + ")"
	return out, nil
}

func (a *analyzer) countNulls(name string, args []expr) (expr, error) {
	var parts []string
	word := " IS NULL"
	if name == "num_nonnulls" {
		word = " IS NOT NULL"
	}
	for _, e := range args {
		c, err := a.settled(e)
		if err != nil {
			return c, err
		}
		parts = append(parts, "CAST("+c.sql+word+" AS INTEGER)")
	}
	if len(parts) == 0 {
		return expr{}, noFunction(name, args, false)
	}
	return expr{sql: "(" + strings.Join(parts, " + ") + ")", typ: plain(OIDInt4), scale: -1}, nil
}

// sessionCall answers what depends on the session only.
func (a *analyzer) sessionCall(name string, args []expr) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1, con: true}
	switch {
	case name == "current_schema" && len(args) == 0:
		out.typ, out.sql = plain(OIDName), a.currentSchema()
		return out, nil
	case name == "current_catalog" && len(args) == 0:
		out.typ, out.sql = plain(OIDName), quote.Text(a.env.Database)
		return out, nil
	case name == "pg_typeof" && len(args) == 1:
		out.typ, out.sql = plain(OIDRegtype), fmt.Sprintf("CAST(%d AS BIGINT)", announced(args[0].typ).OID)
		if e := &args[0]; !e.con && e.sql != "" { // an aggregate in it still makes one row of many
			out.con, out.sql = false, "CASE WHEN "+e.sql+" IS NULL THEN "+out.sql+" ELSE "+out.sql+" END"
		}
		return out, nil
	case name == "current_schemas" && len(args) == 1:
		var parts []string
		for _, p := range a.env.SearchPath {
			if (p != "pg_catalog" && p != a.env.TempSchema || args[0].sql != "false") && a.env.Resolver.HasSchema(p) {
				parts = append(parts, quote.Text(p))
			}
		}
		out.typ, out.sql = plain(1003), "CAST(["+strings.Join(parts, ", ")+"] AS VARCHAR[])"
		return out, nil
	case name == "current_setting" && (len(args) == 1 || len(args) == 2):
		return a.currentSetting(args, out)
	}
	return out, noFunction(name, args, false)
}

// effect analyses calls that act on the server when the statement runs. Their
// arguments must be constants, since they run before the engine does.
func (a *analyzer) effect(name string, args []expr) (expr, error) {
	out := expr{typ: plain(OIDBool), scale: -1}
	if name == "pg_reload_conf" && len(args) == 0 {
		e := Effect{Kind: EffectReload, Mark: fmt.Sprintf("\x01effect%d\x01", len(a.effects))}
		a.effects, out.sql = append(a.effects, e), e.Mark
		return out, nil
	}
	if len(args) != 1 || name == "pg_reload_conf" {
		return out, noFunction(name, args, false)
	}
	text := args[0].sql
	if args[0].lit != nil {
		text = *args[0].lit
	}
	if args[0].typ.OID == OIDNumeric {
		text, _, _ = strings.Cut(strings.TrimPrefix(text, "CAST('"), "'")
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return out, unsupported("%s needs a constant argument", name)
	}
	if name == "pg_sleep" {
		a.effects = append(a.effects, Effect{Kind: EffectSleep, Seconds: n})
		out.typ, out.sql = plain(OIDVoid), "''"
		return out, nil
	}
	if n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
		return out, noFunction(name, args, false)
	}
	e := Effect{Kind: EffectCancel, PID: uint32(int32(n)), Mark: fmt.Sprintf("\x01effect%d\x01", len(a.effects))}
	if name == "pg_terminate_backend" {
		e.Kind = EffectTerminate
	}
	a.effects = append(a.effects, e)
	out.sql = e.Mark
	return out, nil
}

func (a *analyzer) currentSetting(args []expr, out expr) (expr, error) {
	if args[0].lit == nil {
		if len(a.env.Functions["skippr_setting"]) == 0 {
			return out, unsupported("current_setting needs a constant name")
		}
		return a.callNamed("skippr_setting", args[:1], args[0].loc)
	}
	if a.env.Examines != nil {
		if err := a.env.Examines(strings.ToLower(*args[0].lit)); err != nil {
			return out, err
		}
	}
	v, ok := a.env.Setting(*args[0].lit)
	mark := ""
	for _, f := range a.effects {
		switch {
		case f.Kind != EffectSetConfig:
		case f.Name == "":
			return out, unsupported("current_setting beside set_config of a name that is computed is not supported")
		case strings.EqualFold(f.Name, *args[0].lit):
			mark = f.Mark
		}
	}
	switch {
	case mark != "":
		out.sql = mark // which its value will take the place of
	case ok:
		out.sql = quote.Text(v)
	case len(args) == 2 && args[1].sql == "true":
		out.sql = "CAST(NULL AS VARCHAR)"
	default:
		return out, pgerr.New(codes.UndefinedObject, "unrecognized configuration parameter \"%s\"", *args[0].lit)
	}
	return out, nil
}

// toChar analyses to_char.
func (a *analyzer) toChar(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1}
	if len(args) != 2 {
		return out, noFunction("to_char", args, false)
	}
	e := args[0]
	if e.undecided() {
		return out, noFunction("to_char", args, true)
	}
	format, err := a.coerce(args[1], plain(OIDText), implicit)
	if err != nil {
		return out, err
	}
	kind := "n"
	switch oid := e.typ.OID; {
	case oid == OIDTimestamp:
		out.sql = "skippr_ts_char(" + native(e) + ", " + format.sql + ")"
		return out, nil
	case oid == OIDDate || oid == OIDTimestamptz:
		if e, err = a.coerce(e, plain(OIDTimestamptz), implicit); err != nil {
			return out, err
		}
		out.sql = "skippr_tz_char(" + native(e) + ", " + sessionZone + ", " + format.sql + ")"
		return out, nil
	case oid == OIDInterval || oid == OIDTime:
		if e, err = a.coerce(e, plain(OIDInterval), implicit); err != nil {
			return out, err
		}
		out.sql = "skippr_iv_char(" + native(e) + ", " + format.sql + ")"
		return out, nil
	case isInt(oid):
		kind = "i"
	case isFloat(oid):
		kind = "f"
	case oid != OIDNumeric:
		return out, noFunction("to_char", args, false)
	}
	number := numericText(e)
	if kind == "f" {
		number = "skippr_float_text(" + e.sql + ")"
	}
	out.sql = "skippr_n_char(" + number + ", '" + kind + "', " + format.sql + ")"
	return out, nil
}
