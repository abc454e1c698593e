package wire

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rewrite writes what skipprd says into the files of gaps that there are.
var rewrite = flag.Bool("rewrite", false, "write the files of known gaps anew")

// TestWire sends the corners of the protocol to both servers and compares what comes back.
func TestWire(t *testing.T) {
	our, their := servers(t)
	g := &gaps{told: map[string]bool{}}
	ours, oursHello := login(t, our, protocol30)
	theirs, theirsHello := login(t, their, protocol30)
	ours.others, theirs.others = map[uint32]string{ours.key.ProcessID: "a"}, map[uint32]string{theirs.key.ProcessID: "a"}
	g.compare(t, "login", oursHello, theirsHello)
	for _, c := range slices.Concat(corners, scrolling(), encodings(t)) {
		b := encoded(t, c.send...)
		ours.send(b)
		theirs.send(b)
		g.compare(t, c.name, ours.read(t, c.ready, c.until), theirs.read(t, c.ready, c.until))
	}
	for _, f := range slices.Concat(fresh, freshEncodings) {
		g.compare(t, f.name, f.run(t, our), f.run(t, their))
	}
	for _, p := range pairs {
		g.compare(t, p.name, runPair(t, our, p.steps), runPair(t, their, p.steps))
	}
	g.finish(t)
}

// gaps are corners that differ from PostgreSQL, a file each: a line that says why, and
// then exactly what skipprd says.
type gaps struct{ told map[string]bool }

func gapFile(name string) string {
	return filepath.Join("testdata", "gaps", strings.NewReplacer(" ", "_", ",", "", "/", "_").Replace(name)+".txt")
}

// compare fails unless both say the same, or ours what the gap's file says.
func (g *gaps) compare(t *testing.T, name, ours, theirs string) {
	t.Helper()
	if g.told[name] {
		t.Fatalf("two corners are called %s", name)
	}
	g.told[name] = true
	text, err := os.ReadFile(gapFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		if ours != theirs {
			t.Errorf("%s: skipprd says\n%spostgresql says\n%s", name, ours, theirs)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	why, expected, _ := strings.Cut(string(text), "\n")
	if *rewrite && ours != theirs {
		if err := os.WriteFile(gapFile(name), []byte(why+"\n"+ours), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	switch {
	case ours == theirs:
		t.Errorf("%s is as PostgreSQL's by now: remove %s", name, gapFile(name))
	case ours != expected:
		t.Errorf("%s: skipprd says\n%s%s says\n%spostgresql says\n%s", name, ours, gapFile(name), expected, theirs)
	}
}

// finish fails if there is a file of no corner.
func (g *gaps) finish(t *testing.T) {
	t.Helper()
	known := map[string]bool{}
	for name := range g.told {
		known[gapFile(name)] = true
	}
	files, err := filepath.Glob(filepath.Join("testdata", "gaps", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s is of no corner", f)
		}
	}
}
