package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/skipprd/skipprd/ingest"
)

// state is what the pipeline keeps about the source, durably, between runs.
type state struct {
	Version int    `json:"v"`
	Slot    string `json:"slot"`
	// Publications are streamed, the main one first. Their set never changes after
	// the slot was made: the server looks them up as of the change being decoded, and
	// one that did not exist then is an error.
	Publications []string `json:"publications"`
	// Owned are the publications that we made, to be dropped at the end.
	Owned []string `json:"owned,omitempty"`
	// SystemID and Database say which server this was.
	SystemID string `json:"system_id"`
	Timeline int32  `json:"timeline"`
	Database string `json:"database"`
	// Standby says that the slot was made on a standby, where it stays: no server carries
	// such a slot over to another one.
	Standby bool `json:"standby,omitempty"`
	// Start is the slot's consistent point: the first change streamed commits there
	// or later, and the snapshot has everything before.
	Start string `json:"start"`
	// Filters are the row filters with which tables are published, as they were given.
	Filters map[uint32]string `json:"filters,omitempty"`
}

const stateVersion = 1

func (st *state) encode() ([]byte, error) {
	st.Version = stateVersion
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode source state: %w", err)
	}
	return b, nil
}

// published notes with which filters tables are published now.
func (st *state) published(tables []ingest.SourceTable) {
	for _, t := range tables {
		switch {
		case t.Filter == "":
			delete(st.Filters, t.OID)
		case st.Filters == nil:
			st.Filters = map[uint32]string{t.OID: t.Filter}
		default:
			st.Filters[t.OID] = t.Filter
		}
	}
}

func decodeState(b []byte) (*state, error) {
	var st state
	if err := json.Unmarshal(b, &st); err != nil {
		return nil, fmt.Errorf("decode source state: %w", err)
	}
	if st.Version != stateVersion {
		return nil, fmt.Errorf("decode source state: version %d is not %d", st.Version, stateVersion)
	}
	return &st, nil
}
