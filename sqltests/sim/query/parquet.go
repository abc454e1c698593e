package query

import (
	"context"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
)

// ParquetFiles reads the files of a lake on a disk, for worlds with the real lake.
type ParquetFiles struct{}

var _ Files = ParquetFiles{}

// File implements Files.
func (ParquetFiles) File(path string) ([]arrow.RecordBatch, error) {
	_, rows, err := readParquet(path)
	return rows, err
}

// FileSchema implements Files. Of the fields only the ids are known.
func (ParquetFiles) FileSchema(path string) (*schema.Table, error) {
	s, _, err := readParquet(path)
	if err != nil {
		return nil, err
	}
	t := &schema.Table{}
	for _, f := range s.Fields() {
		text, _ := f.Metadata.GetValue("PARQUET:field_id")
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("field id of column %q: %w", f.Name, err)
		}
		if int32(id) != schema.TokenFieldID {
			t.Fields = append(t.Fields, schema.Field{ID: int32(id), Name: f.Name})
		}
	}
	return t, nil
}

// Deletes implements Files.
func (ParquetFiles) Deletes(path string) ([]lake.Position, error) {
	_, rows, err := readParquet(path)
	if err != nil {
		return nil, err
	}
	var out []lake.Position
	for _, r := range rows {
		names, okNames := r.Column(0).(*array.String)
		at, okAt := r.Column(1).(*array.Int64)
		if !okNames || !okAt {
			return nil, fmt.Errorf("delete file %s has columns %s", path, r.Schema())
		}
		for i := range int(r.NumRows()) {
			out = append(out, lake.Position{File: names.Value(i), Row: at.Value(i)})
		}
	}
	return out, nil
}

// batchRows is how many rows of a file are read at once.
const batchRows = 4096

func readParquet(path string) (*arrow.Schema, []arrow.RecordBatch, error) {
	f, err := file.OpenParquetFile(path, false)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: batchRows}, memory.DefaultAllocator)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", path, err)
	}
	t, err := r.ReadTable(context.Background())
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer t.Release()
	var out []arrow.RecordBatch
	each := array.NewTableReader(t, batchRows)
	defer each.Release()
	for each.Next() {
		rec := each.RecordBatch()
		rec.Retain()
		out = append(out, rec)
	}
	return t.Schema(), out, each.Err()
}
