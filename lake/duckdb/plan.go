package duckdb

import (
	"slices"
	"strings"

	"github.com/skipprd/skipprd/lake/vector"
)

// Plan is everything a worker needs to answer one query: a serialisable value
// (gob). It names files and slices; it holds no handle and no pointer into the
// server. A plan is bound to its pin: the same plan gives the same rows as long as
// none of its slices is reclaimed (P2); a slice that is gone is ErrSliceLost, never
// a shorter result (P3).
type Plan struct {
	// SQL in the engine's dialect. Every relation of ours stands in it as a quoted
	// identifier equal to Relation.Name, in a place where a table may stand and
	// followed by an alias; the worker replaces it by the relation's subquery.
	SQL       string
	Relations []Relation
	// Params are bound to $1, $2, … as VARCHAR; SQL casts them: CAST($1 AS BIGINT).
	// nil is NULL. The text is what the engine's cast accepts.
	Params []*string
	// Settings are session-local engine settings (TimeZone, …), applied before the
	// statement when they differ from the connection's.
	Settings map[string]string
	Output   Output
	// Urgent says that the log's work waits for the answer: it does not wait for heavy
	// queries.
	Urgent bool
}

// lightRows is how many rows of tables a query reads at most that is taken to need next to no
// memory.
const lightRows = 10_000

// series are words of statements that may make any number of rows out of none.
var series = []string{"series", "range(", "recursive", "repeat("}

// light reports whether a plan is taken to need next to no memory: it reads only system
// relations, or few rows. It is a guess: one that is wrong costs time, not rows.
func light(p *Plan) bool {
	if p.Urgent {
		return true
	}
	rows := int64(0)
	for i := range p.Relations {
		r := &p.Relations[i]
		rows += r.LakeRows
		if r.Live != nil {
			for _, s := range r.Live.Slices {
				rows += s.Rows
			}
		}
		if r.Own != nil && len(r.Own.Rows) > 0 {
			rows += int64(len(r.Own.Rows)) / rowBytesLeast
		}
	}
	if rows > 0 || len(p.Relations) > 0 {
		return rows <= lightRows
	}
	text := strings.ToLower(p.SQL)
	return !slices.ContainsFunc(series, func(w string) bool { return strings.Contains(text, w) })
}

// rowBytesLeast is what a row takes at least, for an estimate.
const rowBytesLeast = 16

// Relation is a table of the query.
type Relation struct {
	// Name is the unique placeholder in Plan.SQL.
	Name string
	// Columns as the query sees them, in order; the key's columns are among them.
	Columns []Column
	// Key are names of key columns; empty: a plain union, unless WholeRow.
	Key []string
	// WholeRow says that rows are told apart by all columns: equal ones are counted, and
	// each delete takes one away. Columns are then all of the table's, and Key is empty. A
	// table without live deletes is a plain union even so.
	WholeRow bool
	// Files is the lake side at the pinned snapshot, already pruned.
	Files []File
	// PositionDeletes are the paths of the snapshot's position delete files that may
	// concern Files (Iceberg v2: columns file_path, pos).
	PositionDeletes []string
	// LakeRows is the sum of Files' rows (cardinality).
	LakeRows int64
	// Live is the log side, nil when the table has no live slices.
	Live *Live
	// KeyPredicate, in the engine's dialect over Columns, is repeated on the log's
	// side keys ("" for none): only for predicates on key columns.
	KeyPredicate string
	// WithPosition adds the virtual columns "_skippr_file" VARCHAR and "_skippr_pos"
	// BIGINT of lake rows to the relation (the compactor's search for superseded
	// rows); it excludes Live.
	WithPosition bool
	// Inline is an Arrow IPC stream with the rows of a system relation; the other
	// fields but Name and Columns are empty then.
	Inline []byte
	// Own is what the query's own transaction has changed, nil for nothing: it comes over
	// all else. It excludes WithPosition.
	Own *Own
}

// Own is the uncommitted changes of a table by the transaction that reads it.
type Own struct {
	// Truncated: nothing of the table but Rows is left.
	Truncated bool
	// Rows is an Arrow IPC stream: the operation (change.ColOp), then columns of the
	// table. There is at most one row for a key. Of a table whose rows are told apart by
	// all columns there is a delete for each row that goes and was there before, and an
	// insert for each that is new. Empty: no rows.
	Rows []byte
	// Fields are the field ids of the columns that follow the operation; the relation's
	// columns are among them. Of a delete only the key counts.
	Fields []int32
	// Deletes says that there are some among Rows.
	Deletes bool
}

// Column is a column of a relation.
type Column struct {
	Name string
	// FieldID is the permanent id, by which Parquet columns are found; 0 for system
	// relations.
	FieldID int32
	// EngineType is the engine's type name ("BIGINT", "DECIMAL(10,2)", "VARCHAR[]").
	EngineType string
	// Initial is the engine's expression, of EngineType, for what rows older than the
	// column have in it: files and slices without its field id; "" for NULL.
	Initial string
	// InitialContent is the same as merge.Content renders it, for relations with WholeRow;
	// nil for NULL.
	InitialContent []byte
}

// File is a data file of the pinned snapshot.
type File struct {
	Path       string
	Rows       int64
	HasDeletes bool
	// KeyMin and KeyMax bound a single-column integer key, when KeyBounds.
	KeyBounds      bool
	KeyMin, KeyMax int64
}

// Live is the log's side of a table in a pin.
type Live struct {
	// Dir is the log directory of the pipeline.
	Dir      string
	Pipeline uint32
	Table    uint32
	// Slices are W \ E of this table, in log order.
	Slices []LiveSlice
	// Fields are the field ids of the table's columns in the order of the slices'
	// records (schema.Table.Fields; system columns not counted), for each schema
	// version that a slice has. Records may carry them as PARQUET:field_id metadata
	// instead.
	Fields map[uint32][]int32
	// CompareTokens says that live changes are not known to be newer than every lake
	// row: then tokens are compared both ways (M2).
	CompareTokens bool
}

// LiveSlice is a slice to read: its ref and its record's length in the body.
type LiveSlice struct {
	Seq           uint64
	Start, Length uint32
	SchemaVersion uint32
	Truncate      bool
	// Backfill as in the slice; a wrong value costs a second read, and with WholeRow is an
	// error.
	Backfill bool
	Rows     int64
	// Before leaves out the rows with this order token or a greater one; 0: none.
	Before int64
	// Table is filled in by the worker, from Live.Table.
	Table uint32
}

// Output says in which form the result comes back.
type Output struct {
	Kind OutputKind
	// Columns describe how each result column is encoded (OutputRows, OutputCopy*,
	// OutputRowPairs). When there are none, the result has one that is not sent.
	Columns []OutputColumn
	// Copy options, for OutputCopyText and OutputCopyCSV.
	Copy CopyOptions
	// Session formatting: what DateStyle, IntervalStyle, bytea_output,
	// extra_float_digits and TimeZone say.
	Format Format
}

// OutputKind is the form of a result.
type OutputKind uint8

// The forms.
const (
	OutputRows       OutputKind = 1 // DataRow messages
	OutputCopyText   OutputKind = 2 // CopyData messages, one a row
	OutputCopyCSV    OutputKind = 3
	OutputCopyBinary OutputKind = 4
	OutputArrow      OutputKind = 5 // one Arrow IPC stream over all frames
	OutputRowPairs   OutputKind = 6 // DataRow messages with all values as text, then all in binary
)

// OutputColumn is how one column is sent.
type OutputColumn struct {
	Name    string
	TypeOID uint32
	TypMod  int32
	// Format is 0 for text, 1 for binary.
	Format int16
	// Record are the types of the fields of a record whose binary form is sent, "" without.
	Record string
}

// CopyOptions are those of COPY TO.
type CopyOptions struct {
	Delimiter, Quote, Escape byte
	Null                     string
	Header                   bool
	ForceQuote               []bool
}

// Format is how a session renders values as text.
type Format struct {
	TimeZone, DateStyle, IntervalStyle, ByteaOutput string
	ExtraFloatDigits                                int
}

// Description is what preparing a plan tells without running it.
type Description struct {
	Columns []DescribedColumn
	// Params are the engine types of $1…, as far as known.
	Params []vector.Type
}

// DescribedColumn is a result column.
type DescribedColumn struct {
	Name string
	Type vector.Type
}

// RowEncoder turns chunks into wire bytes inside the worker. It is made per query
// and used by one goroutine. Implemented by pgwire/encode, injected by cmd.
type RowEncoder interface {
	// Header returns bytes that precede the first row (a COPY header), or nil.
	Header(dst []byte) []byte
	// Chunk appends the chunk's rows, complete messages, to dst.
	Chunk(dst []byte, c *vector.Chunk) ([]byte, error)
	// Trailer returns bytes that follow the last row, or dst unchanged.
	Trailer(dst []byte) []byte
}

// EncoderFactory makes the encoder of a query. types are the engine's result types,
// one per Output.Columns.
type EncoderFactory func(o Output, types []vector.Type) (RowEncoder, error)
