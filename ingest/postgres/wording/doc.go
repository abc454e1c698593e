// Package wording reads what decides how the values of a table's columns are written: the
// labels of enums, the attributes of composite types, and each column's own type, also
// inside of arrays, domains, ranges and other composite types. When one of these is
// changed at the source, it writes rows in another way that it does not send again.
package wording
