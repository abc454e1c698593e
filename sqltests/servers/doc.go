// Package servers runs the binary against PostgreSQL servers of other versions than the
// system's, and against pairs of them: a standby as source, its promotion, a fail-over with
// and without the slot. SKIPPRD_PG_ALL=1 runs each test on all versions that it is for.
//
// The tests of other packages run on one version with SKIPPRD_PG=18.
package servers
