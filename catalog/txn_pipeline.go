package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// errPublishing means that a function of Deps.ApplyState went beyond its rights.
var errPublishing = errors.New("not allowed while groups are being published")

// errNoPlace means that a table is not one that takes another's place.
var errNoPlace = errors.New("table takes no other's place")

// CreatePipeline adds a pipeline and gives it its ID and OID, or wraps ErrExists.
// CreatedAt is set if zero.
func (t *Txn) CreatePipeline(p *Pipeline) error {
	if _, ok := t.facts.pipelineByName[p.Name]; ok {
		return &ExistsError{KindPipeline, p.Name}
	}
	p.ID = change.PipelineID(t.nextID(counterPipeline, 1))
	p.OID = t.NextOID()
	if p.CreatedAt.IsZero() {
		p.CreatedAt = t.now
	}
	if err := t.storePipeline(nil, p); err != nil {
		return err
	}
	if r, err := t.Role(p.Owner); err == nil {
		return t.Own(right.Object{Class: right.Pipeline, ID: uint32(p.ID)}, r.OID)
	}
	return nil // the bootstrap role's
}

// PutPipeline replaces a pipeline, also under another name; wraps ErrPipelineNotFound or
// ErrExists.
func (t *Txn) PutPipeline(p *Pipeline) error {
	old, err := t.reader.PipelineByID(p.ID)
	if err != nil {
		return err
	}
	if old.Name != p.Name {
		if _, ok := t.facts.pipelineByName[p.Name]; ok {
			return &ExistsError{KindPipeline, p.Name}
		}
	}
	return t.storePipeline(old, p)
}

// renamePipeline keeps the names of pipelines; "" is no name.
func (t *Txn) renamePipeline(from, to string, id change.PipelineID) {
	if from == to {
		return
	}
	own(&t.facts.pipelineByName, &t.owned.pipelineNames)
	t.facts.order.Store(nil)
	if from != "" {
		delete(t.facts.pipelineByName, from)
	}
	if to != "" {
		t.facts.pipelineByName[to] = id
	}
}

func (t *Txn) storePipeline(old, p *Pipeline) error {
	if p.Name == "" {
		return fmt.Errorf("put pipeline: %w", errName)
	}
	p = p.Clone()
	oldName, defined := "", t.defines
	if old != nil {
		oldName = old.Name
	}
	err := t.setJSON(pipelineKey(prefixPipeline, p.ID), p)
	same := false
	if err == nil && old != nil {
		same, err = sameDefinition(old, p)
	}
	if err != nil {
		return fmt.Errorf("put pipeline %s: %w", quote.Name(p.Name), err)
	}
	if same {
		t.defines = defined
	}
	own(&t.facts.pipelines, &t.owned.pipelines)
	t.facts.pipelines[p.ID] = p
	t.renamePipeline(oldName, p.Name, p.ID)
	return nil
}

// sameDefinition says whether pipelines differ in nothing but what they do, which follows
// from what the user asked for and what happens: a rebuilt catalog is told of it anew.
func sameDefinition(a, b *Pipeline) (bool, error) {
	x, y := *a, *b
	x.State, x.Reason, y.State, y.Reason = "", "", "", ""
	xRow, xErr := encodeJSON(&x)
	yRow, yErr := encodeJSON(&y)
	return bytes.Equal(xRow, yRow), errors.Join(xErr, yErr)
}

// DeletePipeline removes a pipeline with its tables, segments, slices and offset. Its log
// must not publish any more.
func (t *Txn) DeletePipeline(id change.PipelineID) error {
	p, err := t.reader.PipelineByID(id)
	if err != nil {
		return err
	}
	if t.publication != nil {
		return errPublishing
	}
	for _, tbl := range t.reader.Tables(id) {
		if err := t.DeleteTable(tbl.ID); err != nil {
			return err
		}
	}
	if err := t.leaveTypes(id); err != nil {
		return err
	}
	own(&t.facts.pipelines, &t.owned.pipelines)
	delete(t.facts.pipelines, id)
	t.renamePipeline(p.Name, "", id)
	for sid := range t.segments {
		if sid.pipeline == id {
			t.segments[sid] = nil
		}
	}
	t.cooled[id] = struct{}{}
	if err := t.forgetPending(id); err != nil {
		return err
	}
	for _, prefix := range []byte{prefixSegment, prefixDone} {
		lower := pipelineKey(prefix, id)
		err = errors.Join(err, t.deleteRange(lower, kv.PrefixEnd(lower)))
	}
	err = errors.Join(err, t.FinishRebuild(id), t.delete(pipelineKey(prefixOffset, id)),
		t.delete(pipelineKey(prefixPipeline, id)), t.putRight(right.Object{Class: right.Pipeline, ID: uint32(id)}.Key(), nil))
	if err != nil {
		return fmt.Errorf("delete pipeline %s: %w", quote.Name(p.Name), err)
	}
	return nil
}

// SetPosition sets where the source resumes, without a group: its start, or after a reset.
// The log's watermark stays.
func (t *Txn) SetPosition(pipeline change.PipelineID, at change.Position) error {
	if t.publication != nil {
		return errPublishing
	}
	if len(at) > positionBytesMax {
		return fmt.Errorf("position of %d bytes exceeds %d", len(at), positionBytesMax)
	}
	o, err := t.Offset(pipeline)
	if err != nil {
		return err
	}
	o.Position = at
	t.cooled[pipeline] = struct{}{}
	t.dirty, t.defines = true, true
	if err := t.batch.Set(pipelineKey(prefixOffset, pipeline), appendOffsetRow(nil, &o)); err != nil {
		return fmt.Errorf("put offset of pipeline %d: %w", pipeline, err)
	}
	return nil
}

// CreateTable adds a table and gives it its OID, and its ID unless one was reserved, or wraps ErrExists. Its schema
// is added if there is none. CreatedAt is set if zero.
func (t *Txn) CreateTable(tbl *Table) error {
	if _, ok := t.facts.tableByName[tableName{tbl.Schema, tbl.Name}]; ok {
		return &ExistsError{KindTable, tbl.Schema + "." + tbl.Name}
	}
	if _, err := t.reader.PipelineByID(tbl.Pipeline); err != nil && tbl.Temp == "" {
		return err
	}
	if tbl.ID == 0 {
		tbl.ID = t.ReserveTable()
	}
	if _, ok := t.facts.tables[tbl.ID]; ok {
		return &ExistsError{KindTable, idName(uint32(tbl.ID))}
	}
	tbl.OID = t.NextOID()
	if tbl.CreatedAt.IsZero() {
		tbl.CreatedAt = t.now
	}
	if !tbl.Draft {
		if err := t.mayMake(tbl.Schema); err != nil {
			return err
		}
	}
	_, hasSchema := t.facts.schemas[tbl.Schema]
	if err := t.storeTable(nil, tbl); err != nil || tbl.Draft {
		return err
	}
	return t.ownTable(tbl, !hasSchema)
}

// ownTable gives a new table, and the schema if it is new, its owner. A copy has the rights of
// the table whose place it takes.
func (t *Txn) ownTable(tbl *Table, newSchema bool) error {
	if tbl.Face() != tbl.ID {
		return nil
	}
	owner := cmp.Or(t.actor, tbl.Owner)
	if owner == 0 {
		owner = t.facts.rightsBook().Owner(right.Object{Class: right.Pipeline, ID: uint32(tbl.Pipeline)})
	}
	schemaOID := t.facts.schemas[tbl.Schema].OID
	if newSchema && tbl.Schema != publicSchema {
		if err := t.made(right.Object{Class: right.Schema, ID: schemaOID}, owner, 0); err != nil {
			return err
		}
	}
	return t.made(right.Table(uint32(tbl.ID)), owner, schemaOID)
}

// forgetRights removes the rights on a table that is gone, unless another has taken its place.
func (t *Txn) forgetRights(gone *Table) error {
	key := right.Table(uint32(gone.Face())).Key()
	if _, ok := t.facts.rights[key]; !ok {
		return nil
	}
	for _, other := range t.facts.tables {
		if other.Face() == gone.Face() {
			return nil
		}
	}
	return t.putRight(key, nil)
}

// PutTable replaces a table, also under another name; wraps ErrTableNotFound or ErrExists.
// Current joins Versions if it is not there. A greater Generation drops the table's
// slices, lake state and planned compactions; the pipeline must have no group of the
// older generation under way.
func (t *Txn) PutTable(tbl *Table) error {
	old, err := t.reader.TableByID(tbl.ID)
	if err != nil {
		return err
	}
	if old.Generation != tbl.Generation {
		if err := t.dropSlices(old); err != nil {
			return err
		}
		tbl.VoidVersion = max(tbl.VoidVersion, t.facts.tables[tbl.ID].VoidVersion)
	}
	if old.Schema != tbl.Schema || old.Name != tbl.Name {
		if _, ok := t.facts.tableByName[tableName{tbl.Schema, tbl.Name}]; ok {
			return &ExistsError{KindTable, tbl.Schema + "." + tbl.Name}
		}
	}
	placed := old.Draft && !tbl.Draft
	if placed {
		err = t.mayMake(tbl.Schema)
	} else {
		err = t.mayChange(right.Table(uint32(tbl.Face())), "table", old.Name)
	}
	if err == nil {
		err = t.storeTable(old, tbl)
	}
	if err != nil || !placed {
		return err
	}
	return t.ownTable(tbl, false)
}

// renameTable keeps the names of tables; the zero name is none.
func (t *Txn) renameTable(from, to tableName, id change.TableID) {
	if from == to {
		return
	}
	own(&t.facts.tableByName, &t.owned.tableNames)
	t.facts.order.Store(nil)
	if from != (tableName{}) {
		delete(t.facts.tableByName, from)
	}
	if to != (tableName{}) {
		t.facts.tableByName[to] = id
	}
}

// storeTable writes the rows of a table that differ from old's.
func (t *Txn) storeTable(old, tbl *Table) error {
	if tbl.Name == "" || tbl.Schema == "" {
		return fmt.Errorf("put table: %w", errName)
	}
	if _, ok := t.facts.schemas[tbl.Schema]; !ok {
		if err := t.putSchema(&Schema{Name: tbl.Schema}); err != nil {
			return err
		}
	}
	tbl = tbl.Clone()
	if tbl.Current != nil && !slices.ContainsFunc(tbl.Versions, func(v *schema.Table) bool {
		return v.Version == tbl.Current.Version
	}) {
		tbl.Versions = append(tbl.Versions, tbl.Current)
	}
	if err := t.writeTable(old, tbl); err != nil {
		return fmt.Errorf("put table %s.%s: %w", tbl.Schema, tbl.Name, err)
	}
	own(&t.facts.tables, &t.owned.tables)
	t.facts.tables[tbl.ID] = tbl
	if old != nil && (old.CopyOf != tbl.CopyOf || old.Draft != tbl.Draft) {
		t.facts.order.Store(nil)
	}
	var oldName tableName
	if old != nil {
		oldName = tableName{old.Schema, old.Name}
	}
	t.renameTable(oldName, tableName{tbl.Schema, tbl.Name}, tbl.ID)
	t.renameIndexes(old, tbl)
	return nil
}

// renameIndexes keeps the names of a table's indexes; nil is no table.
func (t *Txn) renameIndexes(old, tbl *Table) {
	from, to := old.indexNames(), tbl.indexNames()
	if slices.Equal(from, to) {
		return
	}
	own(&t.facts.tableByIndex, &t.owned.indexNames)
	for _, name := range from {
		if t.facts.tableByIndex[name] == old.ID {
			delete(t.facts.tableByIndex, name)
		}
	}
	for _, name := range to {
		t.facts.tableByIndex[name] = tbl.ID
	}
}

// indexNames are those of a table's indexes.
func (t *Table) indexNames() (names []tableName) {
	if t == nil {
		return nil
	}
	if t.Own && t.Current.HasKey() {
		names = append(names, tableName{t.Schema, t.PrimaryKey()})
	}
	for _, x := range t.Indexes {
		names = append(names, tableName{t.Schema, x.Name})
	}
	return names
}

func (t *Txn) writeTable(old, tbl *Table) error {
	if t.drafting {
		return nil // which nobody reads
	}
	if old == nil || !sameTableRow(old, tbl) {
		row := *tbl
		row.Backfill = BackfillProgress{}
		if tbl.Current != nil {
			row.Current = &schema.Table{Version: tbl.Current.Version}
		}
		if err := t.setJSON(tableKey(prefixTable, tbl.ID), &row); err != nil {
			return err
		}
	}
	if old == nil || !slices.Equal(old.Backfill.Plan, tbl.Backfill.Plan) {
		if err := t.setJSON(tableKey(prefixPlan, tbl.ID), tbl.Backfill.Plan); err != nil {
			return err
		}
	}
	return t.setJSON(tableKey(prefixProgress, tbl.ID), newProgressRow(tbl.Backfill))
}

// sameTableRow says whether two states of a table differ in nothing but the progress of its
// copy, which has rows of its own.
func sameTableRow(a, b *Table) bool {
	x, y := *a, *b
	x.Backfill, y.Backfill = BackfillProgress{}, BackfillProgress{}
	return reflect.DeepEqual(&x, &y)
}

// ResetTable begins a new generation of a table: its slices, lake state, planned
// compactions and backfill progress go, its schema versions stay. See PutTable.
func (t *Txn) ResetTable(id change.TableID) (*Table, error) {
	tbl, err := t.TableByID(id)
	if err != nil {
		return nil, err
	}
	tbl.Generation++
	tbl.State, tbl.Reason, tbl.Hint, tbl.StoppedAt = TablePending, "", "", ""
	tbl.Backfill = BackfillProgress{}
	if err := t.PutTable(tbl); err != nil {
		return nil, err
	}
	return t.TableByID(id)
}

// DeleteTable removes a table with its slices, lake state and compactions, and the copy
// that was to take its place. Slices of it
// that are published later are counted as compacted. Its schema goes with the last
// table, unless it is public, was made by a statement, or has views.
func (t *Txn) DeleteTable(id change.TableID) error {
	tbl, err := t.reader.TableByID(id)
	if err != nil {
		return err
	}
	if err := t.mayDrop(right.Table(uint32(tbl.Face())), "table", tbl.Schema, tbl.Name); err != nil {
		return err
	}
	if err := errors.Join(t.DropCopy(id), t.dropSlices(tbl)); err != nil {
		return err
	}
	own(&t.facts.tables, &t.owned.tables)
	delete(t.facts.tables, id)
	t.renameTable(tableName{tbl.Schema, tbl.Name}, tableName{}, id)
	t.renameIndexes(tbl, nil)
	t.dropped = true
	err = errors.Join(t.putLakeRow(id, nil), t.delete(tableKey(prefixTable, id)), t.delete(tableKey(prefixPlan, id)),
		t.delete(tableKey(prefixProgress, id)), t.deleteCompactions(id), t.deleteDeadLetters(id),
		t.forgetRights(tbl))
	if err != nil {
		return fmt.Errorf("delete table %s.%s: %w", tbl.Schema, tbl.Name, err)
	}
	if tbl.Schema == publicSchema || t.schemaInUse(tbl.Schema) {
		return nil
	}
	return t.deleteSchema(tbl.Schema)
}

func (t *Txn) schemaInUse(name string) bool {
	if s := t.facts.schemas[name]; s != nil && s.Made {
		return true
	}
	for _, v := range t.facts.views {
		if v.Schema == name {
			return true
		}
	}
	for _, s := range t.facts.sequences {
		if s.Schema == name {
			return true
		}
	}
	for _, e := range t.facts.types {
		if e.Schema == name {
			return true
		}
	}
	for n := range t.facts.tableByName {
		if n.schema == name {
			return true
		}
	}
	return false
}

// CreateCopy adds a table that is to take the place of another one when it is copied,
// with CopyOf its id. It gets its ID, the other's schema, and a name of its own there. One
// that was to take the place before goes, see DropCopy.
func (t *Txn) CreateCopy(c *Table) error {
	of, err := t.reader.TableByID(c.CopyOf)
	if err != nil {
		return err
	}
	if err := t.DropCopy(of.ID); err != nil {
		return err
	}
	c.Schema, c.FaceID = of.Schema, of.Face()
	for n := 1; ; n++ {
		c.Name = of.Name + "__copy_" + strconv.Itoa(n)
		if _, taken := t.facts.tableByName[tableName{c.Schema, c.Name}]; !taken {
			return t.CreateTable(c)
		}
	}
}

// DropCopy removes the table that is to take the place of another one, if there is one,
// and notes that its lake side is to be removed.
func (t *Txn) DropCopy(of change.TableID) error {
	c := t.reader.CopyFor(of)
	if c == nil {
		return nil
	}
	return errors.Join(t.DeleteTable(c.ID), t.LeaveLake(c.ID))
}

// TakePlace gives a copy (Table.CopyOf) the place of its table, at once for all readers:
// its name, object id and face. The table goes, as with DeleteTable, and its lake side is
// noted to be removed. Groups of it may be under way.
func (t *Txn) TakePlace(id change.TableID) error {
	c, err := t.TableByID(id)
	if err != nil {
		return err
	}
	if c.CopyOf == 0 {
		return fmt.Errorf("table %d: %w", id, errNoPlace)
	}
	of, err := t.TableByID(c.CopyOf)
	if err != nil {
		return err
	}
	c.CopyOf = 0 // so that it does not go with its table
	err = t.PutTable(c)
	if err == nil {
		err = errors.Join(t.DeleteTable(of.ID), t.LeaveLake(of.ID))
	}
	if err != nil {
		return fmt.Errorf("take the place of table %s.%s: %w", of.Schema, of.Name, err)
	}
	c.Schema, c.Name, c.OID, c.CreatedAt = of.Schema, of.Name, of.OID, of.CreatedAt
	c.Comment, c.Comments, c.KeyComments = of.Comment, maps.Clone(of.Comments), of.KeyComments
	maps.DeleteFunc(c.Comments, func(field int32, _ string) bool {
		_, there := c.Current.Field(field)
		return !there
	})
	return t.PutTable(c)
}

// dropSlices makes all slices of a table's present generation obsolete, with what the
// lake has of them.
func (t *Txn) dropSlices(tbl *Table) error {
	if t.publication != nil {
		return errPublishing
	}
	err := t.eachLive(tbl.ID, func(s *Slice) error {
		seg, err := t.segment(s.Pipeline, s.Ref.Seq)
		if err == nil {
			seg.Live--
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := errors.Join(t.flushSegments(), t.VoidPendingOf(tbl.ID)); err != nil {
		return err
	}
	for id, c := range t.facts.planned {
		if c.Table == tbl.ID {
			own(&t.facts.planned, &t.owned.planned)
			delete(t.facts.planned, id)
			if err := t.delete(compactionKey(c.Table, id)); err != nil {
				return fmt.Errorf("delete compaction %s: %w", id, err)
			}
		}
	}
	o, err := t.Offset(tbl.Pipeline)
	if err != nil {
		return err
	}
	lower, upper := liveRange(tbl.ID, segment.SliceRef{})
	row := lakeRow{LiveFrom: segment.SliceRef{Seq: o.Seq, Start: o.End}, epoch: t.nextEpoch()}
	err = errors.Join(t.deleteRange(lower, upper), t.putLakeRow(tbl.ID, &row))
	if err != nil {
		return fmt.Errorf("drop slices of table %s.%s: %w", tbl.Schema, tbl.Name, err)
	}
	return nil
}
