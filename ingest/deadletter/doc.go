// Package deadletter is what a pipeline does with changes that cannot be taken in: it
// sets them aside, in the same group of the log as the position that passes them, and
// knows which of them a later change of the same key has made obsolete.
//
// A letter is open until it is retried, superseded or discarded. While it is open, its
// key has the row that it had before. At most one letter of a key is open: the newest.
//
// Two streams of facts meet here: letters of copied rows, which become durable with
// their chunk, and changes of the stream, which close letters. They may become durable
// in either order, so closing a letter that is not there yet is noted (catalog.Txn).
//
// Reading order: Refused, Open, Records, Match. No I/O, no clock, no logging here.
package deadletter
