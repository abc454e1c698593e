package check

import (
	"fmt"
	"path"
	"sync"

	"github.com/skipprd/skipprd/wal/segment"
)

// lateMarkers are the take-overs that came too late: their marker was put when the
// checkpoint was a later epoch's already. Who reads the checkpoint again does not lead.
type lateMarkers map[segment.Epoch]bool

// check looks at markers that are new, and at who opens the log.
func (l lateMarkers) check(v *View, f *facts) error {
	if v.Objects == nil {
		return nil
	}
	if f.sharedChanged {
		at := sync.OnceValue(func() segment.Epoch { return checkpointOf(v.Objects).Epoch })
		for _, s := range f.shared.segs { // a set
			if s.marker == nil || s.damage != nil || s.mark.Flags&segment.Takeover == 0 {
				continue
			}
			if _, known := l[s.mark.Epoch]; !known {
				l[s.mark.Epoch] = at() > s.mark.Epoch
			}
		}
	}
	for _, e := range v.Events {
		if x, ok := e.(Opened); ok && x.Err == nil && l[x.Epoch] {
			return fmt.Errorf("host %s opens the log in epoch %d, the checkpoint was a later one's before its marker came", x.Host,
				x.Epoch)
		}
	}
	return nil
}

// checkpointOf is the checkpoint in the object store, zero if there is none.
func checkpointOf(b Bytes) (last segment.Checkpoint) {
	for _, name := range b.Names("") {
		if path.Base(name) != "checkpoint" {
			continue
		}
		data, _ := b.Read(name)
		if k, err := segment.ParseCheckpoint(data); err == nil && k.Epoch >= last.Epoch {
			last = k
		}
	}
	return last
}
