package pgsql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/planner/pgfunc/jsonpath"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// EngineText turns the PostgreSQL text form of a value of t into the text that the
// engine's cast to the type accepts, or a *pgerr.Error 22P02, 22003 or 22007.
func EngineText(t Type, s string) (string, error) { return engineText(encode.Input{}, t, s) }

// engineText is EngineText of a session's settings.
func engineText(in encode.Input, t Type, s string) (string, error) {
	switch t.OID {
	case OIDVarchar, OIDBpchar:
		return charText(t, s), nil
	case OIDName:
		return truncateName(s), nil
	case OIDChar:
		return firstByte(s), nil
	case OIDInt2Vector, OIDOidVector:
		return "[" + strings.Join(strings.Fields(s), ", ") + "]", nil
	case OIDDate, OIDTimestamp, OIDTimestamptz:
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "today", "now", "tomorrow", "yesterday":
			return "", unsupported("date/time input \"%s\" is not supported", s).WithHint("Use current_date or now().")
		}
	}
	if t.OID == OIDJSONB {
		return pgfunc.JSONB(s)
	}
	if t.OID == OIDJSONPath {
		return s, jsonpath.Check(s)
	}
	if _, _, ok := span.KindOf(t.OID); ok {
		return span.Reader{Input: in}.Canonical(t.OID, s)
	}
	out, err := in.Decode(t.OID, 0, []byte(s))
	if err != nil {
		return "", err
	}
	return out, nil
}

// charText applies the length of varchar(n) and char(n) as an explicit cast does.
func charText(t Type, s string) string {
	if t.Mod < 4 {
		return s
	}
	n := int(t.Mod - 4)
	r := []rune(s)
	if len(r) > n {
		return string(r[:n])
	}
	if t.OID == OIDBpchar {
		return s + strings.Repeat(" ", n-len(r))
	}
	return s
}

func truncateName(s string) string {
	const nameBytes = 63
	if len(s) <= nameBytes {
		return s
	}
	return strings.ToValidUTF8(s[:nameBytes], "")
}

// parseArray reads a one-dimensional array literal; nil items are NULL.
func parseArray(s string) ([]*string, error) {
	bad := func(detail string) error {
		return pgerr.New(codes.InvalidTextRepresentation, "malformed array literal: \"%s\"", s).WithDetail("%s", detail)
	}
	v := strings.TrimSpace(s)
	if len(v) < 2 || v[0] != '{' {
		return nil, bad("Array value must start with \"{\" or dimension information.")
	}
	if v[len(v)-1] != '}' {
		return nil, bad("Unexpected end of input.")
	}
	v = v[1 : len(v)-1]
	var out []*string
	if strings.TrimSpace(v) == "" {
		return out, nil
	}
	for i := 0; ; i++ {
		item, next, problem := arrayItem(v, i)
		if problem != "" {
			return nil, bad(problem)
		}
		out = append(out, item)
		i = next
		if i >= len(v) {
			return out, nil
		}
		if v[i] != ',' {
			return nil, bad("Unexpected array element.")
		}
	}
}

// arrayItem reads the item that starts at v[i] and returns where it ended.
func arrayItem(v string, i int) (item *string, next int, problem string) {
	for i < len(v) && v[i] == ' ' {
		i++
	}
	if i >= len(v) {
		return nil, i, `Unexpected "}" character.`
	}
	var b strings.Builder
	if v[i] == '"' {
		for i++; i < len(v) && v[i] != '"'; i++ {
			if v[i] == '\\' && i+1 < len(v) {
				i++
			}
			b.WriteByte(v[i])
		}
		if i >= len(v) {
			return nil, i, "Unexpected end of input."
		}
		for i++; i < len(v) && v[i] == ' '; {
			i++
		}
		s := b.String()
		return &s, i, ""
	}
	for ; i < len(v) && v[i] != ','; i++ {
		switch v[i] {
		case '\\':
			i++
			if i >= len(v) {
				return nil, i, "Unexpected end of input."
			}
		case '"', '{', '}':
			return nil, i, "Unexpected array element."
		}
		b.WriteByte(v[i])
	}
	s := strings.TrimRight(b.String(), " ")
	if s == "" {
		return nil, i, `Unexpected "," character.`
	}
	if strings.EqualFold(s, "null") {
		return nil, i, ""
	}
	return &s, i, ""
}

// quote renders a string literal of the engine.
// ident renders a quoted identifier of the engine.
// ConstantText renders an argument of EXECUTE, which must be a constant, as the text
// form of a value of type oid; nil is NULL.
func ConstantText(in encode.Input, sql string, n *pg.Node, oid uint32) ([]byte, error) {
	neg := ""
	for {
		if tc := n.GetTypeCast(); tc != nil {
			n = tc.Arg
			continue
		}
		if x := n.GetAExpr(); x != nil && x.Lexpr == nil && len(x.Name) == 1 && x.Name[0].GetString_().GetSval() == "-" &&
			neg == "" {
			neg, n = "-", x.Rexpr
			continue
		}
		break
	}
	c := n.GetAConst()
	if c == nil {
		return nil, unsupported("arguments of EXECUTE must be constants")
	}
	if c.Isnull {
		return nil, nil
	}
	text := ""
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		text = neg + strconv.Itoa(int(v.Ival.Ival))
	case *pg.A_Const_Fval:
		text = neg + v.Fval.Fval
	case *pg.A_Const_Boolval:
		text = strconv.FormatBool(v.Boolval.Boolval)
	case *pg.A_Const_Sval:
		text = v.Sval.Sval
	default:
		return nil, unsupported("bit string constants are not supported")
	}
	if _, err := engineText(in, plain(oid), text); err != nil {
		a := &analyzer{sql: sql}
		return nil, a.errAt(c.Location, err)
	}
	return []byte(text), nil
}

// firstByte is a "char" of s: its first byte, which \ooo shows if it is no character.
func firstByte(s string) string {
	switch {
	case len(s) == 4 && s[0] == '\\' && strings.Trim(s[1:], "01234567") == "" && s[1] >= '2' && s[1] <= '3':
		return s
	case s != "" && s[0] >= utf8.RuneSelf:
		return fmt.Sprintf(`\%03o`, s[0])
	}
	return s[:min(1, len(s))]
}
