package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/lake/compact"
)

// controller joins the statements (ddl.Controller) to the supervisor of the pipelines
// and to the compactor.
type controller struct {
	*ingest.Supervisor
	compactor *compact.Service
	leader    *leader // nil: logs are on disk
	comparer  *verify.Comparer
}

var (
	_ ddl.Controller = (*controller)(nil)
	_ ddl.Retrier    = (*controller)(nil)
)

// Discover lists the columns of the tables that sel names.
func (c *controller) Discover(ctx context.Context, conn *catalog.Connection, sel catalog.TableSelection) ([]ddl.Discovered, error) {
	tables, err := c.Supervisor.Discover(ctx, conn, sel)
	if err != nil {
		return nil, problemOf(err)
	}
	var out []ddl.Discovered
	for _, t := range tables {
		d := ddl.Discovered{
			Schema: t.Schema, Table: t.Name, EstimatedRows: t.EstimatedRows, EstimatedBytes: t.EstimatedBytes,
			Unsupported: t.Unsupported, Hint: t.Hint, Missing: t.OID == 0 && t.Unsupported != "", Notes: t.Notes,
		}
		if len(t.Columns) == 0 {
			out = append(out, d)
			continue
		}
		for _, col := range t.Columns {
			d := d
			d.Column, d.SourceType, d.NotNull, d.Policy = col.Name, col.TypeName, col.NotNull, col.Note
			d.LakeType = schema.EngineType(col.Type)
			for _, k := range t.Key {
				d.Key = d.Key || k == col.Name
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// Validate returns everything that the source lacks.
func (c *controller) Validate(ctx context.Context, conn *catalog.Connection, p *catalog.Pipeline) ([]ddl.Finding, error) {
	findings, err := c.Supervisor.Validate(ctx, conn, p)
	var out []ddl.Finding
	for _, f := range findings {
		out = append(out, ddl.Finding{Check: f.Check, OK: f.OK, Detail: f.Detail, Fix: f.Fix})
	}
	return out, problemOf(err)
}

// Start begins the pipeline's work.
func (c *controller) Start(ctx context.Context, name string) error {
	err := c.Supervisor.Start(ctx, name)
	if waits := (*ingest.WaitingError)(nil); errors.As(err, &waits) {
		return &ddl.Waiting{Reason: waits.Reason}
	}
	return problemIn(name, err)
}

// Stop ends the pipeline's work.
func (c *controller) Stop(ctx context.Context, name string) error {
	return problemIn(name, c.Supervisor.Stop(ctx, name))
}

// Reset forgets all data of the pipeline.
func (c *controller) Reset(ctx context.Context, name string) error {
	return problemIn(name, c.Supervisor.Reset(ctx, name))
}

// Drop removes the pipeline.
func (c *controller) Drop(ctx context.Context, name string, keepData bool) ([]string, error) {
	left, err := c.Supervisor.Drop(ctx, name, keepData)
	return left, problemIn(name, err)
}

// AddTables takes tables into a pipeline.
func (c *controller) AddTables(ctx context.Context, name string, tables []catalog.SelectedTable) ([]string, error) {
	added, err := c.Supervisor.AddTables(ctx, name, tables)
	return added, problemIn(name, err)
}

// DropTable takes a table out of a pipeline.
func (c *controller) DropTable(ctx context.Context, name string, t catalog.SelectedTable) error {
	return problemIn(name, c.Supervisor.DropTable(ctx, name, t))
}

// ResumeTable lets a stopped table go on.
func (c *controller) ResumeTable(ctx context.Context, name string, t catalog.SelectedTable) error {
	return problemIn(name, c.Supervisor.ResumeTable(ctx, name, t))
}

// ResyncTable copies a table anew.
func (c *controller) ResyncTable(ctx context.Context, name string, t catalog.SelectedTable) error {
	return problemIn(name, c.Supervisor.ResyncTable(ctx, name, t))
}

// RetryLetters applies dead letters again.
func (c *controller) RetryLetters(ctx context.Context, name string, only map[uint64]bool, tell func(string)) (ddl.RetriedLetters, error) {
	res, err := c.Supervisor.RetryDeadLetters(ctx, name, only, tell)
	return ddl.RetriedLetters(res), problemIn(name, err)
}

// Compact moves all live changes of the pipeline into the lake.
func (c *controller) Compact(ctx context.Context, name string) error {
	return problemIn(name, c.compactor.Compact(ctx, name))
}

// Sync runs until the pipeline has caught up.
func (c *controller) Sync(ctx context.Context, name string, d time.Duration, progress func(string)) ([]ddl.Synced, error) {
	tables, err := c.Supervisor.Sync(ctx, name, d, func(s ingest.PipelineStatus) {
		for _, line := range syncLines(&s) {
			progress(line)
		}
	})
	var out []ddl.Synced
	for _, t := range tables {
		out = append(out, ddl.Synced{Table: t.Schema + "." + t.Table, State: t.State, Rows: t.Rows, Bytes: t.Bytes, LagSeconds: t.LagSeconds})
	}
	return out, problemIn(name, err)
}

// copiedMost bounds the lines of tables that are being copied at once.
const copiedMost = 10

// syncLines says how far a pipeline is: a line for each table that is being copied, those
// that have begun first, or one for the stream.
func syncLines(s *ingest.PipelineStatus) []string {
	var begun, waiting []string
	for _, t := range s.Tables {
		if t.State != string(catalog.TableBackfill) && t.State != ingest.StateResync {
			continue
		}
		line := fmt.Sprintf("%s.%s: %s", t.Schema, t.Name, copiedLine(&t.Backfill))
		if t.Backfill.Rows > 0 {
			begun = append(begun, line)
		} else {
			waiting = append(waiting, line)
		}
	}
	out := append(begun, waiting...)
	switch n := len(out); {
	case n > copiedMost:
		return append(out[:copiedMost], fmt.Sprintf("all tables, %d more than these: %s", n-copiedMost, copiedLine(&s.Backfill)))
	case n > 1:
		return append(out, "all tables: "+copiedLine(&s.Backfill))
	case n > 0:
		return out
	}
	line := fmt.Sprintf("%s: %s rows/s, %.1f MB behind the source", s.State, si(s.RowsPerSecond), float64(s.LagBytes)/(1<<20))
	if s.Reason != "" {
		line += ": " + s.Reason
	}
	return []string{line}
}

// copiedLine says how far an initial copy is.
func copiedLine(b *ingest.BackfillStatus) string {
	line := fmt.Sprintf("%.1f%% copied, %d rows", b.Percent, b.Rows)
	if b.Estimated > 0 {
		line += fmt.Sprintf(" of about %d", b.Estimated)
	}
	line += fmt.Sprintf(", %s rows/s", si(b.RowsPerSecond))
	if b.SecondsLeft > 0 {
		line += fmt.Sprintf(", %s left", time.Duration(b.SecondsLeft*float64(time.Second)).Round(time.Second))
	}
	return line
}

// backfill is how far an initial copy is, as the statements show it.
func backfill(b ingest.BackfillStatus) ddl.Backfill {
	return ddl.Backfill{
		Percent: b.Percent, Rows: b.Rows, Estimated: b.Estimated, Bytes: b.Bytes,
		RowsPerSecond: b.RowsPerSecond, SecondsLeft: b.SecondsLeft, StartedAt: b.StartedAt,
	}
}

// Status is the live state of a pipeline.
func (c *controller) Status(name string) (ddl.PipelineStatus, bool) {
	s, ok := c.Supervisor.Status(name)
	out := ddl.PipelineStatus{
		State: s.State, Reason: s.Reason, SourcePosition: string(s.SourcePosition), AckedPosition: string(s.Acked),
		LagBytes: s.LagBytes, RetainedBytes: s.RetainedBytes, LagSeconds: s.LagSeconds, SlotState: s.SlotState,
		ConfirmedPosition: string(s.Confirmed), RetainedBytesPerSecond: s.RetainedBytesPerSecond,
		WrittenBytesPerSecond: s.WrittenBytesPerSecond, Limited: s.Limited, SafeBytes: s.SafeBytes,
		SecondsToLoss: s.SecondsToLoss, InactiveSince: s.InactiveSince,
		RowsPerSecond: s.RowsPerSecond, BytesPerSecond: s.BytesPerSecond,
		Rows: s.Metrics.StreamRows + s.Metrics.CopiedRows, Bytes: s.Metrics.LogBytes, Transactions: s.Metrics.Transactions,
		LastCommitAt: s.LastCommitAt, LogCommits: int64(s.LogCommits), // counts fit
		Position: string(s.Position), LakePosition: string(s.LakePosition),
	}
	out.Backfill = backfill(s.Backfill)
	if c.leader != nil {
		out.LogEpoch, out.LogHost = uint32(s.LogEpoch), c.leader.host
	}
	for _, t := range s.Tables {
		out.Tables = append(out.Tables, ddl.TableStatus{
			Schema: t.Schema, Name: t.Name, State: t.State, Reason: t.Reason, Hint: t.Hint,
			Backfill: backfill(t.Backfill), Inserts: t.Metrics.Inserts, Updates: t.Metrics.Updates,
			Deletes: t.Metrics.Deletes, LastCommitAt: t.LastCommitAt, LagBytes: t.Lag.Bytes, LagSeconds: t.Lag.Seconds,
		})
	}
	return out, ok
}
