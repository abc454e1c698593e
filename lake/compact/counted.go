package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/mutant"
)

// ErrNoCopy means that a delete of a whole row finds no row in the lake that equals it:
// what is here is not what the source had. No further change of the table can be trusted.
var ErrNoCopy = errors.New("a deleted row is not in the lake")

// hasDeletes says whether a slice that applies has a delete.
func (j *job) hasDeletes() bool {
	return slices.ContainsFunc(j.applied(), func(s catalog.Slice) bool { return s.Counts.Deletes > 0 })
}

// writeCounted turns slices of a table whose rows are told apart by all their columns into
// files: inserts and deletes of equal rows cancel out; each delete that is left takes one
// equal row of base away.
func (s *Service) writeCounted(ctx context.Context, tbl lake.Table, j *job, base *lake.Snapshot, out *output) error {
	batches, err := s.readAll(ctx, j)
	defer release(batches)
	if err != nil {
		return err
	}
	winners, err := merge.Cancel(batches)
	if err != nil {
		return err
	}
	deletes := make([]merge.Selection, len(batches))
	for i, b := range batches {
		if b != nil && !mutant.On(mutant.LakeCopyKept) {
			deletes[i] = onlyDeletes(b, winners[i])
		}
	}
	positions, err := s.taken(ctx, j.target(), base, batches, deletes)
	if err != nil {
		return err
	}
	return s.writeMerged(ctx, tbl, j, out, positions, batches, winners)
}

// onlyDeletes are the chosen rows that are deletes.
func onlyDeletes(b arrow.RecordBatch, chosen []int32) []int32 {
	op := b.Column(opColumn).(*array.Uint8)
	var kept []int32
	for _, r := range chosen {
		if change.Op(op.Value(int(r))) == change.Delete {
			kept = append(kept, r)
		}
	}
	return kept
}

// taken finds for each delete one row of the lake that equals it, sorted. Of files whose
// bounds exclude every deleted row nothing is read. It wraps ErrNoCopy.
func (s *Service) taken(
	ctx context.Context, t *schema.Table, base *lake.Snapshot, batches []arrow.RecordBatch, deletes []merge.Selection,
) ([]lake.Position, error) {
	want := 0
	for _, d := range deletes {
		want += len(d)
	}
	if want == 0 {
		return nil, nil
	}
	files := slices.Clone(base.Files)
	for i, f := range t.Fields {
		col := change.SystemColumns + i
		if anyNull(batches, deletes, col) {
			continue // no bounds speak of nulls
		}
		r := newKeyRange(batches, deletes, col)
		files = slices.DeleteFunc(files, func(d lake.DataFile) bool { return !r.meets(d.Bounds[f.ID]) })
	}
	var out []lake.Position
	if len(files) > 0 {
		rows, err := rowStream(ctx, t.Fields, t, batches, deletes)
		if err == nil {
			out, err = s.search(ctx, files, takenPlan(t.Fields, files, base.PositionDeletes, rows))
		}
		if err != nil {
			return nil, fmt.Errorf("search deleted rows: %w", err)
		}
	}
	if len(out) != want {
		return nil, fmt.Errorf("%d of %d deletes: %w", want-len(out), want, ErrNoCopy)
	}
	return out, nil
}

func anyNull(batches []arrow.RecordBatch, chosen []merge.Selection, col int) bool {
	for i, rows := range chosen {
		if len(rows) == 0 || batches[i].Column(col).NullN() == 0 {
			continue
		}
		if slices.ContainsFunc(rows, func(r int32) bool { return batches[i].Column(col).IsNull(int(r)) }) {
			return true
		}
	}
	return false
}

// takenPlan finds as many rows of the files as there are deletes of each.
func takenPlan(columns []schema.Field, files []lake.DataFile, deletes []lake.DeleteFile, rows []byte) *duckdb.Plan {
	left, right := searched(columns, files, deletes), duckdb.Relation{Name: keysRelation, Inline: rows}
	left.WholeRow = true
	right.Columns = left.Columns
	less := `SELECT count(*) AS _skippr_n, row_number() OVER () AS _skippr_row` + selectList(left.Columns, "x") +
		` FROM ` + quote.Name(keysRelation) + ` AS x GROUP BY ` + strings.Join(duckdb.RowIdentity(left.Columns, "x"), ", ")
	return &duckdb.Plan{
		SQL: `SELECT f."_skippr_file", f."_skippr_pos" FROM (SELECT l."_skippr_file", l."_skippr_pos", d._skippr_n,` +
			` row_number() OVER (PARTITION BY d._skippr_row ORDER BY l."_skippr_file", l."_skippr_pos") AS _skippr_copy FROM ` +
			quote.Name(lakeRelation) + ` AS l JOIN (` + less + `) d ON ` + duckdb.SameRow(left.Columns, "l", "d") +
			`) f WHERE f._skippr_copy <= f._skippr_n`,
		Relations: []duckdb.Relation{left, right},
		Output:    duckdb.Output{Kind: duckdb.OutputArrow},
	}
}

func selectList(columns []duckdb.Column, of string) string {
	var b strings.Builder
	for _, c := range columns {
		b.WriteString(", " + of + "." + quote.Name(c.Name))
	}
	return b.String()
}

// stopTable stops a table whose rows here are not those of the source, unless it has been
// begun anew since.
func (s *Service) stopTable(ctx context.Context, differs *catalog.Table) error {
	id := differs.ID
	err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		t, err := txn.TableByID(id)
		if err != nil || t.State == catalog.TableStopped || t.Generation != differs.Generation {
			return err
		}
		p, err := txn.PipelineByID(t.Pipeline)
		if err != nil {
			return err
		}
		t.State, t.StoppedAt = catalog.TableStopped, ""
		t.Reason = "a row was deleted at the source that is not here, so the table differs from the source's"
		t.Hint = t.Exact("Copy it anew: ALTER PIPELINE … RESYNC TABLE …;", p.Name)
		return errors.Join(txn.PutTable(t), txn.AddEvent(catalog.Event{
			At: txn.Now(), Level: "error", Pipeline: p.Name, Table: t.Schema + "." + t.Name, Kind: "table stopped",
			Detail: t.Reason + ". " + t.Hint,
		}))
	})
	if err != nil {
		return fmt.Errorf("stop table %d: %w", id, err)
	}
	s.log.Error("table stopped", env.KeyTable, uint32(id), env.KeyReason, ErrNoCopy)
	return nil
}
