package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// dumpPrologue makes what follows mean the same in every session.
const dumpPrologue = `SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
`

// dumpSettings make rows of one moment, whose text every session reads as it is.
const dumpSettings = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL DateStyle = ISO; SET LOCAL IntervalStyle = postgres;
	SET LOCAL TimeZone = 'UTC'; SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = hex`

// runDump prints the statements that make what is there, secrets without values.
func runDump(ctx context.Context, args []string) error {
	var c client
	fs := newFlags("dump", "[flags]", `Prints the statements that make all there is: roles, secrets, connections, schemas, tables of your own and what belongs
to them, pipelines, views, comments, privileges. skipprd dump | psql makes the same on another server; tables of your own
are empty then, unless --data is given. Values of secrets are never part of it, passwords of roles only if asked for.`)
	c.flags(fs)
	data := fs.Bool("data", false, "the rows of your own tables too")
	passwords := fs.Bool("role-passwords", false, "the passwords of roles too, as SCRAM verifiers; for superusers")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	conn, err := c.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	d := &dumper{conn: conn, out: bufio.NewWriter(os.Stdout), data: *data}
	if err := d.run(ctx, *passwords); err != nil {
		return err
	}
	return d.out.Flush()
}

// dumper writes a dump.
type dumper struct {
	conn *pgx.Conn
	out  *bufio.Writer
	data bool
}

func (d *dumper) run(ctx context.Context, passwords bool) error {
	if _, err := d.conn.Exec(ctx, dumpSettings); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	var sets []*table
	for _, sql := range []string{"SELECT kind, ddl FROM skippr.ddl ORDER BY ordinal", "SELECT 'password', ddl FROM skippr.role_passwords ORDER BY ordinal"} {
		found, err := query(ctx, d.conn, sql)
		if err != nil {
			return err
		}
		sets = append(sets, found[0])
	}
	statements := sets[0].rows
	last := -1 // of the tables
	for i, r := range statements {
		if text(r[0]) == "table" {
			last = i
		}
	}
	fmt.Fprint(d.out, dumpPrologue)
	roles := passwords
	for i, r := range statements {
		if roles && text(r[0]) != "role" {
			roles = false
			d.each(sets[1].rows)
		}
		d.statement(text(r[1]))
		if i == last && d.data {
			if err := d.rows(ctx); err != nil {
				return err
			}
		}
	}
	if roles {
		d.each(sets[1].rows)
	}
	return nil
}

func (d *dumper) each(rows [][]*string) {
	for _, r := range rows {
		d.statement(text(r[1]))
	}
}

// statement writes one; what has a hidden value in it cannot be run as it is.
func (d *dumper) statement(sql string) {
	if strings.Contains(sql, hiddenValue) {
		sql = "-- Put in what is hidden, then run:\n-- " + strings.ReplaceAll(sql, "\n", "\n-- ")
	}
	fmt.Fprintln(d.out, sql)
}

// rows writes those of all tables of our own.
func (d *dumper) rows(ctx context.Context) error {
	tables, err := query(ctx, d.conn, `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname),
		(SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN skippr.tables t ON t.table_schema = n.nspname AND t.table_name = c.relname AND t.pipeline = 'skippr_own'
		WHERE c.relkind = 'r' ORDER BY n.nspname, c.relname`)
	if err != nil {
		return err
	}
	for _, r := range tables[0].rows {
		if err := d.copy(ctx, text(r[0]), text(r[1])); err != nil {
			return fmt.Errorf("rows of %s: %w", text(r[0]), err)
		}
	}
	return nil
}

func (d *dumper) copy(ctx context.Context, name, columns string) error {
	fmt.Fprintf(d.out, "COPY %s (%s) FROM stdin;\n", name, columns)
	if _, err := d.conn.PgConn().CopyTo(ctx, d.out, "COPY "+name+" ("+columns+") TO STDOUT"); err != nil {
		return err
	}
	fmt.Fprint(d.out, "\\.\n")
	return nil
}

// hiddenValue stands for a secret.
var hiddenValue = quote.Text("********")
