package iceberg

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/lake"
)

// The id of pos in position delete files, set by the Iceberg specification.
const posFieldID = 2147483545

// WriteDeletes implements lake.Table. referenced_data_file stays unset: one file names
// rows of many data files.
func (t *tableHandle) WriteDeletes(ctx context.Context, positions []lake.Position) (*lake.DeleteFile, error) {
	d, err := t.writeDeletes(ctx, positions)
	if err != nil {
		return nil, fmt.Errorf("write deletes of lake table %s: %w", t.ident, err)
	}
	return d, nil
}

func (t *tableHandle) writeDeletes(ctx context.Context, positions []lake.Position) (*lake.DeleteFile, error) {
	if len(positions) == 0 {
		return nil, fmt.Errorf("no positions")
	}
	as := arrow.NewSchema([]arrow.Field{
		{Name: "file_path", Type: arrow.BinaryTypes.String, Metadata: fieldID(filePathFieldID)},
		{Name: "pos", Type: arrow.PrimitiveTypes.Int64, Metadata: fieldID(posFieldID)},
	}, nil)
	props := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithDataPageVersion(parquet.DataPageV2),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithMaxRowGroupLength(t.w.cfg.RowGroupRows),
		parquet.WithDictionaryFor("pos", false),
		parquet.WithEncodingFor("pos", parquet.Encodings.DeltaBinaryPacked), // in order within a file
	)
	f, err := t.createParquet(t.dataPath("-deletes"), as, props)
	if err != nil {
		return nil, err
	}
	names, err := f.writePositions(ctx, as, positions)
	if err != nil {
		f.discard()
		return nil, err
	}
	// Whole paths as bounds: cut ones would not tell data files apart.
	full := icebergo.Properties{table.MetricsModeColumnConfPrefix + ".file_path": "full"}
	df, err := f.close(icebergo.PositionalDeleteSchema, icebergo.EntryContentPosDeletes, full)
	if err != nil {
		f.discard()
		return nil, err
	}
	t.pending[f.path] = pendingFile{file: df, names: names}
	out := deleteFile(df)
	return &out, nil
}

func (f *parquetFile) writePositions(
	ctx context.Context, as *arrow.Schema, positions []lake.Position,
) (map[string]struct{}, error) {
	names := map[string]struct{}{}
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	file, pos := b.Field(0).(*array.StringBuilder), b.Field(1).(*array.Int64Builder)
	flush := func() error {
		rec := b.NewRecordBatch()
		defer rec.Release()
		return f.pw.WriteBuffered(rec)
	}
	for i, p := range positions {
		if i > 0 && !positionLess(positions[i-1], p) {
			return nil, fmt.Errorf("positions are not in order at %s row %d", p.File, p.Row)
		}
		if i == 0 || p.File != positions[i-1].File {
			names[p.File] = struct{}{}
		}
		file.Append(p.File)
		pos.Append(p.Row)
		if pos.Len() == writeChunkRows {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			if err := flush(); err != nil {
				return nil, fmt.Errorf("encode: %w", err)
			}
		}
	}
	if pos.Len() > 0 {
		if err := flush(); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
	}
	return names, nil
}

func positionLess(a, b lake.Position) bool {
	return a.File < b.File || a.File == b.File && a.Row < b.Row
}
