package compact

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// The relations of the search.
const (
	lakeRelation = "_skippr_search_lake"
	keysRelation = "_skippr_search_keys"
)

// superseded finds the lake rows whose key has a winner, sorted and each once. Files
// whose bounds exclude every key are not looked at; often that leaves none.
func (s *Service) superseded(
	ctx context.Context, t *schema.Table, base *lake.Snapshot, batches []arrow.RecordBatch, winners []merge.Selection,
) ([]lake.Position, error) {
	key := t.KeyFields()
	files := base.Files
	for i, f := range key {
		r := newKeyRange(batches, winners, change.SystemColumns+t.Index(f.ID))
		if r.empty() {
			return nil, nil
		}
		files = slices.DeleteFunc(slices.Clone(files), func(d lake.DataFile) bool { return !r.meets(d.Bounds[key[i].ID]) })
	}
	if len(files) == 0 {
		return nil, nil
	}
	keys, err := rowStream(ctx, key, t, batches, winners)
	if err != nil {
		return nil, fmt.Errorf("search superseded rows: %w", err)
	}
	out, err := s.search(ctx, files, searchPlan(key, files, base.PositionDeletes, keys))
	if err != nil {
		return nil, fmt.Errorf("search superseded rows: %w", err)
	}
	return slices.Compact(out), nil
}

// search runs a plan that finds rows of the files, and sorts them.
func (s *Service) search(ctx context.Context, files []lake.DataFile, plan *duckdb.Plan) ([]lake.Position, error) {
	var out []lake.Position
	names := make(map[string]string, len(files)) // one string per file, not per row
	for _, f := range files {
		names[f.Path] = f.Path
	}
	for p, err := range s.deps.Searcher.Superseded(ctx, plan) {
		if err != nil {
			return nil, err
		}
		name, ok := names[p.File]
		if !ok {
			return nil, fmt.Errorf("%s is not a file of the search", p.File)
		}
		out = append(out, lake.Position{File: name, Row: p.Row})
	}
	slices.SortFunc(out, comparePositions)
	return out, nil
}

func comparePositions(a, b lake.Position) int {
	if c := strings.Compare(a.File, b.File); c != 0 {
		return c
	}
	switch {
	case a.Row < b.Row:
		return -1
	case a.Row > b.Row:
		return 1
	}
	return 0
}

// searchPlan joins the files' key columns with the winners' keys.
func searchPlan(key []schema.Field, files []lake.DataFile, deletes []lake.DeleteFile, keys []byte) *duckdb.Plan {
	left := searched(key, files, deletes)
	right := duckdb.Relation{Name: keysRelation, Inline: keys, Columns: left.Columns}
	var on []string
	for _, f := range key {
		name := quote.Name(f.Name)
		on = append(on, "l."+name+" = k."+name)
	}
	return &duckdb.Plan{
		SQL: `SELECT l."_skippr_file", l."_skippr_pos" FROM ` + quote.Name(lakeRelation) + ` AS l SEMI JOIN ` +
			quote.Name(keysRelation) + ` AS k ON ` + strings.Join(on, " AND "),
		Relations: []duckdb.Relation{left, right},
		Output:    duckdb.Output{Kind: duckdb.OutputArrow},
	}
}

// searched is the relation of some columns of files, with the rows' positions.
func searched(columns []schema.Field, files []lake.DataFile, deletes []lake.DeleteFile) duckdb.Relation {
	left := duckdb.Relation{Name: lakeRelation, WithPosition: true}
	for _, f := range columns {
		c := duckdb.Column{Name: f.Name, FieldID: f.ID, EngineType: schema.EngineType(f.Type)}
		if f.Initial != nil {
			c.Initial = schema.EngineInitial(f)
		}
		left.Columns = append(left.Columns, c)
	}
	for _, f := range files {
		file := duckdb.File{Path: f.Path, Rows: f.Rows, HasDeletes: f.HasDeletes}
		if b, ok := f.Bounds[columns[0].ID]; ok && len(columns) == 1 && b.IsInt {
			file.KeyBounds, file.KeyMin, file.KeyMax = true, b.MinInt, b.MaxInt
		}
		left.Files = append(left.Files, file)
		left.LakeRows += f.Rows
	}
	for _, d := range deletes {
		if slices.ContainsFunc(files, func(f lake.DataFile) bool {
			return f.HasDeletes && d.MinFile <= f.Path && (d.MaxFile == "" || f.Path <= d.MaxFile)
		}) {
			left.PositionDeletes = append(left.PositionDeletes, d.Path)
		}
	}
	return left
}

// rowStream is an Arrow IPC stream with some columns of the chosen rows.
func rowStream(
	ctx context.Context, columns []schema.Field, t *schema.Table, batches []arrow.RecordBatch, chosen []merge.Selection,
) ([]byte, error) {
	var fields []arrow.Field
	for _, f := range columns {
		fields = append(fields, arrow.Field{Name: f.Name, Type: schema.ArrowType(f.Type), Nullable: true})
	}
	sc := arrow.NewSchema(fields, nil)
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(sc))
	for i, b := range batches {
		if b == nil || len(chosen[i]) == 0 {
			continue
		}
		cols := make([]arrow.Array, 0, len(fields))
		for _, f := range columns {
			cols = append(cols, b.Column(change.SystemColumns+t.Index(f.ID)))
		}
		all := array.NewRecordBatch(sc, cols, b.NumRows())
		keys, err := takeRows(ctx, all, chosen[i])
		all.Release()
		if err != nil {
			return nil, err
		}
		err = w.Write(keys)
		keys.Release()
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// keyRange is the values of one key column among the winners.
type keyRange struct {
	known    bool // the column's type has bounds
	n        int
	ints     []int64 // sorted
	min, max []byte
	isBytes  bool
}

func newKeyRange(batches []arrow.RecordBatch, winners []merge.Selection, col int) *keyRange {
	r := &keyRange{}
	for i, b := range batches {
		if b == nil {
			continue
		}
		r.n += len(winners[i])
		r.add(b.Column(col), winners[i])
	}
	slices.Sort(r.ints)
	r.known = len(r.ints) == r.n || r.isBytes
	return r
}

func (r *keyRange) empty() bool { return r.n == 0 }

func (r *keyRange) add(c arrow.Array, rows []int32) {
	for _, row := range rows {
		i := int(row)
		switch c := c.(type) {
		case *array.Int32:
			r.ints = append(r.ints, int64(c.Value(i)))
		case *array.Int64:
			r.ints = append(r.ints, c.Value(i))
		case *array.Date32:
			r.ints = append(r.ints, int64(c.Value(i)))
		case *array.Time64:
			r.ints = append(r.ints, int64(c.Value(i)))
		case *array.Timestamp:
			r.ints = append(r.ints, int64(c.Value(i)))
		case *array.String:
			r.addBytes([]byte(c.Value(i)))
		case *array.Binary:
			r.addBytes(c.Value(i))
		case *array.FixedSizeBinary:
			r.addBytes(c.Value(i))
		default:
			return
		}
	}
}

func (r *keyRange) addBytes(v []byte) {
	if !r.isBytes || bytes.Compare(v, r.min) < 0 {
		r.min = v
	}
	if !r.isBytes || bytes.Compare(v, r.max) > 0 {
		r.max = v
	}
	r.isBytes = true
}

// meets says whether a file with these bounds may hold one of the values.
func (r *keyRange) meets(b lake.Bounds) bool {
	switch {
	case !r.known:
		return true
	case r.isBytes:
		if b.IsInt || b.MinBytes == nil && b.MaxBytes == nil {
			return true
		}
		return bytes.Compare(r.max, b.MinBytes) >= 0 && bytes.Compare(r.min, b.MaxBytes) <= 0
	case !b.IsInt:
		return true
	}
	i, _ := slices.BinarySearch(r.ints, b.MinInt)
	return i < len(r.ints) && r.ints[i] <= b.MaxInt
}
