package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/copyin"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/copying"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/recode"
)

// prepareCopy prepares COPY.
func (s *session) prepareCopy(sql string, n *pg.CopyStmt, types []uint32) (pgwire.Statement, error) {
	if err := s.mayUseFile(n); err != nil {
		return nil, err
	}
	if n.IsFrom {
		return s.prepareCopyFrom(sql, n)
	}
	opts, err := s.checkCopyTo(sql, n)
	if err != nil {
		return nil, err
	}
	sel := n.Query.GetSelectStmt()
	if n.Relation != nil {
		if sel, err = s.copySelect(n); err != nil {
			return nil, err
		}
	}
	if word := writeWord(n.Query); word != "" {
		return s.prepareCopyWritten(sql, n, word, opts)
	}
	if sel == nil {
		return nil, s.refuse(n.Query)
	}
	q, err := s.prepareQuery(sql, sel, types)
	if err == nil && n.Query != nil {
		err = ofQuery(q.columns, opts.ForceQuote)
	}
	if err != nil {
		return nil, err
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		return s.copyTo(ctx, n, sink, func(sink pgwire.Sink, progress *copying.Copy) (int, error) {
			if uses := q.analysis.Uses; n.Relation != nil && len(uses) == 1 {
				progress.Names(uses[0].Relation.OID)
			}
			out, err := s.encoded(opts, sink, q.columns)
			if err != nil {
				return 0, err
			}
			return s.copyOut(ctx, q, opts, out)
		})
	}}, nil
}

// copyTo runs a COPY TO whose data write gives to a sink.
func (s *session) copyTo(ctx context.Context, n *pg.CopyStmt, sink pgwire.Sink, write func(pgwire.Sink, *copying.Copy) (int, error)) (*result, error) {
	to := copying.Client(sink, nil)
	if n.Filename != "" {
		var err error
		if to, err = copying.Target(ctx, s.engine.deps.Files, n.Filename, n.IsProgram, sink); err != nil {
			return nil, err
		}
	}
	defer to.Abandon()
	progress := s.engine.copies.Begin(s.startup.PID, 0, false)
	progress.Of(to.Kind, 0)
	defer progress.End()
	rows, err := write(counted{to, progress}, progress)
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		return nil, clientError(ctx, err)
	}
	return &result{tag: fmt.Sprintf("COPY %d", rows)}, nil
}

// counted is a sink whose data of COPY TO is counted.
type counted struct {
	pgwire.Sink
	progress *copying.Copy
}

// CopyData implements pgwire.Sink.
func (c counted) CopyData(messages []byte, n int) error {
	c.progress.Add(len(messages)-copying.Frame*n, n)
	return c.Sink.CopyData(messages, n)
}

// mayUseFile refuses files and programs of the server to who may not have them, in PostgreSQL's
// words.
func (s *session) mayUseFile(n *pg.CopyStmt) error {
	if n.Filename == "" && !n.IsProgram {
		return nil
	}
	role, what, kind := right.WriteServerFiles, "to a file", "pg_write_server_files"
	switch {
	case n.IsProgram:
		role, what, kind = right.RunServerPrograms, "to or from an external program", "pg_execute_server_program"
	case n.IsFrom:
		role, what, kind = right.ReadServerFiles, "from a file", "pg_read_server_files"
	}
	const anyone = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."
	if b := s.book(); !b.HasRole(s.who(b).Current, role) {
		return pgerr.New(codes.InsufficientPrivilege, "must be superuser or have privileges of the %s role to COPY %s", kind, what).WithHint(anyone)
	}
	if s.engine.deps.Files == nil {
		return pgerr.New(codes.FeatureNotSupported, "COPY %s is not supported", what).WithHint(anyone)
	}
	return nil
}

// checkCopyTo looks at the parts of a COPY TO in PostgreSQL's order: the table, the columns,
// the options.
func (s *session) checkCopyTo(sql string, n *pg.CopyStmt) (copyin.Options, error) {
	if n.Relation == nil {
		return parseCopyOptions(sql, n.Options, copyin.ParseTo)
	}
	rel, err := s.copied(n.Relation)
	if err != nil {
		return copyin.Options{}, err
	}
	if _, err := copiedColumns(n, rel); err != nil {
		return copyin.Options{}, err
	}
	opts, err := parseCopyOptions(sql, n.Options, copyin.ParseTo)
	if err != nil {
		return opts, err
	}
	return opts, ofRelation(rel, opts.ForceQuote)
}

// ofRelation refuses names of columns in an option that a relation has not, and one that comes
// twice.
func ofRelation(rel *pgsql.Relation, names []string) error {
	for _, c := range rel.GeneratedColumns() {
		if name := rel.Columns[c].Name; slices.Contains(names, name) {
			return errCopyGenerated(name)
		}
	}
	return listed(names, fmt.Sprintf(" of relation \"%s\"", rel.Name), func(name string) bool {
		return slices.ContainsFunc(rel.Columns, func(c pgsql.RelationColumn) bool { return c.Name == name })
	})
}

// ofQuery is ofRelation for the columns of a query.
func ofQuery(columns []pgwire.Column, names []string) error {
	return listed(names, "", func(name string) bool {
		return slices.ContainsFunc(columns, func(c pgwire.Column) bool { return c.Name == name })
	})
}

func listed(names []string, of string, has func(string) bool) error {
	for i, name := range names {
		switch {
		case !has(name):
			return pgerr.New(codes.UndefinedColumn, "column \"%s\"%s does not exist", name, of)
		case slices.Contains(names[:i], name):
			return pgerr.New(codes.DuplicateColumn, "column \"%s\" specified more than once", name)
		}
	}
	return nil
}

// copied finds a relation, and refuses one that COPY TO takes no rows of.
func (s *session) copied(n *pg.RangeVar) (*pgsql.Relation, error) {
	snap, release := s.now()
	defer release()
	rel, err := pgsql.FindRelation(n, s.env(s.namesOf(snap)))
	if err != nil {
		if e, ok := pgerr.As(err); ok {
			return nil, e.WithPosition(0)
		}
		return nil, err
	}
	const variant = "Try the COPY (SELECT ...) TO variant."
	switch {
	case rel.View != "":
		return nil, pgerr.New(codes.WrongObjectType, "cannot copy from view \"%s\"", rel.Name).WithHint(variant)
	case rel.Materialized:
		return nil, pgerr.New(codes.WrongObjectType, "cannot copy from materialized view \"%s\"", rel.Name).WithHint(variant)
	case rel.Sequence:
		return nil, pgerr.New(codes.WrongObjectType, "cannot copy from sequence \"%s\"", rel.Name)
	}
	return rel, nil
}

// copySelect is the query that COPY table (columns) means.
func (s *session) copySelect(n *pg.CopyStmt) (*pg.SelectStmt, error) {
	sel := &pg.SelectStmt{
		FromClause: []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: n.Relation}}}, Op: pg.SetOperation_SETOP_NONE,
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT,
	}
	add := func(field *pg.Node) {
		ref := pg.MakeColumnRefNode([]*pg.Node{field}, n.Relation.Location)
		sel.TargetList = append(sel.TargetList, pg.MakeResTargetNodeWithVal(ref, n.Relation.Location))
	}
	columns, err := s.copyColumns(n)
	for _, a := range columns {
		add(a)
	}
	if len(columns) == 0 {
		add(pg.MakeAStarNode())
	}
	return sel, err
}

// copyColumns are the columns of COPY … TO, which has none that are generated; none says that it has
// all of the relation.
func (s *session) copyColumns(n *pg.CopyStmt) ([]*pg.Node, error) {
	snap, release := s.now()
	defer release()
	rel, err := pgsql.FindRelation(n.Relation, s.env(s.namesOf(snap)))
	if err != nil || len(rel.GeneratedColumns()) == 0 {
		return n.Attlist, nil // the query says what is wrong
	}
	var out []*pg.Node
	for _, c := range rel.Columns {
		named := slices.ContainsFunc(n.Attlist, func(a *pg.Node) bool { return a.GetString_().GetSval() == c.Name })
		switch {
		case named && c.Generated != "":
			return nil, errCopyGenerated(c.Name)
		case c.Generated == "":
			out = append(out, pg.MakeStrNode(c.Name))
		}
	}
	if len(n.Attlist) > 0 {
		return n.Attlist, nil
	}
	return out, nil
}

// parseCopyOptions makes the options of COPY from their parse tree.
func parseCopyOptions(sql string, list []*pg.Node, parse func([]copyin.Option) (copyin.Options, error)) (copyin.Options, error) {
	var given []copyin.Option
	for _, n := range list {
		d := n.GetDefElem()
		o := copyin.Option{Name: d.GetDefname(), Value: defText(d), Alone: d.GetArg() == nil, Star: d.GetArg().GetAStar() != nil, Position: pgsql.Position(sql, d.GetLocation())}
		for _, i := range d.GetArg().GetList().GetItems() {
			o.List = append(o.List, i.GetString_().GetSval())
		}
		given = append(given, o)
	}
	return parse(given)
}

// dataCharset is what the data of a COPY is converted by, nil for nothing. The texts in a binary
// one are in the client's encoding, whatever it says.
func (s *session) dataCharset(o copyin.Options, reading bool) (*recode.Charset, error) {
	if o.Encoding == "" || o.Format == copyin.Binary {
		return recode.Of(s.ClientEncoding(), reading)
	}
	return recode.Of(o.Encoding, reading)
}

// encoded is sink for the data of a COPY TO, in its encoding.
func (s *session) encoded(o copyin.Options, sink pgwire.Sink, columns []pgwire.Column) (pgwire.Sink, error) {
	coded, err := s.dataCharset(o, false)
	switch {
	case err != nil || coded == nil:
		return sink, err
	case o.Format != copyin.Binary:
		return coded.Sink(sink), nil
	}
	var types []uint32
	for _, c := range columns {
		types = append(types, c.TypeOID)
	}
	return coded.BinarySink(sink, types), nil
}

// outputKinds are the engine's words for formats.
var outputKinds = map[copyin.Format]duckdb.OutputKind{
	copyin.Text: duckdb.OutputCopyText, copyin.CSV: duckdb.OutputCopyCSV, copyin.Binary: duckdb.OutputCopyBinary,
}

// encodeOptions are the options as the engine's encoder takes them.
func encodeOptions(o copyin.Options, columns []pgwire.Column) (duckdb.CopyOptions, error) {
	if o = o.WithDefaults(); o.Format == copyin.Binary {
		o = copyin.Options{Format: copyin.Binary, Null: new(string)}
	}
	out := duckdb.CopyOptions{
		Delimiter: o.Delimiter, Quote: o.Quote, Escape: o.Escape, Null: *o.Null, Header: o.Header != copyin.HeaderNone,
		ForceQuote: make([]bool, len(columns)),
	}
	for i := range columns {
		out.ForceQuote[i] = o.ForceQuoteAll
	}
	for _, name := range o.ForceQuote {
		i := slices.IndexFunc(columns, func(c pgwire.Column) bool { return c.Name == name })
		if i < 0 {
			return out, pgerr.New(codes.InvalidColumnReference, "FORCE_QUOTE column \"%s\" not referenced by COPY", name)
		}
		out.ForceQuote[i] = true
	}
	return out, nil
}

// prepareCopyWritten prepares COPY (statement that writes) TO, of what it returns.
func (s *session) prepareCopyWritten(sql string, n *pg.CopyStmt, word string, opts copyin.Options) (pgwire.Statement, error) {
	if word == "MERGE" {
		return nil, pgerr.New(codes.FeatureNotSupported, "MERGE not supported in COPY")
	}
	w, err := s.prepareWrite(&pgsql.Parsed{SQL: sql, Node: n.Query}, nil, word)
	if err != nil {
		return nil, err
	}
	if w.analysis.Returning == nil {
		return nil, pgerr.New(codes.FeatureNotSupported, "COPY query must have a RETURNING clause")
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		return s.copyTo(ctx, n, sink, func(sink pgwire.Sink, _ *copying.Copy) (int, error) {
			out, err := s.encoded(opts, sink, w.columns)
			if err != nil {
				return 0, err
			}
			return s.copyWritten(ctx, w, opts, out)
		})
	}}, nil
}

func (s *session) copyWritten(ctx context.Context, w *writeStatement, o copyin.Options, sink pgwire.Sink) (total int, err error) {
	if err := w.refresh(); err != nil {
		return 0, err
	}
	opts, err := encodeOptions(o, w.columns)
	if err != nil {
		return 0, err
	}
	out := s.output(outputKinds[o.Format], w.columns, nil)
	out.Copy = opts
	portal := &writePortal{queryPortal: &queryPortal{session: s, columns: w.columns}, statement: w, copied: &out}
	defer portal.Close()
	if err := portal.write(ctx); err != nil {
		return 0, err
	}
	format := int16(0)
	if o.Format == copyin.Binary {
		format = 1
	}
	if err := sink.CopyOut(format, len(w.columns)); err != nil {
		return 0, err
	}
	for !portal.done {
		if portal.pendingRows > 0 {
			if err := sink.CopyData(portal.pending, portal.pendingRows); err != nil {
				return total, err
			}
			total += portal.pendingRows
		}
		if err := portal.next(ctx); err != nil {
			return total, err
		}
	}
	return total, sink.CopyDone()
}

func (s *session) copyOut(ctx context.Context, q *queryStatement, o copyin.Options, sink pgwire.Sink) (int, error) {
	if err := q.refresh(); err != nil {
		return 0, err
	}
	opts, err := encodeOptions(o, q.columns)
	if err != nil {
		return 0, err
	}
	out := s.output(outputKinds[o.Format], q.columns, nil)
	out.Copy = opts
	s.tx.queried = true
	var rows Rows
	var frame *duckdb.Frame
	err = q.pinned(func(a *pgsql.Analysis) (err error) {
		if o.Format == copyin.Binary {
			if a, err = q.inFormats(a, slices.Repeat([]int16{1}, len(q.columns))); err != nil {
				return err
			}
			out = withRecords(out, a)
		}
		rows, frame, err = s.start(ctx, a, nil, out)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	format := int16(0)
	if o.Format == copyin.Binary {
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
