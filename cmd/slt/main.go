// Command slt runs sqllogictest files against a Postgres address.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/skipprd/skipprd/sqltests/slt"
)

func main() { os.Exit(run()) }

func run() int {
	addr := flag.String("addr", "postgres://postgres@127.0.0.1:5432/lake", "server to test: URL or key=value string")
	labels := flag.String("labels", "skipprd", "comma-separated names for skipif and onlyif (postgres, postgresql, skipprd)")
	source := flag.String("source", "", "server of the connection named source, and the value of $SOURCE")
	extended := flag.Bool("extended", false, "use the extended protocol")
	system := flag.Bool("system", false, "allow 'system ok' records, which run shell commands")
	verbose := flag.Bool("v", false, "name every file and every skipped record")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: slt [flags] FILE|DIR…\n\nRuns sqllogictest files (.slt, .test) against a Postgres server.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	files, err := collect(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "slt:", err)
		return 2
	}
	if len(files) == 0 {
		flag.Usage()
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := slt.NewRunner(slt.Config{
		DSN: *addr, Source: *source, Vars: map[string]string{"SOURCE": *source},
		Labels: strings.Split(*labels, ","), Extended: *extended, System: *system,
	})
	passed, failed, skipped, records := 0, 0, 0, 0
	for _, f := range files {
		out := r.Run(ctx, f)
		records += out.Records
		skipped += len(out.Skipped)
		if *verbose {
			for _, s := range out.Skipped {
				fmt.Println("skip", s)
			}
		}
		if out.Failure != nil {
			failed++
			fmt.Printf("FAIL %s\n%v\n", f, out.Failure)
			continue
		}
		passed++
		if *verbose {
			fmt.Printf("ok   %s (%d records)\n", f, out.Records)
		}
	}
	fmt.Printf("%d records run, %d skipped\nfiles: %d passed, %d failed\n", records, skipped, passed, failed)
	if failed > 0 {
		return 1
	}
	return 0
}

// collect expands directories into the test files below them, in name order.
func collect(args []string) ([]string, error) {
	var out []string
	for _, a := range args {
		err := filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			ext := filepath.Ext(path)
			if !d.IsDir() && (path == a || ext == ".slt" || ext == ".test") {
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("find files: %w", err)
		}
	}
	slices.Sort(out)
	return out, nil
}
