package pgfunc

import (
	"encoding/json"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// Lists of texts travel as JSON arrays of strings and nulls: the engine's to_json makes
// them, and its casts read them.

func parseList(text string) ([]*string, error) {
	var out []*string
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, pgerr.New(codes.Internal, "list of texts: %v", err)
	}
	return out, nil
}

// listText is a list for the engine to read.
func listText(list []*string) (string, error) {
	if list == nil {
		list = []*string{}
	}
	out, err := json.Marshal(list)
	return string(out), err
}

// numberKey is a text that equal numbers share.
func numberKey(text string) string {
	n, err := numeric.Parse(text)
	if err != nil {
		return text
	}
	return n.Key()
}
