// Package driver is a thin driver of the embedded engine: it opens a database, runs
// one statement at a time on a connection as a stream of raw vectors, interrupts
// safely, and feeds Arrow records in through the table function skippr_scan.
//
// Reading order: DB, Conn, Stream; Block, Source. It is the only importer of
// duckdb-go-bindings, and knows nothing of plans, tables or processes. The stock
// driver is not used: it materialises results outside the memory limit, and its
// Arrow view returns wrong columns under projection.
package driver

import (
	"fmt"
	"maps"
	"slices"

	b "github.com/duckdb/duckdb-go-bindings"
)

// DB is an in-memory database. Safe for concurrent use.
type DB struct{ db b.Database }

// Open opens a database with settings that hold for all its connections, and
// registers skippr_scan in it.
func Open(settings map[string]string) (*DB, error) {
	var config b.Config
	if b.CreateConfig(&config) == b.StateError {
		return nil, fmt.Errorf("create config: %w", ErrOutOfMemory)
	}
	defer b.DestroyConfig(&config)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if b.SetConfig(config, name, settings[name]) == b.StateError {
			return nil, fmt.Errorf("engine setting %s = %q: refused", name, settings[name])
		}
	}
	d := &DB{}
	var message string
	if b.OpenExt(":memory:", &d.db, config, &message) == b.StateError {
		return nil, fmt.Errorf("open database: %w", classify(message))
	}
	conn, err := d.Connect()
	if err == nil {
		defer conn.Close()
		err = register(conn.conn)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close closes the database, whose connections must be closed.
func (d *DB) Close() { b.Close(&d.db) }

// Connect opens a connection.
func (d *DB) Connect() (*Conn, error) {
	c := &Conn{}
	if b.Connect(d.db, &c.conn) == b.StateError {
		return nil, fmt.Errorf("connect: %w", ErrOutOfMemory)
	}
	return c, nil
}
