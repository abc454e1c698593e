package pgsql

import (
	_ "embed"
	"strings"
	"sync"
)

// signature is one overload of a function.
type signature struct {
	kind   byte // f scalar, a aggregate, w window, s set-returning
	name   string
	args   []uint32
	result uint32 // OIDAnyElement, OIDAnyArray: from the arguments
	fields []field
	// engine is the template: $1… are the arguments, $* all of them with commas; in an
	// aggregate, @f(…) marks the engine's aggregate call.
	engine string
}

// builtins lists what statements may call, one overload a line:
//
//	kind name(types) result : template
//
// The result record{name:type,…} is of rows with those columns.
//
// "any" takes everything as it is; "text" arguments are the engine's VARCHAR; a
// numeric argument is an engine DECIMAL of the argument's own scale.
//
//go:embed builtins.txt
var builtins string

var builtinIndex = sync.OnceValue(func() map[string][]*signature {
	out := map[string][]*signature{}
	lines := strings.Split(strings.TrimSpace(builtins), "\n")
	for line := range strings.Lines(strings.TrimSpace(builtinsOfTypes)) {
		lines = append(lines, eachRange(line)...)
	}
	for _, line := range lines {
		head, engine, _ := strings.Cut(strings.TrimSpace(line), " : ")
		f := strings.Fields(head)
		name, args, _ := strings.Cut(strings.TrimSuffix(f[1], ")"), "(")
		result, fields, _ := strings.Cut(strings.TrimSuffix(f[2], "}"), "{")
		kind := f[0][0]
		if kind == 'o' {
			kind, name = 'f', "operator "+name
		}
		sig := &signature{kind: kind, name: name, engine: engine, result: mustType(result)}
		for _, part := range strings.Split(fields, ",") {
			if name, typ, ok := strings.Cut(part, ":"); ok {
				sig.fields = append(sig.fields, field{name: name, typ: plain(mustType(typ))})
			}
		}
		for _, t := range strings.Split(args, ",") {
			if t != "" {
				sig.args = append(sig.args, mustType(t))
			}
		}
		out[name] = append(out[name], sig)
	}
	return out
})

// mustType finds a type of the list of builtins; a test checks every line.
func mustType(name string) uint32 {
	oid, _ := TypeNamed(name)
	return oid
}

//go:embed prelude.sql
var preludeText string

// Prelude holds the macros that rewritten statements use; every engine instance
// runs it once before any query.
func Prelude() []string {
	out := []string{regtypePrelude(), quoteIdentPrelude()}
	var b strings.Builder
	for line := range strings.Lines(preludeText) {
		if strings.HasPrefix(line, "--") {
			continue
		}
		b.WriteString(line)
		if text, ended := strings.CutSuffix(b.String(), ";\n"); ended {
			out = append(out, text)
			b.Reset()
		}
	}
	return out
}
