package write

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// Table is a table as statements change it. Immutable.
type Table struct {
	ID   change.TableID
	Face change.TableID
	// Schema and Name are the table's.
	Schema, Name string
	Current      *schema.Table
	// Temp says that it is one session's: nobody else has rows in it.
	Temp bool
	// key are the places of the key's fields, in key order; all fields of a table whose
	// rows are told apart by all of them.
	key []int
	// keyName is the name of the primary key.
	keyName string
	// Uniques are the unique constraints besides the key.
	Uniques []Unique
	// Computed are what they are of besides columns, of each in turn its expressions, and whether it is
	// of a row: their places come after those of the fields.
	Computed []schema.Field
}

// Of is a catalog table for writing.
func Of(t *catalog.Table) *Table {
	out := &Table{ID: t.ID, Face: t.Face(), Schema: t.Schema, Name: t.Name, Current: t.Current, Temp: t.Temp != "", keyName: t.PrimaryKey()}
	for _, id := range t.Current.Key {
		out.key = append(out.key, t.Current.Index(id))
	}
	for _, x := range t.Indexes {
		if !x.Unique {
			continue
		}
		out.Uniques = append(out.Uniques, out.unique(x))
	}
	if len(out.key) == 0 {
		for i := range t.Current.Fields {
			out.key = append(out.key, i)
		}
	}
	return out
}

// unique is an index of the table, which gets the places that it needs.
func (t *Table) unique(x catalog.Index) Unique {
	u := Unique{Name: x.Name, NullsEqual: x.NullsEqual}
	compute := func(f schema.Field) int {
		t.Computed = append(t.Computed, f)
		return len(t.Current.Fields) + len(t.Computed) - 1
	}
	list := x.Expressions
	for _, id := range x.Fields {
		if id != 0 {
			u.Places = append(u.Places, t.Current.Index(id))
			continue
		}
		u.Places = append(u.Places, compute(schema.Field{Name: list[0].SQL, OID: list[0].OID, TypMod: list[0].TypMod, Type: list[0].Type}))
		list = list[1:]
	}
	for _, c := range x.Where {
		u.Where = append(u.Where, Condition{Place: t.Current.Index(c.Field), Test: c.Test})
	}
	if x.Predicate != "" {
		u.Where = append(u.Where, Condition{Place: compute(schema.Field{Type: schema.Type{Kind: schema.Bool}}), Test: schema.RowIs})
	}
	for _, id := range x.Uses {
		u.Uses = append(u.Uses, t.Current.Index(id))
	}
	return u
}

// field is that of a place, or what is computed there.
func (t *Table) field(place int) schema.Field {
	if n := len(t.Current.Fields); place >= n {
		return t.Computed[place-n]
	}
	return t.Current.Fields[place]
}

// Keyed says whether a row is found by its key, which no other row has.
func (t *Table) Keyed() bool { return t.Current.HasKey() }

// Key are the places of the fields by which a row is found.
func (t *Table) Key() []int { return t.key }

// Fields are the field ids, in order.
func (t *Table) Fields() []int32 {
	out := make([]int32, len(t.Current.Fields))
	for i, f := range t.Current.Fields {
		out[i] = f.ID
	}
	return out
}

// None are all columns of no rows.
func (t *Table) None() []arrow.Array {
	out := make([]arrow.Array, len(t.Current.Fields))
	for i, f := range t.Current.Fields {
		out[i] = array.MakeArrayOfNull(memory.DefaultAllocator, schema.ArrowType(f.Type), 0)
	}
	return out
}

// Columns gives columns as the engine returns them the types that the fields have in the
// log. places are the fields'. The caller releases the result.
func (t *Table) Columns(from []arrow.Array, places []int) ([]arrow.Array, error) {
	out := make([]arrow.Array, 0, len(from))
	for i, c := range from {
		f := t.Current.Fields[places[i]]
		w, err := lake.Widen(c, schema.ArrowType(f.Type))
		if err != nil {
			release(out)
			return nil, fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		out = append(out, w)
	}
	return out, nil
}

// Numbers are values of a sequence as the column of a field, which small says is a smallint.
func (t *Table) Numbers(place int, ranges []sequence.Range, small bool) (arrow.Array, error) {
	wide := array.NewInt64Builder(memory.DefaultAllocator)
	defer wide.Release()
	narrow := array.NewInt32Builder(memory.DefaultAllocator)
	defer narrow.Release()
	least, most, word := int64(math.MinInt64), int64(math.MaxInt64), "bigint"
	kind := schema.ArrowType(t.Current.Fields[place].Type)
	switch {
	case small:
		least, most, word = math.MinInt16, math.MaxInt16, "smallint"
	case kind.ID() == arrow.INT32:
		least, most, word = math.MinInt32, math.MaxInt32, "integer"
	}
	for _, r := range ranges {
		for i := range r.Count {
			v := r.At(i)
			switch {
			case v < least || v > most:
				return nil, pgerr.New(codes.NumericValueOutOfRange, "%s out of range", word)
			case kind.ID() == arrow.INT32:
				narrow.Append(int32(v))
			default:
				wide.Append(v)
			}
		}
	}
	if kind.ID() == arrow.INT32 {
		return narrow.NewArray(), nil
	}
	return wide.NewArray(), nil
}

// CheckNulls refuses rows that have null in a column that must not: columns are all of the
// table's. The error shows values as f says.
func (t *Table) CheckNulls(columns []arrow.Array, f encode.Format) error {
	for i, field := range t.Current.Fields {
		if !field.NotNull && (!t.Keyed() || !slices.Contains(t.key, i)) || columns[i].NullN() == 0 {
			continue
		}
		row := 0
		for !columns[i].IsNull(row) {
			row++
		}
		e := pgerr.New(codes.NotNullViolation, "null value in column \"%s\" of relation \"%s\" violates not-null constraint", field.Name, t.Name).
			WithDetail("Failing row contains %s.", t.rowText(columns, row, f))
		e.Schema, e.Table, e.Column = t.Schema, t.Name, field.Name
		return e
	}
	return nil
}

// FailsCheck is the error of a row that a CHECK excludes: columns are all of the table's.
func (t *Table) FailsCheck(constraint string, columns []arrow.Array, row int, f encode.Format) error {
	e := pgerr.New(codes.CheckViolation, "new row for relation \"%s\" violates check constraint \"%s\"", t.Name, constraint).
		WithDetail("Failing row contains %s.", t.rowText(columns, row, f))
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, constraint
	return e
}

// FailsCheckOption is the error of a row that a view excludes: columns are all of the table's.
func (t *Table) FailsCheckOption(view string, columns []arrow.Array, row int, f encode.Format) error {
	return pgerr.New(codes.WithCheckOptionViolation, "new row violates check option for view \"%s\"", view).
		WithDetail("Failing row contains %s.", t.rowText(columns, row, f))
}

// keysOf renders the keys of rows: columns are the key's.
func (t *Table) keysOf(columns []arrow.Array) (*merge.Keys, error) {
	keys, err := merge.NewKeys(columns)
	if errors.Is(err, merge.ErrKeyType) {
		return nil, fmt.Errorf("key of table %s.%s: %w", t.Schema, t.Name, err)
	}
	return keys, err
}

// pick are the columns at places.
func pick(columns []arrow.Array, places []int) []arrow.Array {
	out := make([]arrow.Array, len(places))
	for i, p := range places {
		out[i] = columns[p]
	}
	return out
}

// Duplicate is the error of a row whose key another one has; key are the key's columns,
// in which it is at row.
func (t *Table) Duplicate(key []arrow.Array, row int, f encode.Format) error {
	return t.duplicate(Unique{Name: t.keyName, Places: t.key}, key, row, f)
}

// duplicate is the error of a row whose values others have; key are the constraint's columns.
func (t *Table) duplicate(u Unique, key []arrow.Array, row int, f encode.Format) error {
	names, values := "", ""
	for i, p := range u.Places {
		if i > 0 {
			names, values = names+", ", values+", "
		}
		if i < len(u.Shown) {
			names += u.Shown[i]
		} else {
			names += quote.NameIfNeeded(t.field(p).Name)
		}
		values += valueText(key[i], row, t.field(p).OID, f)
	}
	e := pgerr.New(codes.UniqueViolation, "duplicate key value violates unique constraint \"%s\"", u.Name).
		WithDetail("Key (%s)=(%s) already exists.", names, values)
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, u.Name
	return e
}

func release(columns []arrow.Array) {
	for _, c := range columns {
		c.Release()
	}
}
