// Package loops is the second level of the simulation: the loops and sessions as a server runs
// them, each its own goroutine, in a testing/synctest bubble. A scenario holds a goroutine where
// it meets the world (a file, the lake, the object store, the source, a failpoint), lets others
// go on, and releases it. The checkers are those of the stepped world, on the stores' bytes.
//
// Each scenario runs free, where goroutines run beside each other and time passes in small
// steps, and in turns, where one of them goes on at a time, in seeded order, and the checkers
// look after every exchange. All of it is tests.
//
// Reading order: world, gate, process, scenario.
package loops
