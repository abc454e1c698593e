// Package charmap converts texts between UTF-8 and the other encodings that PostgreSQL knows,
// byte for byte as it does.
//
// The tables are PostgreSQL's own: a test reads them from a server (go test -update writes them)
// and compares every sequence of bytes, and the code points, in both directions: what an encoding
// makes of a character need not be what it was read from.
//
// No I/O, no clock, no logging here.
package charmap
