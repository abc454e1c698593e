package schema

import "slices"

// Diff is what changed at the source since a schema version.
type Diff struct {
	Added   []NewField
	Dropped []Field
	Renamed []Rename
	Retyped []Retype
	// Nullable holds fields whose NOT NULL changed, as they were.
	Nullable []Field
	// Recomputed holds fields that the source computes in another way than before, or that
	// begin or cease to be computed, as they were.
	Recomputed []Field
	// Recollated holds fields with another collation, as they were.
	Recollated []Field
	// Reordered says that the columns that stay have another order.
	Reordered bool
	// KeyChanged says that the row key is another or has another order.
	KeyChanged bool
}

// Rename is a column with another name.
type Rename struct {
	Field Field // as it was
	To    string
}

// Retype is a column with another type or type modifier.
type Retype struct {
	Field Field // as it was
	To    NewField
	// Widens says that old values stay readable under the new type; always so when the
	// lake type is the same.
	Widens bool
}

// Empty says that nothing changed.
func (d *Diff) Empty() bool {
	return len(d.Added) == 0 && len(d.Dropped) == 0 && len(d.Renamed) == 0 &&
		len(d.Retyped) == 0 && len(d.Nullable) == 0 && len(d.Recomputed) == 0 && len(d.Recollated) == 0 && !d.Reordered && !d.KeyChanged
}

// Compatible says that Evolve can apply the change.
func (d *Diff) Compatible() bool {
	return !slices.ContainsFunc(d.Retyped, func(r Retype) bool { return !r.Widens })
}

// match finds the old field that column c is: by attnum, or by name when either has
// no number.
func (t *Table) match(c NewField) int {
	return slices.IndexFunc(t.Fields, func(f Field) bool {
		if f.AttNum != 0 && c.AttNum != 0 {
			return f.AttNum == c.AttNum
		}
		return f.Name == c.Name
	})
}

// Compare tells what changed from old to the source's columns and key now. A column is
// the same as before if its attnum is, whatever its name. It wraps ErrInvalid.
func Compare(old *Table, cols []NewField, key []string) (*Diff, error) {
	if err := validate(cols); err != nil {
		return nil, err
	}
	d := &Diff{}
	seen := make([]bool, len(old.Fields))
	last := -1
	fields := make([]Field, len(cols)) // with old ids; new columns have none
	for i, c := range cols {
		j := old.match(c)
		if j < 0 || seen[j] {
			d.Added = append(d.Added, c)
			fields[i] = c.field(-1 - int32(i))
			continue
		}
		seen[j] = true
		d.Reordered = d.Reordered || j < last
		last = max(last, j)
		d.compareField(old.Fields[j], c)
		fields[i] = c.field(old.Fields[j].ID)
	}
	for j, f := range old.Fields {
		if !seen[j] {
			d.Dropped = append(d.Dropped, f)
		}
	}
	ids, err := keyIDs(fields, key)
	if err != nil {
		return nil, err
	}
	d.KeyChanged = !slices.Equal(ids, old.Key)
	return d, nil
}

func (d *Diff) compareField(f Field, c NewField) {
	if f.Name != c.Name {
		d.Renamed = append(d.Renamed, Rename{f, c.Name})
	}
	if f.OID != c.OID || f.TypMod != c.TypMod || f.TypeName != c.TypeName || !f.Type.Equal(c.Type) {
		d.Retyped = append(d.Retyped, Retype{f, c, Widens(f.Type, c.Type)})
	}
	if f.NotNull != c.NotNull {
		d.Nullable = append(d.Nullable, f)
	}
	if f.Collation != c.Collation {
		d.Recollated = append(d.Recollated, f)
	}
	if !f.Computed.Equal(c.Computed) {
		d.Recomputed = append(d.Recomputed, f)
	}
}

// Evolve is the next version of old with the source's columns and key: fields that
// stay keep their ids and initial values, new ones get ids never given before (S1). When
// nothing changed it returns old. It wraps ErrInvalid, or ErrIncompatible as an *IncompatibleError.
func Evolve(old *Table, cols []NewField, key []string) (*Table, error) {
	d, err := Compare(old, cols, key)
	if err != nil {
		return nil, err
	}
	if d.Empty() {
		return old, nil
	}
	for _, r := range d.Retyped {
		if !r.Widens {
			to := r.To.field(r.Field.ID)
			return nil, &IncompatibleError{Column: r.Field.Name, From: r.Field.SQLType(), To: to.SQLType()}
		}
	}
	t := &Table{
		Version: old.Version + 1, LastFieldID: old.LastFieldID, Fields: make([]Field, len(cols)),
		WholeRow: old.WholeRow && len(key) == 0,
	}
	seen := make([]bool, len(old.Fields))
	for i, c := range cols {
		if j := old.match(c); j >= 0 && !seen[j] {
			seen[j] = true
			t.Fields[i] = c.field(old.Fields[j].ID)
			t.Fields[i].Initial = widenInitial(old.Fields[j].Initial, old.Fields[j].Type, c.Type)
			continue
		}
		t.LastFieldID++
		t.Fields[i] = c.field(t.LastFieldID)
	}
	if t.Key, err = keyIDs(t.Fields, key); err != nil {
		return nil, err
	}
	return t, nil
}

// Widens says that every value of type from is a value of type to, and that files
// written as from can be read as to: the promotions that Iceberg allows.
func Widens(from, to Type) bool {
	if from.Equal(to) {
		return true
	}
	switch {
	case from.Kind == Int32 && to.Kind == Int64:
		return true
	case from.Kind == Float32 && to.Kind == Float64:
		return true
	case from.Kind == Decimal && to.Kind == Decimal:
		return from.Scale == to.Scale && from.Precision <= to.Precision
	case from.Kind == List && to.Kind == List:
		return Widens(*from.Elem, *to.Elem)
	}
	return false
}
