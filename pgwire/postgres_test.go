package pgwire_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// toyOnly is the translation of a statement that PostgreSQL has none for.
const toyOnly = "toy only"

// toSQL translates the toy's statements.
func toSQL(script string) string {
	parts := strings.Split(script, ";")
	for i, part := range parts {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "rows":
			n, _ := strconv.Atoi(words[1])
			parts[i] = fmt.Sprintf("select i as n, ('row ' || i)::varchar(10) as t from generate_series(0, %d) i", n-1)
		case "select":
			var columns []string
			for _, w := range words[1:] {
				if strings.HasPrefix(w, "$") {
					columns = append(columns, w+"::text as p")
				} else {
					columns = append(columns, "'"+w+"'::text as \"?column?\"")
				}
			}
			parts[i] = "select " + strings.Join(columns, ", ")
		case "fail":
			parts[i] = "do $$begin raise division_by_zero$E$ end$$"
		case "missing":
			parts[i] = "select * from missing"
		case "oops", "timeout", "set", "notice", "copyout":
			return toyOnly
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ";"), "$E$", ";")
}

// The scripts say what PostgreSQL says: it is asked the same.
func TestScriptsAgainstPostgres(t *testing.T) {
	s := pgtest.Start(t)
	addr := fmt.Sprintf("%s:%d", s.Host, s.Port)
	runSimpleScript(t, loginTo(t, addr, "postgres"), toSQL)
	runExtendedScript(t, loginTo(t, addr, "postgres"), toSQL)
}
