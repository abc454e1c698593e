package e2e

import (
	"bytes"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

const copyQuery = `SELECT i::int AS i, (i * 1.5)::numeric(10,2) AS n, CASE WHEN i % 3 = 0 THEN NULL ELSE 'a "b", c\d' || i END AS t,
	'2026-01-02 03:04:05'::timestamp + i * interval '1 hour' AS at, i % 2 = 0 AS b, ARRAY[i, NULL, i * 2] AS a, '' AS e, i / 3.0::float8 AS f
	FROM generate_series(1, 50) AS g (i) ORDER BY i`

// TestCopyOut compares every form of COPY TO STDOUT with PostgreSQL, byte for byte.
func TestCopyOut(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	s := harness.New(t, t.TempDir())
	s.Start()
	theirs, ours := harness.Connect(t, source), harness.Connect(t, s.DSN)
	for _, options := range []string{
		"", "WITH (FORMAT csv)", "WITH (FORMAT csv, HEADER)", "WITH (FORMAT csv, DELIMITER ';', NULL 'nil', QUOTE '''')",
		"WITH (FORMAT csv, FORCE_QUOTE *)", "WITH (FORMAT csv, FORCE_QUOTE (t, i), ESCAPE '\\')", "WITH (FORMAT binary)",
		"WITH (FORMAT text, DELIMITER '|', NULL 'N')", "WITH (HEADER)", "CSV HEADER",
	} {
		sql := "COPY (" + copyQuery + ") TO STDOUT " + options
		var want, got bytes.Buffer
		wantTag, err := theirs.PgConn().CopyTo(t.Context(), &want, sql)
		if err != nil {
			t.Fatalf("%s on PostgreSQL: %v", options, err)
		}
		gotTag, err := ours.PgConn().CopyTo(t.Context(), &got, sql)
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		if !bytes.Equal(want.Bytes(), got.Bytes()) || wantTag.String() != gotTag.String() {
			t.Errorf("%s: got %s\n%.600s\nwant %s\n%.600s", options, gotTag, got.Bytes(), wantTag, want.Bytes())
		}
	}
	for _, sql := range []string{
		"COPY nowhere TO STDOUT", "COPY (SELECT 1) TO STDOUT WITH (FORMAT parquet)", "COPY (SELECT 1) TO STDOUT WITH (DELIMITER 'ab')",
		"COPY (SELECT 1) TO STDOUT WITH (NOSUCH 1)", "COPY (SELECT 1/0) TO STDOUT", "COPY (SELECT 1) TO STDOUT WITH (QUOTE '\"')",
	} {
		_, want := theirs.PgConn().CopyTo(t.Context(), &bytes.Buffer{}, sql)
		_, got := ours.PgConn().CopyTo(t.Context(), &bytes.Buffer{}, sql)
		if want == nil || got == nil || sqlstate(want) != sqlstate(got) {
			t.Errorf("%s: got %v, PostgreSQL says %v", sql, got, want)
		}
	}
	s.Stop()
}

// sqlstate is the code of a server's error, "" for another.
func sqlstate(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
