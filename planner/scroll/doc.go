// Package scroll moves cursors: FETCH and MOVE in all of PostgreSQL's directions, and the
// rows of a SCROLL cursor, which are kept so that it can go back.
//
// Position is where a cursor stands, and decides as PostgreSQL's portals do; Store keeps
// rows as the messages that they were sent as, the first few MiB in memory and the rest in a
// file. Neither knows how rows are made. Not safe for concurrent use.
package scroll
