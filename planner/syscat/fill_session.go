package syscat

import (
	"context"
	"fmt"
	"maps"
	"net"

	pgencode "github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/hba"
	"github.com/skipprd/skipprd/planner"
)

func fillSettings(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, s := range env.Settings {
		r := row{
			"name": s.Name, "setting": s.Raw(s.Value), "category": s.Category, "short_desc": s.Description, "context": string(s.Context),
			"vartype": string(s.Kind), "source": s.Source, "boot_val": s.Raw(s.Default), "reset_val": s.Raw(s.Reset), "pending_restart": false,
			"unit": orNull(s.Unit), "extra_desc": orNull(s.Extra), "min_val": orNull(s.LowText), "max_val": orNull(s.HighText),
		}
		switch {
		case s.Listed != nil:
			r["enumvals"] = s.Listed
		case len(s.Values) > 0:
			r["enumvals"] = s.Values
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_settings", rows)
}

func fillActivity(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	if env.Sessions == nil {
		return nil, nil
	}
	var rows []row
	for _, s := range env.Sessions() {
		r := row{ // the veil has the role's id
			"datid": oidDatabase, "datname": s.Database, "pid": s.PID, "usesysid": oidBootstrap, "usename": s.User,
			"application_name": s.Application, "backend_start": s.StartedAt, "xact_start": s.TxStartedAt,
			"query_start": s.QueryStartedAt, "state_change": s.ChangedAt, "state": s.State, "query": s.Query, "backend_type": "client backend",
			"wait_event_type": orNull(s.Wait.Type), "wait_event": orNull(s.Wait.Name),
		}
		if host, port, err := net.SplitHostPort(s.RemoteAddr); err == nil {
			r["client_addr"], r["client_port"] = host, port
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_stat_activity", rows)
}

// fillEncryption says how the sessions are encrypted that the role sees.
func fillEncryption(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	if env.Sessions == nil {
		return nil, nil
	}
	var rows []row
	for _, s := range env.Sessions() {
		if !seesActivity(env, s.User) {
			continue
		}
		r := row{"pid": s.PID, "ssl": s.Encryption != nil}
		if e := s.Encryption; e != nil {
			r["version"], r["cipher"], r["bits"] = e.Version, e.Cipher, e.Bits
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_stat_ssl", rows)
}

func fillPrepared(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Prepared {
		types := make([]int64, len(p.Params))
		for i, o := range p.Params {
			types[i] = int64(o)
		}
		rows = append(rows, row{
			"name": p.Name, "statement": p.SQL, "prepare_time": p.At, "from_sql": p.FromSQL, "generic_plans": 0, "custom_plans": 0,
		})
	}
	return c.build("pg_catalog.pg_prepared_statements", rows)
}

func fillCursors(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, p := range env.Cursors {
		rows = append(rows, row{
			"name": p.Name, "statement": p.SQL, "is_holdable": p.Hold, "is_binary": p.Binary, "is_scrollable": p.Scroll, "creation_time": p.At,
		})
	}
	return c.build("pg_catalog.pg_cursors", rows)
}

// fillRules are the lines of the file of who may connect, the bad ones with what is wrong.
func fillRules(_ context.Context, c *Catalog, _ *planner.SystemEnv) ([][]any, error) {
	if c.deps.Rules == nil {
		return nil, nil
	}
	entries, _, err := c.deps.Rules()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, e := range entries {
		r := row{"line_number": e.Line, "error": orNull(e.Reason)}
		if e.Rule != nil {
			maps.Copy(r, ruleRow(e.Rule))
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_hba_file_rules", rows)
}

func ruleRow(x *hba.Rule) row {
	texts := func(names []hba.Name) (out []string) {
		for _, n := range names {
			out = append(out, n.Text)
		}
		return out
	}
	r := row{
		"type": string(x.Connection), "database": texts(x.Databases), "user_name": texts(x.Users), "address": orNull(x.Keyword),
		"auth_method": string(x.Method),
	}
	if x.Prefix.IsValid() {
		mask := net.CIDRMask(x.Prefix.Bits(), x.Prefix.Addr().BitLen())
		r["address"], r["netmask"] = x.Prefix.Addr().String(), net.IP(mask).String()
	}
	var options []string
	if x.Map != "" {
		options = append(options, "map="+x.Map)
	}
	if x.ClientCert != "" {
		options = append(options, "clientcert="+x.ClientCert)
	}
	if len(options) > 0 {
		r["options"] = options
	}
	return r
}

// fillMaps are the lines of the file of maps.
func fillMaps(_ context.Context, c *Catalog, _ *planner.SystemEnv) ([][]any, error) {
	if c.deps.Rules == nil {
		return nil, nil
	}
	_, entries, err := c.deps.Rules()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, e := range entries {
		r := row{"line_number": e.Line, "error": orNull(e.Reason)}
		if e.Map != nil {
			r["map_name"], r["sys_name"], r["pg_username"] = e.Map[0], e.Map[1], e.Map[2]
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_ident_file_mappings", rows)
}

// fillZones are the time zones that can be set, as they are now.
func fillZones(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	names, err := fileRows("zone_names")
	if err != nil {
		return nil, err
	}
	rows := make([]row, 0, len(names))
	for _, n := range names {
		name, _ := n[0].(string)
		loc, err := pgencode.LoadZone(name)
		if err != nil {
			continue // PostgreSQL's list knows one that this machine does not
		}
		at := env.Now.In(loc)
		abbrev, offset := at.Zone()
		rows = append(rows, row{"name": name, "abbrev": abbrev, "utc_offset": offsetText(offset), "is_dst": at.IsDST()})
	}
	return c.build("pg_catalog.pg_timezone_names", rows)
}

// offsetText is an offset from UTC as an interval.
func offsetText(seconds int) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	return fmt.Sprintf("%s%02d:%02d:%02d", sign, seconds/3600, seconds/60%60, seconds%60)
}

// fillLocks is pg_locks: advisory locks, and tables that sessions change or are about to. Those are
// a mode that keeps all others from changing them and nobody from reading.
func fillLocks(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	if env.Locks == nil {
		return nil, nil
	}
	var rows []row
	if env.TableLocks != nil {
		for _, l := range env.TableLocks() {
			rows = append(rows, row{
				"locktype": "relation", "database": oidDatabase, "relation": planner.TableOID(l.Table),
				"virtualtransaction": fmt.Sprintf("%d/0", l.PID), "pid": l.PID, "mode": "ExclusiveLock", "granted": l.Granted, "fastpath": false,
			})
		}
	}
	for _, l := range env.Locks() {
		rows = append(rows, row{
			"locktype": "advisory", "database": oidDatabase, "classid": l.A, "objid": l.B, "objsubid": int16(l.Sub),
			"virtualtransaction": fmt.Sprintf("%d/0", l.PID), "pid": l.PID, "mode": l.Mode.String(), "granted": l.Granted, "fastpath": false,
		})
	}
	return c.build("pg_catalog.pg_locks", rows)
}

// fillCopies is pg_stat_progress_copy: clients are at the other end of all of them, so nobody
// knows how many bytes there will be.
func fillCopies(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	if env.Copies == nil {
		return nil, nil
	}
	users := map[uint32]string{}
	if env.Sessions != nil {
		for _, s := range env.Sessions() {
			users[s.PID] = s.User
		}
	}
	var rows []row
	for _, x := range env.Copies() {
		r := row{"pid": x.PID, "datid": oidDatabase, "datname": env.Database}
		if seesActivity(env, users[x.PID]) {
			r["command"] = "COPY TO"
			if x.From {
				r["command"] = "COPY FROM"
			}
			r["relid"], r["type"], r["bytes_total"] = x.Relation, x.Kind, x.Total
			r["bytes_processed"], r["tuples_processed"], r["tuples_excluded"] = x.Bytes, x.Tuples, x.Excluded
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_stat_progress_copy", rows)
}

// fillConfig has the names that PostgreSQL's pg_config has. There are no such directories here,
// and what the server was made with is not recorded, as PostgreSQL says it.
func fillConfig(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, name := range []string{
		"BINDIR", "DOCDIR", "HTMLDIR", "INCLUDEDIR", "PKGINCLUDEDIR", "INCLUDEDIR-SERVER", "LIBDIR", "PKGLIBDIR", "LOCALEDIR", "MANDIR",
		"SHAREDIR", "SYSCONFDIR", "PGXS",
	} {
		rows = append(rows, row{"name": name, "setting": ""})
	}
	for _, name := range []string{"CONFIGURE", "CC", "CPPFLAGS", "CFLAGS", "CFLAGS_SL", "LDFLAGS", "LDFLAGS_EX", "LDFLAGS_SL", "LIBS"} {
		rows = append(rows, row{"name": name, "setting": "not recorded"})
	}
	rows = append(rows, row{"name": "VERSION", "setting": "PostgreSQL " + env.Version})
	return c.build("pg_catalog.pg_config", rows)
}
