package pgsql_test

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// hidden are types whose values cannot be written by a user: gtsvector, pg_node_tree.
var hidden = map[uint32]bool{3642: true, 194: true}

// TestTypeTablesAgree: the catalog, the analysis and the encoder each know PostgreSQL's
// types by what they need of them; where two know the same, they say the same.
func TestTypeTablesAgree(t *testing.T) {
	known := 0
	for _, b := range schema.BuiltinTypes() {
		if !pgsql.KnownType(b.OID) {
			if b.OID >= 600 && b.Kind != 'p' && b.Kind != 'c' && b.Category != 'Z' && !hidden[schema.ElementOID(b.OID)] && !hidden[b.OID] {
				t.Errorf("%s: a column may have it, and the analysis does not know it", b.Name)
			}
			continue
		}
		known++
		if got := pgsql.TypeSize(b.OID); got != b.Size {
			t.Errorf("%s: size %d in the analysis, %d in the catalog", b.Name, got, b.Size)
		}
		vector := b.Name == "int2vector" || b.Name == "oidvector" // subscripted, but no arrays
		if got := pgsql.ElemOf(b.OID); got != schema.ElementOID(b.OID) && !vector {
			t.Errorf("%s: element %d in the analysis, %d in the catalog", b.Name, got, schema.ElementOID(b.OID))
		}
		if oid, ok := pgsql.TypeNamed(b.Name); !ok || oid != b.OID {
			t.Errorf("%s: oid %d in the analysis, %d in the catalog", b.Name, oid, b.OID)
		}
		if got := encode.ElementOID(b.OID); got != 0 && got != schema.ElementOID(b.OID) {
			t.Errorf("%s: element %d in the encoder, %d in the catalog", b.Name, got, schema.ElementOID(b.OID))
		}
	}
	if known < 50 {
		t.Errorf("only %d types compared", known)
	}
}

// Types that columns have and no expression makes can be named, but not be cast to.
func TestStoredTypesAreNoCasts(t *testing.T) {
	for _, sql := range []string{"SELECT 'a'::tsvector", "SELECT NULL::xid8[]"} {
		if _, err := analyze(t, sql); err == nil || !strings.Contains(err.Error(), "is not supported in expressions") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := analyze(t, "SELECT '[1,2)'::int4range"); err != nil {
		t.Error(err)
	}
}
