// Command skipprd keeps an open lake fresh and speaks the Postgres protocol: one
// binary that is the server and, by its other subcommands, a thin client of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
)

// command is a subcommand. run gets its arguments without the name.
type command struct {
	name   string
	args   string // for the usage line
	help   string // one line
	hidden bool
	run    func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{name: "serve", args: "[flags]", help: "run the server", run: runServe},
		{name: "demo", args: "[flags]", help: "run the server with a shop that lives, and show live numbers", run: runDemo},
		{name: "discover", args: "[flags] PIPELINE", help: "list the tables and columns that a pipeline takes in", run: runDiscover},
		{name: "sync", args: "[flags] PIPELINE", help: "run a pipeline until it has caught up, with progress", run: runSync},
		{name: "query", args: "[flags] SQL", help: "run statements and print their rows", run: runQuery},
		{name: "schema", args: "[flags] [TABLE]", help: "list tables, or the columns of one", run: runSchema},
		{name: "dump", args: "[flags]", help: "print the statements that make all connections and pipelines", run: runDump},
		{name: "doctor", args: "[flags]", help: "look for what is wrong and say what helps", run: runDoctor},
		{name: "waldump", args: "[flags] DIR|SEGMENT", help: "print what is in a log", run: runWaldump},
		{name: "sim", args: "[flags]", help: "run the product in a simulated world with faults: replay a seed, or try many", run: runSim},
		{name: "slt", args: "[flags] FILE|DIRECTORY…", help: "run sqllogictest files against any Postgres address", run: runSlt},
		{name: "config", args: "[flags]", help: "print the effective settings and where each comes from", run: runConfig},
		{name: "healthcheck", args: "[flags]", help: "exit 0 when the server is ready", run: runHealthcheck},
		{name: "version", help: "print the version", run: runVersion},
		{name: "engine-worker", hidden: true, run: runEngineWorker},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// dispatch runs the subcommand and returns the exit code: 0 done, 1 failed, 2 misused.
func dispatch(ctx context.Context, args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return 2
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		usage(os.Stdout)
		return 0
	case "-v", "--version":
		args[0] = "version"
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		err := c.run(ctx, args[1:])
		switch {
		case err == nil || errors.Is(err, flag.ErrHelp):
			return 0
		case errors.Is(err, errUsage):
			fmt.Fprintln(os.Stderr, "skipprd "+c.name+":", err)
			return 2
		}
		fmt.Fprintln(os.Stderr, "skipprd "+c.name+":", describeError(err))
		return 1
	}
	fmt.Fprintf(os.Stderr, "skipprd: unknown command %q\n\n", args[0])
	usage(os.Stderr)
	return 2
}

var errUsage = errors.New("wrong use")

func usage(w *os.File) {
	fmt.Fprint(w, `skipprd keeps an open lake fresh and speaks the Postgres protocol.

usage: skipprd COMMAND [flags]

`)
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(w, "  %-12s %s\n", c.name, c.help)
		}
	}
	fmt.Fprint(w, `
"skipprd COMMAND --help" says more. A first session:

  skipprd serve --data-dir ./data &
  psql "host=127.0.0.1 port=5432 user=postgres dbname=lake"
  lake=# CREATE PIPELINE shop FROM POSTGRES 'postgres://user@host/shop' FOR ALL TABLES;
  lake=# SELECT count(*) FROM shop.orders;
`)
}

// newFlags makes the flag set of a subcommand with its usage text.
func newFlags(name, args, text string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "usage: skipprd %s %s\n\n%s\n\nflags:\n", name, args, strings.TrimSpace(text))
		fs.PrintDefaults()
	}
	return fs
}

// parseFlags parses args; a wrong flag is errUsage, since the flag package has said
// what is wrong already.
func parseFlags(fs *flag.FlagSet, args []string) error {
	err := fs.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return fmt.Errorf("%w: %w", errUsage, err)
}

// version is set by the linker: -X main.version=….
var version = ""

// buildVersion is the version of this binary.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}

func runVersion(_ context.Context, _ []string) error {
	fmt.Println("skipprd", buildVersion())
	return nil
}
