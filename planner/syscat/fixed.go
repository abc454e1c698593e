package syscat

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/planner"
)

// fixedFill makes the rows of a relation that are the same for the life of the server.
type fixedFill func(c *Catalog, database string) ([][]any, error)

// fixedFills are the relations whose fixed rows are not those of a file. The rest of
// their rows, if any, is made by postgresFills.
func fixedFills() map[string]fixedFill {
	return map[string]fixedFill{
		"pg_catalog.pg_class":      fixedClass,
		"pg_catalog.pg_attribute":  fixedAttribute,
		"pg_catalog.pg_type":       fixedType,
		"pg_catalog.pg_constraint": fixedConstraint,
		"pg_catalog.pg_rewrite":    fixedRewrite,

		"pg_catalog.relation_sizes()": fixedSizes,
		"pg_catalog.pg_proc":          fixedProc,
		"pg_catalog.pg_tables":        fixedTables,
		"pg_catalog.pg_views":         fixedViews,
		"information_schema.tables":   fixedInfoTables,
		"information_schema.columns":  fixedInfoColumns,

		"pg_catalog.pg_extension":                    fixedExtension,
		"pg_catalog.pg_available_extensions":         fixedAvailable,
		"pg_catalog.pg_available_extension_versions": fixedAvailableVersions,
		"pg_catalog.pg_description":                  fixedDescription,
		"pg_catalog.pg_depend":                       fixedDepend,
		"pg_catalog.pg_init_privs":                   fixedInitPrivs,
	}
}

// Rows returns the rows of rel as an Arrow IPC stream: the fixed ones, which are
// encoded once, and those that env sees.
func (c *Catalog) Rows(ctx context.Context, rel planner.SystemRelation, env *planner.SystemEnv) ([]byte, error) {
	key := rel.Schema + "." + rel.Name
	f := c.fills[key]
	if f == nil {
		b, err := c.fixedStream(rel, env.Database)
		return bytes.Clone(b), err
	}
	// Rights are those of the present moment, and of the session's open transaction.
	if !isRemembered(key) || env.Snapshot.IsDraft() || env.Rights != env.Snapshot.Rights() {
		return c.filled(ctx, rel, f, env)
	}
	known, version := streamKey(key, env), env.Snapshot.Version()
	if b := c.remembered.Get(known, version); b != nil {
		return b, nil
	}
	b, err := c.filled(ctx, rel, f, env)
	if err == nil {
		c.remembered.Put(known, version, b)
	}
	return b, err
}

// isRemembered says whether a relation is made of nothing but the state of the catalog, the role and
// the settings of a key, and is read by whatever a client asks: it is dear where there are
// thousands of tables.
func isRemembered(name string) bool {
	switch name {
	case "pg_catalog.pg_class", "pg_catalog.pg_attribute", "pg_catalog.pg_type", "pg_catalog.pg_index",
		"pg_catalog.pg_constraint", "pg_catalog.pg_attrdef", "pg_catalog.pg_depend":
		return true
	}
	return false
}

// streamKey tells apart those for whom a relation is not the same.
func streamKey(rel string, env *planner.SystemEnv) string {
	parts := append([]string{rel, strconv.FormatUint(uint64(env.Role), 10), env.Database, env.Version, zoneOf(env)}, env.SearchPath...)
	return strings.Join(parts, "\x00")
}

func zoneOf(env *planner.SystemEnv) string {
	for _, s := range env.Settings {
		if s.Name == "TimeZone" {
			return s.Value
		}
	}
	return ""
}

// filled is a relation of fixed rows, and those of f.
func (c *Catalog) filled(ctx context.Context, rel planner.SystemRelation, f fill, env *planner.SystemEnv) ([]byte, error) {
	fixed, err := c.fixedBatch(rel, env.Database)
	if err != nil {
		return nil, err
	}
	rows, err := f(ctx, c, env)
	if err != nil {
		return nil, err
	}
	batch, err := record(rel, rows)
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	return encode(rel, fixed, batch)
}

// rows are the rows of a relation, for tests.
func (c *Catalog) rows(ctx context.Context, rel planner.SystemRelation, env *planner.SystemEnv) ([][]any, error) {
	rows, err := c.fixedRows(rel, env.Database)
	if err != nil {
		return nil, err
	}
	f := c.fills[rel.Schema+"."+rel.Name]
	if f == nil {
		return rows, nil
	}
	more, err := f(ctx, c, env)
	return append(rows, more...), err
}

// fixedStream is the whole stream of a relation that has fixed rows only.
func (c *Catalog) fixedStream(rel planner.SystemRelation, database string) ([]byte, error) {
	key := rel.Schema + "." + rel.Name + "\x00" + database
	c.mu.Lock()
	b, ok := c.mu.streams[key]
	c.mu.Unlock()
	if ok {
		return b, nil
	}
	batch, err := c.fixedBatch(rel, database)
	if err != nil {
		return nil, err
	}
	if b, err = encode(rel, batch); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.streams[key] = b
	return b, nil
}

// fixedBatch holds the fixed rows of a relation. It lives as long as the catalog.
func (c *Catalog) fixedBatch(rel planner.SystemRelation, database string) (arrow.RecordBatch, error) {
	key := rel.Schema + "." + rel.Name + "\x00" + database
	c.mu.Lock()
	b, ok := c.mu.batches[key]
	c.mu.Unlock()
	if ok {
		return b, nil
	}
	rows, err := c.fixedRows(rel, database)
	if err != nil {
		return nil, err
	}
	if b, err = record(rel, rows); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.mu.batches[key]; ok {
		b.Release()
		return have, nil
	}
	c.mu.batches[key] = b
	return b, nil
}

func (c *Catalog) fixedRows(rel planner.SystemRelation, database string) ([][]any, error) {
	if f := fixedFills()[rel.Schema+"."+rel.Name]; f != nil {
		return f(c, database)
	}
	if rel.Schema == "skippr" {
		return nil, nil
	}
	return fileRows(strings.TrimSuffix(rel.Name, "()"))
}

// fileRows are the rows of a file of data, none when there is no file.
func fileRows(name string) ([][]any, error) {
	if _, err := data.Open("data/" + name + ".tsv"); err != nil {
		return nil, nil // a relation that is empty with us
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
	return rows, nil
}

// typeFacts is what pg_attribute repeats of a type.
type typeFacts struct {
	length, byval, align, storage, collation, category string
}

// loadTypes reads the facts of the built-in types and the names of the domains.
func loadTypes(s *shape) (facts map[uint32]typeFacts, domains map[uint32]string, err error) {
	lines, err := readTSV("pg_type")
	if err != nil {
		return nil, nil, err
	}
	domains = map[uint32]string{}
	at := s.places()
	facts = make(map[uint32]typeFacts, len(lines))
	for _, l := range lines {
		if len(l) != len(s.Columns) {
			return nil, nil, fmt.Errorf("read pg_type: %d fields", len(l))
		}
		get := func(name string) string {
			if v := l[at[name]]; v != nil {
				return *v
			}
			return ""
		}
		oid := number(l[at["oid"]])
		if get("typtype") == "d" {
			domains[oid] = get("typname")
		}
		facts[oid] = typeFacts{
			length: get("typlen"), byval: get("typbyval"), align: get("typalign"), storage: get("typstorage"), collation: get("typcollation"),
			category: get("typcategory"),
		}
	}
	return facts, domains, nil
}

// accessMethods are the kinds of indexes.
var accessMethods = map[string]uint32{"btree": oidBtree, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}

// classKey finds an operator class of an access method: by its name, or the default one of a type.
type classKey struct {
	method, input uint32
	name          string
}

// loadClasses reads the operator classes.
func loadClasses(s *shape) (map[classKey]int64, error) {
	rows, err := fileRows("pg_opclass")
	at := s.places()
	out := map[classKey]int64{}
	for _, r := range rows {
		text := func(column string) string { s, _ := r[at[column]].(string); return s }
		oid := func(column string) uint32 { s := text(column); return number(&s) }
		out[classKey{method: oid("opcmethod"), name: text("opcname")}] = int64(oid("oid"))
		if text("opcdefault") == "t" {
			out[classKey{method: oid("opcmethod"), input: oid("opcintype")}] = int64(oid("oid"))
		}
	}
	return out, err
}

// operatorClass is an operator class of an access method, the default one of a type if it is not
// named; 0 for none.
func (c *Catalog) operatorClass(method, oid uint32, name string) int64 {
	if name != "" {
		return c.classes[classKey{method: method, name: name}]
	}
	tries := []uint32{oid}
	switch t, builtin := c.types[oid]; {
	case oid == 1043: // varchar has text's
		tries = []uint32{oidText}
	case !builtin:
		tries = []uint32{3500} // anyenum
	case t.category == "A":
		tries = append(tries, 2277) // anyarray
	case t.category == "R":
		tries = append(tries, 3831) // anyrange
	}
	for _, input := range tries {
		if class := c.classes[classKey{method: method, input: input}]; class != 0 {
			return class
		}
	}
	return 0
}
