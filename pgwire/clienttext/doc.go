// Package clienttext converts what a client of another encoding than UTF-8 sends and gets: its
// texts, its parameters, and the rows that it is sent, in text or in binary form.
//
// In binary form the texts in a value are converted, as PostgreSQL's send and receive functions
// do: those of arrays, of composite values and of json.
//
// No I/O, no clock, no logging here.
package clienttext
