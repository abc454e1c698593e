package schema

// RowTest is a condition on one column that says, without a look at anything else, which rows a
// unique index is of.
type RowTest string

// What a value may be asked: to be null or not, and, of a boolean, to be true or false.
const (
	RowIsNull    RowTest = "IS NULL"
	RowIsNotNull RowTest = "IS NOT NULL"
	RowIs        RowTest = "IS"
	RowIsNot     RowTest = "NOT"
	RowEqTrue    RowTest = "= true"
	RowEqFalse   RowTest = "= false"
)

// SQL is the condition on a column, as PostgreSQL prints it.
func (t RowTest) SQL(column string) string {
	if t == RowIs {
		return column
	}
	return "(" + t.Pretty(column) + ")"
}

// Pretty is the same without parentheses.
func (t RowTest) Pretty(column string) string {
	switch t {
	case RowIs:
		return column
	case RowIsNot:
		return "NOT " + column
	}
	return column + " " + string(t)
}

// Plain is the test that asks the same, of those that mean the same.
func (t RowTest) Plain() RowTest {
	switch t {
	case RowEqTrue:
		return RowIs
	case RowEqFalse:
		return RowIsNot
	}
	return t
}

// Boolean says that it is asked of booleans only.
func (t RowTest) Boolean() bool { return t != RowIsNull && t != RowIsNotNull }
