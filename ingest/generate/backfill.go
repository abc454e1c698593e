package generate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// backfill reads the shop at one transaction. Safe for concurrent Reads: its state
// does not advance.
type backfill struct {
	cfg   Config
	state *State
	exact bool
}

const (
	readersMax = 4
	batchRows  = 8192
)

func (b *backfill) Horizon() change.Position { return position(b.state.N()) }
func (b *backfill) Exact() bool              { return b.exact }
func (b *backfill) Parallel() int            { return readersMax }
func (b *backfill) Close() error             { return nil }

// Describe says how tables always look.
func (b *backfill) Describe(_ context.Context, wanted map[uint32]catalog.SelectedTable, _ bool) (map[uint32]ingest.SourceTable, error) {
	out := map[uint32]ingest.SourceTable{}
	for _, t := range Tables() {
		st := t.Source(b.state.shop.Initial(t))
		if w, ok := wanted[st.OID]; ok {
			out[st.OID] = narrow(st, w.Columns)
		}
	}
	return out, nil
}

// Plan cuts the ids into ranges "from:to"; the last is open, so that a later session
// finds later rows in it.
func (b *backfill) Plan(_ context.Context, t ingest.SourceTable) ([]string, error) {
	table, err := byOID(t.OID)
	if err != nil {
		return nil, err
	}
	var chunks []string
	from, initial := int64(1), b.state.shop.Initial(table)
	for ; from+b.cfg.ChunkRows <= initial; from += b.cfg.ChunkRows {
		chunks = append(chunks, fmt.Sprintf("%d:%d", from, from+b.cfg.ChunkRows))
	}
	return append(chunks, fmt.Sprintf("%d:", from)), nil
}

// Read delivers the rows of a range of ids.
func (b *backfill) Read(ctx context.Context, t ingest.SourceTable, s *schema.Table, chunk string, token int64,
	emit func(*change.Batch) error,
) error {
	table, columns, err := fields(t, s)
	if err != nil {
		return err
	}
	from, to, err := parseChunk(chunk)
	if err != nil {
		return err
	}
	builder := change.NewBuilder(memory.DefaultAllocator, 0, s.Version, s.Arrow())
	defer builder.Release()
	builder.Backfill = true
	var ordinal int32
	flush := func() error {
		ordinal = 0
		return emit(builder.Batch())
	}
	err = b.state.each(table, from, to, func(r Row) error {
		if err := appendRow(builder, change.Insert, token, ordinal, r, columns); err != nil {
			return err
		}
		ordinal++
		if builder.Rows() < batchRows {
			return nil
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return flush()
	})
	if err != nil {
		return fmt.Errorf("read %s %s: %w", table, chunk, err)
	}
	if builder.Rows() == 0 {
		return nil
	}
	return flush()
}

func parseChunk(chunk string) (from, to int64, err error) {
	low, high, ok := strings.Cut(chunk, ":")
	if ok {
		from, err = strconv.ParseInt(low, 10, 64)
	}
	if ok && err == nil && high != "" {
		to, err = strconv.ParseInt(high, 10, 64)
	}
	if !ok || err != nil {
		return 0, 0, fmt.Errorf("chunk %q is not a range of ids", chunk)
	}
	return from, to, nil
}

func byOID(oid uint32) (Table, error) {
	if oid < oidBase || oid >= oidBase+uint32(tableCount) {
		return 0, fmt.Errorf("generator has no table with OID %d", oid)
	}
	return Table(oid - oidBase), nil
}

// fields maps the fields of a schema to the values of the table's rows.
func fields(t ingest.SourceTable, s *schema.Table) (Table, []int, error) {
	table, err := byOID(t.OID)
	if err != nil {
		return 0, nil, err
	}
	columns := make([]int, len(s.Fields))
	for i, f := range s.Fields {
		columns[i] = -1
		for j, c := range shopTables[table].columns {
			if c.Name == f.Name {
				columns[i] = j
			}
		}
		if columns[i] < 0 {
			return 0, nil, &ingest.TableError{Reason: fmt.Sprintf("column %s is not in %s", quote.Name(f.Name), table)}
		}
	}
	return table, columns, nil
}
