// Package own is the part of a simulated world that has tables of our own: clients that speak
// the wire protocol byte by byte, the shipped server behind it (pgwire, the planner's
// sessions, ingest/own), and what is known of the fate of each transaction. Only the engine is
// not the shipped one: the statements that clients run are few, and are run in Go over the
// rows that a plan reads.
//
// What clients were told is checked as they are told it: a statement's answer is that of a
// naive execution (K1), and a commit is durable exactly if its client was told so, unless it
// was told nothing (A3): definitions, rights and rows of one transaction all at once, as soon as
// a catalog has them. A value of a sequence is given once (V1), and no two rows have one that is
// to be unique (U1). No row refers to one that is not there (I1), and rows that a transaction has
// locked are as it saw them until its commit (K2).
//
// Reading order: Ledger, Client, Statement, Server.
package own
