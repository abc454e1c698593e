package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres"
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
		{fmt.Errorf("start: %w", &ingest.TransactionError{Bytes: 400 << 20}), ddl.WrongState, "larger than the log", "400 MiB", "quota"},
		{fmt.Errorf("log: %w", ingest.ErrNotRunning), ddl.WrongState, "log: pipeline is not running", "", "RESUME; a paused one"},
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

// TestEverySourceErrorIsTold: every sentinel of sources and of the engine has its row.
func TestEverySourceErrorIsTold(t *testing.T) {
	for dir, table := range map[string]string{
		"../../ingest": "problem.go", "../../ingest/postgres": "problem.go",
		"../../lake/duckdb": "../../planner/engine_error.go",
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
