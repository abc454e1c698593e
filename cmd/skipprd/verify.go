package main

import (
	"context"
	"errors"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// restingLake is the compactor for comparisons.
type restingLake struct{ *compact.Service }

var _ verify.Lake = restingLake{}

// HoldLog implements verify.Lake.
func (l restingLake) HoldLog(p change.PipelineID, from segment.Seq) verify.LogHold {
	return l.Service.HoldLog(p, from)
}

// Verify compares a pipeline with its source.
func (c *controller) Verify(ctx context.Context, r ddl.VerifyRequest, progress func(string)) ([]ddl.VerifyLine, error) {
	lines, err := c.comparer.Compare(ctx, verify.Request{
		Pipeline: r.Pipeline, Tables: r.Tables, Options: verify.Options{Ranges: r.Ranges, Keys: r.Keys},
		RowsPerSecond: r.RowsPerSecond, Wait: r.Wait,
	}, progress)
	if ctx.Err() == nil {
		err = compareProblem(err)
	}
	return linesOf(lines), problemIn(r.Pipeline, err)
}

var refusalKinds = map[verify.RefusalKind]ddl.ProblemKind{
	verify.NotNow: ddl.WrongState, verify.Crowded: ddl.Busy, verify.NoSuchTable: ddl.NoSuchTable, verify.NotSupported: ddl.NotSupported,
}

// compareProblem says of a comparison what is for the user to mend.
func compareProblem(err error) error {
	var r *verify.Refusal
	if errors.As(err, &r) {
		return &ddl.Problem{Kind: refusalKinds[r.Kind], Message: r.Message, Detail: r.Detail, Hint: r.Hint, Cause: err}
	}
	if errors.Is(err, ingest.ErrSourceUnavailable) {
		return &ddl.Problem{
			Kind: ddl.Unreachable, Message: "could not read the source", Detail: sentence(err),
			Hint: "VALIDATE CONNECTION … says what is missing; then run the statement again.", Cause: err,
		}
	}
	return err
}

func linesOf(lines []verify.Line) []ddl.VerifyLine {
	var out []ddl.VerifyLine
	for _, l := range lines {
		d := ddl.VerifyLine{Table: l.Table, Low: l.Low, High: l.High, State: string(l.State), Key: l.Key, Detail: l.Detail}
		if l.Counted() {
			d.RowsSource, d.RowsHere = &l.RowsSource, &l.RowsHere
		}
		out = append(out, d)
	}
	return out
}
