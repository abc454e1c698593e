package planner

import (
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/copyin"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// The options of a COPY are read or refused with an error of the statement.
func FuzzCopyOptions(f *testing.F) {
	for _, options := range []string{
		"(format csv, header, delimiter ';', quote '''', null 'x')", "(format text, force_quote *)", "csv header",
		"(format binary)", "(header match, encoding 'utf8', delimiter '')", "(force_quote (a, b))",
	} {
		f.Add("copy t to stdout " + options)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		tree, err := pg.Parse(sql)
		if err != nil {
			return
		}
		for _, s := range tree.Stmts {
			n := s.Stmt.GetCopyStmt()
			if n == nil {
				continue
			}
			for _, parse := range []func([]copyin.Option) (copyin.Options, error){copyin.ParseTo, copyin.Parse} {
				if _, err := parseCopyOptions("", n.Options, parse); err != nil {
					if _, ok := pgerr.As(err); !ok {
						t.Errorf("not a statement error: %v", err)
					}
				}
			}
		}
	})
}
