package pgsql

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// signals are the calls of pg_cancel_backend and pg_terminate_backend that a query selects as
// they are, so that each is made once for each of its rows.
func signals(sel *pg.SelectStmt) []*pg.FuncCall {
	if sel.Op > pg.SetOperation_SETOP_NONE || len(sel.DistinctClause) > 0 {
		return nil
	}
	var out []*pg.FuncCall
	for _, t := range sel.TargetList {
		f := t.GetResTarget().GetVal().GetFuncCall()
		if f == nil || f.Over != nil || f.AggFilter != nil || f.AggDistinct || f.AggStar || len(f.AggOrder) > 0 {
			continue
		}
		switch name := callName(f); {
		case name == "pg_cancel_backend" && len(f.Args) == 1, name == "pg_terminate_backend" && len(f.Args) > 0 && len(f.Args) <= 2:
			out = append(out, f)
		}
	}
	return out
}

// noPID is no session's, nor any integer.
const noPID = "CAST(4294967296 AS BIGINT)"

// SignalList is what stands for an effect's Mark when it was done for sessions.
func SignalList(pids []int64) string {
	list := noPID
	for _, p := range pids {
		list += fmt.Sprintf(", %d", p)
	}
	return list
}

// signal analyses such a call; its result is that the session's number is in a list that takes
// the place of the effect's mark. ok is false for any other call.
func (a *analyzer) signal(name string, args []expr, n *pg.FuncCall) (out expr, ok bool, err error) {
	if !slices.Contains(a.signals, n) {
		return out, false, nil
	}
	out = expr{typ: plain(OIDBool), scale: -1}
	types := []uint32{OIDInt4, OIDInt8}
	parts := make([]string, len(args))
	for i, e := range args {
		if !e.undecided() && !canCoerce(e.typ.OID, types[i], implicit) {
			return out, true, noFunction(name, args, false)
		}
		c, err := a.coerce(e, plain(types[i]), implicit)
		if err != nil {
			return out, true, err
		}
		parts[i] = c.sql
	}
	e := Effect{Kind: EffectCancel, Mark: fmt.Sprintf("\x01effect%d\x01", len(a.effects)), call: n}
	if name == "pg_terminate_backend" {
		e.Kind = EffectTerminate
	}
	a.effects = append(a.effects, e)
	out.sql = "(" + parts[0] + " IN (" + e.Mark + "))"
	if len(parts) > 1 {
		out.sql = "(CASE WHEN " + parts[1] + " IS NOT NULL THEN " + out.sql + " END)"
	}
	return out, true, nil
}

// signalArgs name the columns of a call's arguments in the query of them.
var signalArgs = [2]string{"\x01signal0\x01", "\x01signal1\x01"}

// SignalArgs are the columns of the arguments of a signal in the query of its rows: the
// session's number, and how long to wait, -1 for none.
func (e *Effect) SignalArgs() (pid, wait int) {
	find := func(name string) int {
		return slices.IndexFunc(e.Rows.Columns, func(c OutputColumn) bool { return c.Name == name })
	}
	return find(signalArgs[0]), find(signalArgs[1])
}

// signalRows analyses, for each such call of an analysed query, the query of its arguments: it
// is the query itself with the first of them in the call's place, so that all that refers to
// other columns finds them.
func signalRows(sql string, sel *pg.SelectStmt, out *Analysis, env *Env) error {
	list := sel.TargetList
	defer func() { sel.TargetList = list }() // the statement may be analysed again
	calls := signals(sel)
	for i := range out.Effects {
		e := &out.Effects[i]
		if e.call == nil {
			continue
		}
		sel.TargetList = nil
		for _, t := range list {
			f := t.GetResTarget().GetVal().GetFuncCall()
			switch {
			case f != nil && f == e.call:
				t = pg.MakeResTargetNodeWithNameAndVal(signalArgs[0], castNode(f.Args[0], "int4"), -1)
			case f != nil && slices.Contains(calls, f):
				t = pg.MakeResTargetNodeWithVal(pg.MakeAConstIntNode(0, -1), -1)
			}
			sel.TargetList = append(sel.TargetList, t)
		}
		if len(e.call.Args) > 1 {
			sel.TargetList = append(sel.TargetList, pg.MakeResTargetNodeWithNameAndVal(signalArgs[1], castNode(e.call.Args[1], "int8"), -1))
		}
		var err error
		if e.Rows, err = AnalyzeSelect(sql, sel, out.Params, env); err != nil {
			return err
		}
	}
	return nil
}
