// Package reconcile finds which columns of a table a description in the replication
// stream speaks of.
//
// A Relation message names columns and their types, in the order of their numbers
// (pg_attribute.attnum), and not the numbers. The catalog has the numbers, but as of now:
// it may be newer than the message. What was known of the table before, the message, and
// the catalog together leave one answer in all but a few cases; in those there is none,
// and none is guessed.
//
// Pure: no I/O, no clock, no logging here.
package reconcile
