package numeric

import (
	"fmt"
	"strings"
)

// Key is a text that orders by bytes as the numerics do, equal for equal ones.
func (n Num) Key() string {
	switch n.special {
	case minusInf:
		return "0"
	case plusInf:
		return "4"
	case nan:
		return "5"
	}
	if n.Sign() == 0 {
		return "2"
	}
	digits := strings.TrimPrefix(n.Text(), "-")
	whole, frac, _ := strings.Cut(digits, ".")
	digits = whole + frac
	lead := len(digits) - len(strings.TrimLeft(digits, "0"))
	exponent := len(whole) - lead + exponentShift
	digits = strings.Trim(digits, "0")
	if n.Sign() > 0 {
		return fmt.Sprintf("3%06d%s", exponent, digits)
	}
	b := []byte(fmt.Sprintf("1%06d%s~", exponentTop-exponent, digits))
	for i := len(b) - 2; i >= len(b)-1-len(digits); i-- {
		b[i] = '0' + '9' - b[i]
	}
	return string(b)
}

const (
	exponentShift = 200000
	exponentTop   = 999999
)
