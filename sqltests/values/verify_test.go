package values

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// agrees has VERIFY compare a drained pipeline with its source by its own ways: it must
// find no more differences than we do, which is none. It returns how many tables it compared.
func agrees(t *testing.T, s *harness.Server, pipeline string) (compared int) {
	t.Helper()
	conn := connect(t, s.DSN)
	defer func() { _ = conn.Close(t.Context()) }()
	results, err := conn.PgConn().Exec(t.Context(), "VERIFY PIPELINE "+pipeline+" WITH (ranges = 4, keys = 3)").ReadAll()
	if err != nil {
		t.Errorf("VERIFY PIPELINE %s: %v", pipeline, err)
		return 0
	}
	for _, row := range results[0].Rows {
		switch state := string(row[5]); state {
		case "equal":
			compared++
		case "skipped", "dead letter": // with a reason
			t.Logf("VERIFY PIPELINE %s: %s", pipeline, words(row))
		default:
			t.Errorf("VERIFY PIPELINE %s: %s", pipeline, words(row))
		}
	}
	return compared
}

func words(row [][]byte) string {
	var out []string
	for _, cell := range row {
		if cell != nil {
			out = append(out, string(cell))
		}
	}
	return strings.Join(out, " ")
}
