package watch_test

import (
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/ingest/watch"
)

// TestMissed: what counts is what came since the beginning, across partitions that come and
// go and counters that begin anew; what is kept says the same after a restart.
func TestMissed(t *testing.T) {
	type of = map[uint32]int64
	at := func(epoch string, counts of, born ...uint32) watch.Counters {
		c := watch.Counters{Epoch: epoch, Of: counts, Born: map[uint32]bool{}}
		for _, b := range born {
			c.Born[b] = true
		}
		return c
	}
	since := watch.MissedSince(at("a", of{1: 5, 2: 7}))
	for _, c := range []struct {
		name  string
		from  watch.Missed
		now   watch.Counters
		total int64
		next  watch.Missed
	}{
		{"nothing new", since, at("a", of{1: 5, 2: 7}), 0, since},
		{"the first are kept", since, at("a", of{1: 5, 2: 9}), 2, watch.Missed{Epoch: "a", Base: of{1: 5, 2: 9}, Count: 2}},
		{
			"more are counted from there",
			watch.Missed{Epoch: "a", Base: of{1: 5}, Count: 2},
			at("a", of{1: 9}), 6,
			watch.Missed{Epoch: "a", Base: of{1: 5}, Count: 2},
		},
		{"a partition made since", since, at("a", of{1: 5, 2: 7, 3: 4}, 3), 4, watch.Missed{Epoch: "a", Base: of{1: 5, 2: 7, 3: 4}, Count: 4}},
		{"an attached one", since, at("a", of{1: 5, 2: 7, 3: 4}), 0, watch.Missed{Epoch: "a", Base: of{1: 5, 2: 7, 3: 4}}},
		{
			"one that went",
			watch.Missed{Epoch: "a", Base: of{1: 5, 2: 7}, Count: 3},
			at("a", of{1: 6}), 4,
			watch.Missed{Epoch: "a", Base: of{1: 6}, Count: 4},
		},
		{"counters that began anew", since, at("b", of{1: 2, 2: 0}), 2, watch.Missed{Epoch: "b", Base: of{1: 2, 2: 0}, Count: 2, Doubts: true}},
		{"and passed what they were", since, at("b", of{1: 6, 2: 7}), 1, watch.Missed{Epoch: "b", Base: of{1: 6, 2: 7}, Count: 1, Doubts: true}},
		{"unnoticed otherwise", since, at("a", of{1: 2, 2: 7}), 2, watch.Missed{Epoch: "a", Base: of{1: 2, 2: 7}, Count: 2, Doubts: true}},
		{
			"doubts stay",
			watch.Missed{Epoch: "a", Base: of{1: 5}, Doubts: true},
			at("a", of{1: 6}), 1,
			watch.Missed{Epoch: "a", Base: of{1: 6}, Count: 1, Doubts: true},
		},
		{"a table that is gone", since, at("a", of{}), 0, watch.Missed{Epoch: "a", Base: of{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, total := c.from.Look(c.now)
			if total != c.total || !reflect.DeepEqual(next, c.next) {
				t.Errorf("%d, %+v\nwant %d, %+v", total, next, c.total, c.next)
			}
			if again, same := next.Look(c.now); same != total || !reflect.DeepEqual(again, next) {
				t.Errorf("after a restart: %d, %+v", same, again)
			}
		})
	}
}
