package ddl

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
)

// A RESUME that comes between the two halves of a PAUSE is not undone by its second half.
func TestResumeWithinPause(t *testing.T) {
	x, f := newExecutor(t)
	err := x.Catalog.Update(t.Context(), func(txn *catalog.Txn) error {
		return txn.CreatePipeline(&catalog.Pipeline{Name: "p", Connection: "c", TargetSchema: "p", Enabled: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.stopped = func() {
		err := x.mutate(t.Context(), "p", func(p *catalog.Pipeline) error {
			p.Enabled, p.Paused = true, false
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if out := run(t, x, f, "ALTER PIPELINE p PAUSE"); !strings.HasSuffix(out, "| stop p | start p") {
		t.Error(out)
	}
}
