package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/skipprd/skipprd/wal"
)

// runWaldump prints what is in a segment or in the log of a pipeline. It only reads,
// so it may run beside a server.
func runWaldump(_ context.Context, args []string) error {
	fs := newFlags("waldump", "[flags] DIR|SEGMENT", `
Prints the segments, groups and slices of a log: a pipeline's directory
(DATA_DIR/wal/00000001), or one .seg file. It only reads.`)
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
	return wal.Dump(w, fs.Arg(0), opts)
}
