package schema_test

import (
	"testing"

	"github.com/skipprd/skipprd/catalog/schema"
)

// A column's initial value is one of its type or refused, in a time that its length bounds.
func FuzzInitial(f *testing.F) {
	for kind := range uint8(20) {
		f.Add(kind, "1", int32(10), int32(2))
	}
	f.Add(uint8(schema.Decimal), "1e9999999", int32(38), int32(10))
	f.Add(uint8(schema.List), `["1",null]`, int32(0), int32(0))
	f.Add(uint8(schema.Float32), "NaN", int32(0), int32(0))
	f.Fuzz(func(t *testing.T, kind uint8, text string, precision, scale int32) {
		typ := schema.Type{Kind: schema.Kind(kind)}
		switch typ.Kind {
		case schema.Decimal:
			typ.Precision, typ.Scale = 1+abs(precision)%38, 0
			typ.Scale = abs(scale) % (typ.Precision + 1)
		case schema.List:
			typ.Elem = &schema.Type{Kind: schema.Int64}
		}
		if !typ.Valid() {
			t.Skip()
		}
		a, err := schema.InitialColumn(schema.Field{Name: "c", Type: typ, Initial: &text}, 2)
		if err != nil {
			return
		}
		defer a.Release()
		if a.Len() != 2 {
			t.Errorf("%v %q: %d values", typ, text, a.Len())
		}
	})
}

func abs(n int32) int32 { return max(n, -(n + 1)) }
