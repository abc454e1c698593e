package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/pgwire/quote"
)

func runDiscover(ctx context.Context, args []string) error {
	var c client
	fs := newFlags("discover", "[flags] PIPELINE", "Lists the tables and columns that a pipeline takes in (DISCOVER PIPELINE),\nor all that a connection offers (--connection).")
	c.flags(fs)
	connection := fs.Bool("connection", false, "the name is that of a connection")
	format := fs.String("format", "text", "text, csv or json")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return fmt.Errorf("%w: one name is needed", errUsage)
	}
	conn, err := c.connect(ctx, printNotice)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	object := "PIPELINE"
	if *connection {
		object = "CONNECTION"
	}
	tables, err := query(ctx, conn, "DISCOVER "+object+" "+quote.Name(fs.Arg(0)))
	if err != nil {
		return err
	}
	return tables[0].print(os.Stdout, *format)
}

func runSync(ctx context.Context, args []string) error {
	var c client
	fs := newFlags("sync", "[flags] PIPELINE", "Runs a pipeline until it has caught up with this moment (SYNC PIPELINE), with progress.")
	c.flags(fs)
	limit := fs.String("for", "", "run for this long instead, for example '10 min'")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return fmt.Errorf("%w: one pipeline is needed", errUsage)
	}
	name := fs.Arg(0)
	sql := "SYNC PIPELINE " + quote.Name(name)
	if *limit != "" {
		sql += " FOR " + quote.Text(*limit)
	}
	terminal := isTerminal(os.Stderr)
	notice := printNotice
	if terminal {
		notice = func(n *pgconn.Notice) {
			if n.Severity != "NOTICE" {
				printNotice(n)
			}
		}
	}
	conn, err := c.connect(ctx, notice)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	stop := func() {}
	if terminal {
		stop = watchProgress(ctx, &c, name)
	}
	tables, err := query(ctx, conn, sql)
	stop()
	if err != nil {
		return err
	}
	return tables[0].print(os.Stdout, "text")
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// watchProgress draws a bar per table on a second session until stop is called.
func watchProgress(ctx context.Context, c *client, pipeline string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := c.connect(ctx, nil)
		if err != nil {
			return
		}
		defer conn.Close(context.WithoutCancel(ctx))
		drawn := 0
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			lines, err := progressLines(ctx, conn, pipeline)
			if err == nil {
				drawn = redraw(lines, drawn)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

func redraw(lines []string, drawn int) int {
	var b strings.Builder
	if drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", drawn)
	}
	for _, l := range lines {
		b.WriteString("\x1b[2K" + l + "\n")
	}
	fmt.Fprint(os.Stderr, b.String())
	return len(lines)
}

func progressLines(ctx context.Context, conn *pgx.Conn, pipeline string) ([]string, error) {
	tables, err := query(ctx, conn, `SELECT table_schema || '.' || table_name, state, backfill_percent, backfill_rows_per_second, backfill_seconds_left
		FROM pg_stat_pipeline_table WHERE pipeline = `+quote.Text(pipeline)+` ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, r := range tables[0].rows {
		lines = append(lines, progressLine(text(r[0]), text(r[1]), number(r[2]), number(r[3]), number(r[4])))
	}
	return lines, nil
}

const barWidth = 30

func progressLine(table, state string, percent, rate, left float64) string {
	percent = min(max(percent, 0), 100)
	full := int(percent / 100 * barWidth)
	line := fmt.Sprintf("%-32.32s [%s%s] %5.1f%%", table, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), percent)
	if state == "backfill" && rate > 0 {
		line += fmt.Sprintf("  %s rows/s, %s left", si(rate), time.Duration(left*float64(time.Second)).Round(time.Second))
		return line
	}
	return line + "  " + state
}

// si renders a rate shortly: 950, 12.3k, 4.5M.
func si(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.1fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func number(s *string) float64 {
	v, _ := strconv.ParseFloat(text(s), 64)
	return v
}

// problem is one finding of doctor.
type problem struct{ what, help string }

func runDoctor(ctx context.Context, args []string) error {
	var c client
	fs := newFlags("doctor", "[flags]", "Looks at a running server for what is wrong and says what helps. Exits 1 when something is.")
	c.flags(fs)
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	conn, err := c.connect(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w\nIs the server running? 'skipprd serve --data-dir DIR' starts one", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var problems []problem
	for _, check := range []func(context.Context, *pgx.Conn) ([]problem, error){checkPipelines, checkTables} {
		found, err := check(ctx, conn)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
	}
	for _, p := range problems {
		fmt.Println("✗", p.what)
		if p.help != "" {
			fmt.Println("   ", p.help)
		}
	}
	if err := printEvents(ctx, conn); err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d to mend", len(problems))
	}
	fmt.Println("✓ no problem found")
	return nil
}

// retainedAlarm is how much a source may keep for us before doctor speaks up.
const retainedAlarm = 1 << 30

// lossAlarm is how near the loss of a slot may be before doctor speaks up.
const lossAlarm = 24 * time.Hour

func checkPipelines(ctx context.Context, conn *pgx.Conn) ([]problem, error) {
	tables, err := query(ctx, conn, "SELECT pipeline, state, reason, retained_bytes, slot_state, seconds_until_lost FROM pg_stat_pipeline ORDER BY 1")
	if err != nil {
		return nil, err
	}
	var out []problem
	for _, r := range tables[0].rows {
		name, state := text(r[0]), text(r[1])
		switch state {
		case "error":
			out = append(out, problem{fmt.Sprintf("pipeline %s cannot go on: %s", name, text(r[2])), "It retries by itself; mend the cause at the source."})
		case "paused":
			out = append(out, problem{fmt.Sprintf("pipeline %s is paused, and its slot keeps the source's log", name), "ALTER PIPELINE " + name + " RESUME;"})
		}
		if number(r[3]) > retainedAlarm {
			out = append(out, problem{fmt.Sprintf("the source keeps %.1f GiB of log for pipeline %s (slot %s)", number(r[3])/(1<<30), name, text(r[4])), "A stopped table or a paused pipeline holds it back."})
		}
		if left := number(r[5]); text(r[5]) != "" && left < lossAlarm.Seconds() {
			out = append(out, problem{
				fmt.Sprintf("the source lets go of the slot of pipeline %s in about %s", name, time.Duration(left*float64(time.Second)).Round(time.Second)),
				"Let the pipeline go on, or raise max_slot_wal_keep_size at the source.",
			})
		}
		if text(r[4]) == "lost" {
			out = append(out, problem{"the slot of pipeline " + name + " is lost", "ALTER PIPELINE " + name + " RESET; copies all tables anew."})
		}
	}
	return out, nil
}

func checkTables(ctx context.Context, conn *pgx.Conn) ([]problem, error) {
	tables, err := query(ctx, conn, "SELECT table_schema || '.' || table_name, reason, hint FROM pg_stat_pipeline_table WHERE state = 'stopped' ORDER BY 1")
	if err != nil {
		return nil, err
	}
	var out []problem
	for _, r := range tables[0].rows {
		out = append(out, problem{fmt.Sprintf("table %s is stopped: %s", text(r[0]), text(r[1])), text(r[2])})
	}
	return out, nil
}

// printEvents tells the latest errors as what was: they may be mended by now.
func printEvents(ctx context.Context, conn *pgx.Conn) error {
	tables, err := query(ctx, conn, `SELECT to_char(at, 'HH24:MI:SS'), kind, coalesce(table_name, pipeline, ''), coalesce(detail, '')
		FROM skippr.events WHERE level = 'error' AND at > now() - interval '1 hour' ORDER BY at DESC LIMIT 5`)
	if err != nil {
		return err
	}
	if len(tables[0].rows) > 0 {
		fmt.Println("Errors of the last hour, the latest first, which may be over:")
	}
	for _, r := range tables[0].rows {
		fmt.Printf("· at %s: %s %s: %.300s\n", text(r[0]), text(r[1]), text(r[2]), text(r[3]))
	}
	return nil
}
