package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres"
	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func TestProblemOf(t *testing.T) {
	wrap := func(err error) error {
		return fmt.Errorf("set up slot s: %w: %w", ingest.ErrSourceUnavailable, fmt.Errorf("check: %w", err))
	}
	setup := &postgres.SetupError{Problems: []postgres.Problem{
		{What: "wal_level is replica", Fix: "ALTER SYSTEM SET wal_level = logical;"}, {What: "no slot is free"},
	}}
	for _, c := range []struct {
		err                   error
		kind                  ddl.ProblemKind
		message, detail, hint string
	}{
		{
			wrap(setup), ddl.NotPrepared, "the source is not ready",
			"wal_level is replica: ALTER SYSTEM SET wal_level = logical;\nno slot is free", "VALIDATE CONNECTION",
		},
		{wrap(postgres.ErrSlotLost), ddl.WrongState, "replication slot is lost", "Set up slot s", "RESET"},
		{wrap(postgres.ErrSlotInUse), ddl.Busy, "replication slot is in use", "Set up slot s", "slot_name"},
		{wrap(postgres.ErrOtherServer), ddl.WrongState, "another server", "Set up slot s", "ALTER CONNECTION"},
		{wrap(postgres.ErrDiverged), ddl.WrongState, "another history", "Set up slot s", "RESET"},
		{wrap(postgres.ErrNotSetUp), ddl.WrongState, "not set up", "Set up slot s", "ENABLE"},
		{wrap(errors.New("refused")), ddl.Unreachable, "could not use the source", "refused", "VALIDATE"},
		{
			fmt.Errorf("set up source: %w: %w", ingest.ErrSourceUnavailable, outage.Wrap("list tables", io.ErrUnexpectedEOF)), ddl.Unreachable,
			"could not use the source", "Could not list tables: the connection to the source broke.", "VALIDATE",
		},
		{
			fmt.Errorf("drop: %w", &ingest.BadSourceError{Connection: `a "b`, Cause: errors.New("option PORT: a number is required")}), ddl.NotPrepared,
			`connection "a ""b" cannot be used`, "Option PORT: a number is required.", "",
		},
		{
			fmt.Errorf("connection c: option PASSWORD: %w", &catalog.SecretError{Name: "Pw", Reason: "environment variable X is not set"}), ddl.NotPrepared,
			`secret "Pw" cannot be read`, "Environment variable X is not set.", `ALTER SECRET "Pw" AS '…';`,
		},
		{fmt.Errorf("start: %w", &ingest.TransactionError{Bytes: 400 << 20}), ddl.WrongState, "larger than the log", "400 MiB", "quota"},
		{fmt.Errorf("log: %w", ingest.ErrNotRunning), ddl.WrongState, "log: pipeline is not running", "", "PIPELINE … ENABLE; starts it"},
	} {
		var p *ddl.Problem
		if err := problemOf(c.err); !errors.As(err, &p) {
			t.Errorf("%v: %v", c.err, err)
			continue
		}
		if p.Kind != c.kind || !strings.Contains(p.Message, c.message) || !strings.Contains(p.Detail, c.detail) ||
			!strings.Contains(p.Hint, c.hint) || !errors.Is(p, c.err) {
			t.Errorf("%v:\nkind %d, %q, %q, %q", c.err, p.Kind, p.Message, p.Detail, p.Hint)
		}
	}
	for err, want := range map[error]string{
		duckdb.ErrWorkerDied: "58000", duckdb.ErrOutOfMemory: "53200", duckdb.ErrCorrupt: "XX001", duckdb.ErrPlan: "XX000",
		duckdb.ErrClosed: "57P03", duckdb.ErrSliceLost: "40001",
		&duckdb.EngineError{Kind: duckdb.KindOutOfMemory}: "53200", &duckdb.EngineError{Kind: duckdb.KindIO}: "58030",
	} {
		e, ok := pgerr.As(problemOf(errors.Join(fmt.Errorf("compact table 3: %w", err))))
		if !ok || string(e.Code) != want {
			t.Errorf("%v: %v, want %s", err, e, want)
		}
	}
	if err := errors.New("other"); problemOf(err) != err || problemOf(nil) != nil {
		t.Error("an error that is nobody's to mend was changed")
	}
}

// TestProblemIn: a hint's statement can be run as it stands, whatever the pipeline's name.
func TestProblemIn(t *testing.T) {
	for name, want := range map[string]string{
		"shop": "ALTER PIPELINE shop ENABLE; starts it, also when it is paused.",
		`a "b`: `ALTER PIPELINE "a ""b" ENABLE; starts it, also when it is paused.`,
	} {
		var p *ddl.Problem
		if err := problemIn(name, fmt.Errorf("sync: %w", ingest.ErrNotRunning)); !errors.As(err, &p) || p.Hint != want {
			t.Errorf("%s: %v, hint %q", name, err, p.Hint)
		}
	}
	if err := errors.New("other"); problemIn("shop", err) != err || problemIn("shop", nil) != nil {
		t.Error("an error that is nobody's to mend was changed")
	}
}

// TestSyncLines: many tables that are copied at once do not flood the client, and those
// that are under way are among the lines.
func TestSyncLines(t *testing.T) {
	s := &ingest.PipelineStatus{State: "backfill"}
	for i := range 300 {
		table := ingest.TableStatus{Schema: "s", Name: fmt.Sprintf("t%d", i), State: string(catalog.TableBackfill)}
		if i == 200 {
			table.Backfill.Rows = 7
		}
		s.Tables = append(s.Tables, table)
	}
	lines := syncLines(s)
	if n := len(lines); n != copiedMost+1 || !strings.HasPrefix(lines[0], "s.t200: ") ||
		!strings.HasPrefix(lines[n-1], "all tables, 290 more than these: ") {
		t.Errorf("%d lines: %q", n, lines)
	}
	s.Tables = s.Tables[:2]
	if lines = syncLines(s); len(lines) != 3 || !strings.HasPrefix(lines[2], "all tables: ") {
		t.Errorf("two tables: %q", lines)
	}
}

// TestEverySourceErrorIsTold: every sentinel of sources and of the engine has its row.
func TestEverySourceErrorIsTold(t *testing.T) {
	for dir, table := range map[string]string{
		"../../ingest": "problem.go", "../../ingest/postgres": "problem.go",
		"../../lake/duckdb": "../../planner/engine.go",
	} {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "errors.go"), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for _, name := range v.Names {
				qualified := f.Name.Name + "." + name.Name
				if strings.HasPrefix(name.Name, "Err") && !strings.Contains(string(text), qualified) {
					t.Errorf("%s has no row in %s", qualified, table)
				}
			}
			return true
		})
	}
}
