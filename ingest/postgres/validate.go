package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/ingest/postgres/preflight"
)

var _ ingest.Validator = (*Source)(nil)

// settings are the server's settings and the role's rights that matter to us.
type settings struct {
	version                int
	walLevel               string
	slotsMax, slots        int
	sendersMax, senders    int
	keepSize               string
	encoding               string
	superuser, replication bool
	recovery               bool
	create                 bool
	role, database         string
}

const settingsQuery = `
SELECT current_setting('server_version_num')::int4, current_setting('wal_level'),
       current_setting('max_replication_slots')::int4,
       (SELECT count(*) FROM pg_catalog.pg_replication_slots)::int4,
       current_setting('max_wal_senders')::int4,
       (SELECT count(*) FROM pg_catalog.pg_stat_replication)::int4,
       coalesce(current_setting('max_slot_wal_keep_size', true), '-1'), current_setting('server_encoding'),
       r.rolsuper,
       r.rolreplication OR EXISTS (SELECT FROM pg_catalog.pg_roles m WHERE m.rolname = 'rds_replication'
                                      AND pg_catalog.pg_has_role(m.oid, 'USAGE')), -- Amazon's word for it
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.has_database_privilege(current_database(), 'CREATE'),
       current_user::text, current_database()::text
  FROM pg_catalog.pg_roles r WHERE r.rolname = current_user`

// The oldest server that is supported, and those with abilities of their own.
const (
	versionMin       = 120000
	versionRoot      = 130000 // publish_via_partition_root
	versionFilter    = 150000 // publications with row filters and column lists
	versionTIDRange  = 140000 // reads a range of pages without reading all
	versionStreaming = 140000 // sends large transactions before they end
	versionFailover  = 170000 // slots that follow a fail-over
)

func readSettings(ctx context.Context, conn *pgx.Conn) (settings, error) {
	var v settings
	err := conn.QueryRow(ctx, settingsQuery).Scan(&v.version, &v.walLevel, &v.slotsMax, &v.slots, &v.sendersMax, &v.senders,
		&v.keepSize, &v.encoding, &v.superuser, &v.replication, &v.recovery, &v.create, &v.role, &v.database)
	if err != nil {
		return v, unavailable("read settings", err)
	}
	return v, nil
}

// Validate implements ingest.Validator: it reports every setting, right and table of
// the selection, with the SQL that mends what is missing. Whoever has run the SQL of one
// report, and restarted the server where it says so, finds nothing missing in the next.
// A finding that is OK and has a detail is a warning. The error is nil also when the
// server cannot be reached, which is a finding.
func (s *Source) Validate(ctx context.Context) ([]ingest.Finding, error) {
	var out []ingest.Finding
	err := s.withControl(ctx, func(conn *pgx.Conn) error {
		v, err := readSettings(ctx, conn)
		if err != nil {
			return err
		}
		out = append(out, ingest.Finding{Check: "connect", OK: true, Detail: fmt.Sprintf("server version %d", v.version)})
		sl, err := readSlot(ctx, conn, s.cfg.slot, v.version)
		if err != nil {
			return err
		}
		out = append(append(out, v.findings(sl.exists)...), sl.finding(v.database))
		tables, found, err := s.validateTables(ctx, conn, v)
		if err != nil {
			return err
		}
		out = append(out, found...)
		published, err := validatePublication(ctx, conn, s.cfg.publication, tables, v)
		out = append(out, published...)
		return err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		out = append(out, s.unreached(err))
	}
	return out, nil
}

// finding says what becomes of a slot.
func (sl slot) finding(database string) ingest.Finding {
	if !sl.exists {
		return ingest.Finding{Check: "slot", OK: true, Detail: fmt.Sprintf("replication slot %s will be made", sl.name)}
	}
	if err := sl.usable(database, "its tables need a new copy: ALTER PIPELINE … RESET"); err != nil {
		return ingest.Finding{Check: "slot", Detail: err.Error()}
	}
	return ingest.Finding{Check: "slot", OK: true, Detail: fmt.Sprintf("replication slot %s exists", sl.name)}
}

// unreached is the finding of a server that did not let us in.
func (s *Source) unreached(err error) ingest.Finding {
	f := ingest.Finding{Check: "connect", Detail: err.Error()}
	if e, ok := outage.Explain(err); ok {
		f.Detail = strings.TrimSpace(e.Message + ": " + e.Detail + ". " + e.Hint)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return f
	}
	role := quoteIdent(s.cfg.conn.User)
	switch {
	case pg.Code == codePrivilege && strings.Contains(pg.Detail, "CONNECT"):
		f.Fix = fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s;", quoteIdent(s.cfg.conn.Database), role)
	case pg.Code == "28000" && strings.Contains(pg.Message, "not permitted to log in"):
		f.Fix = fmt.Sprintf("ALTER ROLE %s LOGIN;", role)
	}
	return f
}

// validateTables judges the tables of the selection. It returns those that can be
// taken in once everything is mended.
func (s *Source) validateTables(ctx context.Context, conn *pgx.Conn, v settings) ([]ingest.SourceTable, []ingest.Finding, error) {
	relations, err := readRelations(ctx, conn, s.cfg.selection)
	if err != nil {
		return nil, nil, err
	}
	var oids []uint32
	for _, r := range relations {
		if r.kind == "r" || r.kind == "p" {
			oids = append(oids, r.oid)
		}
	}
	report, err := preflight.Check(ctx, conn, v.role, oids)
	if err != nil {
		return nil, nil, unavailable("check tables", err)
	}
	mended := func(r relation) relation {
		if _, looked := report.Tables[r.oid]; !looked {
			return r
		}
		r.readable, r.hidden, r.silent, r.mixed = true, false, 0, 0
		if r.persistence == "u" {
			r.persistence = "p"
		}
		if r.identity == "n" {
			r.identity = "d"
		}
		if !report.Foreign[r.oid] {
			r.alien = 0
		}
		return r
	}
	tables, err := discoverAs(ctx, conn, s.cfg.selection, mended)
	if err != nil {
		return nil, nil, err
	}
	if err := tryPublications(ctx, conn, tables); err != nil {
		return nil, nil, err
	}
	var out []ingest.Finding
	for _, n := range report.Schemas {
		out = append(out, ingest.Finding{Check: "schema", Detail: n.What, Fix: n.Fix})
	}
	for _, t := range tables {
		out = append(out, s.tableFindings(t, report.Tables[t.OID])...)
	}
	return tables, out, nil
}

// tableFindings judges a table of which everything in needs is missing.
func (s *Source) tableFindings(t ingest.SourceTable, needs []preflight.Need) []ingest.Finding {
	check := fmt.Sprintf("table %s.%s", t.Schema, t.Name)
	if t.Unsupported != "" {
		named := slices.ContainsFunc(s.cfg.selection.Tables, func(n catalog.SelectedTable) bool {
			return n.Name == t.Name && schemaOf(n) == t.Schema
		})
		if !named {
			return []ingest.Finding{{Check: check, OK: true, Detail: strings.TrimSpace("left out: " + t.Unsupported + ". " + t.Hint)}}
		}
		if t.Fix != "" {
			return []ingest.Finding{{Check: check, Detail: t.Unsupported, Fix: t.Fix}}
		}
		return []ingest.Finding{{Check: check, Detail: strings.TrimSpace(t.Unsupported + ". " + t.Hint)}}
	}
	var out []ingest.Finding
	for _, n := range needs {
		out = append(out, ingest.Finding{Check: check, Detail: n.What, Fix: n.Fix})
	}
	if len(out) > 0 {
		return out
	}
	notes := slices.Clone(t.Notes)
	var texts []string
	for _, c := range t.Columns {
		if strings.HasSuffix(c.Note, "exact text") {
			texts = append(texts, c.Name)
		}
	}
	if len(texts) > 0 {
		notes = append(notes, "kept as exact text: "+strings.Join(texts, ", "))
	}
	return []ingest.Finding{{Check: check, OK: true, Detail: strings.Join(notes, "; ")}}
}

// findings judges the server's settings and the role's rights. exists says that our
// slot is there.
func (v settings) findings(exists bool) []ingest.Finding {
	role := quoteIdent(v.role)
	check := func(name string, ok bool, detail, fix string) ingest.Finding {
		if ok {
			return ingest.Finding{Check: name, OK: true}
		}
		return ingest.Finding{Check: name, Detail: detail, Fix: fix}
	}
	warn := func(name string, ok bool, detail string) ingest.Finding {
		f := check(name, ok, detail, "")
		f.OK = true
		return f
	}
	const restart = " -- then restart the server"
	return []ingest.Finding{
		check("server version", v.version >= versionMin, fmt.Sprintf("server version %d is older than 12", v.version), ""),
		check("wal_level", v.walLevel == "logical", fmt.Sprintf("wal_level is %s, not logical", v.walLevel),
			"ALTER SYSTEM SET wal_level = logical;"+restart),
		check("max_replication_slots", exists || v.slots < v.slotsMax,
			fmt.Sprintf("all %d replication slots are taken", v.slotsMax),
			fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d;", v.slotsMax+10)+restart),
		check("max_wal_senders", exists && v.sendersMax > 0 || v.senders < v.sendersMax, fmt.Sprintf("all %d processes that send the log are taken", v.sendersMax),
			fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d;", v.sendersMax+10)+restart),
		check("replication right", v.superuser || v.replication,
			fmt.Sprintf("role %s may not replicate", role), fmt.Sprintf("ALTER ROLE %s REPLICATION;", role)),
		check("primary", !v.recovery || v.version >= 160000, "the server is a standby older than 16, which cannot be streamed: connect to the primary", ""),
		warn("max_slot_wal_keep_size", v.keepSize == "-1", keepSizeWarning(v.keepSize)),
		warn("encoding", v.encoding != "SQL_ASCII", asciiWarning),
	}
}

// problems are the findings that must be mended before a slot can be made, or read when
// it exists.
func (v settings) problems(exists bool) []Problem {
	var out []Problem
	for _, f := range v.findings(exists) {
		if !f.OK {
			out = append(out, Problem{What: f.Detail, Fix: f.Fix})
		}
	}
	return out
}

const asciiWarning = "the database's encoding is SQL_ASCII: a table with text that is not UTF-8 will stop"

func keepSizeWarning(size string) string {
	return fmt.Sprintf("max_slot_wal_keep_size is %s: a pipeline that falls further behind loses its place", size)
}

// warnings are sentences on settings that will hurt.
func (v settings) warnings() []string {
	var out []string
	if v.keepSize != "-1" {
		out = append(out, keepSizeWarning(v.keepSize))
	}
	if v.encoding == "SQL_ASCII" {
		out = append(out, asciiWarning)
	}
	if v.version < versionTIDRange {
		out = append(out, "the server is older than 14: each table or partition is copied in one piece")
	}
	return out
}

// joined is an error of several problems, nil when there are none.
func joined(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &SetupError{Problems: problems}
}
