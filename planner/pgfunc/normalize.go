package pgfunc

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/skipprd/skipprd/lake/scalar"
)

// normalFunctions are normalize and IS NORMALIZED.
func normalFunctions() []scalar.Function {
	text := scalar.Text
	return []scalar.Function{
		{Name: "skippr_normalize", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			f, err := normalForm(a[1].Text)
			if err != nil {
				return value{}, err
			}
			return scalar.OfText(f.String(a[0].Text)), nil
		}},
		{Name: "skippr_normalized", Params: kinds(text, text), Result: scalar.Bool, Call: func(a []value) (value, error) {
			f, err := normalForm(a[1].Text)
			if err != nil {
				return value{}, err
			}
			return scalar.OfBool(f.IsNormalString(a[0].Text)), nil
		}},
	}
}

func normalForm(name string) (norm.Form, error) {
	switch strings.ToUpper(name) {
	case "NFC":
		return norm.NFC, nil
	case "NFD":
		return norm.NFD, nil
	case "NFKC":
		return norm.NFKC, nil
	case "NFKD":
		return norm.NFKD, nil
	}
	return 0, invalid("invalid normalization form: %s", strings.Clone(name))
}
