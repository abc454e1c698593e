// Package death holds what it takes to kill a server in every way that a machine can: a
// file system that forgets what was not synced, a network link that breaks, faults in
// system calls, disks that are full, a clock that jumps. The scenarios are its tests;
// "make deaths" runs them.
//
// Whatever a machine does not allow is skipped and named: Skip remembers it, and the
// last lines of a run list it.
package death
