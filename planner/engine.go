package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/planner/temp"
)

// Engine answers SQL sessions. Safe for concurrent use.
type Engine struct {
	deps      Deps
	pinner    *Pinner
	functions map[string][]pgsql.Function
	names     atomic.Pointer[names] // of the catalog version seen last
	recovered sync.Map              // of the pipelines whose recovery was waited for
	temp      *temp.Server
}

var (
	_ pgwire.Engine      = (*Engine)(nil)
	_ pgwire.IdleLimiter = (*session)(nil)
)

// New makes an engine.
func New(deps Deps) *Engine {
	e := &Engine{deps: deps, functions: map[string][]pgsql.Function{}, temp: temp.NewServer()}
	e.pinner = &Pinner{Catalog: deps.Catalog, Warehouse: deps.Warehouse, Pins: deps.Pins, Logs: deps.Logs, LogDir: deps.LogDir}
	for _, f := range deps.System.Functions() {
		fn := pgsql.Function{Schema: f.Schema, Name: f.Name, Args: f.Args, Result: f.Result, Set: f.Set, Engine: f.Engine}
		for _, c := range f.Fields {
			fn.Fields = append(fn.Fields, pgsql.Field{Name: c.Name, Type: pgsql.Type{OID: c.TypeOID, Mod: c.TypMod}})
		}
		e.functions[f.Name] = append(e.functions[f.Name], fn)
	}
	return e
}

// Prelude holds the statements that every engine instance runs once before any
// query: those of planner/pgsql and of the system relations.
func Prelude(system SystemRelations) []string {
	return slices.Concat(pgsql.Prelude(), system.Prelude())
}

// Role implements pgwire.Engine.
func (e *Engine) Role(_ context.Context, user string) (pgwire.Role, error) {
	b := e.deps.Catalog.Rights()
	r := b.Named(user)
	if r == nil {
		return pgwire.Role{}, pgerr.New(codes.InvalidAuthorizationSpecification, "role \"%s\" does not exist", user)
	}
	out := pgwire.Role{
		Name: r.Name, CanLogin: r.CanLogin, Verifier: r.Verifier, Superuser: r.Superuser, ValidUntil: r.ValidUntil,
		Limited: r.Limited, ConnectionsMax: int(r.ConnectionLimit),
	}
	for of := range b.Members(r.OID) {
		out.MemberOf = append(out.MemberOf, b.Name(of))
	}
	return out, nil
}

// Open implements pgwire.Engine.
func (e *Engine) Open(_ context.Context, st pgwire.Startup) (pgwire.Session, error) {
	if st.Database != e.deps.Database {
		return nil, pgerr.New(codes.InvalidCatalogName, "database \"%s\" does not exist", st.Database).
			WithHint("The database is named \"%s\".", e.deps.Database)
	}
	b := e.deps.Catalog.Rights()
	role := b.Named(st.User)
	if role == nil {
		return nil, pgerr.New(codes.InvalidAuthorizationSpecification, "role \"%s\" does not exist", st.User)
	}
	if b.Has(role.OID, right.Object{Class: right.Database}, right.Connect) == 0 {
		return nil, pgerr.New(codes.InsufficientPrivilege, "permission denied for database \"%s\"", st.Database).
			WithDetail("User does not have CONNECT privilege.")
	}
	server := map[string]string{
		"server_version": e.deps.Version, "server_version_num": versionNumber(e.deps.Version),
		"is_superuser": "off", "session_authorization": st.User,
	}
	if role.Superuser {
		server["is_superuser"] = "on"
	}
	maps.Copy(server, role.Settings)
	client := startupSettings(st.Params)
	become := client["role"]
	delete(client, "role")
	values, err := setting.NewValues(server, client)
	if err != nil {
		return nil, err
	}
	s := newSession(e, st, values)
	s.login, s.became = role.OID, map[string]uint32{st.User: role.OID}
	if become != "" {
		if err := s.setIdentity("role", become, false); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// startupSettings leaves out what is no setting. The one that says who the session is has its
// name in lower case, however the client wrote it.
func startupSettings(params map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range params {
		switch strings.ToLower(k) {
		case "user", "database", "options", "replication":
		case "role":
			out["role"] = v
		default:
			if !strings.HasPrefix(k, "_pq_.") {
				out[k] = v
			}
		}
	}
	return out
}

// versionNumber turns "15.8" into "150008".
func versionNumber(v string) string {
	var major, minor int
	_, _ = fmt.Sscanf(v, "%d.%d", &major, &minor) // a version of ours
	return fmt.Sprintf("%d%04d", major, minor)
}
