package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Secret is a named secret. Value is sealed at rest and never shown.
type Secret struct {
	Name string
	// Source is "literal", "env:NAME" or "file:PATH". For a literal, Sealed holds the
	// encrypted value.
	Source    string
	Sealed    []byte
	CreatedAt time.Time
}

// Connection is a named way to reach an external system.
type Connection struct {
	Name string
	Kind string // "postgres", "generator"
	// Options by upper-case name (HOST, PORT, DATABASE, USER, SSLMODE, …), without
	// secret values.
	Options map[string]string
	// Secrets maps an option (PASSWORD) to the name of a secret.
	Secrets map[string]string
	// Sealed holds options given as literals that are secret (a password inside a
	// URL), encrypted like Secret.Sealed, by option name.
	Sealed    map[string][]byte
	CreatedAt time.Time
	// Implicit says that it was made inline by CREATE PIPELINE and goes with it.
	Implicit bool
}

// OwnPipeline is the name of the pipeline that has the tables made with CREATE TABLE, and of
// its connection.
const OwnPipeline = "skippr_own"

// PipelineState is what a pipeline is meant to do and does.
type PipelineState string

// The states of a pipeline. A reason goes with error and paused.
const (
	PipelineDisabled PipelineState = "disabled" // by DISABLE or start = false
	PipelineStarting PipelineState = "starting" // connecting, making slot and publication
	PipelineBackfill PipelineState = "backfill" // initial copies, while the stream goes on
	PipelineRunning  PipelineState = "running"
	PipelinePaused   PipelineState = "paused" // by PAUSE: the source is not read, the slot is kept
	PipelineError    PipelineState = "error"  // retrying with back-off; Reason says why
)

// TableSelection is one FOR clause.
type TableSelection struct {
	AllTables bool
	Schemas   []string
	Except    []string // "schema.table"
	Tables    []SelectedTable
	// OutOfRangeText says that columns whose type here does not hold all their values are
	// kept as exact text.
	OutOfRangeText bool `json:",omitempty"`
}

// SelectedTable is one table of FOR TABLE.
type SelectedTable struct {
	Schema, Name string
	Columns      []string // empty: all
	// AsText are columns that are kept as the exact text that the source writes.
	AsText []string `json:",omitempty"`
	// Except are columns that are left out, also when others are added later.
	Except []string `json:",omitempty"`
	// Where is the condition of the rows that are taken in, in the source's SQL; empty: all.
	Where string `json:",omitempty"`
	// Numbers are those that columns it names had at the source when they were named, as far
	// as that is known: such a column is meant under whatever name it has now. They are kept
	// with the table, not with the selection.
	Numbers map[string]int16 `json:"-"`
}

// NamedTable finds a table of a pipeline's by its source's or its own name. One that is
// named without a schema is the source's public one, or else the only one of that name.
// It wraps ErrTableNotFound, or ErrAmbiguous when there are several.
func NamedTable(tables []*Table, want SelectedTable) (*Table, error) {
	schema := cmp.Or(want.Schema, "public")
	var here, others []*Table
	for _, t := range tables {
		switch atSource, own := t.SourceName == want.Name, t.Name == want.Name; {
		case atSource && t.SourceSchema == schema:
			return t, nil
		case own && t.Schema == schema:
			here = append(here, t)
		case own || atSource:
			others = append(others, t)
		}
	}
	switch {
	case len(here) > 0:
		return here[0], nil
	case want.Schema == "" && len(others) == 1:
		return others[0], nil
	case want.Schema == "" && len(others) > 1:
		e := &AmbiguousError{Name: want.Name}
		for _, t := range others {
			e.Tables = append(e.Tables, quote.NameIfNeeded(t.Schema)+"."+quote.NameIfNeeded(t.Name))
		}
		return nil, e
	case want.Schema == "":
		return nil, fmt.Errorf("table %s: %w", quote.Name(want.Name), ErrTableNotFound)
	}
	return nil, fmt.Errorf("table %s: %w", quote.Name(want.Schema+"."+want.Name), ErrTableNotFound)
}

// Partly says whether anything is said of the table but its name.
func (t SelectedTable) Partly() bool {
	return len(t.Columns)+len(t.AsText)+len(t.Except) > 0 || t.Where != ""
}

// Pipeline is a named source, its settings and its progress.
type Pipeline struct {
	ID         change.PipelineID
	Name       string
	Connection string
	// TargetSchema is where tables land; "%s" stands for the source schema.
	TargetSchema string
	Selection    TableSelection
	Options      map[string]string // WITH options, validated, lower-case names
	// Enabled and Paused are what the user asked for; State and Reason are what is.
	Enabled, Paused bool
	State           PipelineState
	Reason          string
	// SourceState is the source's own durable state (slot, publication, system id),
	// opaque.
	SourceState []byte
	CreatedAt   time.Time
	Owner       string
	// OID is its stable object id in pg_catalog.
	OID uint32
}

// TableState is the state of one table of a pipeline.
type TableState string

// The states of a table.
const (
	TablePending  TableState = "pending"  // known, backfill not begun
	TableBackfill TableState = "backfill" // initial copy under way
	// TableCatchup: copied, the stream has not yet reached the copy's horizon, so
	// rows may be from different moments.
	TableCatchup TableState = "catchup"
	TableReady   TableState = "ready"   // consistent, follows the stream
	TableStopped TableState = "stopped" // cannot go on; Reason says why and Hint what helps
)

// Table is a table of a pipeline.
type Table struct {
	ID       change.TableID
	Pipeline change.PipelineID
	Schema   string // where it lands
	Name     string
	// SourceSchema, SourceName and SourceOID name it at the source.
	SourceSchema, SourceName string
	SourceOID                uint32
	// Current is the schema version in force; Versions has all, oldest first.
	Current  *schema.Table
	Versions []*schema.Table
	// VoidVersion is the greatest schema version that the log has void slices of: the
	// next is above it, since a version has one schema.
	VoidVersion uint32 `json:",omitempty"`
	State       TableState
	Reason      string
	Hint        string
	// Resync says that a new copy takes in what a table stopped at: see ingest.TableError.
	Resync bool `json:",omitempty"`
	// StoppedAt is where the table stopped: the pipeline acknowledges nothing past
	// it while the table is stopped.
	StoppedAt change.Position
	// FrozenAt is where a stopped table stands that is being copied anew, and so holds
	// nothing back any more.
	FrozenAt change.Position `json:",omitempty"`
	// Parts are the partitions that it had at the source when it was copied, ascending;
	// PartsKnown is false when it is not partitioned, or nobody has looked.
	Parts []uint32 `json:",omitempty"`
	// PartMarks are marks of Parts that tell whether rows came or went beside the stream; nil
	// when they are not known.
	PartMarks  []uint64 `json:",omitempty"`
	PartsKnown bool     `json:",omitempty"`
	// Forms is how the source wrote values of its columns when it was copied: see
	// ingest/watch. FormsKnown is false when nobody has looked. It is never changed in place.
	Forms      map[string]string `json:",omitempty"`
	FormsKnown bool              `json:",omitempty"`
	// Files are its files at the source as they were looked at last: see ingest/watch. Nil when
	// nobody has looked. They are never changed in place.
	Files *SourceFiles `json:",omitempty"`
	// Missed are updates and deletes that the source does not send of a table without a key: see
	// ingest/watch. Nil when nobody has counted. They are never changed in place.
	Missed *MissedChanges `json:",omitempty"`
	// Published is how the source publishes it, in the source's words: see ingest.Source. Empty
	// when nobody has looked.
	Published string `json:",omitempty"`
	// Unpublished says that it has stopped since the source does not publish it; it is copied anew
	// once it does.
	Unpublished bool `json:",omitempty"`
	// Compared is what Files.Reworked was when its rows were compared last, or copied anew.
	Compared uint32 `json:",omitempty"`
	// Named are the numbers at the source of the columns that the pipeline's selection
	// names, which stay when the columns are renamed. It is never changed in place.
	Named map[string]int16 `json:",omitempty"`
	// Away says why the source does not have the table any more, "" when it does.
	Away string `json:",omitempty"`
	// Filter is the condition of the rows that are taken in, in the source's SQL.
	Filter string `json:",omitempty"`
	// Backfill is the progress of the initial copy.
	Backfill BackfillProgress
	// Generation counts RESET/RESYNC: slices of an older generation are ignored.
	Generation uint32
	CreatedAt  time.Time
	// LettersEnd is up to where dead letters have ended together, those too that are yet to
	// come; nil: nowhere.
	LettersEnd *LettersEnd `json:",omitempty"`
	// OID is its stable object id in pg_catalog (pg_class.oid).
	OID uint32
	// Own says that statements here change the table, which has no other source. Defaults
	// are the expressions, as SQL, that a new row of it has where it is given no value, by
	// field id.
	Own      bool             `json:",omitempty"`
	Defaults map[int32]string `json:",omitempty"`
	// Generated are the expressions, as SQL, by which columns of a table of our own are generated, by
	// field id: no statement gives them values.
	Generated map[int32]string `json:",omitempty"`
	// Checks are the conditions that its rows meet, of a table of our own.
	Checks []Check `json:",omitempty"`
	// KeyName is the name of the primary key's constraint; see PrimaryKey.
	KeyName string `json:",omitempty"`
	// KeyComments are those on the primary key.
	KeyComments IndexComments `json:",omitzero"`
	// Storage are storage parameters as pg_class shows them, of a table of our own. They do nothing.
	Storage []string `json:",omitempty"`
	// Indexes are unique constraints and indexes besides the primary key, of a table of our own.
	Indexes []Index `json:",omitempty"`
	// Foreign are foreign keys, of a table of our own. None is changed in place.
	Foreign []ForeignKey `json:",omitempty"`
	// Unchecked says that rows come, change and go without a look at foreign keys, its own and
	// those that refer to it: ALTER TABLE … DISABLE TRIGGER ALL.
	Unchecked bool `json:",omitempty"`
	// Comment and Comments are what COMMENT ON says of the table and, by field id, of its
	// columns.
	Comment  string           `json:",omitempty"`
	Comments map[int32]string `json:",omitempty"`
	// Query is that of a materialized view, nil of any other table. It is never changed in place.
	Query *Query `json:",omitempty"`
	// Draft says that the transaction which makes the table has not committed. As of a copy,
	// only those who store and stream tables know of it; a start of the server removes it.
	Draft bool `json:",omitempty"`
	// Owner is the role that makes it, 0 for its pipeline's owner; kept with the rights on it.
	Owner uint32 `json:"-"`
	// Temp says that it is one session's, and what becomes of its rows at a commit: "" for any
	// other table. It is of no pipeline.
	Temp TempRows `json:"-"`
	// GaveUp are its copies that were given up since one was made last; nil: none. It is never
	// changed in place.
	GaveUp *GaveUp `json:",omitempty"`
	// CopyOf is the table whose place this one takes when it is copied, 0 for any other.
	// Until then only those who store and stream tables know of it (EveryTable).
	CopyOf change.TableID `json:",omitempty"`
	// FaceID is the table whose place this one has taken, 0 for any other; see Face.
	FaceID change.TableID `json:",omitempty"`
}

// SourceFiles is watch.Files of package ingest.
type SourceFiles struct {
	Newest   int16
	Files    []uint32
	Plain    []int16 `json:",omitempty"`
	Since    uint64  `json:",omitempty"`
	Reworked uint32  `json:",omitempty"`
}

// Reworked says that older rows may have other values at the source than here: the table was
// rewritten there as a column was changed. A number other than Compared is one that is new, also
// when it is less: counted anew.
func (t *Table) Reworked() bool { return t.Files != nil && t.Files.Reworked != t.Compared }

// MissedChanges is watch.Missed of package ingest.
type MissedChanges struct {
	Epoch  string
	Base   map[uint32]int64
	Count  int64 `json:",omitempty"`
	Doubts bool  `json:",omitempty"`
}

// GaveUp counts the copies of a table that were given up, one after the other.
type GaveUp struct {
	At    time.Time // the last
	Times int
}

// TempRows is what becomes of the rows of a temporary table when a transaction commits.
type TempRows string

// What becomes of them.
const (
	TempKeep  TempRows = "preserve"
	TempEmpty TempRows = "delete"
	TempDrop  TempRows = "drop" // and of the table
)

// PrimaryKey is the name of the constraint that its primary key is, if it has one.
func (t *Table) PrimaryKey() string { return cmp.Or(t.KeyName, t.Name+"_pkey") }

// Answers says whether queries read the table: its rows are from one moment.
func (t *Table) Answers() bool {
	return t.State == TableReady || t.State == TableStopped && !t.Backfill.FinishedAt.IsZero()
}

// Exact puts names into a hint, so that its statements can be run as they stand: for
// "PIPELINE …" that of the pipeline, for "ALTER TABLE …" that of the table at the source,
// for other "TABLE …" the one it has here.
func (t *Table) Exact(hint, pipeline string) string {
	here := quote.NameIfNeeded(t.Schema) + "." + quote.NameIfNeeded(t.Name)
	return strings.NewReplacer("PIPELINE …", "PIPELINE "+quote.NameIfNeeded(pipeline),
		"ALTER TABLE …", "ALTER TABLE "+quote.NameIfNeeded(t.SourceSchema)+"."+quote.NameIfNeeded(t.SourceName),
		" TABLE …", " TABLE "+here).Replace(hint)
}

// Exact puts the pipeline's name into a text with statements, for "PIPELINE …".
func (p *Pipeline) Exact(text string) string {
	return strings.ReplaceAll(text, "PIPELINE …", "PIPELINE "+quote.NameIfNeeded(p.Name))
}

// Face is the id under which users know the table: it stays when a copy takes its place.
func (t *Table) Face() change.TableID {
	if t.FaceID != 0 {
		return t.FaceID
	}
	return t.ID
}

// Schema is a namespace that tables land in.
type Schema struct {
	Name string
	OID  uint32
	// Made says that CREATE SCHEMA made it: it stays when it is empty.
	Made    bool   `json:",omitempty"`
	Comment string `json:",omitempty"`
	// Temp says that it is one session's, of temporary tables and views.
	Temp bool `json:"-"`
}

// BackfillProgress is the durable progress of an initial copy.
type BackfillProgress struct {
	// Token is the order token of all its rows.
	Token int64
	// Chunks done of all; Plan is the source's opaque plan.
	Plan         []string
	Done         []bool
	RowsDone     int64
	BytesDone    int64
	RowsEstimate int64
	// Horizon is the source position that the stream must reach before the copy is
	// consistent.
	Horizon    change.Position
	StartedAt  time.Time
	FinishedAt time.Time
	// Anew says that the copy is void, because the source rewrote the table under it: the
	// next session begins it from the start.
	Anew bool
	// Tries is how often that has happened in turn.
	Tries int `json:",omitempty"`
	// From is the moment of the session that began the copy from its start: changes that
	// precede it are in the copy, and not given to the table.
	From change.Position `json:",omitempty"`
	// Skip says that the session which begins the copy should not be ended for little: what
	// a later one reads may not fit to values that the stream left out.
	Skip bool `json:",omitempty"`
	// Resumed says that a session ended before the copy was complete: rows of a chunk
	// that it had not finished may be in the log twice. Set before the next session reads.
	Resumed bool
}

// LakeState is the lake side of a table that readers may use: written in the same
// Txn that marks its slices compacted.
type LakeState struct {
	// Snapshot is the Iceberg snapshot id, 0 when the lake table has none yet.
	Snapshot int64
	// Metadata is the location of the metadata file that has Snapshot.
	Metadata string
	// MaxToken is the greatest order token of any row or delete in the lake.
	MaxToken int64
	Rows     int64 // rows minus deleted positions
	Files    int
	Bytes    int64
	At       time.Time
}

// Slice is a published slice.
type Slice struct {
	wal.Slice
	Pipeline    change.PipelineID
	Generation  uint32
	PublishedAt time.Time
	CommittedAt time.Time // the source's commit time of its group
	// Compacted is the id of the compaction that put it into the lake, "" while live.
	Compacted string
	// Pending says that its transaction has not ended: no reader sees it.
	Pending bool
}

// Segment is a segment with at least one published group.
type Segment struct {
	Pipeline change.PipelineID
	Seq      segment.Seq
	End      uint32 // end of the last published group
	Slices   int
	Live     int // slices not yet compacted, pending ones among them
}

// Offset is the durable progress of a pipeline.
type Offset struct {
	Pipeline change.PipelineID
	Position change.Position
	// Seq and End are the log's published watermark.
	Seq         segment.Seq
	End         uint32
	CommittedAt time.Time // source commit time at Position
	PublishedAt time.Time
}

// CompactionState is where a compaction stands.
type CompactionState string

// The states of a compaction. Acked is terminal (C2).
const (
	CompactionPlanned CompactionState = "planned"
	CompactionAcked   CompactionState = "acked"
)

// Compaction turns slices of one table into lake files.
type Compaction struct {
	ID    string // a function of table, generation and slice refs (C1)
	Table change.TableID
	// Slices in log order while planned; nil once acked: then the slices themselves say
	// so until their segments are reclaimed.
	Slices []segment.SliceRef
	// SliceCount is how many slices it has or had.
	SliceCount int
	// Generation of the table when it was planned.
	Generation uint32
	State      CompactionState
	Snapshot   int64
	Rows       int64
	Deletes    int64
	Bytes      int64
	PlannedAt  time.Time
	FinishedAt time.Time
}

// Role is a database role.
type Role = right.Role

// Event is a line of history a user can read in skippr.events.
type Event struct {
	At       time.Time
	Level    string // info, warning, error
	Pipeline string
	Table    string
	Kind     string // constant words: "pipeline created", "table stopped", …
	Detail   string
}

// Clone is a copy that shares nothing changeable.
func (p *Pipeline) Clone() *Pipeline {
	c := *p
	c.Options = maps.Clone(p.Options)
	c.SourceState = bytes.Clone(p.SourceState)
	c.Selection.Schemas = slices.Clone(p.Selection.Schemas)
	c.Selection.Except = slices.Clone(p.Selection.Except)
	c.Selection.Tables = slices.Clone(p.Selection.Tables)
	for i, t := range c.Selection.Tables {
		c.Selection.Tables[i].Columns = slices.Clone(t.Columns)
		c.Selection.Tables[i].AsText = slices.Clone(t.AsText)
		c.Selection.Tables[i].Except = slices.Clone(t.Except)
	}
	return &c
}

// Clone is a copy that shares nothing changeable; schema versions are immutable and
// shared.
func (t *Table) Clone() *Table {
	c := *t
	c.Versions = slices.Clone(t.Versions)
	c.Parts, c.PartMarks = slices.Clone(t.Parts), slices.Clone(t.PartMarks)
	c.Defaults, c.Generated, c.Comments = maps.Clone(t.Defaults), maps.Clone(t.Generated), maps.Clone(t.Comments)
	c.Checks, c.Indexes, c.Storage = slices.Clone(t.Checks), slices.Clone(t.Indexes), slices.Clone(t.Storage)
	c.Foreign = slices.Clone(t.Foreign)
	c.Backfill.Plan = slices.Clone(t.Backfill.Plan)
	c.Backfill.Done = slices.Clone(t.Backfill.Done)
	return &c
}

// Clone is a copy that shares nothing changeable.
func (c *Connection) Clone() *Connection {
	n := *c
	n.Options, n.Secrets = maps.Clone(c.Options), maps.Clone(c.Secrets)
	n.Sealed = maps.Clone(c.Sealed)
	return &n
}

// Clone is a copy that shares nothing changeable.
func (c *Compaction) Clone() *Compaction {
	n := *c
	n.Slices = slices.Clone(c.Slices)
	return &n
}
