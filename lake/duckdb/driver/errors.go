package driver

import (
	"errors"
	"strings"
)

// ErrOutOfMemory says that the engine's memory limit was reached. Every Error of
// kind OutOfMemory wraps it.
var ErrOutOfMemory = errors.New("engine is out of memory")

// ErrorKind is what an engine error says, as far as a caller acts on it.
type ErrorKind uint8

// The kinds. The values travel between processes of one build.
const (
	Other          ErrorKind = iota + 1
	Syntax                   // the statement does not parse
	Binder                   // a name or a type does not resolve
	Catalog                  // no such function, table or type
	InvalidText              // a text is not a value of the type
	OutOfRange               // a number or a time does not fit the type
	DivisionByZero           //
	InvalidInput             // a function refused its argument
	NotSupported             //
	OutOfMemory              //
	Interrupted              //
	IO                       // a file could not be read
	Internal                 // a fault of the engine
)

// Error is an error that the engine reported for a statement. Message is the
// engine's, without its prefix and hints.
type Error struct {
	Kind    ErrorKind
	Message string
	// Fatal says that the database is of no more use.
	Fatal bool
}

// Error implements error.
func (e *Error) Error() string { return "engine: " + e.Message }

// Unwrap lets errors.Is find ErrOutOfMemory.
func (e *Error) Unwrap() error {
	if e.Kind == OutOfMemory {
		return ErrOutOfMemory
	}
	return nil
}

// prefixes map the words that begin the engine's messages to kinds.
var prefixes = []struct {
	text string
	kind ErrorKind
}{
	{"Parser Error: ", Syntax},
	{"Syntax Error: ", Syntax},
	{"Binder Error: ", Binder},
	{"Mismatch Type Error: ", Binder},
	{"Catalog Error: ", Catalog},
	{"Conversion Error: ", InvalidText},
	{"Out of Range Error: ", OutOfRange},
	{"Divide by Zero Error: ", DivisionByZero},
	{"Invalid Input Error: ", InvalidInput},
	{"Not implemented Error: ", NotSupported},
	{"Serialization Error: ", NotSupported}, // of a plan that it cannot copy
	{"Out of Memory Error: ", OutOfMemory},
	{"INTERRUPT Error: ", Interrupted},
	{"IO Error: ", IO},
	{"INTERNAL Error: ", Internal},
	{"FATAL Error: ", Internal},
	{"TransactionContext Error: ", Internal},
}

// closedResult begins the message of a result that failed before it was read; the
// message that tells why follows after "Error: ".
const closedResult = "Invalid Input Error: Attempting to "

// classify makes an Error from the engine's message.
func classify(message string) *Error {
	if strings.HasPrefix(message, closedResult) {
		if _, cause, ok := strings.Cut(message, "\nError: "); ok {
			message = cause
		}
	}
	e := &Error{Kind: Other, Message: message}
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(message, p.text); ok {
			e.Kind, e.Message = p.kind, rest
			break
		}
	}
	switch {
	case e.Kind == InvalidText && outOfRange(e.Message):
		e.Kind = OutOfRange
	case e.Kind == InvalidInput && strings.HasPrefix(e.Message, "division by zero"):
		e.Kind = DivisionByZero
	case e.Kind == Other && strings.HasPrefix(message, "Invalid unicode"):
		e.Kind = InvalidText
	}
	e.Fatal = strings.HasPrefix(message, "FATAL Error: ") || strings.Contains(message, "database has been invalidated")
	e.Message = trimHints(e.Message)
	return e
}

// outOfRange tells the two meanings of a conversion error apart. A text that is a
// number and still does not convert is one too large.
func outOfRange(message string) bool {
	for _, word := range []string{"out of range", "overflow", "could not cast value", "failed to cast decimal value"} {
		if strings.Contains(strings.ToLower(message), word) {
			return true
		}
	}
	rest, ok := strings.CutPrefix(message, "Could not convert string '")
	text, target, okTarget := strings.Cut(rest, "' to ")
	if !ok || !okTarget || strings.Contains(target, "BOOL") || strings.Contains(target, "UUID") {
		return false
	}
	digits := strings.TrimLeft(strings.TrimSpace(text), "+-")
	return digits != "" && strings.Trim(digits, "0123456789.") == ""
}

// trimHints cuts the engine's excerpt of the statement and its advice, which name
// things a user never wrote.
func trimHints(message string) string {
	for _, mark := range []string{"\n\nLINE ", "\nLINE ", "\n\n", "\nPossible solutions:", "\nDid you mean"} {
		if at := strings.Index(message, mark); at > 0 {
			message = message[:at]
		}
	}
	return strings.TrimSpace(message)
}
