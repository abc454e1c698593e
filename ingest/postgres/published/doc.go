// Package published looks at what publications of a PostgreSQL server have of tables, so that
// changes which somebody has left out of them do not go unnoticed.
//
// Publications are altered by anybody who owns them. What a transaction writes to a table is left
// out of the stream when its place in the log is one at which the table was not published, whether
// it is now or not. Entries of a publication have numbers of their own, and its own row one of
// the transaction that has written it: others than before tell of a gap that is closed.
package published
