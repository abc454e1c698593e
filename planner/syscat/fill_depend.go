package syscat

import (
	"context"

	"github.com/skipprd/skipprd/planner"
)

// The OIDs of PostgreSQL's relations that pg_depend names.
const (
	classType       uint32 = 1247
	classRelation   uint32 = 1259
	classDefault    uint32 = 2604
	classConstraint uint32 = 2606
)

// fillDepend says what hangs on tables: row types, defaults, primary keys and their
// indexes, and on which columns.
func fillDepend(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	depends := func(class, obj, refClass, ref uint32, column int64, kind string) {
		rows = append(rows, row{
			"classid": class, "objid": obj, "objsubid": 0, "refclassid": refClass, "refobjid": ref, "refobjsubid": column, "deptype": kind,
		})
	}
	for _, t := range env.Snapshot.AllTables() {
		table := planner.TableOID(t.Face())
		depends(classType, planner.TypeOID(t.Face()), classRelation, table, 0, "i")
		depends(classType, arrayTypeOID(t.Face()), classType, planner.TypeOID(t.Face()), 0, "i")
		for i, f := range t.Current.Fields {
			if _, ok := t.Defaults[f.ID]; ok {
				depends(classDefault, defaultOID(t.Face(), attNum(f, i)), classRelation, table, int64(attNum(f, i)), "a")
			}
		}
		if !t.Current.HasKey() {
			continue
		}
		for _, num := range keyNumbers(t) {
			depends(classConstraint, constraintOID(t.Face()), classRelation, table, num, "a")
		}
		depends(classRelation, planner.IndexOID(t.Face()), classConstraint, constraintOID(t.Face()), 0, "i")
	}
	return c.build("pg_catalog.pg_depend", rows)
}
