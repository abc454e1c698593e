package ddl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// What a statement says of tables is kept as it was said, and written down again so
// that it says the same.
func TestSelectionOfTables(t *testing.T) {
	for _, c := range []struct{ sql, columns, except, where string }{
		{"t", "", "", ""},
		{"s.t (id, v) WHERE (id > 5)", "id v", "", "id > 5"},
		{"t EXCEPT (ssn, \"Odd\")", "", "ssn Odd", ""},
		{"t EXCEPT (ssn) WHERE ((a = 'x)' OR b) AND c <> $$)$$)", "", "ssn", "(a = 'x)' OR b) AND c <> $$)$$"},
		{"t WHERE (naïve = 'ö' -- why\n AND id::text ~ E'\\')' /* ) */)", "", "", "naïve = 'ö' -- why\n AND id::text ~ E'\\')' /* ) */"},
		{"t WHERE (a -- the last word\n)", "", "", "a -- the last word"},
	} {
		text := "CREATE PIPELINE p FROM c FOR TABLE " + c.sql + ", other WITH (start = false)"
		for range 2 {
			s, err := Parse(text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				break
			}
			sel := s.(*CreatePipeline).Selection
			got := sel.Tables[0]
			if len(sel.Tables) != 2 || strings.Join(got.Columns, " ") != c.columns || strings.Join(got.Except, " ") != c.except || got.Where != c.where {
				t.Errorf("%s: %+v", text, sel.Tables)
			}
			text = "CREATE PIPELINE p FROM c" + selectionDDL(catalog.TableSelection{Tables: sel.Tables}) + " WITH (start = false)"
		}
	}
}

// What is named twice is an error that points at the second, as PostgreSQL has it of
// relations and columns.
func TestNamedTwice(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"CREATE PIPELINE p FROM c FOR TABLE a, a", `table "public.a" specified more than once (SQLSTATE 42710) at 39`},
		{"CREATE PIPELINE p FROM c FOR TABLE a (id), TABLE public.a", `table "public.a" specified more than once (SQLSTATE 42710) at 50`},
		{"CREATE PIPELINE p FROM c FOR TABLE a FOR TABLE b, a", `table "public.a" specified more than once (SQLSTATE 42710) at 51`},
		{"CREATE PIPELINE p FROM c FOR TABLE s.a, a", ""},
		{"ALTER PIPELINE p DROP TABLE a, b, a", `table "a" specified more than once (SQLSTATE 42710) at 35`},
		{"VERIFY PIPELINE p TABLE s.a, s.a", `table "s.a" specified more than once (SQLSTATE 42710) at 30`},
		{"CREATE PIPELINE p FROM c FOR TABLE a (id, v, id)", `column "id" specified more than once (SQLSTATE 42701) at 46`},
		{"CREATE PIPELINE p FROM c FOR TABLE a (*, v AS text, v AS text)", `column "v" specified more than once (SQLSTATE 42701) at 53`},
		{"CREATE PIPELINE p FROM c FOR TABLE a EXCEPT (v, v)", `column "v" specified more than once (SQLSTATE 42701) at 49`},
		{"ALTER PIPELINE p RESET (freshness, freshness)", ""},
	} {
		got := ""
		if _, err := Parse(c.sql); err != nil {
			e, ok := pgerr.As(err)
			if !ok {
				t.Fatal(err)
			}
			got = fmt.Sprintf("%v at %d", e, e.Position)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.sql, got, c.want)
		}
	}
}
