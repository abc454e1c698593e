package ingest

import (
	"context"
	"sync"

	"github.com/skipprd/skipprd/wal/env"
)

// chunkQueue hands chunks from the planner of a copy to its readers: one waits in it at
// most, so that no more is planned than is read. Safe for concurrent use by one planner.
type chunkQueue struct {
	tasks env.Tasks
	// room tells the planner that the chunk was taken, more the readers that there is one.
	room, more chan struct{}
	mu         struct {
		sync.Mutex
		waiting *chunk
		closed  bool
	}
}

func newChunkQueue(tasks env.Tasks) *chunkQueue {
	return &chunkQueue{tasks: tasks, room: make(chan struct{}, 1), more: make(chan struct{}, 1)}
}

// put waits until ch can be taken by the next reader.
func (q *chunkQueue) put(ctx context.Context, ch chunk) error {
	for {
		q.mu.Lock()
		full := q.mu.waiting != nil
		if !full {
			q.mu.waiting = &ch
		}
		q.mu.Unlock()
		if !full {
			signal(q.more)
			return nil
		}
		if err := q.tasks.Wait(ctx, 0, q.room); err != nil {
			return err
		}
	}
}

// close says that no more chunks come.
func (q *chunkQueue) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	signal(q.more)
}

// take waits for a chunk; nil when there are no more.
func (q *chunkQueue) take(ctx context.Context) (*chunk, error) {
	for {
		q.mu.Lock()
		ch, closed := q.mu.waiting, q.mu.closed
		q.mu.waiting = nil
		q.mu.Unlock()
		switch {
		case ch != nil:
			signal(q.room)
			return ch, nil
		case closed:
			signal(q.more) // for the next reader
			return nil, nil
		}
		if err := q.tasks.Wait(ctx, 0, q.more); err != nil {
			return nil, err
		}
	}
}
