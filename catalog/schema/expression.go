package schema

// KeyExpression is what a unique index is of in place of a column: its value, in each row, of a type
// as a column's.
type KeyExpression struct {
	// SQL names columns of the table alone; Name is what the index calls the value.
	SQL, Name string
	OID       uint32
	TypMod    int32
	Type      Type
	// Collation is as in Field.
	Collation uint32 `json:",omitempty"`
}
