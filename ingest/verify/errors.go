package verify

import "errors"

// SkipError says why a table cannot be compared, in a clause.
type SkipError struct {
	Reason string
	// Passes says that it can be at another moment.
	Passes bool
}

// Error renders the reason.
func (e *SkipError) Error() string { return "table cannot be compared: " + e.Reason }

// SkipTruncated is why a table is skipped of which it cannot be told whether a TRUNCATE
// came before the moment. Another moment helps.
const SkipTruncated = "it was truncated at the source about the position: run it again"

// Refusal is why a pipeline is not compared, in words for its user. Nothing was read then.
type Refusal struct {
	Kind    RefusalKind
	Message string // lower case, no period
	Detail  string // a sentence, or ""
	Hint    string // a sentence with the statement that helps, for "PIPELINE …"; or ""
	Cause   error
}

// RefusalKind says what sort of trouble it is.
type RefusalKind uint8

// The kinds.
const (
	NotNow       RefusalKind = iota + 1 // another statement, or time, helps
	Crowded                             // somebody else has what it needs
	NoSuchTable                         // a named table is not there
	NotSupported                        // sources of this kind cannot be compared
)

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// errLook ends a wait so that what may be in the way is looked at.
var errLook = errors.New("time to look again")
