package protocol_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// allowed is all that the protocol may import: nothing with time, I/O, locks or
// entropy in it.
var allowed = map[string]bool{
	"crypto/sha256": true, "encoding/binary": true, "encoding/hex": true, "errors": true, "fmt": true, "hash": true, "slices": true,
	"github.com/skipprd/skipprd/wal/change":  true,
	"github.com/skipprd/skipprd/wal/segment": true,
	"github.com/skipprd/skipprd/wal/mutant":  true, // constants without its build tag
}

func TestProtocolIsPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if path, err := strconv.Unquote(imp.Path.Value); err != nil || !allowed[path] {
				t.Errorf("%s imports %s", name, imp.Path.Value)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
				t.Errorf("%s: goroutines and channels have no place here", fset.Position(n.Pos()))
			}
			return true
		})
	}
}
