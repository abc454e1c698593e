package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// copyOptions are the options of COPY TO.
type copyOptions struct {
	kind       duckdb.OutputKind
	options    duckdb.CopyOptions
	forceAll   bool
	forceQuote []string
}

// prepareCopy prepares COPY … TO STDOUT.
func (s *session) prepareCopy(sql string, n *pg.CopyStmt, types []uint32) (pgwire.Statement, error) {
	switch {
	case n.IsFrom:
		return nil, pgerr.New(codes.FeatureNotSupported, "COPY FROM is not supported").
			WithHint("Tables are filled by pipelines: see CREATE PIPELINE.")
	case n.Filename != "" || n.IsProgram:
		return nil, pgerr.New(codes.FeatureNotSupported,
			"COPY to a file or program is not supported").WithHint("Use COPY … TO STDOUT.")
	}
	opts, err := parseCopyOptions(n.Options)
	if err != nil {
		return nil, err
	}
	sel := n.Query.GetSelectStmt()
	if n.Relation != nil {
		sel = copySelect(n)
	}
	if sel == nil {
		return nil, refuse(n.Query)
	}
	q, err := s.prepareQuery(sql, sel, types)
	if err != nil {
		return nil, err
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		rows, err := s.copyOut(ctx, q, opts, sink)
		if err != nil {
			return nil, clientError(ctx, err)
		}
		return &result{tag: fmt.Sprintf("COPY %d", rows)}, nil
	}}, nil
}

// copySelect is the query that COPY table (columns) means.
func copySelect(n *pg.CopyStmt) *pg.SelectStmt {
	sel := &pg.SelectStmt{
		FromClause: []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: n.Relation}}}, Op: pg.SetOperation_SETOP_NONE,
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT,
	}
	add := func(field *pg.Node) {
		ref := pg.MakeColumnRefNode([]*pg.Node{field}, n.Relation.Location)
		sel.TargetList = append(sel.TargetList, pg.MakeResTargetNodeWithVal(ref, n.Relation.Location))
	}
	for _, a := range n.Attlist {
		add(a)
	}
	if len(n.Attlist) == 0 {
		add(pg.MakeAStarNode())
	}
	return sel
}

func parseCopyOptions(list []*pg.Node) (*copyOptions, error) {
	o := &copyOptions{kind: duckdb.OutputCopyText}
	seen := map[string]string{}
	for _, n := range list {
		d := n.GetDefElem()
		v := defText(d)
		if _, dup := seen[d.Defname]; dup {
			return nil, pgerr.New(codes.Syntax, "conflicting or redundant options")
		}
		seen[d.Defname] = v
		switch d.Defname {
		case "format":
			switch v {
			case "text":
			case "csv":
				o.kind = duckdb.OutputCopyCSV
			case "binary":
				o.kind = duckdb.OutputCopyBinary
			default:
				return nil, pgerr.New(codes.InvalidParameterValue, "COPY format \"%s\" not recognized", v)
			}
		case "header":
			on, ok := defBool(v)
			if !ok {
				return nil, pgerr.New(codes.Syntax, "header requires a Boolean value or \"match\"")
			}
			o.options.Header = on
		case "force_quote":
			if d.Arg.GetAStar() != nil {
				o.forceAll = true
			}
			for _, i := range d.Arg.GetList().GetItems() {
				o.forceQuote = append(o.forceQuote, i.GetString_().GetSval())
			}
		case "delimiter", "null", "quote", "escape":
		case "encoding":
			if e := strings.ToUpper(strings.ReplaceAll(v, "-", "")); e != "UTF8" {
				return nil, pgerr.New(codes.FeatureNotSupported, "COPY encoding \"%s\" is not supported", v)
			}
		default:
			return nil, pgerr.New(codes.Syntax, "option \"%s\" not recognized", d.Defname)
		}
	}
	return o, o.characters(seen)
}

// characters applies DELIMITER, NULL, QUOTE and ESCAPE, whose defaults depend on the
// format.
func (o *copyOptions) characters(seen map[string]string) error {
	csv := o.kind == duckdb.OutputCopyCSV
	c := &o.options
	c.Delimiter, c.Null = '\t', `\N`
	if csv {
		c.Delimiter, c.Quote, c.Null = ',', '"', ""
	}
	if o.kind == duckdb.OutputCopyBinary {
		for _, name := range []string{"delimiter", "null", "header", "quote", "escape"} {
			if v, ok := seen[name]; ok && (name != "header" || v != "false") {
				return pgerr.New(codes.Syntax, "cannot specify %s in BINARY mode", strings.ToUpper(name))
			}
		}
		return nil
	}
	for _, x := range []struct {
		name string
		to   *byte
		csv  bool
	}{{"delimiter", &c.Delimiter, false}, {"quote", &c.Quote, true}, {"escape", &c.Escape, true}} {
		v, ok := seen[x.name]
		switch {
		case !ok:
		case x.csv && !csv:
			return pgerr.New(codes.FeatureNotSupported, "COPY %s available only in CSV mode", x.name)
		case len(v) != 1:
			return pgerr.New(codes.FeatureNotSupported, "COPY %s must be a single one-byte character", x.name)
		default:
			*x.to = v[0]
		}
	}
	if c.Escape == 0 {
		c.Escape = c.Quote
	}
	if v, ok := seen["null"]; ok {
		c.Null = v
	}
	if !csv && strings.IndexByte("\\.abcdefghijklmnopqrstuvwxyz0123456789\r\n", c.Delimiter) >= 0 {
		return pgerr.New(codes.InvalidParameterValue, "COPY delimiter cannot be \"%c\"", c.Delimiter)
	}
	if (o.forceAll || o.forceQuote != nil) && !csv {
		return pgerr.New(codes.FeatureNotSupported, "COPY force quote available only in CSV mode")
	}
	return nil
}

func (s *session) copyOut(ctx context.Context, q *queryStatement, o *copyOptions, sink pgwire.Sink) (int, error) {
	if err := q.refresh(); err != nil {
		return 0, err
	}
	opts := o.options
	opts.ForceQuote = make([]bool, len(q.columns))
	for i, c := range q.columns {
		opts.ForceQuote[i] = o.forceAll
		for _, f := range o.forceQuote {
			opts.ForceQuote[i] = opts.ForceQuote[i] || f == c.Name
		}
	}
	out := s.output(o.kind, q.columns, nil)
	out.Copy = opts
	s.tx.queried = true
	var rows Rows
	var frame *duckdb.Frame
	err := q.pinned(func(a *pgsql.Analysis) (err error) {
		rows, frame, err = s.start(ctx, a, nil, out)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	format := int16(0)
	if o.kind == duckdb.OutputCopyBinary {
		format = 1
	}
	if err := sink.CopyOut(format, len(q.columns)); err != nil {
		return 0, err
	}
	total := 0
	for frame != nil {
		if err := sink.CopyData(frame.Data, frame.Rows); err != nil {
			return total, err
		}
		total += frame.Rows
		f, err := rows.Next(ctx)
		if err == io.EOF {
			break
		}
		if errors.Is(err, duckdb.ErrSliceLost) {
			return total, errTooOld
		}
		if err != nil {
			return total, err
		}
		frame = &f
	}
	return total, sink.CopyDone()
}

// defText is the value of an option as text; an option without a value is "true".
func defText(d *pg.DefElem) string {
	switch v := d.GetArg().GetNode().(type) {
	case *pg.Node_String_:
		return v.String_.Sval
	case *pg.Node_Integer:
		return fmt.Sprint(v.Integer.Ival)
	case *pg.Node_Float:
		return v.Float.Fval
	case *pg.Node_Boolean:
		return fmt.Sprint(v.Boolean.Boolval)
	case *pg.Node_TypeName:
		return v.TypeName.Names[len(v.TypeName.Names)-1].GetString_().GetSval()
	}
	return "true"
}

func defBool(v string) (value, ok bool) {
	switch strings.ToLower(v) {
	case "true", "on", "1", "yes":
		return true, true
	case "false", "off", "0", "no":
		return false, true
	}
	return false, false
}
