package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/wal/change"
)

// Hooks are how a connection meets the world.
type Hooks struct {
	// Point is called before each exchange with the system, and may fail it.
	Point func(name string) error
	// Wait waits until ready says so or ctx ends.
	Wait func(ctx context.Context, ready func() bool) error
	// Acked is told each position that we are given.
	Acked func(change.Position)
	// Created is told when a slot was made: what commits from now on is streamed, and is not
	// in its snapshot.
	Created func()
	// Late is told when a table is described that has other columns since the copy's moment.
	Late func()
	// Fetched is told when rows are read by key.
	Fetched func()
	// Computed is told when columns are computed, Uncomputed when values of them are refused.
	Computed, Uncomputed func()
	// Alive says whether the client still is.
	Alive func() bool
}

// Conn is a connection to a DB: an ingest.Source.
type Conn struct {
	db    *DB
	hooks Hooks
	// acked is a position that the system has not been told yet.
	acked   int64
	created bool // by this connection, so that its snapshot can be read
	closed  bool
	seen    time.Time // when the client gave the last sign of life
}

var _ ingest.Source = (*Conn)(nil)

// Connect makes a connection.
func (d *DB) Connect(hooks Hooks) *Conn { return &Conn{db: d, hooks: hooks} }

// point is an exchange with the system.
func (c *Conn) point(name string) error {
	c.seen = c.db.now()
	return c.hooks.Point(name)
}

// senderTimeout is after how long the system ends a connection of which it has not heard.
const senderTimeout = 10 * time.Second

// inUse says whether another connection streams from the slot.
func (c *Conn) inUse() bool {
	a := c.db.slot.active
	if a == nil || a == c || a.closed || !a.hooks.Alive() {
		return false
	}
	if c.db.now().Sub(a.seen) > senderTimeout {
		a.closed = true
		return false
	}
	return true
}

var errInUse = errors.New("replication slot is active for another connection")

// Discover implements ingest.Source.
func (c *Conn) Discover(_ context.Context, sel catalog.TableSelection) ([]ingest.SourceTable, error) {
	if err := c.point("discover"); err != nil {
		return nil, err
	}
	var out []ingest.SourceTable
	for _, t := range c.db.Tables {
		if selected(sel, t) {
			out = append(out, describe(t, t.Current()))
		}
	}
	return out, nil
}

func selected(sel catalog.TableSelection, t *Table) bool {
	if slices.Contains(sel.Except, t.Schema+"."+t.Name) {
		return false
	}
	return sel.AllTables || slices.Contains(sel.Schemas, t.Schema) ||
		slices.ContainsFunc(sel.Tables, func(w catalog.SelectedTable) bool {
			return w.Name == t.Name && (w.Schema == "" || w.Schema == t.Schema)
		})
}

func describe(t *Table, v *Version) ingest.SourceTable {
	return ingest.SourceTable{
		Schema: t.Schema, Name: t.Name, OID: t.OID, Columns: columns(v), Key: v.Key, WholeRow: v.WholeRow,
		EstimatedRows: -1, EstimatedBytes: -1, ReplicaIdentity: "default",
	}
}

func columns(v *Version) []ingest.SourceColumn {
	out := make([]ingest.SourceColumn, len(v.Columns))
	for i, c := range v.Columns {
		out[i] = ingest.SourceColumn{
			Name: c.Name, OID: c.OID, TypMod: c.TypMod, TypeName: "t", AttNum: c.AttNum, Type: c.Type,
			NotNull: slices.Contains(v.Key, c.Name), Computed: v.recipe(c),
		}
	}
	return out
}

// Setup implements ingest.Source.
func (c *Conn) Setup(_ context.Context, state []byte, tables []ingest.SourceTable) (ingest.SetupResult, error) {
	if err := c.point("setup"); err != nil {
		return ingest.SetupResult{}, err
	}
	d := c.db
	d.publish(tables)
	if len(state) > 0 {
		n, err := strconv.Atoi(string(state))
		if err != nil {
			return ingest.SetupResult{}, fmt.Errorf("source state: %w", err)
		}
		if n != d.slot.number {
			return ingest.SetupResult{}, errors.New("replication slot is gone")
		}
		return ingest.SetupResult{State: state, Start: Position(d.slot.start), Token: d.slot.start}, nil
	}
	if d.slot.number != 0 && c.inUse() {
		return ingest.SetupResult{}, errInUse
	}
	d.createSlot() // one that an earlier attempt left goes
	c.created = true
	c.hooks.Created()
	err := c.point("slot created")
	return ingest.SetupResult{
		State: []byte(strconv.Itoa(d.slot.number)), Created: true,
		Start: Position(d.slot.start), Token: d.slot.start,
	}, err
}

// publish has the changes of tables sent from now on, if they are not yet.
func (d *DB) publish(tables []ingest.SourceTable) {
	if d.published == nil {
		d.published = map[uint32]int64{}
	}
	for _, t := range tables {
		if _, ok := d.published[t.OID]; !ok {
			d.published[t.OID] = d.LSN
		}
	}
}

// Ack implements ingest.Source.
func (c *Conn) Ack(p change.Position) {
	c.hooks.Acked(p)
	c.acked = max(c.acked, LSN(p))
}

// tell sends the position that is due.
func (c *Conn) tell() {
	if s := &c.db.slot; s.number != 0 {
		s.confirmed = max(s.confirmed, c.acked)
	}
}

// Compare implements ingest.Source.
func (c *Conn) Compare(a, b change.Position) int {
	switch {
	case a == b:
		return 0
	case len(a) != len(b):
		return len(a) - len(b)
	case a < b:
		return -1
	}
	return 1
}

// Status implements ingest.Source.
func (c *Conn) Status(context.Context) (ingest.SourceStatus, error) {
	if err := c.point("status"); err != nil {
		return ingest.SourceStatus{}, err
	}
	d := c.db
	lag := (d.LSN - d.slot.confirmed) * 100
	return ingest.SourceStatus{
		Current: Position(d.LSN), Confirmed: Position(d.slot.confirmed), LagBytes: lag, RetainedBytes: lag,
		SlotState: "reserved",
	}, nil
}

// Teardown implements ingest.Source.
func (c *Conn) Teardown(context.Context, []byte) ([]string, error) {
	if err := c.point("teardown"); err != nil {
		return nil, err
	}
	if c.inUse() {
		return nil, errInUse
	}
	c.db.DropSlot()
	return nil, c.point("torn down")
}

// Close implements ingest.Source.
func (c *Conn) Close() error {
	c.closed = true
	return nil
}

// Backfill implements ingest.Source.
func (c *Conn) Backfill(context.Context) (ingest.Backfill, error) {
	if err := c.point("backfill"); err != nil {
		return nil, err
	}
	d := c.db
	b := &backfill{conn: c, at: d.LSN}
	if c.created {
		c.created = false
		b.at, b.rows, b.ats, b.exact = d.slot.start, d.slot.exported, d.slot.ats, true
		b.files = d.slot.files
		return b, nil
	}
	b.rows, b.ats = d.snapshot()
	b.files = d.files()
	return b, nil
}

// backfill reads the rows of one moment.
type backfill struct {
	conn  *Conn
	at    int64
	rows  map[uint32][]Row
	ats   map[uint32]*Version
	exact bool
	// files are those that the tables had at that moment.
	files map[uint32]int
	// refusals take rows that cannot be taken in.
	refusals ingest.CopyRefusals
}

// Describe implements ingest.Backfill: tables have the columns of the moment.
func (b *backfill) Describe(_ context.Context, wanted map[uint32]catalog.SelectedTable, _ bool) (map[uint32]ingest.SourceTable, error) {
	if err := b.conn.point("describe"); err != nil {
		return nil, err
	}
	out := map[uint32]ingest.SourceTable{}
	for _, t := range b.conn.db.Tables {
		if _, ok := wanted[t.OID]; !ok || b.ats[t.OID] == nil {
			continue
		}
		out[t.OID] = describe(t, b.ats[t.OID])
		if told := b.conn.hooks.Late; told != nil && b.ats[t.OID] != t.Current() {
			told()
		}
	}
	return out, nil
}

// chunksOf is how many chunks a table has.
const chunksOf = 2

// Horizon implements ingest.Backfill.
func (b *backfill) Horizon() change.Position { return Position(b.at) }

// Exact implements ingest.Backfill.
func (b *backfill) Exact() bool { return b.exact }

// Parallel implements ingest.Backfill.
func (b *backfill) Parallel() int { return 2 }

// Close implements ingest.Backfill.
func (b *backfill) Close() error { return nil }

// Plan implements ingest.Backfill: two chunks, or none of an empty table.
func (b *backfill) Plan(_ context.Context, t ingest.SourceTable) ([]string, error) {
	if err := b.conn.point("plan copy"); err != nil {
		return nil, err
	}
	if b.conn.db.state[t.OID].file != b.files[t.OID] {
		return nil, &ingest.TableError{Reason: "the table was rewritten or truncated before it was copied", Anew: true}
	}
	if len(b.rows[t.OID]) == 0 {
		return nil, nil
	}
	return []string{b.chunk(t, 0), b.chunk(t, 1)}, nil
}

// chunk names a chunk: its number, the file that the table has now, and the moment that is
// read where the rest could not be told apart from later changes.
func (b *backfill) chunk(t ingest.SourceTable, n int) string {
	at := int64(0)
	if len(t.Key) == 0 {
		at = b.at
	}
	return fmt.Sprintf("%d/%d/%d", n, b.conn.db.state[t.OID].file, at)
}

// batchRows bounds the batches of a copy.
const batchRows = 4

// Read implements ingest.Backfill: a chunk has the keys of one hash.
func (b *backfill) Read(_ context.Context, t ingest.SourceTable, s *schema.Table, chunk string, token int64,
	emit func(*change.Batch) error,
) error {
	if err := b.conn.point("read chunk"); err != nil {
		return err
	}
	v := b.ats[t.OID]
	if v == nil {
		return &ingest.TableError{Reason: "table is gone"}
	}
	var want, file int
	var at int64
	if _, err := fmt.Sscanf(chunk, "%d/%d/%d", &want, &file, &at); err != nil {
		return fmt.Errorf("chunk %q: %w", chunk, err)
	}
	if file != b.conn.db.state[t.OID].file || at != 0 && at != b.at {
		return &ingest.TableError{Reason: "the table was rewritten, or its copy interrupted", Anew: true}
	}
	places, ok := copiedPlaces(v, s)
	if !ok {
		return &ingest.TableError{Reason: "columns have changed", Hint: "RESYNC it."}
	}
	builder := newBuilder(s)
	defer builder.Release()
	builder.Backfill = true
	ordinal := int32(0)
	for i, r := range b.rows[t.OID] {
		if chunkOf(v, r, i) != want {
			continue
		}
		if b.refusals != nil && !b.conn.db.Healed && Refused(r) {
			if err := b.refused(t, chunk, s, r, token); err != nil {
				return err
			}
			continue
		}
		builder.Add(change.Insert, token, ordinal)
		ordinal++
		appendRow(builder, places, r, nil)
		if builder.Rows() < batchRows {
			continue
		}
		if err := emit(builder.Batch()); err != nil {
			return err
		}
		ordinal = 0
		if err := b.conn.point("read chunk"); err != nil {
			return err
		}
	}
	if builder.Rows() == 0 {
		return nil
	}
	return emit(builder.Batch())
}

var _ ingest.Fetcher = (*backfill)(nil)

// Fetch implements ingest.Fetcher.
func (b *backfill) Fetch(_ context.Context, t ingest.SourceTable, q *fill.Query, found fill.Found) error {
	if err := b.conn.point("fetch rows"); err != nil {
		return err
	}
	v := b.ats[t.OID]
	if v == nil {
		return nil
	}
	if b.conn.db.state[t.OID].file != b.files[t.OID] {
		return nil // rewritten or truncated since: nothing is seen of it
	}
	s := &schema.Table{Version: q.Schema.Version, LastFieldID: q.Schema.LastFieldID, Fields: q.Schema.KeyFields()}
	for _, id := range q.Fields {
		if f, ok := q.Schema.Field(id); ok {
			s.Fields = append(s.Fields, f)
		}
	}
	for i := range s.Fields {
		for _, c := range v.Columns {
			if c.AttNum == s.Fields[i].AttNum {
				s.Fields[i].Name = c.Name // it may have another one by now
			}
		}
	}
	places, ok := copiedPlaces(v, s)
	if !ok {
		return nil
	}
	if told := b.conn.hooks.Fetched; told != nil {
		told()
	}
	for _, r := range b.rows[t.OID] {
		keys := make(Row, 0, 4)
		for i := range q.Schema.Key {
			keys = append(keys, r[places[i]])
		}
		if !hasKey(q.Keys, keys) {
			continue
		}
		one := newBuilder(s)
		one.Add(change.Insert, 0, 0)
		appendRow(one, places, r, nil)
		batch := one.Batch()
		one.Release()
		err := foundRow(batch, s, found)
		batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func foundRow(batch *change.Batch, s *schema.Table, found fill.Found) error {
	fields := make([]arrow.Field, len(s.Fields))
	columns := batch.Record.Columns()[change.SystemColumns:]
	for i, f := range s.Fields {
		fields[i] = arrow.Field{Name: fill.FieldName(f.ID), Type: columns[i].DataType(), Nullable: true}
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, 1)
	defer rec.Release()
	return found(rec)
}

// hasKey says whether a key is among keys.
func hasKey(keys arrow.RecordBatch, key Row) bool {
	for i := range int(keys.NumRows()) {
		same := true
		for c, v := range key {
			switch a := keys.Column(c).(type) {
			case *array.Int32:
				same = same && int64(a.Value(i)) == v
			case *array.Int64:
				same = same && a.Value(i) == v
			case *array.String:
				same = same && a.Value(i) == v
			default:
				same = false
			}
		}
		if same {
			return true
		}
	}
	return false
}

func chunkOf(v *Version, r Row, i int) int {
	if len(v.Key) == 0 {
		return i % chunksOf
	}
	h := 0
	for _, c := range []byte(keyOf(v, r)) {
		h += int(c)
	}
	return h % chunksOf
}
