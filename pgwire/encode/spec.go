package encode

// Spec says in which form rows leave. Its parts have the same fields as those of
// the plan's Output, so that they convert directly.
type Spec struct {
	Kind    Kind
	Columns []Column
	Copy    CopyOptions
	Format  Format
}

// Kind is the form of the output.
type Kind uint8

// The forms. Values are those of the plan's OutputKind.
const (
	Rows       Kind = 1 // DataRow messages
	CopyText   Kind = 2 // CopyData messages, one a row
	CopyCSV    Kind = 3
	CopyBinary Kind = 4
)

// Column is how one column is sent.
type Column struct {
	Name    string
	TypeOID uint32
	TypMod  int32
	// Format is 0 for text, 1 for binary; COPY ignores it.
	Format int16
}

// CopyOptions are those of COPY TO. Zero bytes mean the format's defaults; Null is
// taken as it is, because an empty string is a choice too.
type CopyOptions struct {
	Delimiter, Quote, Escape byte
	Null                     string
	Header                   bool
	ForceQuote               []bool
}

// Format is how a session renders values as text. Empty fields mean PostgreSQL's
// defaults (UTC; ISO, MDY; postgres; hex); ExtraFloatDigits has no default.
type Format struct {
	TimeZone, DateStyle, IntervalStyle, ByteaOutput string
	ExtraFloatDigits                                int
}

// DefaultFormat is the format of a session that changed nothing.
func DefaultFormat() Format {
	return Format{
		TimeZone: "UTC", DateStyle: "ISO, MDY", IntervalStyle: "postgres", ByteaOutput: "hex", ExtraFloatDigits: 1,
	}
}
