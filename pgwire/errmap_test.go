package pgwire_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/segment"
)

type stateError struct{}

func (stateError) Error() string    { return "engine says no" }
func (stateError) SQLState() string { return "22P02" }

func TestTranslate(t *testing.T) {
	canceled := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	bg := context.Background()
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"statement error", bg, fmt.Errorf("run: %w", pgerr.New(codes.Syntax, "syntax error")), "syntax error (SQLSTATE 42601)"},
		{"missing table", bg, fmt.Errorf("bind: %w", &catalog.NotFoundError{Kind: catalog.KindTable, Name: "t"}), `relation "t" does not exist (SQLSTATE 42P01)`},
		{"missing pipeline", bg, &catalog.NotFoundError{Kind: catalog.KindPipeline, Name: "p"}, `pipeline "p" does not exist (SQLSTATE 42704)`},
		{"existing table", bg, &catalog.ExistsError{Kind: catalog.KindTable, Name: "t"}, `relation "t" already exists (SQLSTATE 42P07)`},
		{"existing pipeline", bg, &catalog.ExistsError{Kind: catalog.KindPipeline, Name: "p"}, `pipeline "p" already exists (SQLSTATE 42710)`},
		{"lost slice", bg, fmt.Errorf("read: %w", wal.ErrSliceLost), "rows of the query were moved to the lake while it ran (SQLSTATE 40001)"},
		{"corrupt", bg, fmt.Errorf("read: %w", &segment.CorruptError{Seq: 1, Cause: segment.ErrDigest}), ""},
		{"engine", bg, fmt.Errorf("run: %w", stateError{}), "engine says no (SQLSTATE 22P02)"},
		{"file", bg, &fs.PathError{Op: "open", Path: "/secret", Err: fs.ErrNotExist}, "could not open a file (SQLSTATE 58030)"},
		{"unknown", bg, errors.New("a secret"), "internal error (SQLSTATE XX000)"},
		{"timeout", bg, fmt.Errorf("run: %w", pgwire.ErrStatementTimeout), "canceling statement due to statement timeout (SQLSTATE 57014)"},
		{"deadline", bg, context.DeadlineExceeded, "canceling statement due to statement timeout (SQLSTATE 57014)"},
		{"user", canceled(pgwire.ErrClientCancel), errors.New("stream closed"), "canceling statement due to user request (SQLSTATE 57014)"},
		{"shutdown", canceled(pgwire.ErrShutdown), context.Canceled, "terminating connection due to administrator command (SQLSTATE 57P01)"},
		{"gone", canceled(pgwire.ErrClientGone), context.Canceled, "connection to client lost (SQLSTATE 08006)"},
		{
			"commit in doubt and canceled", canceled(pgwire.ErrClientCancel),
			pgerr.New(codes.TransactionResolutionUnknown, "not known").WithCause(pgwire.ErrClientCancel), "not known (SQLSTATE 08007)",
		},
		{
			"commit in doubt and too late", bg,
			fmt.Errorf("commit: %w", pgerr.New(codes.TransactionResolutionUnknown, "not known").WithCause(pgwire.ErrStatementTimeout)),
			"not known (SQLSTATE 08007)",
		},
		{
			"commit in doubt and shut down", canceled(pgwire.ErrShutdown), pgerr.New(codes.TransactionResolutionUnknown, "not known"),
			"terminating connection due to administrator command (SQLSTATE 57P01)",
		},
		{
			"store in doubt and canceled", canceled(pgwire.ErrClientCancel), errors.Join(objstore.ErrUnavailable, objstore.ErrUnknown),
			"outcome of the write is unknown (SQLSTATE 40003)",
		},
		{"ended context", canceled(nil), pgerr.New(codes.Syntax, "syntax error"), "syntax error (SQLSTATE 42601)"},
	} {
		got := pgwire.Translate(test.ctx, test.err)
		if test.want != "" && got.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.name, got, test.want)
		}
	}
	if e := pgwire.Translate(bg, fmt.Errorf("read: %w", &segment.CorruptError{Seq: 1, Cause: segment.ErrDigest})); e.Code != codes.DataCorrupted {
		t.Errorf("corrupt: %v", e)
	}
}

// untranslated are sentinels that never reach a client by themselves, with the reason.
var untranslated = map[string]string{
	"kv.ErrNotFound": "the catalog turns it into one of its own", "kv.ErrEmptyKey": "a fault of ours: XX000",
	"kv.ErrStop": "ends an iteration", "pgwire.ErrClientCancel": "a cause", "pgwire.ErrClientGone": "a cause",
	"pgwire.ErrShutdown": "a cause", "pgwire.ErrTerminated": "a cause", "pgwire.ErrStatementTimeout": "a cause",
}

// Every exported sentinel of the packages whose errors come up to a session unwrapped
// has a row in the table, or a reason not to.
func TestEverySentinelHasARow(t *testing.T) {
	table, err := os.ReadFile("errmap.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"../wal", "../wal/segment", "../wal/objstore", "../catalog", "../catalog/kv", "../catalog/schema", "../lake", "."} {
		for _, name := range exportedSentinels(t, dir) {
			if !strings.Contains(string(table), "is: "+name+",") && untranslated[name] == "" {
				t.Errorf("%s has no row in errmap.go", name)
			}
		}
	}
}

func exportedSentinels(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					if strings.HasPrefix(n.Name, "Err") {
						out = append(out, f.Name.Name+"."+n.Name)
					}
				}
			}
		}
	}
	return out
}
