package slt

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Progress prints what becomes of each file: a line per file, and on a terminal a last
// line that says what runs. Not safe for concurrent use; a Suite calls it one at a time.
type Progress struct {
	Out io.Writer
	// Files is how many there are.
	Files int
	// Terminal keeps a line of what runs at the end of the output.
	Terminal bool
	// Quiet prints only files that failed; Verbose names skipped records, too.
	Quiet, Verbose bool

	running      []string
	done, failed int
}

// Started is for Suite.Started.
func (p *Progress) Started(file string) {
	p.running = append(p.running, file)
	p.status()
}

// Done is for Suite.Done.
func (p *Progress) Done(o *Outcome) {
	if i := slices.Index(p.running, o.File); i >= 0 {
		p.running = slices.Delete(p.running, i, i+1)
	}
	p.clear()
	p.done++
	p.file(o)
	p.status()
}

func (p *Progress) file(o *Outcome) {
	st := o.Status()
	if st == Failed {
		p.failed++
	}
	if p.Verbose {
		for _, s := range o.Skipped {
			fmt.Fprintf(p.Out, "     skipped %s\n", s)
		}
	}
	if p.Quiet && st != Failed {
		return
	}
	fmt.Fprintf(p.Out, "%-4s %s (%d records", st, o.File, o.Records)
	if n := len(o.Skipped); n > 0 {
		fmt.Fprintf(p.Out, ", %d skipped", n)
	}
	if o.Rewritten > 0 {
		fmt.Fprintf(p.Out, ", %d rewritten", o.Rewritten)
	}
	fmt.Fprintf(p.Out, ", %s)\n", o.Elapsed.Round(time.Millisecond))
	if o.Rest != "" {
		fmt.Fprintf(p.Out, "     not run further: %s\n", o.Rest)
	}
	for _, err := range o.Failures {
		fmt.Fprintf(p.Out, "%v\n", err)
	}
}

// clear removes the status line, status writes it.
func (p *Progress) clear() {
	if p.Terminal {
		fmt.Fprint(p.Out, "\r\x1b[K")
	}
}

func (p *Progress) status() {
	if !p.Terminal || len(p.running) == 0 {
		return
	}
	p.clear()
	fmt.Fprintf(p.Out, "%d/%d files, %d failed, now %s", p.done, p.Files, p.failed, p.running[0])
	if n := len(p.running) - 1; n > 0 {
		fmt.Fprintf(p.Out, " and %d more", n)
	}
}

// Summary prints the totals.
func (r *Report) Summary(w io.Writer) {
	ran, skipped := r.Records()
	rewritten := 0
	for _, o := range r.Outcomes {
		rewritten += o.Rewritten
	}
	fmt.Fprintf(w, "records: %d run, %d skipped", ran, skipped)
	if rewritten > 0 {
		fmt.Fprintf(w, ", %d rewritten", rewritten)
	}
	fmt.Fprintf(w, "\nfiles: %d passed, %d failed, %d skipped in %s\n",
		r.Count(Passed), r.Count(Failed), r.Count(Skipped), r.Elapsed.Round(time.Millisecond))
}
