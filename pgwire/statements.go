package pgwire

import (
	"maps"
	"slices"
	"time"
)

// Statements are the prepared statements of a session, by name: those of Parse and
// those of PREPARE, which are one kind in PostgreSQL. The unnamed one is under "". Used
// by the session's goroutine only. The zero value is empty.
type Statements struct{ byName map[string]*Prepared }

// Prepared is a prepared statement.
type Prepared struct {
	Statement
	Text string
	At   time.Time
	// FromSQL says that PREPARE made it.
	FromSQL bool
}

// Get returns the statement of a name, nil when there is none.
func (s *Statements) Get(name string) *Prepared { return s.byName[name] }

// Put sets the statement of a name.
func (s *Statements) Put(name string, p *Prepared) {
	if s.byName == nil {
		s.byName = map[string]*Prepared{}
	}
	s.byName[name] = p
}

// Drop forgets the statement of a name, if there is one. Portals that were made of it
// stay.
func (s *Statements) Drop(name string) { delete(s.byName, name) }

// DropNamed forgets all but the unnamed statement.
func (s *Statements) DropNamed() {
	maps.DeleteFunc(s.byName, func(name string, _ *Prepared) bool { return name != "" })
}

// Names are those of the named statements, sorted.
func (s *Statements) Names() []string {
	names := slices.Sorted(maps.Keys(s.byName))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
