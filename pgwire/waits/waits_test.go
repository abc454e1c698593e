package waits

import (
	"context"
	"slices"
	"testing"
)

type seen []Event

func (s *seen) Waiting(e Event) { *s = append(*s, e) }

func TestObserverIsTold(t *testing.T) {
	On(context.Background(), Sleep)() // nobody looks
	var s seen
	done := On(With(context.Background(), &s), EngineSlot)
	if want := (seen{EngineSlot}); !slices.Equal(s, want) {
		t.Errorf("during the wait: %v", s)
	}
	done()
	if want := (seen{EngineSlot, {}}); !slices.Equal(s, want) {
		t.Errorf("after the wait: %v", s)
	}
}
