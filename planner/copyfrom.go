package planner

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/copyin"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/copying"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/recode"
	"github.com/skipprd/skipprd/planner/write"
)

// Rows of a COPY go into the transaction in pieces of about this size.
const (
	copyRows  = 16 << 10
	copyBytes = 8 << 20
)

// prepareCopyFrom prepares COPY … FROM.
func (s *session) prepareCopyFrom(sql string, n *pg.CopyStmt) (pgwire.Statement, error) {
	opts, err := s.checkCopyFrom(sql, n)
	if err != nil {
		return nil, err
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		mark := s.markChanges()
		rows, err := s.copyFrom(ctx, sql, n, opts, sink)
		if err != nil {
			s.rollbackChanges(mark)
			return nil, clientError(ctx, err)
		}
		return &result{tag: fmt.Sprintf("COPY %d", rows)}, nil
	}}, nil
}

// checkCopyFrom looks at the parts of a COPY FROM in PostgreSQL's order: the table, WHERE, the
// columns, the options.
func (s *session) checkCopyFrom(sql string, n *pg.CopyStmt) (copyin.Options, error) {
	rel, err := s.copiedTo(n)
	if err != nil {
		return copyin.Options{}, err
	}
	if n.WhereClause != nil {
		snap, release := s.now()
		_, err := pgsql.AnalyzeCopy(sql, rel, nil, n.WhereClause, s.env(s.namesOf(snap)))
		release()
		if err != nil {
			return copyin.Options{}, err
		}
	}
	if _, err := copiedColumns(n, rel); err != nil {
		return copyin.Options{}, err
	}
	opts, err := parseCopyOptions(sql, n.Options, copyin.Parse)
	if err != nil {
		return opts, err
	}
	return opts, cmp.Or(ofRelation(rel, opts.ForceNotNull), ofRelation(rel, opts.ForceNull))
}

// copiedTo is the relation that a COPY fills.
func (s *session) copiedTo(n *pg.CopyStmt) (*pgsql.Relation, error) {
	rel, err := s.ownTable(n.Relation)
	if err != nil && rel != nil && rel.View != "" {
		err = pgerr.New(codes.WrongObjectType, "cannot copy to view \"%s\"", rel.Name).
			WithHint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.")
	}
	return rel, err
}

// copyTarget is the relation that a COPY fills, and the columns that the data has.
func (s *session) copyTarget(n *pg.CopyStmt) (*pgsql.Relation, []int, error) {
	rel, err := s.copiedTo(n)
	if err != nil {
		return nil, nil, err
	}
	columns, err := copiedColumns(n, rel)
	return rel, columns, err
}

// copiedColumns are the places of the columns that a COPY names: all, where it names none.
func copiedColumns(n *pg.CopyStmt, rel *pgsql.Relation) ([]int, error) {
	var columns []int
	for _, a := range n.Attlist {
		name := a.GetString_().GetSval()
		i := slices.IndexFunc(rel.Columns, func(c pgsql.RelationColumn) bool { return c.Name == name })
		switch {
		case i < 0:
			return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, rel.Name)
		case rel.Columns[i].Generated != "":
			return nil, errCopyGenerated(name)
		case slices.Contains(columns, i):
			return nil, pgerr.New(codes.DuplicateColumn, "column \"%s\" specified more than once", name)
		}
		columns = append(columns, i)
	}
	if len(n.Attlist) == 0 {
		for i, c := range rel.Columns {
			if c.Generated == "" {
				columns = append(columns, i)
			}
		}
	}
	return columns, nil
}

func errCopyGenerated(name string) error {
	return pgerr.New(codes.InvalidColumnReference, "column \"%s\" is a generated column", name).WithDetail("Generated columns cannot be used in COPY.")
}

// lockCopyTarget has a COPY be the only one that changes its table, which may have been
// altered, or replaced by another of its name, while it waited.
func (s *session) lockCopyTarget(ctx context.Context, n *pg.CopyStmt) (t *write.Table, rel *pgsql.Relation, columns []int, err error) {
	for locked := (*pgsql.Relation)(nil); ; locked = rel {
		if rel, columns, err = s.copyTarget(n); err != nil {
			return nil, nil, nil, err
		}
		if err := s.mayWrite(&pgsql.Write{Relation: rel, Written: columns}, "COPY"); err != nil {
			return nil, nil, nil, err
		}
		if locked != nil && sameTable(rel, locked) {
			return t, rel, columns, nil
		}
		if err = s.lockParents(ctx, &pgsql.Write{Relation: rel}, "COPY FROM"); err != nil {
			return nil, nil, nil, err
		}
		if t, err = s.writable(ctx, rel, "COPY FROM"); err != nil {
			return nil, nil, nil, err
		}
	}
}

// copyFrom takes the client's rows into the transaction: all, or none.
func (s *session) copyFrom(ctx context.Context, sql string, n *pg.CopyStmt, o copyin.Options, sink pgwire.Sink) (int, error) {
	t, rel, columns, err := s.lockCopyTarget(ctx, n)
	if err != nil {
		return 0, err
	}
	snap, release := s.now()
	env := s.env(s.namesOf(snap))
	analysis, err := pgsql.AnalyzeCopy(sql, rel, columns, n.WhereClause, env)
	release()
	if err != nil {
		return 0, err
	}
	config := copyin.Config{Table: rel.Name, Options: o, Stops: n.Filename != ""}
	for _, i := range columns {
		config.Columns = append(config.Columns, copyin.Column{Name: rel.Columns[i].Name, HasDefault: rel.Columns[i].Default != ""})
	}
	format := int16(0)
	if o.Format == copyin.Binary {
		format = 1
	}
	coded, err := s.dataCharset(o, true)
	if err != nil {
		return 0, err
	}
	data, err := s.copySource(ctx, n, sink, format, len(columns))
	if err != nil {
		return 0, err
	}
	defer data.Abandon()
	progress := s.engine.copies.Begin(s.startup.PID, rel.OID, true)
	progress.Of(data.Kind, data.Size)
	defer progress.End()
	input := progress.Reader(data)
	if coded != nil && o.Format != copyin.Binary {
		input, coded = coded.Reader(input), nil
	}
	decoder, err := copyin.New(input, config)
	if err != nil {
		return 0, err
	}
	if o.Freeze && !s.tx.makes(t.Face) && !s.tx.changes.Touches(t.ID) {
		return 0, pgerr.New(codes.ObjectNotInPrerequisiteState,
			"cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction")
	}
	load := &copyLoad{
		job:      &writeJob{session: s, table: t, analysis: analysis},
		progress: progress, decoder: decoder, columns: columns, format: format, input: s.input(), ignore: o.OnErrorIgnore, coded: coded,
		labels: env.CheckLabels,
	}
	if o.Verbose {
		load.told = func(i int) error { return s.notice(sink, skippedRow(decoder, i)) }
	}
	load.open()
	defer load.builder.Release()
	if err := load.all(ctx); err != nil {
		return 0, err
	}
	if err := data.Close(); err != nil {
		return 0, err
	}
	if err := s.checkForeign(ctx, false); err != nil {
		return 0, err
	}
	return load.rows, s.tellIgnored(load.ignored, sink)
}

// tellIgnored says how many rows ON_ERROR has left out.
func (s *session) tellIgnored(n int, sink pgwire.Sink) error {
	switch n {
	case 0:
		return nil
	case 1:
		return s.notice(sink, pgerr.Notice("1 row was skipped due to data type incompatibility"))
	}
	return s.notice(sink, pgerr.Notice("%d rows were skipped due to data type incompatibility", n))
}

// skippedRow says for which column a row was ignored.
func skippedRow(d *copyin.Decoder, column int) *pgerr.Error {
	where := strings.SplitN(d.Where(column), ", column ", 2)
	name, shown, _ := strings.Cut(where[1], ": ")
	e := pgerr.Notice("skipping row due to data type incompatibility at line %d for column \"%s\": %s", d.Line(), name, shown)
	e.Where = where[0]
	return e
}

// copySource is where the data of a COPY FROM comes from.
func (s *session) copySource(ctx context.Context, n *pg.CopyStmt, sink pgwire.Sink, format int16, columns int) (*copying.End, error) {
	if n.Filename != "" {
		return copying.Source(ctx, s.engine.deps.Files, n.Filename, n.IsProgram)
	}
	data, err := sink.CopyIn(format, columns)
	if err != nil {
		return nil, err
	}
	return copying.Client(sink, data), nil
}

// copyLoad is one COPY FROM.
type copyLoad struct {
	job      *writeJob
	progress *copying.Copy
	decoder  *copyin.Decoder
	columns  []int
	format   int16
	input    encode.Input
	ignore   bool
	labels   func(pgsql.Type, string) *pgerr.Error
	coded    *recode.Charset // of the texts in binary values, nil for UTF-8
	// told says which column of the row that was read last was ignored for; nil: nobody asked.
	told func(column int) error
	// builder gathers the piece: for each column its value as text, and whether its default
	// is meant.
	builder       *array.RecordBuilder
	bytes         int
	lines         copyLines
	rows, ignored int
}

// copyLines are the lines of a piece's rows, for contexts of errors.
type copyLines struct {
	numbers []uint64
	texts   []byte
	ends    []int
}

func (l *copyLines) add(d *copyin.Decoder) {
	l.numbers, l.texts = append(l.numbers, d.Line()), d.AppendText(l.texts)
	l.ends = append(l.ends, len(l.texts))
}

func (l *copyLines) clear() { l.numbers, l.texts, l.ends = l.numbers[:0], l.texts[:0], l.ends[:0] }

// text is the line of row i.
func (l *copyLines) text(i int) string {
	begin := 0
	if i > 0 {
		begin = l.ends[i-1]
	}
	return string(l.texts[begin:l.ends[i]])
}

func (l *copyLoad) open() {
	var fields []arrow.Field
	for range l.columns {
		fields = append(fields, arrow.Field{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true},
			arrow.Field{Name: "d", Type: arrow.FixedWidthTypes.Boolean})
	}
	l.builder = array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
}

// all reads the data to its end.
func (l *copyLoad) all(ctx context.Context) error {
	for gathered := 0; ; {
		fields, err := l.decoder.Next()
		if err == io.EOF {
			return l.flush(ctx, gathered)
		}
		taken, convertErr := l.row(fields, err == nil)
		if err = cmp.Or(convertErr, err); err != nil {
			return l.earlier(ctx, gathered, err)
		}
		if taken {
			gathered++
			l.progress.Add(0, 1)
			l.lines.add(l.decoder)
		}
		if gathered >= copyRows || l.bytes >= copyBytes {
			if err := l.flush(ctx, gathered); err != nil {
				return err
			}
			gathered = 0
		}
	}
}

// row converts the fields of a row, and gathers it if it is whole.
func (l *copyLoad) row(fields []copyin.Field, whole bool) (taken bool, err error) {
	values := make([]*string, len(fields))
	rel := l.job.analysis.Relation
	for i, f := range fields {
		if f.Value == nil {
			continue
		}
		typ := rel.Columns[l.columns[i]].Type
		value, err := l.coded.Value(f.Value, typ.OID)
		text := ""
		if err == nil {
			text, err = l.input.Decode(typ.OID, l.format, value)
		}
		if err == nil {
			err = copying.Fit(text, typ)
		}
		if err == nil {
			err = l.labels(typ, text)
		}
		if err != nil && l.ignore && whole {
			l.ignored++
			if l.told == nil {
				return false, nil
			}
			return false, l.told(i)
		}
		if err != nil {
			err.Where = l.decoder.Where(i)
			return false, err
		}
		values[i] = &text
		l.bytes += len(text)
	}
	if !whole {
		return false, nil
	}
	for i, v := range values {
		b := l.builder.Field(2 * i).(*array.StringBuilder)
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(*v)
		}
		l.builder.Field(2*i + 1).(*array.BooleanBuilder).Append(fields[i].Default)
	}
	return true, nil
}

// flush inserts the piece.
func (l *copyLoad) flush(ctx context.Context, gathered int) error {
	l.bytes = 0
	defer l.lines.clear()
	if gathered == 0 {
		return nil
	}
	rec := l.builder.NewRecordBatch()
	defer rec.Release()
	mark := l.job.session.markChanges()
	rows, err := l.insert(ctx, rec)
	defer rows.Release()
	if err != nil {
		l.job.session.rollbackChanges(mark)
		return l.placed(ctx, rec, err)
	}
	l.rows += rows.Len()
	l.progress.Exclude(gathered - rows.Len())
	return nil
}

// earlier is the error of a row that was read before another error: what PostgreSQL asks of each
// row as it is read comes first. Else it is that other error.
func (l *copyLoad) earlier(ctx context.Context, gathered int, err error) error {
	if e, ok := pgerr.As(err); gathered == 0 || !ok || !ofRow(e.Code) {
		return err
	}
	rec := l.builder.NewRecordBatch()
	defer rec.Release()
	rec.Retain()
	found, failed := l.try(ctx, rec)
	switch {
	case failed != nil:
		return failed
	case found == nil || found.Code == codes.UniqueViolation || found.Code == codes.ForeignKeyViolation:
		return err
	}
	return l.placed(ctx, rec, found)
}

func (l *copyLoad) insert(ctx context.Context, rec arrow.RecordBatch) (write.Rows, error) {
	given, err := inline(l.job.analysis.Rows.Uses[0], rec.Columns())
	if err != nil {
		return write.Rows{}, err
	}
	return l.job.run(ctx, given)
}

// placed gives the error of a piece its context: the line of the first row with such an error,
// which is the last one of the shortest beginning of the piece that fails alike.
func (l *copyLoad) placed(ctx context.Context, rec arrow.RecordBatch, err error) error {
	e, ok := pgerr.As(clientError(ctx, err))
	if !ok || e.Where != "" || !ofRow(e.Code) {
		return err
	}
	good, bad := 0, int(rec.NumRows())
	for bad-good > 1 {
		mid := good + (bad-good)/2
		found, err := l.try(ctx, rec.NewSlice(0, int64(mid)))
		switch {
		case err != nil:
			return err
		case found != nil && found.Code == e.Code:
			bad, e = mid, found
		default: // another error is told only if this one is not there
			good = mid
		}
	}
	out := *e
	if out.Code == codes.ForeignKeyViolation { // which is looked for when all rows are there
		return &out
	}
	out.Where = fmt.Sprintf("COPY %s, line %d", l.job.analysis.Relation.Name, l.lines.numbers[bad-1])
	if l.format == 0 && out.Code != codes.UniqueViolation { // it is told when the line is long gone
		out.Where += ": \"" + l.lines.text(bad-1) + "\""
	}
	return &out
}

// ofRow says whether an error is about a row: its data, or a constraint.
func ofRow(code codes.Code) bool {
	return strings.HasPrefix(string(code), "22") || strings.HasPrefix(string(code), "23")
}

// try inserts rows for their error only.
func (l *copyLoad) try(ctx context.Context, rec arrow.RecordBatch) (*pgerr.Error, error) {
	defer rec.Release()
	mark := l.job.session.markChanges()
	rows, err := l.insert(ctx, rec)
	rows.Release()
	l.job.session.rollbackChanges(mark)
	if err == nil {
		return nil, nil
	}
	if e, ok := pgerr.As(clientError(ctx, err)); ok {
		return e, nil
	}
	return nil, err
}
