// Package arch holds the rules of the code base that a test can enforce: who imports
// whom, who may read the clock, how large a file or a function may be. Allow-lists
// only shrink.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/skipprd/skipprd/"

// source is one parsed file.
type source struct {
	path string // relative to the module
	dir  string
	test bool
	file *ast.File
	text *token.FileSet
}

// load gives all files of the module, parsed once.
func load(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var parsed = sync.OnceValues(parseAll)

func parseAll() ([]source, error) {
	root := filepath.Join("..", "..")
	var out []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "data") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse %s: %w", rel, err)
		}
		out = append(out, source{path: rel, dir: filepath.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), file: f, text: set})
		return nil
	})
	if err == nil && len(out) < 100 {
		err = fmt.Errorf("only %d files found: the rules look at nothing", len(out))
	}
	return out, err
}

func (s source) imports() []string {
	var out []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

func under(dir string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return dir == r || strings.HasPrefix(dir, r+"/") })
}

// level orders the layers: a package imports only from its own layer or lower ones.
var level = map[string]int{
	"wal": 1, "catalog": 2, "lake": 3, "ingest": 4, "ddl": 5, "planner": 6, "pgwire": 7, "cmd": 8, "sqltests": 9,
}

// lowLeaves are packages that lie lower than their directory's layer.
var lowLeaves = map[string]int{
	"catalog/schema": 0, "catalog/kv": 0, "catalog/kv/memkv": 0, "catalog/kv/pebblekv": 0, "catalog/kv/kvtest": 0,
	"lake/vector": 0, "pgwire/pgerr": 0, "pgwire/copyin": 0, "pgwire/quote": 0, "pgwire/digit": 0, "pgwire/encname": 0, "pgwire/charmap": 0, "pgwire/clienttext": 0, "pgwire/hba": 0, "pgwire/waits": 0, "pgwire/encode": 3, "pgwire/encode/canon": 0, "pgwire/encode/compound": 0, "wal/env": 0, "wal/change": 0, "wal/segment": 0, "wal/mutant": 0,
	// The engine's contract of the wire is declared by its consumer (DESIGN §2).
	"pgwire": 5,
	// Real servers for tests of every layer.
	"sqltests/proc": 0, "sqltests/pgtest": 0, "sqltests/s3test": 0, "sqltests/slt": 7,
	// Part of the program: "skipprd sim".
	"sqltests/sim": 7, "sqltests/sim/check": 7, "sqltests/sim/query": 7, "sqltests/sim/source": 7, "sqltests/sim/script": 7, "sqltests/sim/own": 7,
}

func levelOf(dir string) int {
	if l, ok := lowLeaves[dir]; ok {
		return l
	}
	top, _, _ := strings.Cut(dir, "/")
	return level[top]
}

// TestLayers: data goes one way, and nobody imports up.
func TestLayers(t *testing.T) {
	for _, s := range load(t) {
		if s.test {
			continue
		}
		for _, imp := range s.imports() {
			to, ours := strings.CutPrefix(imp, module)
			if ours && levelOf(to) > levelOf(s.dir) {
				t.Errorf("%s imports %s, which lies higher", s.path, to)
			}
		}
	}
}

// onlyImporters: each outside library has one home.
var onlyImporters = map[string][]string{
	"github.com/cockroachdb/pebble":        {"catalog/kv/pebblekv"},
	"github.com/duckdb/duckdb-go-bindings": {"lake/duckdb"},
	"github.com/apache/iceberg-go":         {"lake/iceberg"},
	"github.com/jackc/pglogrepl":           {"ingest/postgres"},
	"github.com/pganalyze/pg_query_go":     {"planner"},
	"github.com/prometheus/client_golang":  {"cmd/skipprd"},
	"github.com/jackc/pgx/v5/pgproto3":     {"pgwire", "ingest/postgres"},
	"github.com/aws/aws-sdk-go-v2":         {"wal/objstore/s3store"},
	"github.com/aws/smithy-go":             {"wal/objstore/s3store"},
}

func TestOnlyImporters(t *testing.T) {
	for _, s := range load(t) {
		if s.test || under(s.dir, "sqltests") {
			continue
		}
		for _, imp := range s.imports() {
			for lib, homes := range onlyImporters {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !under(s.dir, homes...) {
					t.Errorf("%s imports %s, whose home is %s", s.path, imp, strings.Join(homes, ", "))
				}
			}
		}
	}
}

// worldImplementations may touch the clock, files and entropy; all else gets them
// injected (STYLE §14).
var worldImplementations = []string{
	"wal/env", "catalog/kv/pebblekv", "lake/iceberg", "lake/duckdb", "cmd", "sqltests",
}

var forbiddenCalls = map[string][]string{
	"time":        {"Now", "Sleep", "After", "NewTimer", "NewTicker", "Tick", "AfterFunc", "Since", "Until"},
	"crypto/rand": {"Read", "Int", "Text"},
	"math/rand":   {"Int", "Intn", "Float64", "Perm", "Shuffle", "Seed"},
}

// clockAllowed are files that need the real clock for a reason given here.
var clockAllowed = map[string]string{}

func TestInjectedWorld(t *testing.T) {
	for _, s := range load(t) {
		if s.test || under(s.dir, worldImplementations...) || clockAllowed[s.path] != "" {
			continue
		}
		names := map[string]string{}
		for _, i := range s.file.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			p = strings.TrimSuffix(p, "/v2")
			if _, ok := forbiddenCalls[p]; ok {
				name := p[strings.LastIndex(p, "/")+1:]
				if i.Name != nil {
					name = i.Name.Name
				}
				names[name] = p
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && slices.Contains(forbiddenCalls[names[x.Name]], sel.Sel.Name) {
				t.Errorf("%s:%d: %s.%s; take env.Clock or env.IDs", s.path, s.text.Position(n.Pos()).Line, x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

// TestNoSQLStateBelow: errors below the SQL line speak the domain.
func TestNoSQLStateBelow(t *testing.T) {
	for _, s := range load(t) {
		if s.test || !under(s.dir, "wal", "catalog", "lake", "ingest") {
			continue
		}
		for _, imp := range s.imports() {
			if imp == module+"pgwire/pgerr" || strings.HasPrefix(imp, "github.com/jeroenrinzema/psql-wire") {
				t.Errorf("%s imports %s", s.path, imp)
			}
		}
	}
}

const (
	fileLinesMax     = 600
	testLinesMax     = 800
	functionLinesMax = 70
)

// longFiles and longFunctions are what is too long today. They only shrink.
var (
	longFiles     = map[string]bool{}
	longFunctions = map[string]bool{}
)

func TestSizes(t *testing.T) {
	for _, s := range load(t) {
		lines := s.text.Position(s.file.FileEnd).Line
		limit := fileLinesMax
		if s.test {
			limit = testLinesMax
		}
		if lines > limit && !longFiles[s.path] {
			t.Errorf("%s has %d lines, at most %d", s.path, lines, limit)
		}
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := s.text.Position(f.End()).Line - s.text.Position(f.Pos()).Line + 1
			if n > functionLinesMax && !longFunctions[s.path+":"+f.Name.Name] {
				t.Errorf("%s: %s has %d lines, at most %d", s.path, f.Name.Name, n, functionLinesMax)
			}
		}
	}
}

// TestNoInit: no package state is made before main.
func TestNoInit(t *testing.T) {
	for _, s := range load(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", s.path)
			}
		}
	}
}
