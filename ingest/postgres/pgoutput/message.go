package pgoutput

import "fmt"

// Begin opens a transaction.
type Begin struct {
	// FinalLSN is where the transaction's commit record begins.
	FinalLSN uint64
	// CommittedAt is in microseconds since 2000-01-01 UTC.
	CommittedAt int64
	XID         uint32
}

// ParseBegin reads a Begin, its kind byte included.
func ParseBegin(b []byte) (Begin, error) {
	r := reader{b: b}
	r.take(1)
	m := Begin{FinalLSN: r.uint64(), CommittedAt: int64(r.uint64()), XID: r.uint32()}
	return m, r.done("begin")
}

// Commit closes a transaction.
type Commit struct {
	CommitLSN uint64
	// EndLSN is where the commit record ends: the place to resume after it.
	EndLSN      uint64
	CommittedAt int64
}

// ParseCommit reads a Commit.
func ParseCommit(b []byte) (Commit, error) {
	r := reader{b: b}
	r.take(2) // kind and flags, which are unused
	m := Commit{CommitLSN: r.uint64(), EndLSN: r.uint64(), CommittedAt: int64(r.uint64())}
	return m, r.done("commit")
}

// Column is a column as a Relation describes it.
type Column struct {
	// Identity says that it is part of the replica identity.
	Identity bool
	Name     string
	OID      uint32
	TypMod   int32
}

// Relation describes a table; it precedes the first change of the table in a stream,
// and the first after its description has changed.
type Relation struct {
	ID              uint32
	Namespace, Name string
	// Identity is pg_class.relreplident: d, n, f or i.
	Identity byte
	Columns  []Column
}

// columnsMax is PostgreSQL's own limit (MaxTupleAttributeNumber).
const columnsMax = 1664

// ParseRelation reads a Relation, which refers to nothing of b afterwards.
func ParseRelation(b []byte) (*Relation, error) {
	r := reader{b: b}
	r.take(1)
	m := &Relation{ID: r.uint32(), Namespace: r.text(), Name: r.text(), Identity: r.uint8()}
	n := int(r.uint16())
	if n > columnsMax {
		return nil, fmt.Errorf("%w: relation has %d columns", ErrMalformed, n)
	}
	if m.Namespace == "" {
		m.Namespace = "pg_catalog"
	}
	m.Columns = make([]Column, 0, n)
	for range n {
		m.Columns = append(m.Columns, Column{
			Identity: r.uint8()&1 != 0, Name: r.text(), OID: r.uint32(), TypMod: int32(r.uint32()),
		})
	}
	return m, r.done("relation")
}

// Truncate empties tables.
type Truncate struct {
	Relations []uint32
}

// relationsMax bounds a truncate's list.
const relationsMax = 1 << 20

// ParseTruncate reads a Truncate into m, whose list it reuses.
func ParseTruncate(b []byte, m *Truncate) error {
	r := reader{b: b}
	r.take(1)
	n := r.uint32()
	r.take(1) // CASCADE and RESTART IDENTITY, which change nothing for us
	if n > relationsMax {
		return fmt.Errorf("%w: truncate of %d tables", ErrMalformed, n)
	}
	m.Relations = m.Relations[:0]
	for range n {
		if r.short {
			break
		}
		m.Relations = append(m.Relations, r.uint32())
	}
	return r.done("truncate")
}
