package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ddl"
)

func runDemo(ctx context.Context, args []string) error {
	c := newConfig()
	c.byName["data-dir"].value = "./data/demo"
	c.byName["log-level"].value = "warn"
	c.byName["commit-interval"].value = "10s"
	fs := newFlags("demo", "[flags]", `
Runs a server with a shop that lives: customers, orders, payments, and two balance
tables between which money moves in transactions. It shows live numbers until Ctrl-C.`)
	c.flags(fs)
	rate := fs.Int("rate", 500, "transactions a second")
	seed := fs.Int("seed", 1, "everything that is generated is a function of it")
	limit := fs.String("for", "", "stop after this long, for example 10s (default: run until Ctrl-C)")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if err := c.resolve(os.LookupEnv); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *limit != "" {
		d, err := ddl.ParseDuration(*limit)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	freeAddresses(c)
	n, err := open(ctx, c, newLogger(c))
	if err != nil {
		return err
	}
	d := &demo{node: n, log: n.log, create: fmt.Sprintf(
		"CREATE PIPELINE IF NOT EXISTS shop FROM GENERATOR (SEED %d, RATE %d, SCALE 10) WITH (commit_interval = '10s')", *seed, *rate)}
	shown := make(chan error, 1)
	go func() { shown <- d.show(ctx) }()
	err = n.run(ctx)
	if e := <-shown; e != nil && ctx.Err() == nil {
		err = errors.Join(err, e)
	}
	if err == nil {
		fmt.Printf("\nThe demo has stopped. Its data is in %s; run it again to go on, or read the lake with any Iceberg reader.\n", c.get("data-dir"))
	}
	return err
}

// freeAddresses takes the next free ports when the default ones are in use, so that the
// demo also runs beside a PostgreSQL.
func freeAddresses(c *config) {
	for _, name := range []string{"listen", "http"} {
		s := c.byName[name]
		if s.origin != "default" {
			continue
		}
		l, err := net.Listen("tcp", s.value)
		if err != nil {
			if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				continue // opening says what is wrong
			}
			s.value = l.Addr().String()
		}
		_ = l.Close() // it was only a try
	}
}

// demo is the client side of the demo.
type demo struct {
	node   *node
	log    *slog.Logger
	create string
	drawn  int
}

// psqlLine is the command a person pastes.
func (d *demo) psqlLine() string {
	host, port, _ := net.SplitHostPort(d.node.listener.Addr().String())
	return fmt.Sprintf("psql \"host=%s port=%s user=postgres dbname=%s\"", host, port, d.node.cfg.get("database"))
}

// show makes the pipeline and draws its numbers once a second.
func (d *demo) show(ctx context.Context) error {
	host, port, _ := net.SplitHostPort(d.node.listener.Addr().String())
	url := fmt.Sprintf("host=%s port=%s user=postgres dbname=%s sslmode=disable", host, port, d.node.cfg.get("database"))
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.PgConn().Exec(ctx, d.create).ReadAll(); err != nil {
		return fmt.Errorf("create pipeline: %w", err)
	}
	terminal := isTerminal(os.Stdout)
	for round := 0; ; round++ {
		lines, err := d.lines(ctx, conn)
		if ctx.Err() != nil {
			return nil // the end of the demo
		}
		if err != nil {
			return err
		}
		d.draw(lines, terminal, round)
		if err := d.node.clock.Sleep(ctx, time.Second); err != nil {
			return nil // the end of the demo
		}
	}
}

// plainEvery is how many seconds pass between reports where there is no terminal.
const plainEvery = 5

func (d *demo) draw(lines []string, terminal bool, round int) {
	if !terminal {
		if round%plainEvery == 0 {
			fmt.Println(strings.Join(lines, "\n"))
		}
		return
	}
	var b strings.Builder
	if d.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", d.drawn)
	}
	for _, l := range lines {
		b.WriteString("\x1b[2K" + l + "\n")
	}
	fmt.Print(b.String())
	d.drawn = len(lines)
}

const demoTables = `SELECT table_name, state, inserts + updates + deletes, live_rows, lake_rows
	FROM pg_stat_pipeline_table WHERE pipeline = 'shop' ORDER BY 1`

const demoPipeline = `SELECT state, round(rows_per_second)::int8, round(lag_seconds::numeric, 3), transactions FROM pg_stat_pipeline WHERE pipeline = 'shop'`

const demoBalance = `SELECT ((SELECT sum(balance) FROM shop.accounts_a) + (SELECT sum(balance) FROM shop.accounts_b))::text`

func (d *demo) lines(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	tables, err := query(ctx, conn, demoTables)
	if err != nil {
		return nil, err
	}
	out := []string{"", fmt.Sprintf("%-14s %-10s %12s %14s %12s", "shop.", "state", "changes", "rows in log", "rows in lake")}
	for _, r := range tables[0].rows {
		out = append(out, fmt.Sprintf("%-14s %-10s %12s %14s %12s", text(r[0]), text(r[1]), text(r[2]), text(r[3]), text(r[4])))
	}
	stats, err := query(ctx, conn, demoPipeline)
	if err != nil {
		return nil, err
	}
	if len(stats[0].rows) == 1 {
		r := stats[0].rows[0]
		out = append(out, fmt.Sprintf("pipeline %s: %s rows/s, %s s behind, %s transactions", text(r[0]), text(r[1]), text(r[2]), text(r[3])))
	}
	if sum, err := query(ctx, conn, demoBalance); err == nil && len(sum[0].rows) == 1 {
		out = append(out, fmt.Sprintf("sum of both balance tables: %s (it never changes)", text(sum[0].rows[0][0])))
	}
	return append(out, "", "Try it, for example SELECT * FROM shop.orders ORDER BY id DESC LIMIT 5;", d.psqlLine()), nil
}
