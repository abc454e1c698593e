package outofrange

import (
	"errors"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/postgres/value"
)

// TestDecoder: what each rule makes of a value, in the text that it would be shown in.
func TestDecoder(t *testing.T) {
	date, ts := schema.Type{Kind: schema.Date}, schema.Type{Kind: schema.Timestamp}
	dec := schema.Type{Kind: schema.Decimal, Precision: 5, Scale: 2}
	list := schema.Type{Kind: schema.List, Elem: &date}
	for _, c := range []struct {
		name    string
		t       schema.Type
		notNull bool
		rule    Rule
		src     string
		want    string // "refused", or the value
	}{
		{"in range", date, false, Clamp, "2026-01-02", "20455"},
		{"infinity", date, false, DeadLetter, "infinity", "refused"},
		{"infinity", date, false, Null, "infinity", "null"},
		{"not null", date, true, Null, "infinity", "refused"},
		{"greatest", date, false, Clamp, "infinity", "2145042905"},
		{"least", date, false, Clamp, "-infinity", "-2440588"},
		{"PostgreSQL's greatest is the greatest", date, false, DeadLetter, "5874897-12-31", "2145042905"},
		{"PostgreSQL's least is the least", date, false, DeadLetter, "4714-11-24 BC", "-2440588"},
		{"greatest", ts, false, Clamp, "infinity", "9223371244799999999"},
		{"last moment", ts, false, DeadLetter, "294246-12-31 23:59:59.999999", "9223371244799999999"},
		{"beyond", ts, false, Clamp, "294276-12-31 23:59:59.999999", "9223371244799999999"},
		{"beyond", ts, false, DeadLetter, "294276-12-31 23:59:59.999999", "refused"},
		{"least", ts, false, Clamp, "-infinity", "-210866803200000000"},
		{"PostgreSQL's least is the least", ts, false, DeadLetter, "4714-11-24 00:00:00 BC", "-210866803200000000"},
		{"no number", dec, false, Clamp, "NaN", "refused"},
		{"no number", dec, false, Null, "NaN", "null"},
		{"malformed", dec, false, Null, "x", "refused"},
		{"array", list, false, Null, "{infinity}", "refused"},
		{"array", list, false, Clamp, "{infinity}", "refused"},
	} {
		plain, err := value.TextDecoder(c.t)
		if err != nil {
			t.Fatal(err)
		}
		dst := array.NewBuilder(memory.DefaultAllocator, schema.ArrowType(c.t))
		defer dst.Release()
		d := Decoder(plain, schema.Field{Name: "x", Type: c.t, NotNull: c.notNull}, c.rule)
		got := "refused"
		var refused *value.Error
		if err := d(dst, []byte(c.src)); err == nil {
			a := dst.NewArray()
			got = a.ValueStr(0)
			switch a := a.(type) {
			case *array.Date32:
				got = intStr(int64(a.Value(0)))
			case *array.Timestamp:
				got = intStr(int64(a.Value(0)))
			}
			if a.IsNull(0) {
				got = "null"
			}
			a.Release()
		} else if !errors.As(err, &refused) {
			t.Errorf("%s, %s: %v", c.name, c.src, err)
		}
		if got != c.want {
			t.Errorf("%s, %s under %s: %s, want %s", c.name, c.src, c.rule, got, c.want)
		}
	}
}

func intStr(n int64) string { return strconv.FormatInt(n, 10) }
