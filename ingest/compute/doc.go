// Package compute gives the changes of a group the columns that their source computes from
// others of the row and does not send: generated columns of PostgreSQL before version 18.
//
// The source itself computes them, for many rows at once, after what an update left out was
// filled in (package fill) and before the group is appended: so the log, the lake and every
// reader have whole rows, and a group that could not be computed is not in the log, nothing
// of it is acknowledged, and the source sends it again.
//
// A row whose value cannot be taken in is known only here, when later changes of its key
// may have gone on. So the session begins anew, and knows it in advance: see Known.
//
// Reading order: Group, Known. No I/O of its own, no clock, no logging.
package compute
