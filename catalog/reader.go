package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// reader is what a Snapshot and a Txn read from.
type reader struct {
	facts *facts
	kv    kv.Reader
}

// Version grows with each commit that changes facts of low rate, that is all but slices,
// segments, offsets and events.
func (r *reader) Version() uint64 { return r.facts.version }

// Pipelines are all pipelines, by name.
func (r *reader) Pipelines() []*Pipeline {
	ids := r.facts.sorted().pipelines
	out := make([]*Pipeline, len(ids))
	for i, id := range ids {
		out[i] = r.facts.pipelines[id]
	}
	return out
}

// Pipeline finds a pipeline by name, or wraps ErrPipelineNotFound.
func (r *reader) Pipeline(name string) (*Pipeline, error) {
	id, ok := r.facts.pipelineByName[name]
	if !ok {
		return nil, &NotFoundError{KindPipeline, name}
	}
	return r.facts.pipelines[id], nil
}

// PipelineByID finds a pipeline, or wraps ErrPipelineNotFound.
func (r *reader) PipelineByID(id change.PipelineID) (*Pipeline, error) {
	p, ok := r.facts.pipelines[id]
	if !ok {
		return nil, &NotFoundError{KindPipeline, idName(uint32(id))}
	}
	return p, nil
}

// Tables are the tables of a pipeline that users know of, by schema and name.
func (r *reader) Tables(pipeline change.PipelineID) []*Table {
	return r.tables(r.facts.sorted().ofOwner[pipeline])
}

// AllTables are the tables of all pipelines that users know of, by schema and name.
func (r *reader) AllTables() []*Table { return r.tables(r.facts.sorted().tables) }

// EveryTableOf is Tables with those that are to take the place of another (Table.CopyOf):
// for who stores and streams tables.
func (r *reader) EveryTableOf(pipeline change.PipelineID) []*Table {
	return r.tables(r.facts.sorted().everyOf[pipeline])
}

// EveryTable is AllTables with those that are to take the place of another.
func (r *reader) EveryTable() []*Table { return r.tables(r.facts.sorted().every) }

// TableByFace finds a table by the id under which users know it, or wraps
// ErrTableNotFound; see Table.Face.
func (r *reader) TableByFace(face change.TableID) (*Table, error) {
	if id, ok := r.facts.sorted().faces[face]; ok {
		return r.TableByID(id)
	}
	t, err := r.TableByID(face)
	if err == nil && (t.CopyOf != 0 || t.Draft) {
		return nil, &NotFoundError{KindTable, idName(uint32(face))}
	}
	return t, err
}

// CopyFor is the table that is to take the place of another, nil when there is none.
func (r *reader) CopyFor(table change.TableID) *Table {
	t, ok := r.facts.tables[table]
	if !ok {
		return nil
	}
	for _, id := range r.facts.sorted().everyOf[t.Pipeline] {
		if c := r.facts.tables[id]; c.CopyOf == table {
			return c
		}
	}
	return nil
}

func (r *reader) tables(ids []change.TableID) []*Table {
	out := make([]*Table, len(ids))
	for i, id := range ids {
		out[i] = r.facts.tables[id]
	}
	return out
}

// TableByID finds a table, or wraps ErrTableNotFound.
func (r *reader) TableByID(id change.TableID) (*Table, error) {
	t, ok := r.facts.tables[id]
	if !ok {
		return nil, &NotFoundError{KindTable, idName(uint32(id))}
	}
	return t, nil
}

// HasIndex says whether a table of a schema has an index of a name, that of its key among them.
func (r *reader) HasIndex(schema, name string) bool {
	_, ok := r.facts.tableByIndex[tableName{schema, name}]
	return ok
}

// TableByName finds a table by where it landed, or wraps ErrTableNotFound.
func (r *reader) TableByName(schema, name string) (*Table, error) {
	id, ok := r.facts.tableByName[tableName{schema, name}]
	if !ok || r.facts.tables[id].CopyOf != 0 || r.facts.tables[id].Draft {
		return nil, &NotFoundError{KindTable, schema + "." + name}
	}
	return r.facts.tables[id], nil
}

func idName(id uint32) string { return "#" + strconv.FormatUint(uint64(id), 10) }

// Connections are all connections, by name.
func (r *reader) Connections() []*Connection { return byName(r.facts.connections) }

// Connection finds a connection, or wraps ErrConnectionNotFound.
func (r *reader) Connection(name string) (*Connection, error) {
	return find(r.facts.connections, KindConnection, name)
}

// Secrets are all secrets, by name. Their values are sealed.
func (r *reader) Secrets() []*Secret { return byName(r.facts.secrets) }

// Secret finds a secret, or wraps ErrSecretNotFound.
func (r *reader) Secret(name string) (*Secret, error) {
	return find(r.facts.secrets, KindSecret, name)
}

// Rights are the roles, and what they may do.
func (r *reader) Rights() *right.Book { return r.facts.rightsBook() }

// Roles are all roles, by name.
func (r *reader) Roles() []*Role { return byName(r.facts.roles) }

// Role finds a role, or wraps ErrRoleNotFound.
func (r *reader) Role(name string) (*Role, error) { return find(r.facts.roles, KindRole, name) }

// Schemas are all schemas, by name: public, and each that a table lands in.
func (r *reader) Schemas() []*Schema { return byName(r.facts.schemas) }

// Schema finds a schema, or wraps ErrSchemaNotFound.
func (r *reader) Schema(name string) (*Schema, error) {
	return find(r.facts.schemas, KindSchema, name)
}

// Setting is the database's value of a setting.
func (r *reader) Setting(name string) (value string, ok bool) {
	value, ok = r.facts.settings[name]
	return value, ok
}

// Settings are the names of all settings that have a value in the database, sorted.
func (r *reader) Settings() []string { return slices.Sorted(maps.Keys(r.facts.settings)) }

// LakeState is the lake side of a table; zero if the lake has nothing of it.
func (r *reader) LakeState(table change.TableID) LakeState { return r.facts.lakes[table].LakeState }

// PlannedCompactions are the compactions of a table that are not acked, by id.
func (r *reader) PlannedCompactions(table change.TableID) []*Compaction {
	var out []*Compaction
	for _, c := range r.facts.planned {
		if c.Table == table {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *Compaction) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Compactions are the planned compactions of a table and its latest acked ones, oldest
// first.
func (r *reader) Compactions(table change.TableID) ([]*Compaction, error) {
	var out []*Compaction
	err := kv.IteratePrefix(r.kv, tableKey(prefixCompaction, table), func(_, row []byte) error {
		c, err := decodeCompaction(row)
		out = append(out, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read compactions of table %d: %w", table, err)
	}
	slices.SortStableFunc(out, func(a, b *Compaction) int { return a.PlannedAt.Compare(b.PlannedAt) })
	return out, nil
}

// Offset is a pipeline's progress; zero but for its Pipeline if there is none.
func (r *reader) Offset(pipeline change.PipelineID) (Offset, error) {
	row, err := r.kv.Get(pipelineKey(prefixOffset, pipeline))
	if errors.Is(err, kv.ErrNotFound) {
		return Offset{Pipeline: pipeline}, nil
	}
	if err != nil {
		return Offset{}, fmt.Errorf("read offset of pipeline %d: %w", pipeline, err)
	}
	o, err := decodeOffsetRow(row)
	if err != nil {
		return Offset{}, fmt.Errorf("read offset of pipeline %d: %w", pipeline, err)
	}
	return o, nil
}

// place is where a pipeline's log ends; zero if it has no offset.
func (r *reader) place(pipeline change.PipelineID) (segment.SliceRef, error) {
	row, err := r.kv.Get(pipelineKey(prefixOffset, pipeline))
	if errors.Is(err, kv.ErrNotFound) {
		return segment.SliceRef{}, nil
	}
	var at segment.SliceRef
	if err == nil {
		at, err = decodePlace(row)
	}
	if err != nil {
		return at, fmt.Errorf("read offset of pipeline %d: %w", pipeline, err)
	}
	return at, nil
}

// Events are the newest events, newest first, at most limit.
func (r *reader) Events(limit int) ([]Event, error) {
	var out []Event
	if limit <= 0 {
		return nil, nil
	}
	err := kv.IteratePrefix(r.kv, []byte{prefixEvent}, func(_, row []byte) error {
		var e Event
		if err := decodeJSON(row, &e); err != nil {
			return err
		}
		out = append(out, e)
		if len(out) == limit {
			return kv.Stop
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return out, nil
}

func byName[T any](m map[string]*T) []*T {
	out := make([]*T, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

func find[T any](m map[string]*T, kind ObjectKind, name string) (*T, error) {
	v, ok := m[name]
	if !ok {
		return nil, &NotFoundError{kind, name}
	}
	return v, nil
}
