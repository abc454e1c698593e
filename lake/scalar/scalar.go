// Package scalar is the contract of functions in Go that the engine's SQL may call.
// Whoever knows what an answer must be writes them as Functions; lake/duckdb registers
// them, and calls them for the rows of a chunk at a time.
package scalar

// Kind is a type of arguments and results.
type Kind uint8

// The kinds, and the field of Value that holds them.
const (
	Bool        Kind = iota + 1 // Int: 0 or 1
	Int32                       // Int
	Int64                       // Int
	Float64                     // Float
	Text                        // Text
	Blob                        // Text
	Date                        // Int: days since 1970
	Time                        // Int: microseconds of the day
	Timestamp                   // Int: microseconds since 1970
	TimestampTZ                 // Int: the same, in UTC
	Interval                    // Months, Days, Int: microseconds
)

// Value is an argument or a result. Which fields count depends on the Kind.
type Value struct {
	Null  bool
	Int   int64
	Float float64
	// Text of an argument is memory of the engine: it may be kept for the call only.
	Text         string
	Months, Days int32
}

// Function is a function of the engine's SQL. Its Call must be pure: the engine may call
// it at any time, once for equal rows, and from several threads at once.
type Function struct {
	Name   string
	Params []Kind
	Result Kind
	// Nulls says that Call takes nulls; else the result of a row with a null is null.
	Nulls bool
	// Call computes the result of one row. The error ends the statement with its text as
	// the engine's message.
	Call func(args []Value) (Value, error)
}

// Null is the null of every kind.
var Null = Value{Null: true}

// OfText makes a Text or Blob.
func OfText(s string) Value { return Value{Text: s} }

// OfInt makes an integer or a moment.
func OfInt(n int64) Value { return Value{Int: n} }

// OfFloat makes a Float64.
func OfFloat(f float64) Value { return Value{Float: f} }

// OfBool makes a Bool.
func OfBool(b bool) Value {
	if b {
		return Value{Int: 1}
	}
	return Value{}
}
