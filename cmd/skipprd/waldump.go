package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/skipprd/skipprd/wal"
)

// runWaldump prints what is in a segment or in the log of a pipeline. It only reads,
// so it may run beside a server.
func runWaldump(_ context.Context, args []string) error {
	fs := newFlags("waldump", "[flags] DIR|SEGMENT", `
Prints the segments, groups and slices of a log: one .seg file, a pipeline's directory
(DATA_DIR/wal/00000001), or all of them (DATA_DIR/wal). It only reads.`)
	var opts wal.DumpOptions
	fs.BoolVar(&opts.Slices, "slices", false, "list the slices of every group")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return fmt.Errorf("%w: one directory or segment is needed", errUsage)
	}
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for _, log := range logs(fs.Arg(0)) {
		if err := wal.Dump(w, log, opts); err != nil {
			return err
		}
	}
	return nil
}

// logs are the logs in a directory that has several, or path itself.
func logs(path string) []string {
	found, err := filepath.Glob(filepath.Join(path, "[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]"))
	if err != nil || len(found) == 0 {
		return []string{path}
	}
	return found
}
