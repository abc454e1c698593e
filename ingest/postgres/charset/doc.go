// Package charset turns texts of the encodings that a PostgreSQL database can have into
// UTF-8, as the server does. The server ends a whole stream, or a copy, at a text that UTF-8
// has no equivalent of; here it is one value that cannot be taken in.
//
// The tables are those of pgwire/charmap. A session has its server convert all that a table has
// (Charset.Sample) before it relies on it, so that a server of another mind is noticed.
//
// No I/O, no clock, no logging here.
package charset
