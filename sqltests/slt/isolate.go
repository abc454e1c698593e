package slt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Isolation is what each file has to itself.
type Isolation uint8

// A file runs in the database of the DSN as it is, or in a new database, or in a new
// schema of that database that is first in search_path.
const (
	Shared Isolation = iota
	OwnDatabase
	OwnSchema
)

// ParseIsolation reads none, database or schema.
func ParseIsolation(name string) (Isolation, error) {
	switch name {
	case "none", "":
		return Shared, nil
	case "database":
		return OwnDatabase, nil
	case "schema":
		return OwnSchema, nil
	}
	return Shared, fmt.Errorf("unknown isolation %q: none, database and schema are known", name)
}

// isolate makes what a file has to itself and returns how to reach and to drop it.
func (r *Runner) isolate(ctx context.Context) (Config, func() error, error) {
	cfg := r.cfg
	if cfg.Isolation == Shared {
		return cfg, func() error { return nil }, nil
	}
	name := fmt.Sprintf("slt_%d_%d", os.Getpid(), r.spare.Add(1))
	create, drop := "CREATE SCHEMA "+name, []string{"DROP SCHEMA " + name + " CASCADE"}
	if cfg.Isolation == OwnDatabase {
		create = "CREATE DATABASE " + name
		// Servers before PostgreSQL 13 have no FORCE.
		drop = []string{"DROP DATABASE " + name + " WITH (FORCE)", "DROP DATABASE " + name}
	}
	if err := admin(ctx, cfg.DSN, create); err != nil {
		return cfg, nil, fmt.Errorf("what the file has to itself: %w", err)
	}
	if cfg.Isolation == OwnDatabase {
		cfg.databaseName = name
	} else {
		cfg.schema = name
	}
	return cfg, func() error { return admin(context.WithoutCancel(ctx), r.cfg.DSN, drop...) }, nil
}

// admin runs the first of the statements that the server understands.
func admin(ctx context.Context, dsn string, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range statements {
		if _, err = conn.Exec(ctx, sql); err == nil {
			return nil
		}
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "42601" {
			break
		}
	}
	return fmt.Errorf("%s: %w", statements[0], err)
}
