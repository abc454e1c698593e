package planner

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/render"
	"github.com/skipprd/skipprd/wal/change"
)

type explainOptions struct {
	analyze, verbose bool
	costs, timing    bool
	summary          *bool  // nil as ANALYZE
	format           string // text, json, xml or yaml
}

// tree says whether the answer has the plan as PostgreSQL's tree.
func (o explainOptions) tree() bool { return o.format != "" && o.format != "text" }

// summed says whether the answer has the times of planning and of the whole.
func (o explainOptions) summed() bool {
	return o.summary == nil && o.analyze || o.summary != nil && *o.summary
}

func (o explainOptions) shown() render.Options {
	return render.Options{Costs: o.costs, Timing: o.timing, Verbose: o.verbose}
}

// prepareExplain prepares EXPLAIN.
func (s *session) prepareExplain(sql string, n *pg.ExplainStmt, types []uint32) (pgwire.Statement, error) {
	opts, err := parseExplainOptions(n.Options)
	if err != nil {
		return nil, err
	}
	oid := map[string]uint32{"json": pgsql.OIDJSON, "xml": oidXML}[opts.format]
	if oid == 0 {
		oid = pgsql.OIDText
	}
	e := &explainStatement{session: s, options: opts, columns: []pgwire.Column{column("QUERY PLAN", oid)}}
	query := n.Query
	if x := query.GetExecuteStmt(); x != nil {
		return e, s.explainExecute(e, sql, x)
	}
	into := query.GetSelectStmt().GetIntoClause()
	made := &pg.CreateTableAsStmt{Query: query, Into: into, Objtype: pg.ObjectType_OBJECT_TABLE}
	if c := query.GetCreateTableAsStmt(); c != nil {
		made, query, into = c, c.Query, c.Into
	}
	if into != nil && opts.analyze {
		e.name = into.Rel.GetRelname()
		if e.made, err = s.prepareMade(sql, made); err != nil {
			return nil, err
		}
	}
	sel, word := query.GetSelectStmt(), writeWord(query)
	switch {
	case sel != nil && word == "":
		sel.IntoClause = nil
		e.query, err = s.prepareQuery(sql, sel, types)
	case word != "":
		e.write, err = s.prepareWrite(&pgsql.Parsed{SQL: sql, Node: query}, types, word)
	default:
		return nil, s.refuse(query)
	}
	return e, err
}

// oidXML is the type of EXPLAIN's answer in XML.
const oidXML = 142

// explainExecute has EXPLAIN look at a prepared statement, with its values.
func (s *session) explainExecute(e *explainStatement, sql string, n *pg.ExecuteStmt) error {
	st, err := s.prepareExecute(context.Background(), sql, n)
	if err != nil {
		return err
	}
	x, ok := st.(*executeStatement)
	if ok {
		e.values = x.values
		if e.values == nil {
			e.values = [][]byte{}
		}
		e.query, _ = x.Statement.(*queryStatement)
		e.write, _ = x.Statement.(*writeStatement)
	}
	if e.query == nil && e.write == nil { // EXECUTE runs anything that a client has prepared
		return pgerr.New(codes.FeatureNotSupported, "EXPLAIN of prepared statement \"%s\" is not supported", n.Name)
	}
	return nil
}

func parseExplainOptions(list []*pg.Node) (explainOptions, error) {
	o := explainOptions{costs: true, timing: true}
	for _, n := range list {
		d := n.GetDefElem()
		v := strings.ToLower(defText(d))
		on, isBool := defBool(v)
		switch d.Defname {
		case "format":
			switch v {
			case "text", "json", "xml", "yaml":
				o.format = v
			default:
				return o, pgerr.New(codes.InvalidParameterValue, "unrecognized value for EXPLAIN option \"format\": \"%s\"", v)
			}
			continue
		case "analyze":
			o.analyze = on
		case "verbose":
			o.verbose = on
		case "costs":
			o.costs = on
		case "timing":
			o.timing = on
		case "summary":
			o.summary = &on
		case "buffers", "settings", "wal", "generic_plan":
		default:
			return o, pgerr.New(codes.Syntax, "unrecognized EXPLAIN option \"%s\"", d.Defname)
		}
		if !isBool {
			return o, pgerr.New(codes.Syntax, "%s requires a Boolean value", d.Defname)
		}
	}
	return o, nil
}

// explainStatement is EXPLAIN of a query, or of a statement that writes: the other is nil.
type explainStatement struct {
	session *session
	query   *queryStatement
	write   *writeStatement
	// values are those of a prepared statement; made is a statement that makes a table of the
	// query's rows, by the name name, which ANALYZE runs.
	values  [][]byte
	made    pgwire.Statement
	name    string
	options explainOptions
	columns []pgwire.Column
}

// Empty implements pgwire.Statement.
func (*explainStatement) Empty() bool { return false }

// Params implements pgwire.Statement.
func (e *explainStatement) Params() []uint32 {
	if e.values != nil {
		return nil
	}
	return e.types()
}

// types are the parameters of what is explained.
func (e *explainStatement) types() []uint32 {
	if e.write != nil {
		return e.write.Params()
	}
	return e.query.Params()
}

// Columns implements pgwire.Statement.
func (e *explainStatement) Columns() []pgwire.Column { return e.columns }

// AllowedInAborted implements pgwire.Statement.
func (*explainStatement) AllowedInAborted() bool { return false }

// Bind implements pgwire.Statement.
func (e *explainStatement) Bind(_ context.Context, values [][]byte, formats, resultFormats []int16) (pgwire.Portal,
	error,
) {
	if e.values != nil {
		values, formats = e.values, nil
	}
	params, err := decodeParams(e.session.input(), e.types(), values, formats)
	if err != nil {
		return nil, err
	}
	s := e.session
	u := &utility{session: s, columns: e.columns, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		explain := s.explain
		switch {
		case e.write != nil:
			explain = s.explainWrite
		case e.made != nil:
			explain = func(ctx context.Context, e *explainStatement, params []*string) (*result, error) {
				return s.explainMade(ctx, e, params, sink)
			}
		}
		r, err := explain(ctx, e, params)
		if err != nil {
			return nil, clientError(ctx, err)
		}
		return r, nil
	}}
	return &utilityPortal{utility: u, formats: resultFormats}, nil
}

func (s *session) explain(ctx context.Context, e *explainStatement, params []*string) (*result, error) {
	if err := e.query.refresh(); err != nil {
		return nil, err
	}
	var out *result
	defer func() { s.seen = nil }()
	err := e.query.pinned(func(a *pgsql.Analysis) (err error) {
		if !e.options.analyze {
			a = still(a, a.Effects)
		} else if a, err = s.act(ctx, a, params); err != nil {
			return err
		}
		x, err := s.explainAnalysis(ctx, e.options, a, params)
		if err == nil {
			out, err = explained(x, e.options.format)
		}
		return err
	})
	return out, err
}

// still is a query without its calls that act on the server, with null for their results.
func still(a *pgsql.Analysis, calls []pgsql.Effect) *pgsql.Analysis {
	if a.Stage != nil {
		return a.Stage.Rows
	}
	out := *a
	out.Locks = nil
	for _, l := range a.Locks {
		if l.Mark != "" {
			out.SQL = strings.ReplaceAll(out.SQL, l.Mark, "true")
		}
	}
	for _, e := range calls {
		if e.Mark != "" {
			out.SQL = strings.ReplaceAll(out.SQL, e.Mark, "NULL")
		}
	}
	return &out
}

// explainWrite explains how the rows that a statement writes are found, and with ANALYZE has it
// write them.
func (s *session) explainWrite(ctx context.Context, e *explainStatement, params []*string) (*result, error) {
	w, options := e.write, e.options
	if err := w.refresh(); err != nil {
		return nil, err
	}
	if len(w.analysis.With) > 0 {
		return nil, pgerr.New(codes.FeatureNotSupported, "EXPLAIN of data-modifying statements in WITH is not supported")
	}
	if err := s.mayWrite(w.analysis, w.word); err != nil {
		return nil, err
	}
	summed := options.summed()
	options.analyze, options.summary = false, &summed // it would read the rows, and then once more
	x, err := s.explainAnalysis(ctx, options, still(w.analysis.Rows, w.analysis.Effects), params)
	if err != nil {
		return nil, err
	}
	words := map[string]string{"INSERT": "Insert", "UPDATE": "Update", "DELETE": "Delete", "MERGE": "Merge"}
	r := w.analysis.Relation
	x.Write = words[w.word] + " on " + quote.NameIfNeeded(r.Name)
	if e.options.analyze {
		portal := &writePortal{queryPortal: &queryPortal{session: s, columns: w.columns, params: params}, statement: w}
		defer portal.Close()
		started := s.engine.deps.Clock.Now()
		if err := portal.write(ctx); err != nil {
			return nil, err
		}
		if e.options.summed() {
			x.Executed = millis(s.engine.deps.Clock.Since(started))
		}
		x.Written = &portal.count
	}
	if x.Tree != nil {
		x.Tree = render.Modify(x.Tree, words[w.word], r.Schema, r.Name, options.shown(), x.Written)
	}
	return explained(x, options.format)
}

// explainMade explains how the rows of a table that is made are found, and makes it.
func (s *session) explainMade(ctx context.Context, e *explainStatement, params []*string, sink pgwire.Sink) (*result, error) {
	if err := e.query.refresh(); err != nil {
		return nil, err
	}
	options := e.options
	summed := options.summed()
	options.analyze, options.summary = false, &summed // it would read the rows, and then once more
	x, err := s.explainAnalysis(ctx, options, still(e.query.analysis, e.query.analysis.Effects), params)
	if err != nil {
		return nil, err
	}
	portal, err := e.made.Bind(ctx, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	defer portal.Close()
	started := s.engine.deps.Clock.Now()
	tag, _, err := portal.Execute(ctx, sink, 0)
	if err != nil {
		return nil, err
	}
	if e.options.summed() {
		x.Executed = millis(s.engine.deps.Clock.Since(started))
	}
	x.Write = "Create " + quote.NameIfNeeded(e.name)
	rows := 0
	_, _ = fmt.Sscanf(tag, "SELECT %d", &rows) // none, when the table was there or gets none
	x.Written = &rows
	if x.Tree != nil {
		x.Tree.Wrote(&rows)
	}
	return explained(x, options.format)
}

func (s *session) explainAnalysis(ctx context.Context, options explainOptions, a *pgsql.Analysis, params []*string) (*render.Answer,
	error,
) {
	if err := s.awaitPosition(ctx, a); err != nil {
		return nil, err
	}
	began := s.engine.deps.Clock.Now()
	snap, release := s.snapshot()
	defer release()
	out := duckdb.Output{Kind: duckdb.OutputRows, Format: s.format(), Columns: []duckdb.OutputColumn{
		{Name: "explain_key", TypeOID: pgsql.OIDText, TypMod: -1}, {
			Name: "explain_value", TypeOID: pgsql.OIDText,
			TypMod: -1,
		},
	}}
	plan, err := s.plan(ctx, snap, a, params, out)
	if err != nil {
		return nil, err
	}
	defer plan.holds.release()
	x := &render.Answer{Pin: render.Pin{Repeatable: s.repeatable()}}
	if err := s.explainPin(snap, plan.pins, &x.Pin); err != nil {
		return nil, err
	}
	if options.verbose {
		x.SQL = plan.SQL
	}
	plan.SQL = options.engine() + plan.SQL
	started := s.engine.deps.Clock.Now()
	if options.summed() {
		x.Planning = millis(started.Sub(began))
	}
	if x.Plan, err = s.enginePlan(ctx, plan.Plan); err != nil {
		return nil, err
	}
	if options.analyze {
		if options.summed() {
			x.Executed = millis(s.engine.deps.Clock.Since(started))
		}
	}
	if options.tree() {
		shown := options.shown()
		shown.Schema, shown.Relation = onlyRelation(a)
		if x.Tree, err = render.Tree([]byte(strings.Join(x.Plan, "\n")), shown); err != nil {
			return nil, fmt.Errorf("explain: %w", err)
		}
	}
	return x, nil
}

// engine is the statement of the engine that shows the plan.
func (o explainOptions) engine() string {
	switch {
	case o.tree() && o.analyze:
		return "EXPLAIN (ANALYZE, FORMAT json) "
	case o.tree():
		return "EXPLAIN (FORMAT json) "
	case o.analyze:
		return "EXPLAIN ANALYZE "
	}
	return "EXPLAIN "
}

// onlyRelation is the only relation that a query reads, none if it reads several.
func onlyRelation(a *pgsql.Analysis) (schema, name string) {
	for i, u := range a.Uses {
		if r := u.Relation; i > 0 && (r.Schema != schema || r.Name != name) {
			return "", ""
		}
		schema, name = u.Relation.Schema, u.Relation.Name
	}
	return schema, name
}

// explainPin says what the pin holds: where the logs stood and what each table reads.
func (s *session) explainPin(snap *catalog.Snapshot, pins []pinned, x *render.Pin) error {
	seen := map[change.PipelineID]bool{}
	for _, p := range pins {
		if p.systemRelation {
			continue
		}
		x.Tables = append(x.Tables, render.Table{
			Table: p.name, Snapshot: p.snapshot, Files: p.files, Pruned: p.pruned, LakeRows: p.lakeRows,
			DeleteFiles: p.deleteFiles, Slices: p.slices, LiveChanges: p.liveRows, Compare: p.compareTokens,
			Predicate: p.predicate,
		})
		if seen[p.pipeline] || p.pipeline == 0 { // of the session itself
			continue
		}
		seen[p.pipeline] = true
		off, err := snap.Offset(p.pipeline)
		if err != nil {
			return fmt.Errorf("explain: %w", err)
		}
		src := render.Source{Log: fmt.Sprintf("%d:%d", uint64(off.Seq), off.End), Source: string(off.Position)}
		if pl, err := snap.PipelineByID(p.pipeline); err == nil {
			src.Pipeline = pl.Name
		}
		if !off.CommittedAt.IsZero() {
			sec := lag(s.engine.deps.Clock.Now(), off.CommittedAt).Seconds()
			src.Lag = &sec
		}
		x.Pipelines = append(x.Pipelines, src)
	}
	return nil
}

// enginePlan runs an EXPLAIN of the engine and returns the lines of its text.
func (s *session) enginePlan(ctx context.Context, plan *duckdb.Plan) ([]string, error) {
	rows, frame, err := runPlan(ctx, s.engine.deps.Runner, plan)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines []string
	for frame != nil {
		for d := frame.Data; len(d) > 0; {
			n := 1 + int(binary.BigEndian.Uint32(d[1:]))
			fields := rowFields(d[7:n])
			d = d[n:]
			if len(fields) == 2 {
				lines = append(lines, strings.Split(strings.TrimRight(fields[1], "\n"), "\n")...)
			}
		}
		f, err := rows.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		frame = &f
	}
	return lines, nil
}

// rowFields reads the text fields of a DataRow's body.
func rowFields(d []byte) []string {
	var out []string
	for len(d) >= 4 {
		n := int32(binary.BigEndian.Uint32(d))
		d = d[4:]
		if n < 0 {
			out = append(out, "")
			continue
		}
		out = append(out, string(d[:n]))
		d = d[n:]
	}
	return out
}

// explained is the answer to the client.
func explained(x *render.Answer, format string) (*result, error) {
	rows, err := x.Rows(format)
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	r := &result{tag: "EXPLAIN"}
	for _, l := range rows {
		r.rows = append(r.rows, []any{l})
	}
	return r, nil
}

func millis(d time.Duration) *render.Millis {
	m := render.Millis(float64(d.Microseconds()) / 1000)
	return &m
}
