// Package syscat is the relations that the server makes itself: pg_catalog and
// information_schema in PostgreSQL 15's shapes, filled from our catalog where we have
// something to say and empty but typed where not, and skippr, which shows everything
// the catalog knows.
//
// Shapes and the rows that never change are read from data, which gen writes from a
// running PostgreSQL. Rows that do not depend on the catalog are encoded once (fixed.go).
// Reading order: Catalog, shape.go, fixed.go, fill_pg.go, function.go.
package syscat
