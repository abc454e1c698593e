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
	case start < len(sql): // what is a string before and behind is not known
		if end := secretWord(sql); end >= 0 {
			return sql[:end] + "…"
		}
		return sql
	case !hidden:
		return sql
	}
	return out.String() + sql[at:]
}

// secretWord is where the first word ends behind which a string may be secret, wherever it is
// written, or -1.
func secretWord(sql string) int {
	for i := range len(sql) {
		for _, w := range [...]string{"password", "secret", "connection", "pipeline"} {
			if len(sql)-i >= len(w) && strings.EqualFold(sql[i:i+len(w)], w) {
				return i + len(w)
			}
		}
	}
	return -1
}
