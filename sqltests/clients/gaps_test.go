package clients

// What differs from PostgreSQL, by the name of its section, and why. docs/compatibility.md
// says it too. A gap that closes is logged, and should leave the list.

const (
	noObjects = "no such objects are here"
)

var psqlGaps = map[string]string{
	`\l`:  "another server has other databases",
	`\dx`: "PL/pgSQL is not here, skippr is", `\dx+`: "PL/pgSQL is not here, skippr is", `\dL`: noObjects,
	`\echo :SERVER_VERSION_NUM :ENCODING`: "another minor version",
}

var (
	pgxGaps          = map[string]string{}
	libpqGaps        = map[string]string{}
	psycopg2Gaps     = map[string]string{}
	asyncpgGaps      = map[string]string{}
	dbtGaps          = map[string]string{}
	activeRecordGaps = map[string]string{
		"extensions": "PL/pgSQL is not here, skippr is",
	}
	pgDumpGaps = map[string]string{}
)
