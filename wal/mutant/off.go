//go:build !mutants

package mutant

// Enabled says that the program was built with mutants.
const Enabled = false

// On says whether m is to act: never in this build.
func On(Mutant) bool { return false }

// Set does nothing in this build.
func Set(Mutant) {}
