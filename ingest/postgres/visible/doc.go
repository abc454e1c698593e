// Package visible knows when others see at the source what a transaction has done.
//
// A commit is in the source's log, and so it is streamed, and part of the moment of a
// slot, before other sessions see it: for an instant as a rule, and for as long as a
// standby takes where commits wait for one (synchronous_standby_names). Whoever asks the
// source, by an ordinary session, about what was streamed or is of a moment asks here
// first.
//
// Reading order: Source, Transaction, Moment, Rows. Nothing here holds a lock or a
// transaction while it waits.
package visible
