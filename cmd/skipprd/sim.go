package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/wal/mutant"
)

// simFlags are those of "skipprd sim".
type simFlags struct {
	seed, count  uint64
	ops, mode    string
	records      int
	hours        float64
	verbose      bool
	marks        bool
	mutants      bool
	scripts      string
	showSchedule bool
	shrink       time.Duration
	found        string
}

// runSim replays one schedule and prints what happens, or runs many.
func runSim(ctx context.Context, args []string) error {
	var f simFlags
	set := flag.NewFlagSet("sim", flag.ContinueOnError)
	set.Uint64Var(&f.seed, "seed", 0, "seed of the schedule, or of the first of -n")
	set.Uint64Var(&f.count, "n", 0, "run this many schedules instead of printing one")
	set.StringVar(&f.ops, "ops", "", "file with a schedule to replay instead of a seed's")
	set.StringVar(&f.mode, "mode", "disk", "where the log is: disk, or store (an object store, with several hosts)")
	set.IntVar(&f.records, "records", 0, "records of a schedule (0: the seed decides)")
	set.Float64Var(&f.hours, "hours", 0, "run schedules for this many hours")
	set.BoolVar(&f.verbose, "v", false, "print every exchange of a replay")
	set.BoolVar(&f.showSchedule, "script", false, "print the schedule of the seed and do not run it")
	set.DurationVar(&f.shrink, "shrink", 0, "make a schedule that fails small, for at most this long, and save it")
	set.StringVar(&f.found, "found", "sqltests/sim/testdata/found", "where -shrink saves it")
	set.BoolVar(&f.marks, "marks", false, "print the share of the schedules that hit each coverage mark")
	set.BoolVar(&f.mutants, "mutants", false, "look for deliberate bugs, too (a build with the tag mutants)")
	set.StringVar(&f.scripts, "scripts", "sqltests/sim/testdata/scripts", "where the named scripts are, which some of those bugs need")
	if err := set.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if set.NArg() > 0 || f.mode != "disk" && f.mode != "store" {
		return fmt.Errorf("%w: sim takes flags only, and the modes disk and store", errUsage)
	}
	if f.count > 0 || f.hours > 0 {
		return f.campaign(ctx)
	}
	if f.shrink > 0 {
		return f.shrinkSchedule(ctx)
	}
	return f.replay()
}

// shrinkSchedule makes a failing schedule small and saves it where tests run it ever after.
func (f *simFlags) shrinkSchedule(ctx context.Context) error {
	s, err := f.schedule()
	if err != nil {
		return err
	}
	s.Store = s.Store || f.mode == "store"
	ctx, cancel := context.WithTimeout(ctx, f.shrink)
	defer cancel()
	small, v, err := sim.Shrink(ctx, sim.Config{Schedule: s})
	if err != nil {
		return err
	}
	text := sim.FormatSchedule(small)
	path := filepath.Join(f.found, sim.FoundName(v, small))
	if err := os.MkdirAll(f.found, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s%d records became %d; saved as %s\n", text, len(s.Records), len(small.Records), path)
	return v
}

func (f *simFlags) schedule() (script.Schedule, error) {
	switch {
	case f.ops == "" && f.mode == "store":
		return script.GenerateStore(f.seed, f.records), nil
	case f.ops == "":
		return script.Generate(f.seed, f.records), nil
	}
	file, err := os.Open(f.ops)
	if err != nil {
		return script.Schedule{}, err
	}
	defer file.Close()
	s, err := sim.ReadSchedule(file)
	if err != nil {
		return s, fmt.Errorf("%s: %w", f.ops, err)
	}
	return s, nil
}

// replay runs one schedule with its trace.
func (f *simFlags) replay() error {
	s, err := f.schedule()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if f.showSchedule {
		_, err := io.WriteString(out, sim.FormatSchedule(s))
		return err
	}
	cfg := sim.Config{Schedule: s, Store: f.mode == "store", Trace: out, Verbose: f.verbose}
	r, err := sim.Run(cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "trace %016x, %d exchanges, %d steps\n", r.TraceHash, r.Points, r.Steps)
	if r.Violation != nil {
		return r.Violation
	}
	return nil
}

// campaign runs many schedules.
func (f *simFlags) campaign(ctx context.Context) error {
	if f.hours > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.hours*float64(time.Hour)))
		defer cancel()
		if f.count == 0 {
			f.count = math.MaxUint64 - f.seed
		}
	}
	c := sim.Campaign{
		From: f.seed, Count: f.count, Records: f.records, Store: f.mode == "store",
		Parallel: runtime.GOMAXPROCS(0), RepeatEvery: 100,
	}
	told := time.Now()
	r := c.Run(ctx, func(r sim.Report) {
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Printf("%d schedules, per cpu-second %.0f, marks at zero %d\n", r.Schedules, r.PerSecond(), len(r.Zero(c.Store)))
		}
	})
	zero := r.Zero(c.Store)
	if len(zero) > 0 {
		fmt.Printf("marks at zero: %s\n", strings.Join(zero, ", "))
	}
	if r.Err != nil {
		fmt.Printf("seed %d failed: replay it with: skipprd sim -mode %s -seed %d -records %d (-shrink 1m)\n", r.Failed, f.mode, r.Failed,
			f.records)
		return fmt.Errorf("seed %d: %w", r.Failed, r.Err)
	}
	fmt.Printf("seeds %d to %d\n", f.seed, f.seed+r.Schedules-1)
	if f.marks {
		for _, name := range sim.Marks(c.Store) {
			fmt.Printf("mark %-50s %8.3f %%\n", name, 100*float64(r.Marks[name])/float64(max(1, r.Schedules)))
		}
	}
	killed, all := 0, 0
	if f.mutants {
		killed, all = f.killMutants(ctx)
	}
	fmt.Printf("schedules %d, per cpu-second %.0f, mutants %d of %d, marks at zero %d\n", r.Schedules, r.PerSecond(), killed,
		all, len(zero))
	if killed < all {
		return fmt.Errorf("%d mutants were not found", all-killed)
	}
	return nil
}

// killMutants runs schedules with each deliberate bug until an invariant breaks.
func (f *simFlags) killMutants(ctx context.Context) (killed, all int) {
	if !mutant.Enabled {
		fmt.Println("this build has no mutants: build it with -tags mutants")
		return 0, 0
	}
	for _, m := range mutant.All() {
		all++
		found, err := sim.Hunt(ctx, m, f.scripts)
		if err != nil {
			fmt.Println(err)
			continue
		}
		killed++
		fmt.Printf("mutant %q: %s by %s\n", m, found.Label, found)
	}
	return killed, all
}
