package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fileHomes may touch files; all else gets a store or a wal.FS.
var fileHomes = []string{"catalog/kv/pebblekv", "lake/duckdb", "lake/iceberg", "planner/syscat/gen", "cmd", "sqltests"}

// fileHomeFiles are the files outside of fileHomes that may.
var fileHomeFiles = []string{"wal/disk_fs.go"}

// TestFiles: whoever does not implement a store does not use the file system, the
// environment, or the process.
func TestFiles(t *testing.T) {
	for _, s := range load(t) {
		if s.test || under(s.dir, fileHomes...) || slices.Contains(fileHomeFiles, filepath.ToSlash(s.path)) {
			continue
		}
		s.eachCall(func(call *ast.CallExpr, pkg, name string) {
			if pkg == "os" && name != "Getpid" || pkg == "os/exec" || pkg == "io/ioutil" {
				t.Errorf("%s calls %s.%s", s.at(call), pkg, name)
			}
		})
	}
}

// TestNoPrint: what there is to say goes to the logger that was passed in.
func TestNoPrint(t *testing.T) {
	global := []string{"Debug", "Info", "Warn", "Error", "Default", "SetDefault", "DebugContext", "InfoContext", "WarnContext", "ErrorContext"}
	for _, s := range load(t) {
		if under(s.dir, "cmd", "sqltests", "planner/syscat/gen") {
			continue
		}
		if slices.Contains(s.imports(), "log") {
			t.Errorf("%s imports log", s.path)
		}
		s.eachCall(func(call *ast.CallExpr, pkg, name string) {
			if pkg == "fmt" && strings.HasPrefix(name, "Print") || pkg == "log/slog" && slices.Contains(global, name) {
				t.Errorf("%s calls %s.%s", s.at(call), pkg, name)
			}
		})
	}
}

// sleepers are tests that wait for the wall clock, because they measure or watch a
// process from outside.
var sleepers = []string{"sqltests/bench/bench_test.go", "sqltests/e2e/reads_test.go", "wal/bench_test.go"}

// TestNoSleep: a test waits for what it waits for, not for a while. In a bubble of
// testing/synctest a sleep moves the fake clock.
func TestNoSleep(t *testing.T) {
	for _, s := range load(t) {
		if !s.test || slices.Contains(sleepers, filepath.ToSlash(s.path)) || slices.Contains(s.imports(), "testing/synctest") {
			continue
		}
		s.eachCall(func(call *ast.CallExpr, pkg, name string) {
			if pkg == "time" && name == "Sleep" {
				t.Errorf("%s sleeps", s.at(call))
			}
		})
	}
}

// goroutineFiles start goroutines: to know all that runs, look at files of these names.
var goroutineFiles = []string{"loop.go", "server.go", "supervisor.go"}

// TestGoroutines: only a loop, a server and a supervisor start goroutines.
func TestGoroutines(t *testing.T) {
	for _, s := range load(t) {
		if s.test || under(s.dir, "cmd", "sqltests", "ingest/sourcetest", "wal/objstore/storetest") || slices.Contains(goroutineFiles, filepath.Base(s.path)) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", s.at(n))
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
					t.Errorf("%s starts a goroutine", s.at(n))
				}
			}
			return true
		})
	}
}

// TestDocs: a package says what it is, and what it exports says what it promises.
func TestDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range load(t) {
		documented[s.dir] = documented[s.dir] || s.file.Doc.Text() != ""
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
	for _, s := range load(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc.Text() == "" && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", s.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				s.checkSpecs(t, d)
			}
		}
	}
}

// TestArchitectureNamesPackages: the map shows every package.
func TestArchitectureNamesPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range load(t) {
		if !strings.Contains(string(text), "`"+filepath.ToSlash(s.dir)+"`") {
			t.Errorf("ARCHITECTURE.md does not name %s", s.dir)
		}
	}
}

func (s source) checkSpecs(t *testing.T, d *ast.GenDecl) {
	carried, end := "", 0 // a comment holds for the lines that follow it without a gap
	for _, spec := range d.Specs {
		var names []*ast.Ident
		doc := d.Doc.Text()
		switch v := spec.(type) {
		case *ast.TypeSpec:
			names, doc = []*ast.Ident{v.Name}, doc+v.Doc.Text()
		case *ast.ValueSpec:
			names, doc = v.Names, doc+v.Doc.Text()+v.Comment.Text()
		}
		if doc == "" && s.text.Position(spec.Pos()).Line == end+1 {
			doc = carried
		}
		carried, end = doc, s.text.Position(spec.End()).Line
		for _, n := range names {
			if n.IsExported() && doc == "" {
				t.Errorf("%s: %s has no comment", s.at(n), n.Name)
			}
		}
	}
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	x := f.Recv.List[0].Type
	for {
		switch v := x.(type) {
		case *ast.StarExpr:
			x = v.X
		case *ast.IndexExpr:
			x = v.X
		case *ast.Ident:
			return v.IsExported()
		default:
			return true
		}
	}
}

const (
	parametersMax = 6 // besides a context
	methodsMax    = 7
	filesMax      = 25
)

// What is too large today. The lists only shrink.
var (
	largePackages = map[string]bool{
		"ingest/postgres": true, "lake/duckdb": true, "planner/pgsql": true,
		"sqltests/sim/check": true, // a file for each invariant of DESIGN §10
	}
	largeInterfaces = map[string]bool{"ddl.Controller": true, "ingest.Source": true, "ingest.Sink": true}
	manyParameters  = map[string]bool{"planner/syscat.infoColumn": true}
)

// TestShapes bounds what a reader must hold in mind at once.
func TestShapes(t *testing.T) {
	files := map[string]int{}
	for _, s := range load(t) {
		if s.test {
			continue
		}
		files[s.dir]++
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if c := parameters(n.Type); c > parametersMax && !manyParameters[s.dir+"."+n.Name.Name] {
					t.Errorf("%s: %s has %d parameters, at most %d", s.at(n), n.Name.Name, c, parametersMax)
				}
			case *ast.TypeSpec:
				i, ok := n.Type.(*ast.InterfaceType)
				if ok && i.Methods.NumFields() > methodsMax && !largeInterfaces[s.dir+"."+n.Name.Name] {
					t.Errorf("%s: %s has %d methods, at most %d", s.at(n), n.Name.Name, i.Methods.NumFields(), methodsMax)
				}
			}
			return true
		})
	}
	for dir, n := range files {
		if n > filesMax && !largePackages[dir] {
			t.Errorf("%s has %d files, at most %d", dir, n, filesMax)
		}
	}
}

func parameters(f *ast.FuncType) int {
	n := f.Params.NumFields()
	if n > 0 {
		if sel, ok := f.Params.List[0].Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
			n--
		}
	}
	return n
}

// eachCall visits the calls of functions of other packages.
func (s source) eachCall(visit func(call *ast.CallExpr, pkg, name string)) {
	packages := map[string]string{}
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		name := p[strings.LastIndex(p, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = p
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && packages[x.Name] != "" {
				visit(call, packages[x.Name], sel.Sel.Name)
			}
		}
		return true
	})
}

// at is where a node is, for a message.
func (s source) at(n interface{ Pos() token.Pos }) string {
	return s.path + ":" + strconv.Itoa(s.text.Position(n.Pos()).Line)
}

// quotedByGo is a name in a message that Go's quoting would write: with backslashes, which
// no SQL reads.
var quotedByGo = regexp.MustCompile(`(column|pipeline|connection|table|secret|slot|publication|database) %q`)

// TestNamesInMessages: a name in a message for users is quoted as SQL quotes it, so that it
// can be copied into a statement.
func TestNamesInMessages(t *testing.T) {
	for _, s := range load(t) {
		if s.test || strings.HasSuffix(s.dir, "test") || !under(s.dir, "catalog", "ddl", "ingest", "planner", "pgwire", "cmd") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && quotedByGo.MatchString(lit.Value) {
				t.Errorf("%s:%d: %s; take %%s and quote.Name", s.path, s.text.Position(lit.Pos()).Line, lit.Value)
			}
			return true
		})
	}
}
