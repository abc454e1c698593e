package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// client is the connection flags that all client subcommands share.
type client struct{ url string }

func (c *client) flags(fs *flag.FlagSet) {
	fs.StringVar(&c.url, "url", "", "server, as a URL or key=value string [SKIPPRD_URL] (default postgres://postgres@127.0.0.1:5432/lake)")
}

// address is where the server is: flag, environment, default.
func (c *client) address() string {
	switch env := os.Getenv("SKIPPRD_URL"); {
	case c.url != "":
		return c.url
	case env != "":
		return env
	}
	return "postgres://postgres@127.0.0.1:5432/lake"
}

// connect opens a session; notices go to notice when it is not nil.
func (c *client) connect(ctx context.Context, notice func(*pgconn.Notice)) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(c.address())
	if err != nil {
		return nil, fmt.Errorf("%w: server address: %w", errUsage, err)
	}
	cfg.RuntimeParams["application_name"] = "skipprd"
	if notice != nil {
		cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notice(n) }
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// table is a result as text; nil cells are NULL.
type table struct {
	columns []string
	numeric []bool
	rows    [][]*string
	tag     string
}

// query runs sql, which may hold several statements, and returns their results.
func query(ctx context.Context, conn *pgx.Conn, sql string) ([]*table, error) {
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	var out []*table
	for _, r := range results {
		t := &table{tag: r.CommandTag.String()}
		for _, f := range r.FieldDescriptions {
			t.columns = append(t.columns, f.Name)
			t.numeric = append(t.numeric, isNumeric(f.DataTypeOID))
		}
		for _, row := range r.Rows {
			cells := make([]*string, len(row))
			for i, v := range row {
				if v != nil {
					s := string(v)
					cells[i] = &s
				}
			}
			t.rows = append(t.rows, cells)
		}
		out = append(out, t)
	}
	return out, err
}

func isNumeric(oid uint32) bool {
	switch oid {
	case 20, 21, 23, 26, 700, 701, 1700:
		return true
	}
	return false
}

// print writes t as text, csv or json.
func (t *table) print(w io.Writer, format string) error {
	switch format {
	case "csv":
		return t.printCSV(w)
	case "json":
		return t.printJSON(w)
	}
	if t.columns == nil {
		_, err := fmt.Fprintln(w, t.tag)
		return err
	}
	return t.printText(w)
}

func (t *table) printText(w io.Writer) error {
	width := make([]int, len(t.columns))
	for i, c := range t.columns {
		width[i] = len([]rune(c))
		for _, r := range t.rows {
			if r[i] != nil {
				width[i] = max(width[i], len([]rune(*r[i])))
			}
		}
	}
	var b strings.Builder
	line := func(cells []string, right []bool) {
		for i, c := range cells {
			pad := strings.Repeat(" ", width[i]-len([]rune(c)))
			if i > 0 {
				b.WriteString("|")
			}
			switch {
			case right != nil && right[i]:
				b.WriteString(" " + pad + c)
				if i < len(cells)-1 {
					b.WriteString(" ")
				}
			case i == len(cells)-1:
				b.WriteString(" " + c)
			default:
				b.WriteString(" " + c + pad + " ")
			}
		}
		b.WriteString("\n")
	}
	line(t.columns, nil)
	for i, n := range width {
		if i > 0 {
			b.WriteString("+")
		}
		b.WriteString(strings.Repeat("-", n+2))
	}
	b.WriteString("\n")
	for _, r := range t.rows {
		cells := make([]string, len(r))
		for i, c := range r {
			if c != nil {
				cells[i] = *c
			}
		}
		line(cells, t.numeric)
	}
	plural := "s"
	if len(t.rows) == 1 {
		plural = ""
	}
	_, err := fmt.Fprintf(w, "%s(%d row%s)\n", b.String(), len(t.rows), plural)
	return err
}

func (t *table) printCSV(w io.Writer) error {
	cw := csv.NewWriter(w)
	if err := cw.Write(t.columns); err != nil {
		return err
	}
	for _, r := range t.rows {
		cells := make([]string, len(r))
		for i, c := range r {
			if c != nil {
				cells[i] = *c
			}
		}
		if err := cw.Write(cells); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}

func (t *table) printJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, r := range t.rows {
		row := make(map[string]*string, len(r))
		for i, c := range r {
			row[t.columns[i]] = c
		}
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

func runQuery(ctx context.Context, args []string) error {
	var c client
	fs := newFlags("query", "[flags] SQL|-", "Runs one or more statements and prints their rows. With - the statements are read from standard input.")
	c.flags(fs)
	format := fs.String("format", "text", "text, csv or json (one object a line, values as text)")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	sql := strings.Join(fs.Args(), " ")
	if err := checkFormat(*format); err != nil {
		return err
	}
	if sql == "" {
		return fmt.Errorf("%w: a statement is needed", errUsage)
	}
	if sql == "-" {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		sql = string(text)
	}
	conn, err := c.connect(ctx, printNotice)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tables, err := query(ctx, conn, sql)
	for _, t := range tables {
		if t.columns == nil && (*format != "text" || t.tag == "") {
			continue
		}
		if err := t.print(os.Stdout, *format); err != nil {
			return err
		}
	}
	return err
}

func checkFormat(format string) error {
	if err := checkOneOf("text", "csv", "json")(format); err != nil {
		return fmt.Errorf("%w: format: %w", errUsage, err)
	}
	return nil
}

func printNotice(n *pgconn.Notice) {
	fmt.Fprintf(os.Stderr, "%s:  %s\n", n.Severity, n.Message)
	if n.Detail != "" {
		fmt.Fprintf(os.Stderr, "DETAIL:  %s\n", n.Detail)
	}
	if n.Hint != "" {
		fmt.Fprintf(os.Stderr, "HINT:  %s\n", n.Hint)
	}
}

// describeError renders a server's error with detail and hint, as psql does.
func describeError(err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err.Error()
	}
	out := fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	if e.Detail != "" {
		out += "\nDETAIL:  " + e.Detail
	}
	if e.Hint != "" {
		out += "\nHINT:  " + e.Hint
	}
	return out
}

func runSchema(ctx context.Context, args []string) error {
	var c client
	fs := newFlags("schema", "[flags] [SCHEMA.TABLE]", "Lists the tables of the lake, or the columns of one table.")
	c.flags(fs)
	format := fs.String("format", "text", "text, csv or json")
	if err := errors.Join(parseFlags(fs, args), checkFormat(*format)); err != nil {
		return err
	}
	conn, err := c.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	sql := `SELECT table_schema, table_name FROM information_schema.tables
		WHERE table_schema NOT IN ('pg_catalog', 'information_schema', 'skippr') ORDER BY 1, 2`
	if name := fs.Arg(0); name != "" {
		schema, tab, ok := strings.Cut(name, ".")
		if !ok {
			schema, tab = "%", name
		}
		sql = fmt.Sprintf(`SELECT table_schema, table_name, column_name, data_type, is_nullable FROM information_schema.columns
			WHERE table_schema LIKE %s AND table_name = %s ORDER BY table_schema, ordinal_position`, quote.Text(schema), quote.Text(tab))
	}
	tables, err := query(ctx, conn, sql)
	if err != nil {
		return err
	}
	if fs.Arg(0) != "" && len(tables[0].rows) == 0 {
		return fmt.Errorf("table %s does not exist", quote.Name(fs.Arg(0)))
	}
	return tables[0].print(os.Stdout, *format)
}
