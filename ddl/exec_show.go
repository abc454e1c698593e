package ddl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

var discoverColumns = []Column{
	{"table", oidText},
	{"column", oidText},
	{"path", oidText},
	{"type", oidText},
	{"nullable", oidBool},
	{"key", oidBool},
	{"source_type", oidText},
	{"policy", oidText},
	{"rows_estimate", oidInt8},
	{"reason", oidText},
	{"notes", oidText}, // what is not taken in of a table that is
}

// discover lists what a pipeline or a connection would take in.
func (x *Executor) discover(ctx context.Context, s *Discover) (*Result, error) {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	sel := catalog.TableSelection{AllTables: true}
	name := s.Name
	if s.Object == "PIPELINE" {
		p, err := snap.Pipeline(s.Name)
		if err != nil {
			return nil, notFound("pipeline", s.Name)
		}
		sel, name = p.Selection, p.Connection
	}
	c, err := snap.Connection(name)
	if err != nil {
		return nil, notFound("connection", name)
	}
	found, err := x.Controller.Discover(ctx, c, sel)
	if err != nil {
		return nil, err
	}
	r := &Result{Columns: discoverColumns}
	for _, d := range found {
		row := []any{
			d.Schema + "." + d.Table, orNull(d.Column), orNull(d.Column), orNull(d.LakeType), !d.NotNull, d.Key,
			orNull(d.SourceType), orNull(d.Policy), nil, orNull(d.Unsupported),
			orNull(strings.Join(d.Notes, "; ")),
		}
		if d.EstimatedRows >= 0 {
			row[8] = d.EstimatedRows
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

var syncColumns = []Column{
	{"table", oidText}, {"state", oidText}, {"rows", oidInt8}, {"bytes", oidInt8}, {"lag_seconds", oidFloat8},
}

// sync runs a pipeline until it has caught up, telling progress as NOTICEs. One that
// was disabled or paused is so again afterwards.
func (x *Executor) sync(ctx context.Context, s *Sync, session Session) (r *Result, err error) {
	snap := x.Catalog.Snapshot()
	p, err := snap.Pipeline(s.Name)
	snap.Close()
	if err != nil {
		return nil, notFound("pipeline", s.Name)
	}
	if !p.Enabled || p.Paused {
		if err := x.start(ctx, p, Enable, session); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, x.stopAgain(context.WithoutCancel(ctx), p, session)) }()
	}
	told := ""
	synced, err := x.Controller.Sync(ctx, s.Name, s.For, func(line string) {
		if line != told { // what is in the way is said once
			_ = session.Notice(pgerr.Notice("%s", line)) // a client that is gone ends ctx
		}
		told = line
	})
	if err != nil {
		return nil, err
	}
	r = &Result{Columns: syncColumns}
	for _, t := range synced {
		r.Rows = append(r.Rows, []any{t.Table, t.State, t.Rows, t.Bytes, t.LagSeconds})
	}
	return r, nil
}

// stopAgain puts a pipeline back to the rest it was in before a SYNC.
func (x *Executor) stopAgain(ctx context.Context, p *catalog.Pipeline, session Session) error {
	action := Disable
	if p.Paused {
		action = Pause
	}
	return x.rest(ctx, p.Name, action, session)
}

var showColumns = map[string][]Column{
	"PIPELINES": {
		{"pipeline", oidText},
		{"state", oidText},
		{"reason", oidText},
		{"connection", oidText},
		{"schema", oidText},
		{"tables", oidInt8},
		{"position", oidText},
		{"lag_seconds", oidFloat8},
		{"created_at", oidTimestampTZ},
	},
	"PIPELINE": {
		{"table", oidText},
		{"state", oidText},
		{"reason", oidText},
		{"hint", oidText},
		{"source_table", oidText},
		{"backfill_percent", oidFloat8},
		{"lake_rows", oidInt8},
		{"live_rows", oidInt8},
	},
	"STATS": {
		{"table", oidText},
		{"inserts", oidInt8},
		{"updates", oidInt8},
		{"deletes", oidInt8},
		{"backfill_rows", oidInt8},
		{"backfill_rows_per_second", oidFloat8},
		{"last_commit_at", oidTimestampTZ},
	},
	"CONNECTIONS": {{"connection", oidText}, {"kind", oidText}, {"options", oidText}, {"created_at", oidTimestampTZ}},
	"SECRETS":     {{"secret", oidText}, {"source", oidText}, {"created_at", oidTimestampTZ}},
	"DOCS":        {{"object", oidText}, {"option", oidText}, {"type", oidText}, {"default", oidText}, {"help", oidText}},
}

// show lists objects from the catalog.
func (x *Executor) show(s *Show, session Session) (*Result, error) {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	r := &Result{Columns: showColumns[s.What]}
	a := access{book: x.Catalog.Rights(), role: session.Role(), snap: snap}
	var err error
	switch s.What {
	case "PIPELINES":
		for _, p := range snap.Pipelines() {
			if a.watches(p.Name) != nil {
				continue
			}
			r.Rows = append(r.Rows, x.pipelineRow(snap, p))
		}
	case "PIPELINE":
		r.Rows, err = x.tableRows(snap, s.Name)
	case "STATS":
		r.Rows, err = x.statsRows(snap, s)
	case "CONNECTIONS":
		for _, c := range snap.Connections() {
			if a.owns("connection", c.Name) != nil {
				continue
			}
			r.Rows = append(r.Rows, []any{c.Name, c.Kind, ShownOptions(c), c.CreatedAt})
		}
	case "SECRETS":
		for _, c := range snap.Secrets() {
			if a.owns("secret", c.Name) != nil {
				continue
			}
			r.Rows = append(r.Rows, []any{c.Name, c.Source, c.CreatedAt})
		}
	case "DOCS":
		r.Rows = docRows()
	}
	return r, err
}

func (x *Executor) pipelineRow(snap *catalog.Snapshot, p *catalog.Pipeline) []any {
	row := []any{
		p.Name, string(p.State), orNull(p.Reason), p.Connection, p.TargetSchema, int64(len(snap.Tables(p.ID))), nil, nil, p.CreatedAt,
	}
	if o, err := snap.Offset(p.ID); err == nil && o.Position != "" {
		row[6] = string(o.Position)
	}
	if st, ok := x.Controller.Status(p.Name); ok {
		row[1], row[2], row[7] = st.State, orNull(st.Reason), st.LagSeconds
	}
	return row
}

func (x *Executor) tableRows(snap *catalog.Snapshot, name string) ([][]any, error) {
	p, err := snap.Pipeline(name)
	if errors.Is(err, catalog.ErrPipelineNotFound) {
		return nil, notFound("pipeline", name)
	}
	if err != nil {
		return nil, err
	}
	status, _ := x.Controller.Status(name)
	var out [][]any
	for _, t := range snap.Tables(p.ID) {
		var live int64
		slices, err := snap.LiveSlices(t.ID)
		if err != nil {
			return nil, err
		}
		for _, s := range slices {
			live += int64(s.Rows)
		}
		row := []any{
			t.Schema + "." + t.Name, string(t.State), orNull(t.Reason), orNull(t.Hint),
			t.SourceSchema + "." + t.SourceName, nil, snap.LakeState(t.ID).Rows, live,
		}
		for _, ts := range status.Tables {
			if ts.Schema == t.Schema && ts.Name == t.Name {
				row[1] = ts.State
				row[2], row[3], row[5] = orNull(ts.Reason), orNull(ts.Hint), ts.Backfill.Percent
			}
		}
		out = append(out, row)
	}
	return out, nil
}

func (x *Executor) statsRows(snap *catalog.Snapshot, s *Show) ([][]any, error) {
	if _, err := snap.Pipeline(s.Name); err != nil {
		return nil, notFound("pipeline", s.Name)
	}
	status, _ := x.Controller.Status(s.Name)
	var out [][]any
	for _, t := range status.Tables {
		if s.Table != "" && s.Table != t.Name {
			continue
		}
		var last any
		if !t.LastCommitAt.IsZero() {
			last = t.LastCommitAt
		}
		out = append(out, []any{
			t.Schema + "." + t.Name, t.Inserts, t.Updates, t.Deletes, t.Backfill.Rows, t.Backfill.RowsPerSecond, last,
		})
	}
	return out, nil
}

// ShownOptions renders a connection's options as they may be shown: never a secret.
func ShownOptions(c *catalog.Connection) string {
	var parts []string
	for k, v := range c.Options {
		parts = append(parts, fmt.Sprintf("%s %s", k, quote.Text(v)))
	}
	for k, v := range c.Secrets {
		parts = append(parts, fmt.Sprintf("%s SECRET %s", k, quote.NameIfNeeded(v)))
	}
	for k := range c.Sealed {
		parts = append(parts, fmt.Sprintf("%s '********'", k))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func docRows() [][]any {
	var out [][]any
	add := func(object string, docs []OptionDoc) {
		for _, d := range docs {
			out = append(out, []any{object, d.Name, d.Type, d.Default, d.Help})
		}
	}
	add("PIPELINE", pipelineDocs)
	kinds := make([]string, 0, len(connectionOptions))
	for k := range connectionOptions {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		add("CONNECTION TO "+strings.ToUpper(k), connectionOptions[k])
	}
	return out
}

// GetDDL renders the statement that makes an object (skippr.get_ddl). kind is
// pipeline, connection or secret. A secret's value is never part of it.
func GetDDL(snap *catalog.Snapshot, kind, name string) (string, error) {
	switch kind {
	case "secret":
		s, err := snap.Secret(name)
		if err != nil {
			return "", notFound(kind, name)
		}
		source := s.Source
		if source == "literal" {
			source = "********"
		}
		return fmt.Sprintf("CREATE SECRET %s AS %s;", quote.NameIfNeeded(name), quote.Text(source)), nil
	case "connection":
		c, err := snap.Connection(name)
		if err != nil {
			return "", notFound(kind, name)
		}
		return fmt.Sprintf("CREATE CONNECTION %s TO %s (%s);", quote.NameIfNeeded(name), strings.ToUpper(c.Kind), ShownOptions(c)), nil
	case "pipeline":
		p, err := snap.Pipeline(name)
		if err != nil {
			return "", notFound(kind, name)
		}
		return pipelineDDL(snap, p), nil
	}
	return "", fmt.Errorf("get_ddl: unknown kind %q", kind)
}

func pipelineDDL(snap *catalog.Snapshot, p *catalog.Pipeline) string {
	var b strings.Builder
	from := quote.NameIfNeeded(p.Connection)
	if c, err := snap.Connection(p.Connection); err == nil && c.Implicit {
		from = fmt.Sprintf("%s (%s)", strings.ToUpper(c.Kind), ShownOptions(c))
	}
	fmt.Fprintf(&b, "CREATE PIPELINE %s FROM %s", quote.NameIfNeeded(p.Name), from)
	if p.TargetSchema != p.Name {
		fmt.Fprintf(&b, " SCHEMA %s", quote.Text(p.TargetSchema))
	}
	b.WriteString(selectionDDL(p.Selection))
	var opts []string
	for k, v := range p.Options {
		opts = append(opts, k+" = "+quote.Text(v))
	}
	if !p.Enabled {
		opts = append(opts, "start = 'false'")
	}
	slices.Sort(opts)
	if len(opts) > 0 {
		fmt.Fprintf(&b, " WITH (%s)", strings.Join(opts, ", "))
	}
	b.WriteString(";")
	return b.String()
}

func selectionDDL(sel catalog.TableSelection) string {
	out := ""
	switch {
	case sel.AllTables:
		out = " FOR ALL TABLES"
	case len(sel.Schemas) > 0:
		out = " FOR TABLES IN SCHEMA " + identList(sel.Schemas)
	}
	if len(sel.Except) > 0 {
		var parts []string
		for _, e := range sel.Except {
			schema, name, _ := strings.Cut(e, ".")
			parts = append(parts, quote.NameIfNeeded(schema)+"."+quote.NameIfNeeded(name))
		}
		out += " EXCEPT " + strings.Join(parts, ", ")
	}
	var tables []string
	for _, t := range sel.Tables {
		one := quote.NameIfNeeded(t.Schema) + "." + quote.NameIfNeeded(t.Name)
		one += columnsDDL(t)
		if len(t.Except) > 0 {
			one += " EXCEPT (" + identList(t.Except) + ")"
		}
		switch {
		case strings.Contains(t.Where, "--"): // which may be a comment up to the line's end
			one += " WHERE (" + t.Where + "\n)"
		case t.Where != "":
			one += " WHERE (" + t.Where + ")"
		}
		tables = append(tables, one)
	}
	if len(tables) > 0 {
		out += " FOR TABLE " + strings.Join(tables, ", ")
	}
	return out
}

// columnsDDL is the column list of a table, "" for none.
func columnsDDL(t catalog.SelectedTable) string {
	var out []string
	if len(t.Columns) == 0 && len(t.AsText) > 0 {
		out = append(out, "*")
	}
	for _, c := range t.Columns {
		if !slices.Contains(t.AsText, c) {
			out = append(out, quote.NameIfNeeded(c))
		} else {
			out = append(out, quote.NameIfNeeded(c)+" AS text")
		}
	}
	for _, c := range t.AsText {
		if len(t.Columns) == 0 {
			out = append(out, quote.NameIfNeeded(c)+" AS text")
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

func identList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote.NameIfNeeded(n)
	}
	return strings.Join(out, ", ")
}
