package check

import (
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/segment"
)

// lakeFacts is what the lake was given of a table, commit by commit.
type lakeFacts struct {
	commits []lakeCommit
	at      map[int64]int // commit by snapshot
	// lives in order, the last is the present one: a table that was dropped, or that a
	// catalog without memory has begun anew, has nothing in E. A host that was superseded
	// may still show a snapshot of an earlier one.
	lives []lakeLife
	ever  map[segment.SliceRef]bool // in any life
}

// lakeLife is what went in since a lake table was begun anew.
type lakeLife struct {
	begin int                      // its first commit
	first map[segment.SliceRef]int // commit by slice
}

type lakeCommit struct {
	lake.Commit
	head *lake.Snapshot
}

func (f *facts) noteLake(e LakeCommitted) {
	if e.Head == nil {
		return
	}
	l := f.lakes[e.Table]
	if l == nil {
		l = &lakeFacts{at: map[int64]int{}, ever: map[segment.SliceRef]bool{}}
		l.anew()
		f.lakes[e.Table] = l
	}
	if _, known := l.at[e.Head.ID]; known {
		return
	}
	f.lakeChanged = true
	n := len(l.commits)
	if e.Commit.Base == 0 {
		l.anew()
	}
	l.commits = append(l.commits, lakeCommit{e.Commit, e.Head})
	l.at[e.Head.ID] = n
	first := l.now().first
	for _, ref := range e.Commit.Slices {
		l.ever[ref] = true
		if _, in := first[ref]; !in {
			first[ref] = n
		}
	}
}

// anew begins another life of the lake's table.
func (l *lakeFacts) anew() {
	l.lives = append(l.lives, lakeLife{len(l.commits), map[segment.SliceRef]int{}})
}

// now is the present life.
func (l *lakeFacts) now() lakeLife { return l.lives[len(l.lives)-1] }

// version grows with all that excluded depends on; 1: nothing yet.
func (l *lakeFacts) version() int {
	if l == nil {
		return 1
	}
	return 1 + len(l.commits) + len(l.lives)
}

// life are the commits of the present life.
func (l *lakeFacts) life() []lakeCommit { return l.commits[l.now().begin:] }

// has says whether any commit names a slice.
func (l *lakeFacts) has(ref segment.SliceRef) bool { return l.ever[ref] }

// excluded says whether E of a snapshot has a slice. known is false for a snapshot that
// no compaction made.
func (f *facts) excluded(t *tableFacts, ref segment.SliceRef) (in, known bool) {
	if t.lake.Snapshot == 0 {
		return false, true
	}
	l := f.lakes[t.table.ID]
	if l == nil {
		return false, false
	}
	at, known := l.at[t.lake.Snapshot]
	if !known {
		return false, false
	}
	of := len(l.lives) - 1
	for l.lives[of].begin > at {
		of--
	}
	n, in := l.lives[of].first[ref]
	return in && n <= at, true
}
