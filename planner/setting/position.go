package setting

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/ingest/postgres/lsn"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// ReadPosition is one entry of skippr.read_position.
type ReadPosition struct {
	Pipeline string // "" for all
	LSN      string // in its usual form
}

// readPositionsMax bounds the entries of a value.
const readPositionsMax = 100

// ReadPositions reads a value of skippr.read_position: an LSN for all pipelines, or a list
// of pipeline=LSN; of both forms together the named ones count for theirs. Empty is none.
func ReadPositions(value string) ([]ReadPosition, error) {
	var out []ReadPosition
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	for _, entry := range strings.Split(value, ",") {
		name, text, named := strings.Cut(entry, "=")
		if !named {
			name, text = "", entry
		}
		p := ReadPosition{Pipeline: unquoteName(strings.TrimSpace(name))}
		lsn, ok := canonicalLSN(strings.TrimSpace(text))
		if !ok || named && p.Pipeline == "" || len(out) == readPositionsMax {
			return nil, invalid("skippr.read_position", value).
				WithHint("Write a position of the source, '0/16B3748', or one for each pipeline, 'shop=0/16B3748, crm=0/2A'.")
		}
		p.LSN = lsn
		if slices.ContainsFunc(out, func(o ReadPosition) bool { return o.Pipeline == p.Pipeline }) {
			return nil, pgerr.New(codes.InvalidParameterValue, "skippr.read_position names a pipeline twice")
		}
		out = append(out, p)
	}
	return out, nil
}

// unquoteName folds a name as an identifier is folded, unless it is quoted.
func unquoteName(name string) string {
	if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
		return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return strings.ToLower(name)
}

// canonicalLSN renders an LSN as PostgreSQL does.
func canonicalLSN(text string) (string, bool) {
	l, err := lsn.Parse(text)
	return l.String(), err == nil
}

func checkReadPosition(_, value string) (string, error) {
	entries, err := ReadPositions(value)
	if err != nil {
		return "", err
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.LSN
		if e.Pipeline != "" {
			name := e.Pipeline
			if name != strings.ToLower(name) || strings.ContainsAny(name, `" `) {
				name = quote.Name(name)
			}
			out[i] = name + "=" + e.LSN
		}
	}
	return strings.Join(out, ", "), nil
}
