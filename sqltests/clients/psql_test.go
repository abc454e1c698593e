package clients

import (
	"os"
	"strings"
	"testing"
)

// script is psql's input: the commands of a file, each under the name of itself.
func script(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if rest, more := strings.CutPrefix(line, "\t"); more {
			b.WriteString(rest)
			continue
		}
		name := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(strings.TrimSpace(line))
		b.WriteString(`\echo '## ` + strings.ReplaceAll(name, ":", `\072`) + "'\n" + line)
	}
	return b.String()
}
