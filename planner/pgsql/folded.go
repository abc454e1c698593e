package pgsql

import (
	"slices"
	"strings"
)

// folded says whether values of a type are citext: texts that compare without regard to case.
func (t Type) folded() bool { return t.User != nil && t.User.Kind == Folded && t.User.Elem == nil }

// asText is a value of citext as the text that it is; any other as it is.
func asText(e expr) expr {
	if e.typ.folded() {
		e.typ = plain(OIDText)
	}
	return e
}

// foldedAsText is a value of citext as a text where the other side is a text: PostgreSQL compares
// these with regard to case.
func foldedAsText(e expr, other Type) expr {
	if isString(other.OID) {
		return asText(e)
	}
	return e
}

// foldedMatch gives an operator of LIKE or of regular expressions its operands as texts: what is
// left of it, if citext, matches without regard to case.
func foldedMatch(op string, l, r expr) (string, expr, expr) {
	if l.typ.folded() && !strings.HasSuffix(op, "*") {
		op += "*"
	}
	return op, asText(l), asText(r)
}

// foldedFunctions are functions of text that citext has its own of, which mind no case.
var foldedFunctions = []string{
	"regexp_match", "regexp_matches", "regexp_replace", "regexp_split_to_array", "regexp_split_to_table",
	"replace", "split_part", "strpos", "translate",
}

// chooseFolded is choose that has values of citext be texts where nothing takes them as they are.
func chooseFolded(name string, cands []*signature, args []expr) (best *signature, ambiguous bool, err error) {
	best, ambiguous = choose(cands, args)
	at := slices.IndexFunc(args, func(e expr) bool { return e.typ.folded() })
	if best != nil || ambiguous || at < 0 {
		return best, ambiguous, nil
	}
	if slices.Contains(foldedFunctions, name) {
		return nil, false, unsupported("%s of %s values is not supported", name, args[at].typ.Name()).WithHint("Cast the value to text, or to lower case.")
	}
	texts := slices.Clone(args)
	for i := range texts {
		texts[i] = asText(texts[i])
	}
	best, ambiguous = choose(cands, texts)
	if best != nil {
		copy(args, texts)
	}
	return best, ambiguous, nil
}
