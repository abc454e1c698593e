//go:build mutants

package mutant

import "sync/atomic"

// Enabled says that the program was built with mutants.
const Enabled = true

var active atomic.Uint32

// On says whether m is to act.
func On(m Mutant) bool { return active.Load() == uint32(m) }

// Set makes m the one that acts.
func Set(m Mutant) { active.Store(uint32(m)) }
