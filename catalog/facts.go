package catalog

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// tableName identifies a table by name.
type tableName struct{ schema, name string }

// facts are the decoded facts of low rate. Immutable once a snapshot can see them; a Txn
// works on a copy that shares the maps it has not written to.
type facts struct {
	version        uint64 // grows with each commit that changes them
	base           *facts // what a draft was made of
	pipelines      map[change.PipelineID]*Pipeline
	pipelineByName map[string]change.PipelineID
	tables         map[change.TableID]*Table
	tableByName    map[tableName]change.TableID
	tableByIndex   map[tableName]change.TableID // by the names of its indexes
	connections    map[string]*Connection
	secrets        map[string]*Secret
	roles          map[string]*Role
	rights         map[string]*right.Entry // by right.Object.Key
	schemas        map[string]*Schema
	views          map[string]*View              // by viewKey
	sequences      map[string]*sequence.Sequence // by viewKey
	types          map[string]*usertype.Type     // by viewKey
	settings       map[string]string
	lakes          map[change.TableID]lakeRow
	planned        map[string]*Compaction // by id
	pending        map[change.PipelineID]PendingTxn
	counters       map[string]uint64
	rebuilding     map[change.PipelineID]rebuildRow
	restored       bool                       // from a backup, and not all rebuilt
	order          atomic.Pointer[order]      // made when asked for
	book           atomic.Pointer[right.Book] // made when asked for
}

// lakeRow is LakeState and what the catalog itself needs to know.
type lakeRow struct {
	LakeState
	// LiveFrom is at or below every live slice of the table: scans start there, past the
	// keys of compacted slices that the store has not yet forgotten.
	LiveFrom segment.SliceRef
	// MaxRef is the greatest slice ever compacted, of this generation.
	MaxRef segment.SliceRef
	// epoch is another after each change of the live slices but one at their end. Not durable: it tells apart
	// states of one process.
	epoch uint64
}

// order holds sorted lists, which are dear for many tables.
type order struct {
	pipelines []change.PipelineID // by name
	tables    []change.TableID    // by schema, name
	ofOwner   map[change.PipelineID][]change.TableID
	// every and everyOf are the same with copies that have no place yet.
	every   []change.TableID
	everyOf map[change.PipelineID][]change.TableID
	faces   map[change.TableID]change.TableID // of tables that took another's place
}

func emptyFacts() *facts {
	return &facts{
		pipelines: map[change.PipelineID]*Pipeline{}, pipelineByName: map[string]change.PipelineID{},
		tables: map[change.TableID]*Table{}, tableByName: map[tableName]change.TableID{}, tableByIndex: map[tableName]change.TableID{},
		connections: map[string]*Connection{}, secrets: map[string]*Secret{},
		roles: map[string]*Role{}, rights: map[string]*right.Entry{}, schemas: map[string]*Schema{}, views: map[string]*View{}, sequences: map[string]*sequence.Sequence{}, types: map[string]*usertype.Type{}, settings: map[string]string{},
		lakes: map[change.TableID]lakeRow{}, planned: map[string]*Compaction{},
		counters: map[string]uint64{}, pending: map[change.PipelineID]PendingTxn{},
		rebuilding: map[change.PipelineID]rebuildRow{},
	}
}

// share is a copy that shares all maps.
func (f *facts) share() *facts {
	c := &facts{
		version: f.version, pipelines: f.pipelines, pipelineByName: f.pipelineByName,
		tables: f.tables, tableByName: f.tableByName, tableByIndex: f.tableByIndex, connections: f.connections,
		secrets: f.secrets, roles: f.roles, rights: f.rights, schemas: f.schemas, views: f.views, sequences: f.sequences, types: f.types, settings: f.settings,
		lakes: f.lakes, planned: f.planned, counters: f.counters, pending: f.pending,
		rebuilding: f.rebuilding, restored: f.restored,
	}
	c.order.Store(f.order.Load())
	c.book.Store(f.book.Load())
	return c
}

// rightsBook is the roles and rights there are.
func (f *facts) rightsBook() *right.Book {
	b := f.book.Load()
	if b == nil {
		b = right.New(f.roles, f.rights)
		f.book.Store(b)
	}
	return b
}

func (f *facts) sorted() *order {
	if o := f.order.Load(); o != nil {
		return o
	}
	o := &order{
		ofOwner: map[change.PipelineID][]change.TableID{}, everyOf: map[change.PipelineID][]change.TableID{},
		faces: map[change.TableID]change.TableID{},
	}
	for _, name := range slices.Sorted(maps.Keys(f.pipelineByName)) {
		o.pipelines = append(o.pipelines, f.pipelineByName[name])
	}
	names := slices.SortedFunc(maps.Keys(f.tableByName), func(a, b tableName) int {
		if c := strings.Compare(a.schema, b.schema); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	for _, n := range names {
		id := f.tableByName[n]
		t := f.tables[id]
		o.every, o.everyOf[t.Pipeline] = append(o.every, id), append(o.everyOf[t.Pipeline], id)
		if t.CopyOf != 0 || t.Draft {
			continue
		}
		o.tables, o.ofOwner[t.Pipeline] = append(o.tables, id), append(o.ofOwner[t.Pipeline], id)
		if t.FaceID != 0 {
			o.faces[t.FaceID] = id
		}
	}
	f.order.Store(o)
	return o
}

// loadFacts decodes all facts of low rate.
func loadFacts(r kv.Reader) (*facts, error) {
	f := emptyFacts()
	loaders := []struct {
		prefix byte
		load   func(key, row []byte) error
	}{
		{prefixCounter, f.loadCounter},
		{prefixRebuild, f.loadRebuild},
		{prefixPipeline, f.loadPipeline},
		{prefixTable, f.loadTable},
		{prefixPlan, f.loadPlan},
		{prefixProgress, f.loadProgress},
		{prefixConnection, loadNamed(f.connections)},
		{prefixSecret, loadNamed(f.secrets)},
		{prefixRole, loadNamed(f.roles)},
		{prefixRight, loadNamed(f.rights)},
		{prefixSchema, loadNamed(f.schemas)},
		{prefixView, loadNamed(f.views)},
		{prefixSequence, loadNamed(f.sequences)},
		{prefixType, loadNamed(f.types)},
		{prefixSetting, f.loadSetting},
		{prefixLake, f.loadLake},
		{prefixCompaction, f.loadCompaction},
		{prefixPendingTxn, f.loadPending},
	}
	for _, l := range loaders {
		err := kv.IteratePrefix(r, []byte{l.prefix}, func(k, v []byte) error {
			if err := l.load(k[1:], v); err != nil {
				return fmt.Errorf("key %x: %w", k, err)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("load facts: %w", err)
		}
	}
	return f, nil
}

func loadNamed[T any](into map[string]*T) func(key, row []byte) error {
	return func(key, row []byte) error {
		v := new(T)
		into[string(key)] = v
		return decodeJSON(row, v)
	}
}

func decodeID(key []byte) (uint32, error) {
	if len(key) != 4 {
		return 0, fmt.Errorf("key length: %w", ErrCorrupt)
	}
	return binary.BigEndian.Uint32(key), nil
}

func (f *facts) loadCounter(key, row []byte) error {
	if len(row) != 8 {
		return fmt.Errorf("counter: %w", ErrCorrupt)
	}
	f.counters[string(key)] = binary.LittleEndian.Uint64(row)
	return nil
}

func (f *facts) loadPipeline(_, row []byte) error {
	p := &Pipeline{}
	if err := decodeJSON(row, p); err != nil {
		return err
	}
	f.pipelines[p.ID], f.pipelineByName[p.Name] = p, p.ID
	return nil
}

func (f *facts) loadTable(_, row []byte) error {
	t := &Table{}
	if err := decodeJSON(row, t); err != nil {
		return err
	}
	if t.Current != nil {
		// Stored as its number alone.
		i := slices.IndexFunc(t.Versions, func(v *schema.Table) bool {
			return v.Version == t.Current.Version
		})
		if i < 0 {
			return fmt.Errorf("table %d has no schema version %d: %w", t.ID, t.Current.Version, ErrCorrupt)
		}
		t.Current = t.Versions[i]
	}
	f.tables[t.ID], f.tableByName[tableName{t.Schema, t.Name}] = t, t.ID
	for _, name := range t.indexNames() {
		f.tableByIndex[name] = t.ID
	}
	return nil
}

func (f *facts) loadPlan(key, row []byte) error {
	t, err := f.tableOfKey(key)
	if err != nil {
		return err
	}
	return decodeJSON(row, &t.Backfill.Plan)
}

func (f *facts) loadProgress(key, row []byte) error {
	t, err := f.tableOfKey(key)
	if err != nil {
		return err
	}
	var p progressRow
	if err := decodeJSON(row, &p); err != nil {
		return err
	}
	plan := t.Backfill.Plan
	t.Backfill, err = p.progress()
	t.Backfill.Plan = plan
	return err
}

func (f *facts) tableOfKey(key []byte) (*Table, error) {
	id, err := decodeID(key)
	if err != nil {
		return nil, err
	}
	t, ok := f.tables[change.TableID(id)]
	if !ok {
		return nil, fmt.Errorf("row of unknown table %d: %w", id, ErrCorrupt)
	}
	return t, nil
}

func (f *facts) loadSetting(key, row []byte) error {
	var v string
	err := decodeJSON(row, &v)
	f.settings[string(key)] = v
	return err
}

func (f *facts) loadLake(key, row []byte) error {
	id, err := decodeID(key)
	if err != nil {
		return err
	}
	var l lakeRow
	if err := decodeJSON(row, &l); err != nil {
		return err
	}
	f.lakes[change.TableID(id)] = l
	return nil
}

func (f *facts) loadCompaction(_, row []byte) error {
	c, err := decodeCompaction(row)
	if err == nil && c.State == CompactionPlanned {
		f.planned[c.ID] = c
	}
	return err
}

func (f *facts) loadPending(key, row []byte) error {
	id, err := decodeID(key)
	if err != nil {
		return err
	}
	var p PendingTxn
	err = decodeJSON(row, &p)
	f.pending[change.PipelineID(id)] = p
	return err
}

// progressRow is the durable form of BackfillProgress without its plan, which is large
// and does not change.
type progressRow struct {
	BackfillProgress        // its Plan is nil
	Done             []byte // a bit per chunk; hides BackfillProgress.Done
	Count            int    // of chunks
}

func newProgressRow(b BackfillProgress) progressRow {
	r := progressRow{BackfillProgress: b, Done: make([]byte, (len(b.Done)+7)/8), Count: len(b.Done)}
	r.Plan = nil
	for i, done := range b.Done {
		if done {
			r.Done[i/8] |= 1 << (i % 8)
		}
	}
	return r
}

func (r progressRow) progress() (BackfillProgress, error) {
	if r.Count < 0 || len(r.Done) != (r.Count+7)/8 {
		return BackfillProgress{}, fmt.Errorf("backfill progress: %w", ErrCorrupt)
	}
	b := r.BackfillProgress
	b.Done = nil
	if r.Count > 0 {
		b.Done = make([]bool, r.Count)
	}
	for i := range b.Done {
		b.Done[i] = r.Done[i/8]>>(i%8)&1 == 1
	}
	return b, nil
}
