package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
)

var _ ingest.Validator = (*Source)(nil)

// settings are the server's settings and the role's rights that matter to us.
type settings struct {
	version                  int
	walLevel                 string
	slotsMax, slots, senders int
	keepSize                 string
	encoding                 string
	superuser, replication   bool
	recovery                 bool
	create                   bool
	role, database           string
}

const settingsQuery = `
SELECT current_setting('server_version_num')::int4, current_setting('wal_level'),
       current_setting('max_replication_slots')::int4,
       (SELECT count(*) FROM pg_catalog.pg_replication_slots)::int4,
       current_setting('max_wal_senders')::int4,
       coalesce(current_setting('max_slot_wal_keep_size', true), '-1'), current_setting('server_encoding'),
       r.rolsuper, r.rolreplication, pg_catalog.pg_is_in_recovery(),
       pg_catalog.has_database_privilege(current_database(), 'CREATE'),
       current_user::text, current_database()::text
  FROM pg_catalog.pg_roles r WHERE r.rolname = current_user`

// The oldest server that is supported, and those with abilities of their own.
const (
	versionMin       = 120000
	versionRoot      = 130000 // publish_via_partition_root
	versionTIDRange  = 140000 // reads a range of pages without reading all
	versionStreaming = 140000 // sends large transactions before they end
	versionFailover  = 170000 // slots that follow a fail-over
)

func readSettings(ctx context.Context, conn *pgx.Conn) (settings, error) {
	var v settings
	err := conn.QueryRow(ctx, settingsQuery).Scan(&v.version, &v.walLevel, &v.slotsMax, &v.slots, &v.senders,
		&v.keepSize, &v.encoding, &v.superuser, &v.replication, &v.recovery, &v.create, &v.role, &v.database)
	if err != nil {
		return v, unavailable("read settings", err)
	}
	return v, nil
}

// Validate implements ingest.Validator: it reports every setting, right and table of
// the selection, with the SQL that mends what is missing. The error is nil also when
// the server cannot be reached, which is a finding.
func (s *Source) Validate(ctx context.Context) ([]ingest.Finding, error) {
	var out []ingest.Finding
	err := s.withControl(ctx, func(conn *pgx.Conn) error {
		v, err := readSettings(ctx, conn)
		if err != nil {
			return err
		}
		out = append(out, ingest.Finding{Check: "connect", OK: true, Detail: fmt.Sprintf("server version %d", v.version)})
		out = append(out, v.findings()...)
		tables, err := discover(ctx, conn, s.cfg.selection)
		if err != nil {
			return err
		}
		for _, t := range tables {
			name := fmt.Sprintf("table %s.%s", t.Schema, t.Name)
			out = append(out, ingest.Finding{Check: name, OK: t.Unsupported == "", Detail: t.Unsupported, Fix: t.Hint})
		}
		fix, err := publicationFix(ctx, conn, s.cfg.publication, tables, v)
		if err != nil {
			return err
		}
		out = append(out, ingest.Finding{Check: "publication", OK: fix == "", Detail: publicationDetail(fix), Fix: fix})
		return nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		f := ingest.Finding{Check: "connect", Detail: err.Error()}
		if e, ok := Explain(err); ok {
			f.Detail, f.Fix = e.Message+": "+e.Detail, e.Hint
		}
		out = append(out, f)
	}
	return out, nil
}

func publicationDetail(fix string) string {
	if fix == "" {
		return ""
	}
	return "the role owns not all tables and is no superuser, so it cannot publish them"
}

// findings judges the server's settings and the role's rights.
func (v settings) findings() []ingest.Finding {
	role := quoteIdent(v.role)
	check := func(name string, ok bool, detail, fix string) ingest.Finding {
		if ok {
			return ingest.Finding{Check: name, OK: true}
		}
		return ingest.Finding{Check: name, Detail: detail, Fix: fix}
	}
	return []ingest.Finding{
		check("server version", v.version >= versionMin, fmt.Sprintf("server version %d is older than 12", v.version),
			"Upgrade the server."),
		check("wal_level", v.walLevel == "logical", fmt.Sprintf("wal_level is %s, not logical", v.walLevel),
			"ALTER SYSTEM SET wal_level = logical; then restart the server."),
		check("max_replication_slots", v.slots < v.slotsMax,
			fmt.Sprintf("all %d replication slots are taken", v.slotsMax),
			fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d; then restart the server.", v.slotsMax+10)),
		check("max_wal_senders", v.senders > 0, "max_wal_senders is 0",
			"ALTER SYSTEM SET max_wal_senders = 10; then restart the server."),
		check("replication right", v.superuser || v.replication,
			fmt.Sprintf("role %s may not replicate", role), fmt.Sprintf("ALTER ROLE %s REPLICATION;", role)),
		check("primary", !v.recovery || v.version >= 160000, "the server is a standby, which cannot make a publication",
			"Connect to the primary."),
		check("create right", v.superuser || v.create,
			fmt.Sprintf("role %s may not create a publication in database %s", role, v.database),
			fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s;", quoteIdent(v.database), role)),
	}
}

// problems are the findings that must be mended before a slot can be made. A free
// slot is not asked for when ours exists, nor the right to create.
func (v settings) problems(exists bool) []Problem {
	var out []Problem
	for _, f := range v.findings() {
		if f.OK || f.Check == "create right" || (exists && f.Check == "max_replication_slots") {
			continue
		}
		out = append(out, Problem{What: f.Detail, Fix: f.Fix})
	}
	return out
}

// warnings are sentences on settings that will hurt.
func (v settings) warnings() []string {
	var out []string
	if v.keepSize != "-1" {
		out = append(out, fmt.Sprintf(
			"max_slot_wal_keep_size is %s: a pipeline that falls further behind loses its place", v.keepSize))
	}
	if v.encoding == "SQL_ASCII" {
		out = append(out, "the database's encoding is SQL_ASCII: a table with text that is not UTF-8 will stop")
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
