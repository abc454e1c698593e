package pgsql_test

import (
	"testing"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// TestTypeTablesAgree: the catalog, the analysis and the encoder each know PostgreSQL's
// types by what they need of them; where two know the same, they say the same.
func TestTypeTablesAgree(t *testing.T) {
	known := 0
	for _, b := range schema.BuiltinTypes() {
		if !pgsql.KnownType(b.OID) {
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
