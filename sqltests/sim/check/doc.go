// Package check has the simulator's checkers, one file for each invariant of DESIGN §10, and the
// oracle. They read the stores' bytes and what the world saw happen, never the memory of the
// code that they check.
//
// Reading order: View, Checker.
package check
