package pgsql

import (
	"fmt"
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// EffectArg is an argument of an EffectCall: a text, or SQL that the engine computes first.
type EffectArg struct {
	Text *string
	SQL  string
}

// effectCalls are the functions that the session does itself, with the types of their
// arguments and what they return.
var effectCalls = map[string]struct {
	args   [][]uint32
	result uint32
}{
	"pg_notify":                        {[][]uint32{{OIDText, OIDText}}, OIDVoid},
	"pg_advisory_lock":                 {advisoryKeys, OIDVoid},
	"pg_advisory_lock_shared":          {advisoryKeys, OIDVoid},
	"pg_advisory_xact_lock":            {advisoryKeys, OIDVoid},
	"pg_advisory_xact_lock_shared":     {advisoryKeys, OIDVoid},
	"pg_try_advisory_lock":             {advisoryKeys, OIDBool},
	"pg_try_advisory_lock_shared":      {advisoryKeys, OIDBool},
	"pg_try_advisory_xact_lock":        {advisoryKeys, OIDBool},
	"pg_try_advisory_xact_lock_shared": {advisoryKeys, OIDBool},
	"pg_advisory_unlock":               {advisoryKeys, OIDBool},
	"pg_advisory_unlock_shared":        {advisoryKeys, OIDBool},
	"pg_advisory_unlock_all":           {[][]uint32{{}}, OIDVoid},
}

var advisoryKeys = [][]uint32{{OIDInt8}, {OIDInt4, OIDInt4}}

// effectCall analyses a call that the session does once, before the statement runs: it must
// be of a SELECT without FROM, whose row it is of.
func (a *analyzer) effectCall(name string, args []expr, n *pg.FuncCall, s *scope) (expr, error) {
	f := effectCalls[name]
	i := slices.IndexFunc(f.args, func(types []uint32) bool {
		return len(types) == len(args) && !slices.ContainsFunc(args, func(e expr) bool {
			return !e.undecided() && !canCoerce(e.typ.OID, types[0], implicit)
		})
	})
	if i < 0 {
		return expr{}, noFunction(name, args, false)
	}
	if s == nil || s.parent != nil || len(s.items) > 0 {
		return expr{}, a.errAt(n.Location, unsupported("%s in a query with a FROM, or in a part of one, is not supported", name))
	}
	if a.maybe > 0 {
		return expr{}, a.errAt(n.Location, unsupported("%s is not supported here", name).
			WithDetail("It would be called though what is around it may not need its value."))
	}
	call := Effect{Kind: EffectCall, Name: name, Mark: fmt.Sprintf("\x01effect%d\x01", len(a.effects))}
	for k, e := range args {
		arg, err := a.effectArg(e, f.args[i][k])
		if err != nil {
			return expr{}, err
		}
		call.Args = append(call.Args, arg)
	}
	a.effects = append(a.effects, call)
	return expr{typ: plain(f.result), scale: -1, sql: call.Mark}, nil
}

// setConfig analyses set_config. With constants it may stand anywhere; with arguments that are
// computed it must be of a SELECT without FROM, as those of effectCall.
func (a *analyzer) setConfig(args []expr, n *pg.FuncCall, s *scope) (expr, error) {
	out := expr{typ: plain(OIDText), scale: -1, con: true}
	types := []uint32{OIDText, OIDText, OIDBool}
	if len(args) != len(types) || slices.ContainsFunc(args, func(e expr) bool { return e.sql == "" && !e.undecided() }) {
		return out, noFunction("set_config", args, false)
	}
	for i, e := range args {
		if !e.undecided() && !canCoerce(e.typ.OID, types[i], implicit) {
			return out, noFunction("set_config", args, false)
		}
	}
	local, err := a.coerce(args[2], plain(OIDBool), implicit)
	if err != nil {
		return out, err
	}
	e := Effect{Kind: EffectSetConfig, Mark: fmt.Sprintf("\x01effect%d\x01", len(a.effects))}
	if args[0].lit != nil {
		e.Name = *args[0].lit
	}
	switch {
	case args[0].lit != nil && args[1].lit != nil && (local.sql == "true" || local.sql == "false"):
		e.Value, e.Local = *args[1].lit, local.sql == "true"
	case s != nil && s.parent == nil && len(s.items) == 0 && a.maybe == 0:
		for k, oid := range types {
			arg, err := a.effectArg(args[k], oid)
			if err != nil {
				return out, err
			}
			e.Args = append(e.Args, arg)
		}
		out.con = false
	case args[0].undecided():
		return out, a.errAt(n.Location, unsupported("set_config needs constant arguments"))
	default: // for no rows, as of a setting that is looked for and not there, there is nothing to do
		out.con = false
		out.sql = "CASE WHEN " + args[0].sql + " IS NULL OR " + args[0].sql +
			" IS NOT NULL THEN CAST(error('0A000: set_config needs constant arguments') AS VARCHAR) END"
		return out, nil
	}
	a.effects, out.sql = append(a.effects, e), e.Mark
	return out, nil
}

// stagedEffect analyses a query with a FROM that selects nothing but such a call.
func stagedEffect(sql string, sel *pg.SelectStmt, f *pg.FuncCall, params []uint32, env *Env) (*Analysis, error) {
	name := callName(f)
	a := &analyzer{env: env, sql: sql}
	known := effectCalls[name]
	i := slices.IndexFunc(known.args, func(types []uint32) bool { return len(types) == len(f.Args) })
	if i < 0 || len(f.Args) == 0 {
		return nil, a.errAt(f.Location, unsupported("%s with %d arguments in a query with a FROM is not supported", name, len(f.Args)))
	}
	list, names := sel.TargetList, map[uint32]string{OIDText: "text", OIDInt8: "int8", OIDInt4: "int4"}
	defer func() { sel.TargetList = list }() // the statement may be analysed again
	sel.TargetList = nil
	open := make([]bool, len(f.Args))
	for k, arg := range f.Args {
		if open[k] = arg.GetAConst() != nil || arg.GetParamRef() != nil; open[k] {
			arg = castNode(arg, names[known.args[i][k]])
		}
		sel.TargetList = append(sel.TargetList, pg.MakeResTargetNodeWithVal(arg, -1))
	}
	st := &Stage{Kind: EffectCall, Name: name}
	var err error
	if st.Rows, err = AnalyzeSelect(sql, sel, params, env); err != nil {
		return nil, err
	}
	for k, c := range st.Rows.Columns {
		if !open[k] && !canCoerce(c.Type.OID, known.args[i][k], implicit) {
			var args []expr
			for _, c := range st.Rows.Columns {
				args = append(args, expr{typ: c.Type})
			}
			return nil, a.errAt(f.Location, noFunction(name, args, false))
		}
	}
	if label := list[0].GetResTarget().GetName(); label != "" {
		name = label
	}
	engine := "VARCHAR"
	if known.result == OIDBool {
		engine = "BOOLEAN"
	}
	return &Analysis{
		SQL: "SELECT CAST(v AS " + engine + ") FROM (VALUES " + StageMark + ") AS s(v)", Stage: st, Params: st.Rows.Params,
		Columns: []OutputColumn{{Name: name, Type: plain(known.result)}},
	}, nil
}

func (a *analyzer) effectArg(e expr, oid uint32) (EffectArg, error) {
	switch {
	case e.null:
		return EffectArg{}, nil
	case e.lit != nil && oid == OIDText:
		return EffectArg{Text: e.lit}, nil
	case e.num != nil:
		text := strconv.FormatInt(*e.num, 10)
		return EffectArg{Text: &text}, nil
	}
	d, err := a.coerce(e, plain(oid), implicit)
	if err != nil {
		return EffectArg{}, err
	}
	return EffectArg{SQL: "CAST(" + d.sql + " AS VARCHAR)"}, nil
}

// listeningChannels is pg_listening_channels(): its rows are those of an array that the
// session puts in place.
func (a *analyzer) listeningChannels(n *pg.FuncCall) (expr, error) {
	if len(n.Args) > 0 {
		return expr{}, noFunction("pg_listening_channels", nil, false)
	}
	mark := fmt.Sprintf("\x01effect%d\x01", len(a.effects))
	a.effects = append(a.effects, Effect{Kind: EffectChannels, Mark: mark})
	list := expr{typ: plain(1009), scale: -1, sql: "CAST(" + mark + " AS VARCHAR[])"}
	out, err := a.callNamed("unnest", []expr{list}, n.Location)
	out.name = "pg_listening_channels"
	return out, err
}
