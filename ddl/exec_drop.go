package ddl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// drop is DROP SECRET, DROP CONNECTION and DROP PIPELINE.
func (x *Executor) drop(ctx context.Context, s *Drop, session Session) error {
	if s.Object == "PIPELINE" {
		return x.dropPipeline(ctx, s, session)
	}
	missing := false
	err := x.Catalog.Update(ctx, func(t *catalog.Txn) (err error) {
		if s.Object == "SECRET" {
			missing, err = dropSecret(t, s.Name)
		} else {
			missing, err = dropConnection(t, s.Name)
		}
		return err
	})
	return x.dropped(err, missing, s, session)
}

func dropSecret(t *catalog.Txn, name string) (missing bool, err error) {
	if _, err := t.Secret(name); err != nil {
		return true, nil
	}
	var users, change, drop []string
	for _, c := range t.Connections() {
		for _, option := range slices.Sorted(maps.Keys(c.Secrets)) {
			if c.Secrets[option] == name {
				quoted := quote.NameIfNeeded(c.Name)
				users = append(users, c.Name)
				change = append(change, fmt.Sprintf("ALTER CONNECTION %s SET (%s SECRET …);", quoted, option))
				drop = append(drop, fmt.Sprintf("DROP CONNECTION %s;", quoted))
			}
		}
	}
	if len(users) > 0 {
		return false, dependents("secret", name, "connection", slices.Compact(users)).
			WithHint("%s lets go of it; %s drops what depends on it.", strings.Join(change, " "), strings.Join(slices.Compact(drop), " "))
	}
	return false, t.DeleteSecret(name)
}

func dropConnection(t *catalog.Txn, name string) (missing bool, err error) {
	if _, err := t.Connection(name); err != nil {
		return true, nil
	}
	var users, drop []string
	for _, p := range t.Pipelines() {
		if p.Connection == name {
			users = append(users, p.Name)
			drop = append(drop, p.Exact("DROP PIPELINE …;"))
		}
	}
	if len(users) > 0 {
		return false, dependents("connection", name, "pipeline", users).
			WithHint("%s drops what depends on it; ALTER CONNECTION %s SET (…); leads it elsewhere.", strings.Join(drop, " "), quote.NameIfNeeded(name))
	}
	return false, t.DeleteConnection(name)
}

func dependents(object, name, kind string, users []string) *pgerr.Error {
	lines := make([]string, len(users))
	for i, u := range users {
		lines[i] = fmt.Sprintf("%s %s depends on %s %s", kind, u, object, name)
	}
	return pgerr.New(codes.DependentObjectsStillExist, "cannot drop %s %s because other objects depend on it", object, name).
		WithDetail("%s", strings.Join(lines, "\n"))
}

func (x *Executor) dropped(err error, missing bool, s *Drop, session Session) error {
	if err != nil || !missing {
		return err
	}
	object := strings.ToLower(s.Object)
	if s.IfExists {
		return noticeSkip(session, "%s \"%s\" does not exist", object, s.Name)
	}
	return notFound(object, s.Name)
}

func (x *Executor) dropPipeline(ctx context.Context, s *Drop, session Session) error {
	snap := x.Catalog.Snapshot()
	p, err := snap.Pipeline(s.Name)
	var read readers
	if err == nil {
		read = readersOf(snap, snap.Tables(p.ID))
	}
	snap.Close()
	if err != nil {
		return x.dropped(nil, true, s, session)
	}
	if s.Cascade {
		err = read.drop(ctx, session)
	} else {
		err = read.refuse("pipeline "+quote.NameIfNeeded(s.Name), "Use DROP ... CASCADE to drop the dependent objects too.")
	}
	if err != nil {
		return err
	}
	left, err := x.Controller.Drop(ctx, s.Name, s.KeepData)
	if errors.Is(err, catalog.ErrPipelineNotFound) { // another DROP was quicker
		return x.dropped(nil, true, s, session)
	}
	if err != nil {
		return err
	}
	return noticeLeft(session, left)
}

func (x *Executor) dropForReplace(ctx context.Context, name string, session Session) error {
	snap := x.Catalog.Snapshot()
	_, err := snap.Pipeline(name)
	snap.Close()
	if err != nil {
		return nil // nothing to replace
	}
	left, err := x.Controller.Drop(ctx, name, false)
	if errors.Is(err, catalog.ErrPipelineNotFound) {
		return nil // another session has dropped it
	}
	if err != nil {
		return err
	}
	return noticeLeft(session, left)
}

func noticeLeft(session Session, left []string) error {
	for _, l := range left {
		w := pgerr.Notice("%s", l)
		w.Severity, w.Code = "WARNING", codes.Warning
		if err := session.Notice(w); err != nil {
			return err
		}
	}
	return nil
}
