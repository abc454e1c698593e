package are

import (
	"errors"
	"fmt"
)

// What can be wrong with an expression, in PostgreSQL's words.
var (
	ErrBackReference = errors.New("invalid backreference number")
	ErrBraces        = errors.New("braces {} not balanced")
	ErrBrackets      = errors.New("brackets [] not balanced")
	ErrClass         = errors.New("invalid character class")
	ErrCollating     = errors.New("invalid collating element")
	ErrCount         = errors.New("invalid repetition count(s)")
	ErrEscape        = errors.New(`invalid escape \ sequence`)
	ErrOperand       = errors.New("quantifier operand invalid")
	ErrOption        = errors.New("invalid embedded option")
	ErrParentheses   = errors.New("parentheses () not balanced")
	ErrRange         = errors.New("invalid character range")
	ErrSize          = errors.New("regular expression is too complex")
)

// ErrSteps is that a search was given up.
var ErrSteps = errors.New("the search takes too many steps")

// ErrBasic is that a basic regular expression is asked for, which are not read here.
var ErrBasic = errors.New("basic regular expressions are not supported")

// OptionError is a letter that is no option.
type OptionError rune

// Error is PostgreSQL's message.
func (e OptionError) Error() string {
	return fmt.Sprintf("invalid regular expression option: \"%c\"", rune(e))
}
