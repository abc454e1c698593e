// Package fill gives the changes of a group the values that their source left out
// because they did not change: a large value that PostgreSQL stores out of line is not
// sent again with an update of another column.
//
// The value is the one that the row had before the change. It is looked for, in this
// order: in the changes of the same group before it; in the parts of the same
// transaction that are in the log; in what a reader sees of the table, by key; and, while
// the table's initial copy is under way and the row was not copied yet, at the source, as
// the row was at the moment that the copy reads. A change that moved its row to another
// key finds it under the old one. A value that is nowhere is an error: a row is never
// half filled in, and a null never stands for what is not known.
//
// A group whose values were left out is small, and what it becomes may not be: it is
// filled in pieces of bounded size, which the caller makes durable one by one and visible
// together.
//
// Reading order: Filler, Lookup, piece. No I/O of its own, no clock, no logging.
package fill
