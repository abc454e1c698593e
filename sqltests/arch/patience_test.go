package arch

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// waits are the functions of the harness that wait for what must come, whoever uses what they
// return; a call whose result nobody looks at only lets time pass.
var waits = []string{"Until", "WaitReady", "WaitGroupDead"}

// hasty are files with a shorter wait, for what need not come, in whose result somebody is
// interested all the same.
var hasty = []string{
	"sqltests/e2e/store_test.go", // a node that leads within its lease is put back
}

// TestPatience: a test that watches processes waits for what must come as long as for anything
// else. A limit that suits an idle machine fails on one that does much else.
func TestPatience(t *testing.T) {
	for _, s := range load(t) {
		if !under(s.dir, "sqltests") || s.dir == "sqltests/harness" || s.dir == "sqltests/bench" {
			continue
		}
		unused := map[ast.Expr]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if statement, ok := n.(*ast.ExprStmt); ok {
				unused[statement.X] = true
			}
			return true
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(waits, f.Sel.Name) || unused[call] && f.Sel.Name == "Until" {
				return true
			}
			if brief(call.Args[0]) && !slices.Contains(hasty, filepath.ToSlash(s.path)) {
				t.Errorf("%s waits for less than harness.Patience", s.at(call))
			}
			return true
		})
	}
}

// leastMinutes is harness.Patience.
const leastMinutes = 3

// brief says whether a limit is a sum or product in which seconds are named, or few minutes.
func brief(limit ast.Expr) bool {
	found := false
	ast.Inspect(limit, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if literal, ok := n.X.(*ast.BasicLit); ok && literal.Kind == token.INT && unit(n.Y) == "Minute" {
				minutes, err := strconv.Atoi(literal.Value)
				found = found || err != nil || minutes < leastMinutes
				return false
			}
		case ast.Expr:
			found = found || slices.Contains([]string{"Nanosecond", "Microsecond", "Millisecond", "Second", "Minute"}, unit(n))
		}
		return true
	})
	return found
}

// unit is the name of a constant of package time.
func unit(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if p, ok := s.X.(*ast.Ident); ok && p.Name == "time" {
			return s.Sel.Name
		}
	}
	return ""
}

func TestBrief(t *testing.T) {
	ident := func(name string) ast.Expr { return ast.NewIdent(name) }
	of := func(pkg, name string) ast.Expr { return &ast.SelectorExpr{X: ident(pkg), Sel: ast.NewIdent(name)} }
	times := func(n string, e ast.Expr) ast.Expr {
		return &ast.BinaryExpr{X: &ast.BasicLit{Kind: token.INT, Value: n}, Op: token.MUL, Y: e}
	}
	for name, c := range map[string]struct {
		limit ast.Expr
		brief bool
	}{
		"patience":        {of("harness", "Patience"), false},
		"twice patience":  {times("2", of("harness", "Patience")), false},
		"a variable":      {ident("limit"), false},
		"a minute":        {of("time", "Minute"), true},
		"two minutes":     {times("2", of("time", "Minute")), true},
		"twenty minutes":  {times("20", of("time", "Minute")), false},
		"ten seconds":     {times("10", of("time", "Second")), true},
		"a sum":           {&ast.BinaryExpr{X: ident("lease"), Op: token.ADD, Y: of("time", "Second")}, true},
		"two hundred ms":  {times("200", of("time", "Millisecond")), true},
		"a second's name": {of("other", "Second"), false},
	} {
		if brief(c.limit) != c.brief {
			t.Errorf("%s: brief %v", name, !c.brief)
		}
	}
}
