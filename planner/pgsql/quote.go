package pgsql

import (
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// quoteIdentPrelude is the macro of quote_ident.
func quoteIdentPrelude() string {
	return `CREATE OR REPLACE MACRO skippr_quote_ident(s) AS CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*') AND NOT list_contains(['` +
		strings.Join(quote.Reserved, "', '") + `'], s) THEN s ELSE '"' || replace(s, '"', '""') || '"' END`
}
