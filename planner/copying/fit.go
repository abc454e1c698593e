package copying

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// Fit is nil for a value that a column of a type with its modifier takes. The value is in the
// type's own text.
func Fit(text string, t pgsql.Type) *pgerr.Error {
	if t.Mod < 0 {
		return nil
	}
	switch t.OID {
	case pgsql.OIDVarchar, pgsql.OIDBpchar:
		return fitLength(text, t)
	case pgsql.OIDNumeric:
		return fitDigits(text, t)
	case pgsql.OIDBit:
		if len(text) != int(t.Mod) {
			return pgerr.New("22026", "bit string length %d does not match type bit(%d)", len(text), t.Mod)
		}
	case pgsql.OIDVarbit:
		if len(text) > int(t.Mod) {
			return pgerr.New(codes.StringDataRightTruncation, "bit string too long for type bit varying(%d)", t.Mod)
		}
	}
	return nil
}

// modHeader is what a modifier has more than the length.
const modHeader = 4

// fitLength: blanks beyond the length go.
func fitLength(text string, t pgsql.Type) *pgerr.Error {
	most := int(t.Mod - modHeader)
	if len(text) <= most {
		return nil
	}
	for i := range text {
		if most == 0 {
			if strings.TrimRight(text[i:], " ") == "" {
				return nil
			}
			return pgerr.New(codes.StringDataRightTruncation, "value too long for type %s(%d)", t.Name(), t.Mod-modHeader)
		}
		most--
	}
	return nil
}

func fitDigits(text string, t pgsql.Type) *pgerr.Error {
	precision, scale, _ := t.Digits()
	whole := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if whole < 0 {
		whole = len(text)
	}
	if whole > 0 && whole < precision-scale && strings.Trim(text[whole:], "0123456789.") == "" {
		return nil // however it is rounded
	}
	n, err := numeric.Parse(text)
	if err == nil {
		_, err = n.Constrain(precision, scale)
	}
	e, _ := pgerr.As(err)
	return e
}
