package pgsql

import (
	"fmt"
	"slices"
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
	case "concat", "concat_ws", "format":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.concatCall(name, args) }
	case "overlay":
		fn = a.overlay
	case "to_char":
		fn = a.toChar
	case "current_schema", "current_schemas", "current_setting", "set_config", "current_catalog", "pg_typeof":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.sessionCall(name, args) }
	case "json_build_object", "jsonb_build_object", "json_build_array", "jsonb_build_array", "to_json", "to_jsonb", "row_to_json":
		fn = func(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) { return a.buildJSON(name, args) }
	case "json_agg", "jsonb_agg":
		e, err := a.aggregateJSON(name, n, s)
		return e, true, err
	case "percentile_cont", "percentile_disc", "mode":
		return a.orderedSet(name, n, s)
	case "pg_sleep", "pg_cancel_backend", "pg_terminate_backend":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.effect(name, args) }
	case "num_nulls", "num_nonnulls":
		fn = func(args []expr, n *pg.FuncCall, _ *scope) (expr, error) { return a.countNulls(name, args) }
	default:
		return expr{}, false, nil
	}
	if n.Over != nil || n.AggFilter != nil || n.AggDistinct || len(n.AggOrder) > 0 || n.AggStar {
		return expr{}, true, pgerr.New(codes.WrongObjectType, "%s is not an aggregate or window function", name)
	}
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return expr{}, true, err
	}
	e, err := fn(args, n, s)
	return e, true, err
}

// fields are what EXTRACT takes: the engine's word and, for a fraction, its divisor.
var fields = map[string]string{
	"century": "century", "day": "day", "days": "day", "decade": "decade", "dow": "dow", "doy": "doy", "epoch": "epoch",
	"hour": "hour", "hours": "hour", "isodow": "isodow", "isoyear": "isoyear", "microseconds": "microseconds",
	"millennium": "millennium", "milliseconds": "microseconds", "minute": "minute", "minutes": "minute",
	"month":  "month",
	"months": "month", "quarter": "quarter", "second": "microseconds", "seconds": "microseconds", "timezone": "timezone",
	"timezone_hour": "timezone_hour", "timezone_minute": "timezone_minute", "week": "week", "year": "year",
	"years": "year",
}

// extract analyses EXTRACT (numeric) and date_part (float8).
func (a *analyzer) extract(name string, args []expr) (expr, error) {
	if len(args) != 2 || args[0].lit == nil {
		return expr{}, unsupported("%s needs a constant field name", name)
	}
	field := strings.ToLower(*args[0].lit)
	word, ok := fields[field]
	e := args[1]
	var err error
	if e.undecided() {
		if e, err = a.coerce(e, plain(OIDInterval), implicit); err != nil {
			return e, err
		}
	}
	if !isDateLike(e.typ.OID) && e.typ.OID != OIDTime && e.typ.OID != OIDInterval && e.typ.OID != OIDTimetz {
		return e, noFunction("pg_catalog."+name, []expr{{typ: plain(OIDUnknown)}, e}, false)
	}
	if !ok || e.typ.OID == OIDDate && (strings.HasPrefix(word, "micro") || word == "hour" || word == "minute" ||
		strings.HasPrefix(word, "timezone")) {
		return e, pgerr.New(codes.FeatureNotSupported, "unit \"%s\" not supported for type %s", field, e.typ.Name())
	}
	out := expr{typ: plain(OIDNumeric), scale: 0, prec: 18}
	part := "date_part('" + word + "', " + native(e) + ")"
	switch {
	case field == "epoch":
		out.scale, out.prec = 6, 20
		if e.typ.OID == OIDDate {
			out.scale = 0
		}
		out.sql = fmt.Sprintf("CAST(%s AS DECIMAL(20,%d))", part, out.scale)
	case strings.HasPrefix(field, "second"):
		out.scale, out.sql = 6, "(CAST("+part+" AS DECIMAL(18,0)) * CAST('0.000001' AS DECIMAL(6,6)))"
	case field == "milliseconds":
		out.scale, out.sql = 3, "(CAST("+part+" AS DECIMAL(18,0)) * CAST('0.001' AS DECIMAL(3,3)))"
	default:
		out.sql = "CAST(" + part + " AS DECIMAL(18,0))"
	}
	if name == "date_part" {
		out.sql, out.typ, out.scale = "CAST("+out.sql+" AS DOUBLE)", plain(OIDFloat8), -1
	}
	return out, nil
}

// quoters are the functions behind the conversions of format.
var quoters = map[byte]string{'I': "quote_ident", 'L': "quote_nullable"}

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
		if e.typ.OID == OIDBool { // these use the output function, which says t and f
			c.sql = "CASE WHEN " + e.sql + " THEN 't' WHEN NOT " + e.sql + " THEN 'f' END"
		}
		parts[i] = c.sql
	}
	if name != "format" {
		out.sql = name + "(" + strings.Join(parts, ", ") + ")"
		return out, nil
	}
	if args[0].lit == nil {
		return out, unsupported("format needs a constant format string")
	}
	var b strings.Builder
	next := 1
	f := *args[0].lit
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		i++
		switch {
		case i < len(f) && f[i] == '%':
			b.WriteByte('%')
		case i < len(f) && (f[i] == 's' || f[i] == 'I' || f[i] == 'L'):
			if next >= len(parts) {
				return out, pgerr.New(codes.InvalidParameterValue, "too few arguments for format()")
			}
			if f[i] != 's' {
				q, err := a.callNamed(quoters[f[i]], []expr{{sql: parts[next], typ: plain(OIDText), scale: -1}}, -1)
				if err != nil {
					return out, err
				}
				parts[next] = q.sql
			}
			b.WriteString("\x02" + fmt.Sprint(next) + "\x02")
			next++
		default:
			return out, unsupported("format() conversions other than %%s, %%I and %%L are not supported")
		}
	}
	pieces := strings.Split(b.String(), "\x02")
	for i := range pieces {
		if i%2 == 0 {
			pieces[i] = quote.Text(pieces[i])
			continue
		}
		var at int
		_, _ = fmt.Sscan(pieces[i], &at) // written above
		pieces[i] = parts[at]
	}
	out.sql = "concat(" + strings.Join(pieces, ", ") + ")"
	return out, nil
}

func (a *analyzer) overlay(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1}
	if len(args) < 3 || len(args) > 4 {
		return out, noFunction("overlay", args, false)
	}
	parts := make([]string, len(args))
	for i, e := range args {
		to := plain(OIDText)
		if i >= 2 {
			to = plain(OIDInt4)
		}
		c, err := a.coerce(e, to, implicit)
		if err != nil {
			return out, err
		}
		parts[i] = c.sql
	}
	n := "length(" + parts[1] + ")"
	if len(parts) == 4 {
		n = parts[3]
	}
	out.sql = fmt.Sprintf("(left(%s, %s - 1) || %s || substring(%s, %s + %s))", parts[0], parts[2], parts[1], parts[0],
		parts[2], n)
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
		out.typ, out.sql = plain(OIDRegtype), fmt.Sprintf("CAST(%d AS BIGINT)", args[0].typ.OID)
		if e := &args[0]; !e.con && e.sql != "" { // an aggregate in it still makes one row of many
			out.con, out.sql = false, "CASE WHEN "+e.sql+" IS NULL THEN "+out.sql+" ELSE "+out.sql+" END"
		}
		return out, nil
	case name == "current_schemas" && len(args) == 1:
		var parts []string
		for _, p := range a.env.SearchPath {
			if (p != "pg_catalog" || args[0].sql != "false") && a.env.Resolver.HasSchema(p) {
				parts = append(parts, quote.Text(p))
			}
		}
		out.typ, out.sql = plain(1003), "CAST(["+strings.Join(parts, ", ")+"] AS VARCHAR[])"
		return out, nil
	case name == "current_setting" && (len(args) == 1 || len(args) == 2):
		return a.currentSetting(args, out)
	case name == "set_config" && len(args) == 3:
		if args[0].lit == nil || args[1].lit == nil || args[2].sql == "" {
			return out, unsupported("set_config needs constant arguments")
		}
		a.effects = append(a.effects, Effect{
			Kind: EffectSetConfig, Name: *args[0].lit, Value: *args[1].lit, Local: args[2].sql == "true",
		})
		out.sql = quote.Text(*args[1].lit)
		return out, nil
	}
	return out, noFunction(name, args, false)
}

// effect analyses calls that act on the server when the statement runs. Their
// arguments must be constants, since they run before the engine does.
func (a *analyzer) effect(name string, args []expr) (expr, error) {
	out := expr{typ: plain(OIDBool), scale: -1}
	if len(args) != 1 {
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
	e := Effect{Kind: EffectCancel, PID: uint32(n), Mark: fmt.Sprintf("\x01effect%d\x01", len(a.effects))}
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
	v, ok := a.env.Setting(*args[0].lit)
	switch {
	case ok:
		out.sql = quote.Text(v)
	case len(args) == 2 && args[1].sql == "true":
		out.sql = "CAST(NULL AS VARCHAR)"
	default:
		return out, pgerr.New(codes.UndefinedObject, "unrecognized configuration parameter \"%s\"", *args[0].lit)
	}
	return out, nil
}

// orderedSet analyses percentile_cont, percentile_disc and mode.
func (a *analyzer) orderedSet(name string, n *pg.FuncCall, s *scope) (expr, bool, error) {
	if !n.AggWithinGroup || len(n.AggOrder) != 1 || n.Over != nil {
		return expr{}, true, pgerr.New(codes.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", name)
	}
	if s.noAgg != "" {
		return expr{}, true, pgerr.New(codes.Grouping, "aggregate functions are not allowed in %s", s.noAgg)
	}
	s.hasAgg = true
	s.aggDepth++
	defer func() { s.aggDepth-- }()
	sb := n.AggOrder[0].GetSortBy()
	e, err := a.expr(sb.Node, s)
	if err != nil {
		return e, true, err
	}
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return e, true, err
	}
	out := expr{typ: e.typ, scale: e.scale}
	out.typ.Mod = -1
	frac := ""
	if name != "mode" {
		if len(args) != 1 {
			return e, true, noFunction(name, args, false)
		}
		f, err := a.coerce(args[0], plain(OIDFloat8), implicit)
		if err != nil {
			return e, true, err
		}
		frac = f.sql
	}
	key := sortKey(e)
	if name == "percentile_cont" {
		if numericRank(e.typ.OID) == 0 {
			return e, true, unsupported("percentile_cont of %s is not supported", e.typ.Name())
		}
		out.typ, out.scale = plain(OIDFloat8), -1
		key = "CAST(" + key + " AS DOUBLE)"
	}
	// The engine knows no NULLS FIRST here; nulls do not count.
	direction := strings.TrimSuffix(strings.TrimSuffix(sortDirection(sb), " NULLS LAST"), " NULLS FIRST")
	out.sql = name + "(" + frac + ") WITHIN GROUP (ORDER BY " + key + direction + ")"
	if n.AggFilter != nil {
		f, err := a.condition(n.AggFilter, s, "FILTER")
		if err != nil {
			return e, true, err
		}
		out.sql += " FILTER (WHERE " + f.sql + ")"
	}
	return out, true, nil
}

// charPattern is a template pattern of to_char and what the engine's strftime writes
// for it.
type charPattern struct{ postgres, engine string }

// charPatterns are the patterns that the engine can make, longest first: the first that
// fits is meant.
var charPatterns = []charPattern{
	{"FMMonth", "%B"},
	{"FMHH24", "%-H"},
	{"FMDay", "%A"},
	{"HH24", "%H"},
	{"HH12", "%I"},
	{"YYYY", "%Y"},
	{"IYYY", "%G"},
	{"FMMM", "%-m"},
	{"FMDD", "%-d"},
	{"DDD", "%j"},
	{"Mon", "%b"},
	{"Dy", "%a"},
	{"HH", "%I"},
	{"MI", "%M"},
	{"SS", "%S"},
	{"MS", "%g"},
	{"US", "%f"},
	{"MM", "%m"},
	{"DD", "%d"},
	{"YY", "%y"},
	{"IW", "%V"},
	{"AM", "%p"},
	{"PM", "%p"},
	{"ID", "%u"},
}

// toChar analyses to_char of dates and times with a constant format.
func (a *analyzer) toChar(args []expr, _ *pg.FuncCall, _ *scope) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1}
	if len(args) != 2 {
		return out, noFunction("to_char", args, false)
	}
	if !isDateLike(args[0].typ.OID) || args[1].lit == nil {
		return out, unsupported("to_char is supported for dates and timestamps with a constant format")
	}
	f := *args[1].lit
	var b strings.Builder
	for len(f) > 0 {
		if f[0] == '"' {
			end := strings.IndexByte(f[1:], '"')
			if end < 0 {
				end = len(f) - 1
			}
			b.WriteString(strings.ReplaceAll(f[1:1+end], "%", "%%"))
			f = f[min(len(f), end+2):]
			continue
		}
		if c := f[0]; (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			b.WriteString(strings.ReplaceAll(string(c), "%", "%%"))
			f = f[1:]
			continue
		}
		i := slices.IndexFunc(charPatterns, func(p charPattern) bool { return strings.HasPrefix(f, p.postgres) })
		if i < 0 {
			return out, unsupported("to_char format \"%s\" is not supported", *args[1].lit)
		}
		b.WriteString(charPatterns[i].engine)
		f = f[len(charPatterns[i].postgres):]
	}
	e := args[0]
	if e.typ.OID == OIDTimestamptz {
		e.sql = "CAST(" + e.sql + " AS TIMESTAMP)"
	}
	out.sql = "strftime(" + e.sql + ", " + quote.Text(b.String()) + ")"
	return out, nil
}
