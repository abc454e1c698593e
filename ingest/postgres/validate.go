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
	"github.com/skipprd/skipprd/pgwire/quote"
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
	create                 bool
	role, database         string
	idle                   string // idle_replication_slot_timeout, "0" for none
	standbys               int    // that keep log here for themselves
	awaited                bool   // the server waits for some of them before it sends us anything
	synchronous            string // synchronous_standby_names
	application            string // our name among them

	notes          bool // which transactions run may be noted for us
	recovery       bool // it is a standby
	feedback       bool // which tells its primary what it needs
	ownSlot        bool // and has a slot there
	primaryLogical bool // whose wal_level is logical, as far as is known
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
       current_user::text, current_database()::text,
       coalesce(current_setting('idle_replication_slot_timeout', true), '0'),
       (SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_type = 'physical')::int4,
       coalesce(current_setting('synchronized_standby_slots', true), '') <> '',
       current_setting('hot_standby_feedback')::bool, current_setting('primary_slot_name') <> '',
       current_setting('synchronous_standby_names'), current_setting('application_name'),
       coalesce(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure('pg_catalog.pg_log_standby_snapshot()'), 'EXECUTE'), false)
  FROM pg_catalog.pg_roles r WHERE r.rolname = current_user`

// The oldest server that is supported, and those with abilities of their own.
const (
	versionMin  = 120000
	versionRoot = 130000 // publish_via_partition_root
	// versionMembership notices that a partition is attached or detached while it decodes.
	versionMembership = 150000
	versionFilter     = 150000 // publications with row filters and column lists
	versionTIDRange   = 140000 // reads a range of pages without reading all
	versionStreaming  = 140000 // sends large transactions before they end
	versionStandby    = 160000 // streams from a standby, too
	versionFailover   = 170000 // slots that follow a fail-over
	versionGenerated  = 180000 // publications send generated columns
)

func readSettings(ctx context.Context, conn *pgx.Conn) (settings, error) {
	var v settings
	err := conn.QueryRow(ctx, settingsQuery).Scan(&v.version, &v.walLevel, &v.slotsMax, &v.slots, &v.sendersMax, &v.senders,
		&v.keepSize, &v.encoding, &v.superuser, &v.replication, &v.recovery, &v.create, &v.role, &v.database,
		&v.idle, &v.standbys, &v.awaited, &v.feedback, &v.ownSlot, &v.synchronous, &v.application,
		&v.notes)
	if err != nil {
		return v, unavailable("read settings", err)
	}
	v.primaryLogical = true
	return v, nil
}

// askPrimary finds out whether the primary of a standby has wal_level = logical: that is
// looked at before it is seen that no slot is named.
func (v *settings) askPrimary(ctx context.Context, conn *pgx.Conn) error {
	if !v.recovery || v.version < versionStandby || v.walLevel != "logical" || v.slotsMax == 0 {
		return nil
	}
	err := run(ctx, conn.PgConn(), "SELECT pg_catalog.pg_logical_slot_peek_binary_changes(NULL, NULL, NULL)")
	v.primaryLogical = code(err) != codeNotInPrerequisite
	if err != nil && code(err) == "" {
		return unavailable("look at the primary's wal_level", err)
	}
	return nil
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
		if err := v.askPrimary(ctx, conn); err != nil {
			return err
		}
		sl, err := readSlot(ctx, conn, s.cfg.slot, v.version)
		if err != nil {
			return err
		}
		out = append(append(out, v.findings(sl.exists)...), sl.finding(v), s.standbysFinding(v))
		tables, found, err := s.validateTables(ctx, conn, v)
		if err != nil {
			return err
		}
		published, err := validatePublication(ctx, conn, s.cfg.publication, tables, v)
		for _, f := range found {
			f.Fix = v.where(f.Check, f.Fix)
			out = append(out, f)
		}
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
func (sl slot) finding(v settings) ingest.Finding {
	if !sl.exists {
		detail := fmt.Sprintf("replication slot %s will be made", sl.name)
		if v.recovery {
			detail += ": " + standbyWaits
		}
		return ingest.Finding{Check: "slot", OK: true, Detail: detail}
	}
	if err := sl.usable(v.database, "its tables need a new copy: ALTER PIPELINE … RESET"); err != nil {
		return ingest.Finding{Check: "slot", Detail: err.Error()}
	}
	return ingest.Finding{Check: "slot", OK: true, Detail: fmt.Sprintf("replication slot %s exists", sl.name)}
}

// standbysFinding says whether we may get ahead of the standbys that the slot is carried
// over to.
func (s *Source) standbysFinding(v settings) ingest.Finding {
	f := ingest.Finding{Check: "synchronized_standby_slots", OK: true}
	if s.cfg.failover && v.version >= versionFailover && !v.recovery && v.standbys > 0 && !v.awaited {
		f.Detail = "synchronized_standby_slots is empty: changes can be here before a standby has them, and if that one is promoted then, the pipeline stops"
	}
	return f
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
	tables, err := discoverAs(ctx, conn, s.cfg.selection, &s.cfg, mended)
	if err != nil {
		return nil, nil, err
	}
	if err := tryPublications(ctx, conn, tables); err != nil {
		return nil, nil, err
	}
	if err := s.functionNeeds(ctx, conn, tables, report.Tables); err != nil {
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
		return ingest.Finding{Check: name, Detail: detail, Fix: v.where(name, fix)}
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
		check("primary", !v.recovery || v.version >= versionStandby, "the server is a standby older than 16, which cannot be streamed: connect to the primary", ""),
		check("wal_level of the primary", v.primaryLogical, "the server is a standby, and wal_level of its primary is not logical",
			"ALTER SYSTEM SET wal_level = logical;"+restart),
		check(feedbackName, !v.recovery || v.feedback || exists, feedbackWarning,
			"ALTER SYSTEM SET hot_standby_feedback = on; SELECT pg_reload_conf();"),
		warn("standby", !v.recovery || v.feedback && v.ownSlot, v.standbyWarning()),
		warn(idleName, v.idle == "0", idleWarning(v.idle)),
		warn("max_slot_wal_keep_size", v.keepSize == "-1", keepSizeWarning(v.keepSize)),
		warn("synchronous_standby_names", !v.isStandby(), v.isStandbyWarning()),
		warn("encoding", v.encoding != sqlASCII, asciiWarning),
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

// Names of findings, and what they say.
const (
	feedbackName    = "hot_standby_feedback"
	feedbackWarning = "hot_standby_feedback is off on this standby: its primary removes rows that the slot needs, and the slot is lost then"
	idleName        = "idle_replication_slot_timeout"
)

// standbyWarning says what may cost a standby its slot.
func (v settings) standbyWarning() string {
	if !v.feedback {
		return feedbackWarning
	}
	return "the standby has no primary_slot_name: while it is away from its primary, rows go there that the slot needs, and the slot is lost then"
}

func idleWarning(timeout string) string {
	return fmt.Sprintf("idle_replication_slot_timeout is %s: a pipeline that rests, or cannot connect, for so long loses its place", timeout)
}

// where says of a fix whether it is for another server than the one that was asked: on a
// standby nothing but its own settings can be changed.
func (v settings) where(check, fix string) string {
	own := []string{"wal_level", "max_replication_slots", "max_wal_senders", feedbackName, "slot"}
	if fix == "" || !v.recovery || slices.Contains(own, check) {
		return fix
	}
	return atPrimary + fix
}

// atPrimary precedes SQL that a standby refuses.
const atPrimary = "/* at the primary */ "

const asciiWarning = "the database's encoding is SQL_ASCII: rows with text that is not UTF-8 cannot be taken in (option on_error)"

// isStandby says that the server may take our stream for a synchronous standby.
func (v settings) isStandby() bool {
	if v.recovery {
		return false // whose streams never are
	}
	return slices.ContainsFunc(strings.FieldsFunc(v.synchronous, func(r rune) bool { return strings.ContainsRune("(), ", r) }), func(name string) bool {
		return name == "*" || strings.EqualFold(strings.Trim(name, `"`), v.application)
	})
}

func (v settings) isStandbyWarning() string {
	return fmt.Sprintf("synchronous_standby_names = %s means the stream of a pipeline, %s, too: commits then wait for it, and for ever while it is away;"+
		" name the standbys that are meant: ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (…)'; SELECT pg_reload_conf();",
		quoteLiteral(v.synchronous), quote.Name(v.application))
}

func keepSizeWarning(size string) string {
	return fmt.Sprintf("max_slot_wal_keep_size is %s: a pipeline that falls further behind loses its place", size)
}

// warnings are sentences on settings that will hurt.
func (v settings) warnings() []string {
	var out []string
	if v.keepSize != "-1" {
		out = append(out, keepSizeWarning(v.keepSize))
	}
	if v.idle != "0" {
		out = append(out, idleWarning(v.idle))
	}
	if v.recovery && !(v.feedback && v.ownSlot) {
		out = append(out, v.standbyWarning())
	}
	if v.encoding == sqlASCII {
		out = append(out, asciiWarning)
	}
	if v.isStandby() {
		out = append(out, v.isStandbyWarning())
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
