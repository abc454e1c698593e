package lake

import (
	"context"
	"strconv"

	"github.com/skipprd/skipprd/wal/change"
)

// Recoverer is a warehouse that finds its tables again when what named them is lost.
type Recoverer interface {
	// Recover finds the lake tables of catalog tables, which must be all that there are,
	// and names them so that Table opens them. What it finds and nobody claims it keeps
	// under a name of its own. It can be repeated.
	Recover(ctx context.Context, tables []Lost) (*Recovery, error)
}

// Lost is what is known of a table whose lake side may have lost its name.
type Lost struct {
	Ident      Ident
	Table      change.TableID
	Generation uint32
	// Metadata and Snapshot were current at some moment of this generation; zero when it
	// had no snapshot then. The lake is never taken for older than that.
	Metadata string
	Snapshot int64
	// Dropped says that the table is gone and its lake side to follow: nothing is found of
	// it nor kept.
	Dropped bool
}

// Recovery is what Recover found.
type Recovery struct {
	// Tables in the order asked for.
	Tables []Recovered
	// Kept are the names of lake tables that belong to none of them.
	Kept []string
}

// Recovered is the lake side of one table.
type Recovered struct {
	// Head is the newest snapshot of the generation that is whole; nil when there is none.
	Head *Snapshot
	// Commits are those of the generation that Head's history names.
	Commits []Committed
	// Problem says why what Lost names is not there any more; "" when all is well.
	Problem string
}

// OfGeneration says whether a snapshot has rows of a generation.
func (s *Snapshot) OfGeneration(generation uint32) bool {
	return s.ID != 0 && s.Properties[KeyGeneration] == strconv.FormatUint(uint64(generation), 10)
}

// RecoveredOf is the lake side that has head and, in its history, all.
func RecoveredOf(l Lost, head *Snapshot, all []Committed) Recovered {
	out := Recovered{Head: head}
	for _, c := range all {
		if c.Generation == l.Generation {
			out.Commits = append(out.Commits, c)
		}
	}
	return out
}
