// Package kinds reads the types that users have made which columns of tables are of: enums,
// composite types, ranges, those of extensions; and says how their values, which are texts here,
// compare.
package kinds
