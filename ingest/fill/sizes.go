package fill

import (
	"cmp"
	"sync"

	"github.com/skipprd/skipprd/wal/change"
)

const (
	// pieceBytes is how many bytes the values of a piece have at most, but for one row.
	pieceBytes = 16 << 20
	// surprise is by how much what is found for a piece may be larger before less is
	// asked for.
	surprise = 4
	// cellsMax bounds how many rows are asked for at once, cellsFirst when nothing is
	// known of their size.
	cellsMax, cellsFirst = 2048, 256
	// guessed is what a value is taken to have before one was seen: what is stored out of
	// line has more than 2 kB. guessMax bounds what it is taken to have afterwards.
	guessed, guessMax = 8 << 10, 4 << 20
)

// Sizes remembers how large the values of tables are that their source leaves out. Safe
// for concurrent use.
type Sizes struct {
	piece int64 // 0: pieceBytes
	mu    struct {
		sync.Mutex
		cell map[change.TableID]int64 // mean of the last pieces
	}
}

// Cell is about how many bytes a value that the table's source leaves out has.
func (s *Sizes) Cell(t change.TableID) int64 {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(cmp.Or(s.mu.cell[t], guessed), guessMax)
}

func (s *Sizes) limit() int64 { return cmp.Or(s.piece, pieceBytes) }

// cells is how many cells the next piece may have.
func (s *Sizes) cells(rest []*change.Batch) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := int64(0)
	for _, b := range rest {
		if len(b.Unchanged) == 0 {
			continue
		}
		mean, ok := s.mu.cell[b.Table]
		if !ok {
			return cellsFirst
		}
		most = max(most, mean)
	}
	return int(min(max(s.limit()/max(most, 1), 1), cellsMax))
}

// learn notes the sizes of a piece that is filled in.
func (s *Sizes) learn(p *piece) {
	type sum struct{ cells, bytes int64 }
	sums := map[change.TableID]sum{}
	for i := range p.cells {
		c := &p.cells[i]
		a, row := c.table.value(c)
		was := sums[c.table.id]
		sums[c.table.id] = sum{was.cells + 1, was.bytes + valueBytes(a, row)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.cell == nil {
		s.mu.cell = map[change.TableID]int64{}
	}
	for id, n := range sums {
		mean := n.bytes / n.cells
		if was, ok := s.mu.cell[id]; ok && mean < was {
			mean = (3*was + mean) / 4
		}
		s.mu.cell[id] = mean
	}
}
