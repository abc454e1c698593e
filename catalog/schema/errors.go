package schema

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/pgwire/quote"
)

var (
	// ErrInvalid means that columns or key do not make a table: a name twice, a key
	// column that does not exist, a reserved name, too many columns.
	ErrInvalid = errors.New("invalid table definition")
	// ErrIncompatible means that old values cannot be read under a column's new type.
	ErrIncompatible = errors.New("incompatible change of a column's type")
)

// IncompatibleError names the column and the types of an ErrIncompatible.
type IncompatibleError struct {
	Column   string
	From, To string // SQL names
}

// Error implements error.
func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("column %s cannot change from %s to %s", quote.Name(e.Column), e.From, e.To)
}

// Unwrap makes errors.Is(err, ErrIncompatible) true.
func (e *IncompatibleError) Unwrap() error { return ErrIncompatible }
