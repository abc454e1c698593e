package schema

// Collation is one that columns may have: Text says that its letters are those of all scripts, not
// ASCII's alone. All sort by code point.
type Collation struct {
	OID  uint32
	Name string
	Text bool
}

// DefaultCollation is the number of the database's.
const DefaultCollation uint32 = 100

// Collations are all, as pg_collation has them.
var Collations = []Collation{
	{DefaultCollation, "default", true},
	{950, "C", false},
	{951, "POSIX", false},
	{12340, "ucs_basic", false},
	{12341, "C.utf8", true},
	{12342, "C.UTF-8", true},
}

// CollationName is the name of one, "" of none.
func CollationName(oid uint32) string {
	for _, c := range Collations {
		if c.OID == oid {
			return c.Name
		}
	}
	return ""
}
