package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/setting"
)

// Engine answers SQL sessions. Safe for concurrent use.
type Engine struct {
	deps      Deps
	pinner    *Pinner
	functions map[string][]pgsql.Function
	names     atomic.Pointer[names] // of the catalog version seen last
	recovered sync.Map              // of the pipelines whose recovery was waited for
}

var (
	_ pgwire.Engine      = (*Engine)(nil)
	_ pgwire.IdleLimiter = (*session)(nil)
)

// New makes an engine.
func New(deps Deps) *Engine {
	e := &Engine{deps: deps, functions: map[string][]pgsql.Function{}}
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
	snap := e.deps.Catalog.Snapshot()
	defer snap.Close()
	r, err := snap.Role(user)
	if errors.Is(err, catalog.ErrRoleNotFound) {
		return pgwire.Role{}, pgerr.New(codes.InvalidAuthorizationSpecification, "role \"%s\" does not exist", user)
	}
	if err != nil {
		return pgwire.Role{}, fmt.Errorf("read role: %w", err)
	}
	return pgwire.Role{Name: r.Name, CanLogin: r.CanLogin, Verifier: r.Verifier}, nil
}

// Open implements pgwire.Engine.
func (e *Engine) Open(_ context.Context, st pgwire.Startup) (pgwire.Session, error) {
	if st.Database != e.deps.Database {
		return nil, pgerr.New(codes.InvalidCatalogName, "database \"%s\" does not exist", st.Database).
			WithHint("The database is named \"%s\".", e.deps.Database)
	}
	snap := e.deps.Catalog.Snapshot()
	role, err := snap.Role(st.User)
	snap.Close()
	if err != nil {
		return nil, pgerr.New(codes.InvalidAuthorizationSpecification, "role \"%s\" does not exist", st.User)
	}
	super := "off"
	if role.Superuser {
		super = "on"
	}
	values, err := setting.NewValues(map[string]string{
		"server_version": e.deps.Version, "server_version_num": versionNumber(e.deps.Version),
		"is_superuser": super, "session_authorization": st.User,
	}, startupSettings(st.Params))
	if err != nil {
		return nil, err
	}
	return newSession(e, st, values), nil
}

// startupSettings leaves out what is no setting.
func startupSettings(params map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range params {
		switch strings.ToLower(k) {
		case "user", "database", "options", "replication":
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
