package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/wal/change"
)

// ComputeColumn gives a table that has no rows yet a column of texts that is computed from
// the text in the i-th.
func (d *DB) ComputeColumn(t *Table, c Column, i int) {
	v := t.Current()
	c.AttNum, c.From = d.attNum(t), v.Columns[i].AttNum
	v.Columns = append(v.Columns, c)
}

// Fill computes the columns of a row that are computed.
func Fill(v *Version, r Row) {
	for i, c := range v.Columns {
		if c.From == 0 {
			continue
		}
		r[i] = "no text"
		if text, ok := r[v.place(c.From)].(string); ok {
			r[i] = computed(text)
		}
	}
}

// computed is the value that is computed from a text.
func computed(text string) string {
	if strings.HasPrefix(text, ComputesRefused) {
		return RefusedPrefix + text
	}
	return fmt.Sprintf("%d of %s", len(text), text)
}

// Bound says that the i-th column is computed, or another is from it.
func (v *Version) Bound(i int) bool {
	return v.Columns[i].From != 0 || slices.ContainsFunc(v.Columns, func(c Column) bool { return c.From == v.Columns[i].AttNum })
}

// place is that of the column with a number.
func (v *Version) place(number int16) int {
	return slices.IndexFunc(v.Columns, func(c Column) bool { return c.AttNum == number })
}

// recipe is how a column is computed, nil when it is not.
func (v *Version) recipe(c Column) *schema.Computed {
	if c.From == 0 {
		return nil
	}
	name := v.Columns[v.place(c.From)].Name
	return &schema.Computed{
		Expr: name, Type: "text", Form: "1", Inputs: []schema.Input{{AttNum: c.From, Name: name, Type: "text"}},
	}
}

// unsent adds to the fields that are left out of a change those that are computed.
func (t *target) unsent(v *Version, b *change.Builder, left func(field int) bool) func(field int) bool {
	if !slices.ContainsFunc(v.Columns, func(c Column) bool { return c.From != 0 }) {
		return left
	}
	return func(i int) bool {
		if p := t.places[i]; p >= 0 && v.Columns[p].From != 0 {
			b.Column(i).AppendNull()
			return true
		}
		return left != nil && left(i)
	}
}

var _ ingest.Computer = (*Conn)(nil)

// Compute implements ingest.Computer.
func (c *Conn) Compute(_ context.Context, _ uint32, s *schema.Table, rec arrow.RecordBatch) ([]arrow.Array, error) {
	if err := c.point("compute columns"); err != nil {
		return nil, err
	}
	if told := c.hooks.Computed; told != nil {
		told()
	}
	var out []arrow.Array
	refused := &compute.RefusedError{Rows: map[int]compute.Refusal{}}
	for _, f := range s.Fields {
		if !f.Unsent() {
			continue
		}
		from := slices.IndexFunc(s.Fields, func(o schema.Field) bool { return o.AttNum == f.Computed.Inputs[0].AttNum })
		texts := rec.Column(change.SystemColumns + from).(*array.String)
		ops := rec.Column(0).(*array.Uint8)
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for i := range texts.Len() {
			switch {
			case change.Op(ops.Value(i)) == change.Delete && !s.WholeRow:
				b.AppendNull()
			case texts.IsNull(i):
				b.Append("no text")
			default:
				value := computed(texts.Value(i))
				if b.Append(value); !c.db.Healed && strings.HasPrefix(value, RefusedPrefix) {
					refused.Rows[i] = compute.Refusal{Column: f.Name, Reason: "a text begins with " + RefusedPrefix}
				}
			}
		}
		out = append(out, b.NewArray())
		b.Release()
	}
	if len(refused.Rows) > 0 {
		for _, a := range out {
			a.Release()
		}
		if told := c.hooks.Uncomputed; told != nil {
			told()
		}
		return nil, refused
	}
	return out, nil
}
