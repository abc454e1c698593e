// Package source is the scripted source of the simulator: an ingest.Source that behaves as
// Postgres does. It keeps a history of transactions; it resends from the acknowledged
// position, never before it, and forgets what lies below.
//
// Reading order: History, Source.
package source
