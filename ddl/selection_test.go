package ddl

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
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
