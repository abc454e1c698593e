package block

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed conditions.txt
var conditions string

// conditionCodes are the codes of PostgreSQL's errors, by the names that conditions have.
var conditionCodes = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(conditions) {
		if name, code, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[name] = append(out[name], code)
		}
	}
	return out
})

// codesOf are the codes that a condition stands for: a name, which the parser knows, or a
// code itself.
func codesOf(condition string) []string {
	name := strings.ToLower(condition)
	if name == others {
		return []string{others}
	}
	if known := conditionCodes()[name]; known != nil {
		return known
	}
	return []string{strings.ToUpper(condition)}
}
