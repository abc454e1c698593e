package syscat

import (
	"context"
	"fmt"
	"sync"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// Deps are the sources of what the catalog does not hold.
type Deps struct {
	// Status is the live state of a pipeline.
	Status func(name string) (ddl.PipelineStatus, bool)
	// Files lists the data files of a table's snapshot.
	Files func(ctx context.Context, table change.TableID, metadata string, snapshot int64) (*lake.Snapshot, error)
	// Encodings and the rest of PostgreSQL's constants need nothing.
}

// Catalog is the system relations. Safe for concurrent use.
type Catalog struct {
	deps   Deps
	shapes map[string]*shape
	fills  map[string]fill

	mu struct {
		sync.Mutex
		fixed map[string][][]any // rows read from data, by relation
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
	c.mu.fixed = map[string][][]any{}
	for _, own := range ownRelations() {
		c.shapes[own.schema+"."+own.name] = own.shape()
		c.fills[own.schema+"."+own.name] = own.fill
	}
	for key, f := range postgresFills() {
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

// Rows returns the rows of rel as an Arrow IPC stream.
func (c *Catalog) Rows(ctx context.Context, rel planner.SystemRelation, env *planner.SystemEnv) ([]byte, error) {
	rows, err := c.rows(ctx, rel, env)
	if err != nil {
		return nil, err
	}
	return encode(rel, rows)
}

func (c *Catalog) rows(ctx context.Context, rel planner.SystemRelation, env *planner.SystemEnv) ([][]any, error) {
	if f := c.fills[rel.Schema+"."+rel.Name]; f != nil {
		return f(ctx, c, env)
	}
	if rel.Schema == "pg_catalog" {
		return c.fixedRows(rel.Name)
	}
	return nil, nil
}

// fixedRows are the rows of data, none when there is no file.
func (c *Catalog) fixedRows(name string) ([][]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rows, ok := c.mu.fixed[name]; ok {
		return rows, nil
	}
	if _, err := data.Open("data/" + name + ".tsv"); err != nil {
		return nil, nil //nolint:nilerr // a relation that is empty with us
	}
	lines, err := readTSV(name)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, len(lines))
	for i, l := range lines {
		rows[i] = make([]any, len(l))
		for j, v := range l {
			if v != nil {
				rows[i][j] = *v
			}
		}
	}
	c.mu.fixed[name] = rows
	return rows, nil
}

// row builds a row of a relation by column name; what is not named is NULL.
type row map[string]any

// build puts rows into the column order of a relation. A name that the relation does
// not have is an error of ours.
func (c *Catalog) build(key string, rows []row) ([][]any, error) {
	s := c.shapes[key]
	at := map[string]int{}
	for i, col := range s.Columns {
		at[col.Name] = i
	}
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
