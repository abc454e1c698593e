package own

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// runner is the engine of a client's session: it knows what the statement is, and runs it over
// the rows that the plan reads.
type runner struct {
	s *Server
	c *Client
}

var _ planner.Runner = (*runner)(nil)

// Query implements planner.Runner.
func (r *runner) Query(ctx context.Context, p *duckdb.Plan) (planner.Rows, error) {
	if err := r.s.hooks.Point("run"); err != nil {
		return nil, err
	}
	st := r.c.sent
	if st == nil || r.c.server != r.s {
		return nil, errBroken
	}
	switch {
	case strings.Contains(p.SQL, " SEMI JOIN "):
		return r.find(ctx, p)
	case strings.Contains(p.SQL, " HAVING count(*) >= "):
		return r.taken(ctx, p)
	case ofForeign(p):
		return r.foreign(ctx, p)
	case st.kind == setValue && p.Output.Kind == duckdb.OutputArrow:
		return answer(argumentsOfSetval, nil, [][]any{{"", st.number}})
	case st.kind == setValue:
		return oneRow(st.number), nil
	}
	t, v := r.c.view(st.table)
	if t == nil {
		return nil, fmt.Errorf("table %s is gone while a statement is planned over it", st.table)
	}
	switch st.kind {
	case insert:
		return answer(v, nil, st.values(v, st.rows))
	case copyText, copyCSV:
		rows, err := st.copied(p)
		if err != nil {
			return nil, err
		}
		return answer(v, nil, st.values(v, rows))
	case update, remove, rekey:
		return r.change(ctx, st, v, p)
	case lockRows:
		return r.show(ctx, st, v, p)
	case refresh, refreshConcurrently:
		return r.refill(ctx, st, v, p)
	case unique:
		return r.prove(ctx, p)
	case foreign:
		return r.unmatched(ctx, p)
	}
	return nil, fmt.Errorf("statement %s has no plan", st.short())
}

// values are rows in the columns of a version; the sequence gives the key of the numbered table
// later.
func (s *statement) values(v *source.Version, rows []source.Row) [][]any {
	out := make([][]any, len(rows))
	for i, r := range rows {
		one := make([]any, len(v.Columns))
		for _, from := range s.given() {
			name := s.shape.Columns[from].Name
			if at := slices.IndexFunc(v.Columns, func(c source.Column) bool { return c.Name == name }); at >= 0 {
				one[at] = r[from]
			}
		}
		if s.table == numbered {
			one[0] = int64(0)
		}
		out[i] = one
	}
	return out
}

// argumentsOfSetval are the columns of what a call of it reads first.
var argumentsOfSetval = &source.Version{Columns: []source.Column{
	{Name: "c1", Type: schema.Type{Kind: schema.String}}, {Name: "c2", Type: schema.Type{Kind: schema.Int64}},
}}

// oneRow is the answer of a number, as the wire has it.
func oneRow(n int64) *rows {
	return &rows{data: dataRow(nil, source.Row{n}), count: 1}
}

// dataRow appends a row as the wire has it, in text.
func dataRow(dst []byte, r source.Row) []byte {
	body := binary.BigEndian.AppendUint16(nil, uint16(len(r)))
	for _, v := range r {
		text, ok := textOf(v)
		if !ok {
			body = binary.BigEndian.AppendUint32(body, math.MaxUint32) // null
			continue
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(text))), text...)
	}
	return message(dst, 'D', body)
}

// table reads the one table of a plan, in the columns of a version.
func (r *runner) table(ctx context.Context, v *source.Version, p *duckdb.Plan) ([]source.Row, error) {
	if len(p.Relations) != 1 {
		return nil, fmt.Errorf("query of %d relations: %w", len(p.Relations), duckdb.ErrPlan)
	}
	read, err := r.s.deps.Executor().Scan(ctx, &p.Relations[0])
	if err != nil {
		return nil, err
	}
	out := make([]source.Row, len(read))
	for i, row := range read {
		for _, c := range v.Columns {
			at := slices.IndexFunc(p.Relations[0].Columns, func(rc duckdb.Column) bool { return rc.Name == c.Name })
			out[i] = append(out[i], row[at])
		}
	}
	return out, nil
}

// show answers a query of the rows that it finds.
func (r *runner) show(ctx context.Context, st *statement, v *source.Version, p *duckdb.Plan) (planner.Rows, error) {
	read, err := r.table(ctx, v, p)
	if err != nil {
		return nil, err
	}
	out := &rows{}
	for _, row := range st.found(v, read) {
		out.data, out.count = dataRow(out.data, row), out.count+1
	}
	return out, nil
}

// refill answers the query of a materialized view, which has the columns of what it reads.
func (r *runner) refill(ctx context.Context, st *statement, v *source.Version, p *duckdb.Plan) (planner.Rows, error) {
	read, err := r.table(ctx, v, p)
	if err != nil {
		return nil, err
	}
	st.read = read
	out := make([][]any, len(read))
	for i, row := range read {
		out[i] = row
	}
	return answer(v, nil, out)
}

// taken answers the look for rows that have values which are to be unique: the places of those.
func (r *runner) taken(ctx context.Context, p *duckdb.Plan) (planner.Rows, error) {
	asked, table := &p.Relations[0], &p.Relations[1]
	have, err := r.s.deps.Executor().Scan(ctx, table)
	if err != nil {
		return nil, err
	}
	in, err := ipc.NewReader(bytes.NewReader(asked.Inline))
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	defer in.Release()
	least := 1
	if strings.Contains(p.SQL, " HAVING count(*) >= 2") {
		least = 2
	}
	last := len(asked.Columns) - 1
	at := make([]int, last)
	for i, c := range asked.Columns[:last] {
		at[i] = slices.IndexFunc(table.Columns, func(t duckdb.Column) bool { return t.Name == c.Name })
	}
	var out [][]any
	for in.Next() {
		for _, row := range query.Values(in.RecordBatch()) {
			same := 0
			for _, h := range have {
				equal := true
				for i, place := range at {
					equal = equal && row[i] != nil && row[i] == h[place]
				}
				if equal {
					same++
				}
			}
			if same >= least {
				out = append(out, []any{row[last]})
			}
		}
	}
	place := &source.Version{Columns: []source.Column{{Name: "c1", Type: schema.Type{Kind: schema.Int32}}}}
	rows, err := answer(place, nil, out)
	return rows, errors.Join(err, in.Err())
}

// prove answers the look for rows that a new unique index does not allow.
func (r *runner) prove(ctx context.Context, p *duckdb.Plan) (planner.Rows, error) {
	read, err := r.s.deps.Executor().Scan(ctx, &p.Relations[0])
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(p.Relations[0].Columns, func(c duckdb.Column) bool { return c.Name == uniqueColumn(r.c.sent.table) })
	have := make([]source.Row, len(read))
	for i := range read {
		have[i] = read[i]
	}
	var out [][]any
	if repeated(have, []int{at}) {
		out = [][]any{{int64(1)}}
	}
	one := &source.Version{Columns: []source.Column{{Name: "c1", Type: schema.Type{Kind: schema.Int32}}}}
	return answer(one, nil, out)
}

// find answers the look for rows by key.
func (r *runner) find(ctx context.Context, p *duckdb.Plan) (planner.Rows, error) {
	keys, err := ipc.NewReader(bytes.NewReader(p.Relations[1].Inline))
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer keys.Release()
	var out bytes.Buffer
	var w *ipc.Writer
	for keys.Next() {
		err := r.s.deps.Executor().Find(ctx, &p.Relations[0], keys.RecordBatch(), func(rec arrow.RecordBatch) error {
			if w == nil {
				w = ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
			}
			return w.Write(rec)
		})
		if err != nil {
			return nil, err
		}
	}
	if w != nil {
		err = w.Close()
	}
	return &rows{data: out.Bytes()}, errors.Join(err, keys.Err())
}

// copied are the rows of a piece of a COPY, in the columns that it saw.
func (s *statement) copied(p *duckdb.Plan) ([]source.Row, error) {
	if len(p.Relations) == 0 || p.Relations[0].Inline == nil {
		return nil, fmt.Errorf("copy without rows: %w", duckdb.ErrPlan)
	}
	in, err := ipc.NewReader(bytes.NewReader(p.Relations[0].Inline))
	if err != nil {
		return nil, fmt.Errorf("copied rows: %w", err)
	}
	defer in.Release()
	var out []source.Row
	given := s.given()
	for in.Next() {
		b := in.RecordBatch()
		var texts []*array.String
		for i := range int(b.NumCols()) {
			if a, ok := b.Column(i).(*array.String); ok {
				texts = append(texts, a)
			}
		}
		if len(texts) != len(given) {
			return nil, fmt.Errorf("copy of %d columns: %w", len(texts), duckdb.ErrPlan)
		}
		for row := range int(b.NumRows()) {
			one := make(source.Row, len(s.shape.Columns))
			for i, a := range texts {
				if a.IsNull(row) {
					continue
				}
				if one[given[i]], err = parse(s.shape.Columns[given[i]].Type.Kind, strings.Clone(a.Value(row))); err != nil {
					return nil, err
				}
			}
			out = append(out, one)
		}
	}
	return out, in.Err()
}

func parse(k schema.Kind, text string) (any, error) {
	switch k {
	case schema.Int32, schema.Int64:
		return strconv.ParseInt(text, 10, 64)
	case schema.Float64:
		return strconv.ParseFloat(text, 64)
	}
	return text, nil
}

// change answers an UPDATE or a DELETE: of each row that it finds the columns by which that is
// found, and for an UPDATE what the row becomes.
func (r *runner) change(ctx context.Context, st *statement, v *source.Version, p *duckdb.Plan) (planner.Rows, error) {
	if len(p.Relations) != 1 {
		return nil, fmt.Errorf("change of %d relations: %w", len(p.Relations), duckdb.ErrPlan)
	}
	rel := &p.Relations[0]
	read, err := r.s.deps.Executor().Scan(ctx, rel)
	if err != nil {
		return nil, err
	}
	place := make([]int, len(v.Columns))
	for i, c := range v.Columns {
		place[i] = slices.IndexFunc(rel.Columns, func(rc duckdb.Column) bool { return rc.Name == c.Name })
	}
	old := v.KeyIndexes()
	if len(old) == 0 {
		for i := range v.Columns {
			old = append(old, i)
		}
	}
	var out [][]any
	for _, row := range read {
		if at := row[place[found(v)]]; at == nil || !slices.Contains(st.keys, at) {
			continue
		}
		var one []any
		for _, i := range old {
			one = append(one, row[place[i]])
		}
		for i := range v.Columns {
			switch {
			case st.kind == remove:
			case i == st.changed(v):
				one = append(one, st.set)
			default:
				one = append(one, row[place[i]])
			}
		}
		out = append(out, one)
	}
	if st.kind == remove {
		return answer(&source.Version{}, columnsAt(v, old), out)
	}
	return answer(v, columnsAt(v, old), out)
}

func columnsAt(v *source.Version, places []int) []source.Column {
	out := make([]source.Column, len(places))
	for i, p := range places {
		out[i] = v.Columns[p]
	}
	return out
}

// answer makes an answer of rows, whose columns are those before and then the version's.
func answer(v *source.Version, before []source.Column, out [][]any) (planner.Rows, error) {
	if len(out) == 0 {
		return &rows{}, nil
	}
	columns := slices.Concat(before, v.Columns)
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: fmt.Sprintf("c%d", i), Type: schema.ArrowType(c.Type), Nullable: true}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, row := range out {
		for i, v := range row {
			appendValue(b.Field(i), v)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	data, err := duckdb.InlineRows(rec)
	return &rows{data: data, count: len(out)}, err
}

func appendValue(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Int32Builder:
		b.Append(int32(v.(int64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.StringBuilder:
		b.Append(v.(string))
	}
}

// rows is an answer of one frame.
type rows struct {
	data  []byte
	count int
	told  bool
}

// Next implements planner.Rows.
func (r *rows) Next(context.Context) (duckdb.Frame, error) {
	if r.told || len(r.data) == 0 {
		return duckdb.Frame{}, io.EOF
	}
	r.told = true
	return duckdb.Frame{Rows: r.count, Data: r.data}, nil
}

// Close implements planner.Rows.
func (*rows) Close() {}
