package schema

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// EngineInitial is the engine's expression for what rows older than the field have in
// it, of the field's engine type: "NULL" when that is nothing.
func EngineInitial(f Field) string {
	if f.Initial == nil {
		return "NULL"
	}
	return engineValue(f.Type, *f.Initial)
}

func engineValue(t Type, text string) string {
	as := func(expression string) string { return fmt.Sprintf("CAST(%s AS %s)", expression, EngineType(t)) }
	switch t.Kind {
	case Date:
		return as("DATE '1970-01-01' + CAST(" + text + " AS INTEGER)")
	case Time:
		return as(quote.Text(timeText(text)))
	case Timestamp:
		return as("make_timestamp(CAST(" + text + " AS BIGINT))")
	case TimestampTZ:
		return as("make_timestamptz(CAST(" + text + " AS BIGINT))")
	case Binary:
		return as("from_hex(" + quote.Text(text) + ")")
	case UUID:
		if b, err := hex.DecodeString(text); err == nil && len(b) == 16 {
			text = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		}
		return as(quote.Text(text))
	case List:
		return as(engineList(*t.Elem, text))
	}
	return as(quote.Text(text))
}

// timeText is a time of day, which may be 24:00.
func timeText(micros string) string {
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return micros // checked when it came in
	}
	seconds := n / 1_000_000
	return fmt.Sprintf("%02d:%02d:%02d.%06d", seconds/3600, seconds/60%60, seconds%60, n%1_000_000)
}

func engineList(elem Type, text string) string {
	var texts []*string
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return "NULL" // checked when it came in
	}
	values := make([]string, len(texts))
	for i, v := range texts {
		values[i] = "NULL"
		if v != nil {
			values[i] = engineValue(elem, *v)
		}
	}
	return "[" + strings.Join(values, ", ") + "]"
}
