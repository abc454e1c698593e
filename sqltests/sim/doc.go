// Package sim runs the shipped code in a simulated world: one process, one seed. It drives the
// real log, recovery, catalog, compactor, reclaimer, ingest and pins over a disk, a lake and a
// source in memory, a clock that moves when nothing else can, and faults at every exchange.
//
// Everything that happens at the same time in a server is a coroutine here; the world decides
// who goes on after each I/O, and may fail it, crash the process or the machine there. The same
// schedule gives the same trace, byte for byte.
//
// Reading order: Run, World, task, process, point.
package sim
