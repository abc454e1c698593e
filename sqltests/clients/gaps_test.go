package clients

// What differs from PostgreSQL, by the name of its section, and why. docs/compatibility.md
// says it too. A gap that closes is logged, and should leave the list.

const (
	noListen     = "LISTEN and NOTIFY are refused"
	noScroll     = "SCROLL cursors are refused"
	noDefinition = "functions and system views have no definition"
	noSystemKeys = "system tables show no indexes"
	noObjects    = "no such objects are here"
	noSource     = "an error does not say where in a server's source code it arose"
)

// psqlGaps are those of psql.
var psqlGaps = map[string]string{
	`\d pg_class`: noSystemKeys, `\d+ pg_class`: noSystemKeys, `\dS pg_a*`: noSystemKeys,
	`\l`: "another server has other databases", `\l lake`: "its locale is C.UTF-8",
	`\dfnS abs`: `"pg_catalog.trigger" is no type`,
	`\dx`:       noObjects, `\dx+`: noObjects, `\dL`: noObjects, `\dcS sjis*`: noObjects, `\dF`: noObjects, `\dFd`: noObjects, `\dFp`: noObjects,
	`\dFt`: noObjects, `\dAf btree int4`: "in another order", `\dAo btree int4_ops`: "regoperator", `\dAp btree integer_ops`: noObjects,
	`\sf now`: noDefinition, `\sf nosuch`: noDefinition, `\sv+ pg_user`: noDefinition,
	`\errverbose`: noSource, `\errverbose, time 2`: noSource, "SELECT 'x'::int;": noSource, "SELECT nosuch(1);": noSource,
	`\echo :SERVER_VERSION_NUM :ENCODING`: "another minor version",
	"LISTEN x;":                           noListen, "NOTIFY x, 'payload';": noListen,
}

// clientGaps are those of the other clients.
var clientGaps = map[string]map[string]string{
	"psycopg2":     {"scrollable cursor": noScroll},
	"asyncpg":      {"listen": noListen, "record": "records have no binary form"},
	"activerecord": {"intervals": "IntervalStyle does not hold for intervals of a pipeline", "extensions": noObjects},
}
