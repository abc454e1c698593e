package loops

import "testing"

func TestCompaction(t *testing.T) {
	runAll(t, []scenario{{
		name: "a plain run", options: options{rows: 3}, run: func(w *world) {
			p := w.host("a").serves()
			p.caughtUp()
			w.source.load(10)
			p.caughtUp()
			_, q := p.query()
			q.ok()
		},
	}, {
		name: "query and reclaim while a compaction stands before its commit", options: options{rows: 3}, run: func(w *world) {
			p := w.host("a").serves()
			p.caughtUp()
			before := w.hold("a", "failpoint before_lake_commit")
			w.source.load(10)
			before.reach()
			_, q := p.query()
			q.ok()
			w.source.load(5)
			p.caughtUp()
			w.pass(4e9) // reclaim runs meanwhile
			_, q = p.query()
			q.ok()
			before.goOn()
		},
	}})
}
