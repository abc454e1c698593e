package catalog

import (
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Counters give out numbers that are never given twice.
const (
	counterPipeline = "pipeline"
	counterTable    = "table"
	counterOID      = "oid"
	counterEvent    = "event"
)

const (
	bootstrapRoleOID = 10
	publicSchema     = "public"
	publicSchemaOID  = 2200
	// firstOID is the first that Postgres gives to objects of users.
	firstOID = 16384
)

// Txn is a transaction of facts. It reads what it wrote. Pipelines, tables and connections
// that it returns are copies, free to change and put back; other values are shared and must
// not be changed. Not safe for concurrent use, nor valid after its function returned.
type Txn struct {
	reader
	batch kv.IndexedBatch
	// actor is the role whose rights bound what the transaction may define, 0 for none;
	// moved are the rights on views that it has taken away, by key.
	actor uint32
	moved map[string]*right.Entry
	rows  *rowEncoder
	now   time.Time
	dirty bool // something was written
	// dropped: a table was deleted.
	dropped bool
	// drafting: it is given up.
	drafting bool
	// temporary: it has objects of one session, which cannot be committed.
	temporary bool
	// defines: something was written that a backup must have before it is committed.
	defines bool
	// publication is the Publish that this is part of, which owns the pipeline's segment
	// row in use; nil if it is none.
	publication *publication
	owned       ownedMaps
	segments    map[segmentID]*Segment         // read or changed here
	cooled      map[change.PipelineID]struct{} // whose hot rows changed
	written     map[string]struct{}            // counters
}

type segmentID struct {
	pipeline change.PipelineID
	seq      segment.Seq
}

// ownedMaps says which maps of facts are the transaction's own.
type ownedMaps struct {
	pipelines, pipelineNames, tables, tableNames, indexNames, connections, secrets, roles, rights, schemas, views, sequences, types, settings,
	lakes, planned, counters, pending, rebuilding bool
}

func (c *Catalog) newTxnLocked() *Txn {
	c.view.Lock()
	base := c.view.facts
	c.view.Unlock()
	b := c.store.NewIndexedBatch()
	return &Txn{
		reader: reader{facts: base.share(), kv: b}, batch: b, rows: &c.mu.rows, now: c.deps.Clock.Now().UTC(),
		segments: map[segmentID]*Segment{}, cooled: map[change.PipelineID]struct{}{},
		written: map[string]struct{}{},
	}
}

// Now is the time of the transaction.
func (t *Txn) Now() time.Time { return t.now }

// finish adds what was collected to the batch.
func (t *Txn) finish() error {
	if t.temporary {
		return errTemporary
	}
	for name := range t.written {
		row := binary.LittleEndian.AppendUint64(nil, t.facts.counters[name])
		if err := t.batch.Set(nameKey(prefixCounter, name), row); err != nil {
			return fmt.Errorf("put counter %s: %w", name, err)
		}
	}
	return nil
}

// seal is the transaction's facts, to be shown.
func (t *Txn) seal() *facts {
	t.facts.version++
	return t.facts
}

// own makes *m the transaction's own map, once.
func own[K comparable, V any](m *map[K]V, owned *bool) {
	if !*owned {
		*m, *owned = maps.Clone(*m), true
	}
}

// nextID counts up from first.
func (t *Txn) nextID(counter string, first uint64) uint64 {
	own(&t.facts.counters, &t.owned.counters)
	n := max(t.facts.counters[counter]+1, first)
	t.facts.counters[counter] = n
	t.written[counter] = struct{}{}
	t.dirty = true
	return n
}

// NextOID gives out an object id for pg_catalog.
func (t *Txn) NextOID() uint32 { return uint32(t.nextID(counterOID, firstOID)) }

func (t *Txn) setJSON(key []byte, v any) error {
	row, err := t.rows.encode(v)
	if err != nil {
		return err
	}
	t.wrote(key)
	return t.batch.Set(key, row)
}

// wrote notes that a key is written.
func (t *Txn) wrote(key []byte) {
	t.dirty = true
	t.defines = t.defines || isDefinition(key)
}

func (t *Txn) delete(key []byte) error {
	t.wrote(key)
	return t.batch.Delete(key)
}

func (t *Txn) deleteRange(lower, upper []byte) error {
	t.wrote(lower)
	return t.batch.DeleteRange(lower, upper)
}

// Pipelines are copies of all pipelines, by name.
func (t *Txn) Pipelines() []*Pipeline { return cloneAll(t.reader.Pipelines(), (*Pipeline).Clone) }

// Pipeline is a copy of a pipeline, or wraps ErrPipelineNotFound.
func (t *Txn) Pipeline(name string) (*Pipeline, error) {
	p, err := t.reader.Pipeline(name)
	if err != nil {
		return nil, err
	}
	return p.Clone(), nil
}

// PipelineByID is a copy of a pipeline, or wraps ErrPipelineNotFound.
func (t *Txn) PipelineByID(id change.PipelineID) (*Pipeline, error) {
	p, err := t.reader.PipelineByID(id)
	if err != nil {
		return nil, err
	}
	return p.Clone(), nil
}

// Tables are copies of the tables of a pipeline, by schema and name.
func (t *Txn) Tables(pipeline change.PipelineID) []*Table {
	return cloneAll(t.reader.Tables(pipeline), (*Table).Clone)
}

// EveryTableOf is Tables with those that are to take the place of another.
func (t *Txn) EveryTableOf(pipeline change.PipelineID) []*Table {
	return cloneAll(t.reader.EveryTableOf(pipeline), (*Table).Clone)
}

// CopyFor is a copy of the table that is to take the place of another, nil when there is
// none.
func (t *Txn) CopyFor(table change.TableID) *Table {
	if c := t.reader.CopyFor(table); c != nil {
		return c.Clone()
	}
	return nil
}

// TableByID is a copy of a table, or wraps ErrTableNotFound.
func (t *Txn) TableByID(id change.TableID) (*Table, error) {
	v, err := t.reader.TableByID(id)
	if err != nil {
		return nil, err
	}
	return v.Clone(), nil
}

// TableByName is a copy of a table, or wraps ErrTableNotFound.
func (t *Txn) TableByName(schema, name string) (*Table, error) {
	v, err := t.reader.TableByName(schema, name)
	if err != nil {
		return nil, err
	}
	return v.Clone(), nil
}

// Connections are copies of all connections, by name.
func (t *Txn) Connections() []*Connection {
	return cloneAll(t.reader.Connections(), (*Connection).Clone)
}

// Connection is a copy of a connection, or wraps ErrConnectionNotFound.
func (t *Txn) Connection(name string) (*Connection, error) {
	c, err := t.reader.Connection(name)
	if err != nil {
		return nil, err
	}
	return c.Clone(), nil
}

func cloneAll[T any](all []*T, clone func(*T) *T) []*T {
	for i, v := range all {
		all[i] = clone(v)
	}
	return all
}
