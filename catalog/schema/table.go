package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// ColumnsMax is Postgres's own limit of columns per table.
const ColumnsMax = 1600

// reservedPrefix begins the names of the system columns.
const reservedPrefix = "_skippr_"

// NewField is a column that has no field id yet.
type NewField struct {
	Name     string
	Type     Type
	OID      uint32
	TypMod   int32
	TypeName string
	Enum     bool
	NotNull  bool
	// Collation is as in Field.
	Collation uint32
	AttNum    int16 // 0: the source numbers no columns, names identify them
	// Initial is what rows older than the column have in it, Computed how the source
	// computes it; see Field.
	Initial  *string
	Computed *Computed
}

func (n NewField) field(id int32) Field {
	return Field{
		ID: id, Name: n.Name, Type: n.Type, OID: n.OID, TypMod: n.TypMod,
		TypeName: n.TypeName, Enum: n.Enum, NotNull: n.NotNull, Collation: n.Collation, AttNum: n.AttNum, Initial: n.Initial, Computed: n.Computed,
	}
}

// New makes version 1 of a table; fields get the ids 1, 2, … in the order of cols. key
// names the columns of the row key in key order, empty for a table without one; see
// Table.WholeRow. It wraps ErrInvalid.
func New(cols []NewField, key []string) (*Table, error) {
	if err := validate(cols); err != nil {
		return nil, err
	}
	t := &Table{Version: 1, Fields: make([]Field, len(cols))}
	for i, c := range cols {
		t.LastFieldID++
		t.Fields[i] = c.field(t.LastFieldID)
	}
	ids, err := keyIDs(t.Fields, key)
	if err != nil {
		return nil, err
	}
	t.Key = ids
	return t, nil
}

// Field returns the field with an id.
func (t *Table) Field(id int32) (Field, bool) {
	if i := t.Index(id); i >= 0 {
		return t.Fields[i], true
	}
	return Field{}, false
}

// FieldByName returns the field with a name, compared exactly.
func (t *Table) FieldByName(name string) (Field, bool) {
	for _, f := range t.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Index is the place of the field with an id in Fields, -1 if there is none.
func (t *Table) Index(id int32) int {
	return slices.IndexFunc(t.Fields, func(f Field) bool { return f.ID == id })
}

// KeyFields are the fields of the row key, in key order.
func (t *Table) KeyFields() []Field {
	out := make([]Field, 0, len(t.Key))
	for _, id := range t.Key {
		if f, ok := t.Field(id); ok {
			out = append(out, f)
		}
	}
	return out
}

// HasKey says whether rows are identified by a key.
func (t *Table) HasKey() bool { return len(t.Key) > 0 }

// Equal says whether both have the same version, fields and identity of rows.
func (t *Table) Equal(o *Table) bool {
	return t.Version == o.Version && t.LastFieldID == o.LastFieldID &&
		slices.Equal(t.Key, o.Key) && t.WholeRow == o.WholeRow &&
		slices.EqualFunc(t.Fields, o.Fields, Field.Equal)
}

// Equal says whether both are the same column of the same type.
func (f Field) Equal(o Field) bool {
	return f.ID == o.ID && f.Name == o.Name && f.Type.Equal(o.Type) && f.OID == o.OID &&
		f.TypMod == o.TypMod && f.TypeName == o.TypeName && f.Enum == o.Enum && f.NotNull == o.NotNull && f.Collation == o.Collation &&
		f.AttNum == o.AttNum && equalInitial(f.Initial, o.Initial) && f.Computed.Equal(o.Computed)
}

func equalInitial(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// SQLType is the column's type as SQL writes it.
func (f Field) SQLType() string {
	if f.TypeName != "" {
		return f.TypeName
	}
	return PostgresTypeName(f.OID, f.TypMod)
}

// Equal says whether both are the same lake type.
func (t Type) Equal(o Type) bool {
	if t.Kind != o.Kind || t.Precision != o.Precision || t.Scale != o.Scale {
		return false
	}
	if t.Elem == nil || o.Elem == nil {
		return t.Elem == o.Elem
	}
	return t.Elem.Equal(*o.Elem)
}

// Valid says whether the type is one that tables may have.
func (t Type) Valid() bool {
	switch t.Kind {
	case Decimal:
		return t.Precision >= 1 && t.Precision <= DecimalPrecisionMax &&
			t.Scale >= 0 && t.Scale <= t.Precision && t.Elem == nil
	case List:
		return t.Elem != nil && t.Elem.Kind != List && t.Elem.Valid()
	default:
		return t.Kind >= Bool && t.Kind <= UUID && t.Elem == nil
	}
}

func validate(cols []NewField) error {
	if len(cols) > ColumnsMax {
		return fmt.Errorf("%d columns, more than %d: %w", len(cols), ColumnsMax, ErrInvalid)
	}
	names := make(map[string]struct{}, len(cols))
	attNums := make(map[int16]struct{}, len(cols))
	for _, c := range cols {
		if c.Name == "" {
			return fmt.Errorf("column without a name: %w", ErrInvalid)
		}
		if strings.HasPrefix(c.Name, reservedPrefix) {
			return fmt.Errorf("column %s: names that begin with %q are ours: %w",
				quote.Name(c.Name), reservedPrefix, ErrInvalid)
		}
		if _, ok := names[c.Name]; ok {
			return fmt.Errorf("column %s appears twice: %w", quote.Name(c.Name), ErrInvalid)
		}
		names[c.Name] = struct{}{}
		if _, ok := attNums[c.AttNum]; ok && c.AttNum != 0 {
			return fmt.Errorf("column %s: number %d appears twice: %w", quote.Name(c.Name), c.AttNum, ErrInvalid)
		}
		attNums[c.AttNum] = struct{}{}
		if !c.Type.Valid() {
			return fmt.Errorf("column %s: no valid type: %w", quote.Name(c.Name), ErrInvalid)
		}
		if err := checkInitial(c); err != nil {
			return fmt.Errorf("column %s: initial value: %w: %w", quote.Name(c.Name), ErrInvalid, err)
		}
	}
	return nil
}

func keyIDs(fields []Field, key []string) ([]int32, error) {
	var ids []int32
	for _, name := range key {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("key column %s does not exist: %w", quote.Name(name), ErrInvalid)
		}
		if slices.Contains(ids, fields[i].ID) {
			return nil, fmt.Errorf("key column %s appears twice: %w", quote.Name(name), ErrInvalid)
		}
		ids = append(ids, fields[i].ID)
	}
	return ids, nil
}
