package syscat

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/pgwire/hba"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/syscat/kept"
	"github.com/skipprd/skipprd/planner/syscat/ruleutils"
	"github.com/skipprd/skipprd/wal/change"
)

// Deps are the sources of what the catalog does not hold.
type Deps struct {
	// Status is the live state of a pipeline.
	Status func(name string) (ddl.PipelineStatus, bool)
	// Files lists the data files of a table's snapshot.
	Files func(ctx context.Context, table change.TableID, metadata string, snapshot int64) (*lake.Snapshot, error)
	// Rules are the lines of the files of who may connect and of the maps, as they are now; nil:
	// there are none.
	Rules func() (rules, maps []hba.Entry, err error)
}

// Catalog is the system relations. Safe for concurrent use.
type Catalog struct {
	deps   Deps
	shapes map[string]*shape
	fills  map[string]fill
	types  map[uint32]typeFacts
	// domains are the names of information_schema's domains.
	domains map[uint32]string
	classes map[classKey]int64 // operator classes
	// indexes are those of the system tables, by schema and name.
	indexes map[[2]string]uint32
	// viewSQL are the definitions of PostgreSQL's views, by oid.
	viewSQL map[uint32]string
	// facts are read when a definition is first shown.
	facts func() (*ruleutils.Facts, error)

	// remembered are relations of the newest states of the catalog.
	remembered kept.Streams

	mu struct {
		sync.Mutex
		batches map[string]arrow.RecordBatch // fixed rows, by relation and database
		streams map[string][]byte            // of the relations that have no other rows
		// definitions are those of the state of the catalog that was last asked for.
		definitions *definitions
	}
}

// fill makes the rows of a relation.
type fill func(ctx context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error)

var _ planner.SystemRelations = (*Catalog)(nil)

// New reads the shapes.
func New(deps Deps) (*Catalog, error) {
	shapes, err := loadShapes()
	if err != nil {
		return nil, err
	}
	c := &Catalog{deps: deps, shapes: shapes, fills: map[string]fill{}}
	if c.types, c.domains, err = loadTypes(shapes["pg_catalog.pg_type"]); err != nil {
		return nil, err
	}
	if c.classes, err = loadClasses(shapes["pg_catalog.pg_opclass"]); err != nil {
		return nil, err
	}
	if c.indexes, err = systemIndexes(); err != nil {
		return nil, err
	}
	if c.viewSQL, err = systemViews(); err != nil {
		return nil, err
	}
	c.facts = sync.OnceValues(c.readFacts)
	c.mu.batches, c.mu.streams = map[string]arrow.RecordBatch{}, map[string][]byte{}
	for _, own := range ownRelations() {
		c.shapes[own.schema+"."+own.name] = own.shape()
		c.fills[own.schema+"."+own.name] = own.fill
	}
	fills := postgresFills()
	maps.Copy(fills, statFills())
	maps.Copy(fills, rightsFills())
	for key, v := range veils() {
		if f := fills[key]; f != nil {
			fills[key] = veiled(key, f, v)
		} else if f := c.fills[key]; f != nil {
			c.fills[key] = veiled(key, f, v)
		}
	}
	maps.Copy(c.shapes, functionShapes(shapes))
	for name, view := range viewFunctions {
		if f := fills["pg_catalog."+view]; f != nil {
			fills["pg_catalog."+name+"()"] = f
		}
	}
	for key, f := range fills {
		if c.shapes[key] == nil {
			return nil, fmt.Errorf("fill %s: there is no such relation", key)
		}
		c.fills[key] = f
	}
	return c, nil
}

// Lookup finds a relation.
func (c *Catalog) Lookup(schema, name string) (planner.SystemRelation, bool) {
	s := c.shapes[schema+"."+name]
	if s == nil {
		return planner.SystemRelation{}, false
	}
	return s.SystemRelation, true
}

// row builds a row of a relation by column name; what is not named is NULL.
type row map[string]any

// build puts rows into the column order of a relation. A name that the relation does
// not have is an error of ours.
func (c *Catalog) build(key string, rows []row) ([][]any, error) {
	s := c.shapes[key]
	at := s.places()
	out := make([][]any, len(rows))
	for i, r := range rows {
		out[i] = make([]any, len(s.Columns))
		for name, v := range r {
			j, ok := at[name]
			if !ok {
				return nil, fmt.Errorf("fill %s: there is no column %s", key, name)
			}
			out[i][j] = v
		}
	}
	return out, nil
}
