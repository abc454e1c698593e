package ddl

import "strings"

// Redact returns sql, which may be cut short and hold several statements, for others
// to see: the strings in statements that make secrets, connections and pipelines, and
// those behind the word PASSWORD, are left out.
func Redact(sql string) string {
	l := &lexer{src: sql, char: 1}
	var out strings.Builder
	making, hidden, at, start := false, false, 0, 0
	for {
		start = l.off
		if l.skipBlank() != nil {
			break
		}
		start = l.off
		t, err := l.next()
		if err != nil || t.kind == tokEOF {
			break
		}
		switch {
		case t.text == ";" && t.kind == tokPunct:
			making = false
		case t.kind == tokWord && (isObject(t.text) || t.text == "password"):
			making = true
		case t.kind == tokString && making:
			hidden = true
			out.WriteString(sql[at:start] + "'…'")
			at = l.off
		}
	}
	switch {
	case start < len(sql) && making: // cut off within a string
		return out.String() + sql[at:start] + "…"
	case !hidden:
		return sql
	}
	return out.String() + sql[at:]
}
