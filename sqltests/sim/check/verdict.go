package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// pinFacts is a pin with what its rows must be.
type pinFacts struct {
	pin     Pin
	host    string
	admits  []admitted
	lsns    []int64
	digests []query.Digest
	// healing says that rows which were refused were coming in.
	healing bool
}

// verdict is what is wrong with the rows of a pin: the invariant that explains it best.
type verdict struct {
	label, detail string
}

// notePin asks the oracle at once, while it stands there.
func (f *facts) notePin(v *View, e PinTaken) {
	p := &pinFacts{pin: clonePin(e.Pin), host: e.Host, healing: f.healing && !f.healed}
	for i := range p.pin.Tables {
		t := p.pin.Tables[i].Table
		lsn := tableLSN(t, e.Pin.Position)
		a := f.admits(v, t)
		p.admits, p.lsns = append(p.admits, a), append(p.lsns, lsn)
		p.digests = append(p.digests, f.oracle.at(v.Source.History, a, lsn, t.Current).digest)
	}
	f.pins[e.Query] = p
}

func clonePin(p Pin) Pin {
	p.Tables = slices.Clone(p.Tables)
	return p
}

// tableLSN is where a readable table stands in a pin: with its pipeline, or where it
// stopped; and never before its own copy.
func tableLSN(t *catalog.Table, at change.Position) int64 {
	switch {
	case t.StoppedAt != "":
		at = t.StoppedAt
	case t.FrozenAt != "":
		at = t.FrozenAt
	}
	return max(source.LSN(at), source.LSN(t.Backfill.Horizon))
}

// lifeKey is a table from one beginning to the next.
type lifeKey struct {
	table      change.TableID
	generation uint32
}

// admits says which changes of a table count. A table that is not copied begins with the
// slot.
func (f *facts) admits(v *View, t *catalog.Table) admitted {
	a := admitted{oid: t.SourceOID, healed: f.healed}
	if t.Backfill.StartedAt.IsZero() {
		a.after = f.begin(v, t)
	}
	return a
}

// begin is where the slot began when the life of the table did.
func (f *facts) begin(v *View, t *catalog.Table) int64 {
	k := lifeKey{t.ID, t.Generation}
	if _, ok := f.begins[k]; !ok {
		f.begins[k] = v.Source.Start
	}
	return f.begins[k]
}

// judge compares the rows of this step's pins with the oracle.
func (f *facts) judge(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(PinExecuted)
		if !ok || x.Err != nil {
			continue
		}
		p := f.pins[x.Query]
		if p == nil || len(x.Results) != len(p.digests) {
			return fmt.Errorf("query %d: %d results of a pin that was not taken so", x.Query, len(x.Results))
		}
		for i, r := range x.Results {
			if r.Digest != p.digests[i] && !(p.healing && f.between(v, p, i, r)) {
				f.verdicts = append(f.verdicts, f.diagnose(v, p, x.Results, x.Query))
				break
			}
		}
	}
	return nil
}

// between says whether a table has all rows that were never refused, and beyond them only
// ones that were.
func (f *facts) between(v *View, p *pinFacts, i int, r *query.Result) bool {
	least, most := p.admits[i], p.admits[i]
	least.healed, most.healed = false, true
	rows := func(a admitted) []string {
		return newOracle().at(v.Source.History, a, p.lsns[i], p.pin.Tables[i].Table.Current).sorted()
	}
	got := r.Rows()
	_, missing := difference(got, rows(least))
	extra, _ := difference(got, rows(most))
	return len(missing)+len(extra) == 0
}

// of returns the verdict of a label, nil if there is none.
func (f *facts) of(label string) error {
	for _, d := range f.verdicts {
		if d.label == label {
			return fmt.Errorf("%s", d.detail)
		}
	}
	return nil
}

// diagnose finds out which invariant a wrong answer breaks. It may take its time.
func (f *facts) diagnose(v *View, p *pinFacts, results []*query.Result, number int) *verdict {
	label, texts := "", []string(nil)
	for i, r := range results {
		if r.Digest == p.digests[i] {
			continue
		}
		l, text := f.diagnoseTable(v, p, i, r)
		texts = append(texts, text)
		if label == "" {
			label = l
		}
	}
	switch {
	case label == "D1":
	case f.lostSlice(p):
		label = "P3"
	case f.torn(v, p, results):
		label = "T1"
	}
	return &verdict{label, fmt.Sprintf("query %d at %s: %s", number, p.pin.Position, strings.Join(texts, "; "))}
}

// diagnoseTable compares the rows of one table.
func (f *facts) diagnoseTable(v *View, p *pinFacts, i int, r *query.Result) (label, text string) {
	t := p.pin.Tables[i].Table
	fresh := newOracle()
	want := fresh.at(v.Source.History, p.admits[i], p.lsns[i], t.Current).sorted()
	got := r.Rows()
	extra, missing := difference(got, want)
	text = fmt.Sprintf("%s.%s as of %d has %d rows, not %d: too much %.10q, missing %.10q", t.Schema, t.Name, p.lsns[i],
		len(got), len(want), extra, missing)
	keys := keyColumnsOf(t)
	keyed := len(keys) > 0
	ever := everRows(v.Source.History, t)
	if keyed {
		for _, row := range slices.Concat(extra, missing)[:1] {
			text += "; changes of its key:" + changesOf(v.Source.History, t, p.admits[i], keyText(row, keys), keys)
		}
	}
	for n, row := range extra {
		key := keyText(row, keys)
		switch {
		case !ever[row]:
			return "D1", text + fmt.Sprintf(": no transaction ever made %q", row)
		case keyed && countKey(got, key, keys) > 1:
			return "M1", text + fmt.Sprintf(": key %q is there twice", key)
		case keyed && countKey(want, key, keys) == 0 && n == 0 && len(missing) == 0:
			return "C4", text + fmt.Sprintf(": key %q was deleted", key)
		case keyed && countKey(missing, key, keys) > 0 && f.compares(&p.pin.Tables[i]):
			return "M2", text
		case keyed && countKey(missing, key, keys) > 0:
			return "M1", text
		}
	}
	return "Q1", text
}

// changesOf tells what happened to a key.
func changesOf(h *source.History, t *catalog.Table, a admitted, key string, keys []int) string {
	var b strings.Builder
	for _, txn := range h.Txns {
		for i := range txn.Changes {
			c := &txn.Changes[i]
			if c.Table.OID != a.oid || txn.LSN <= a.after {
				continue
			}
			if c.Truncate {
				fmt.Fprintf(&b, " %d truncate", txn.LSN)
			}
			for side, row := range []source.Row{c.Old, c.New} {
				if row == nil {
					continue
				}
				if text := string(renderRow(t.Current, c.Version, row)); keyText(text, keys) == key {
					fmt.Fprintf(&b, " %d:%d%s%s", txn.LSN, i, "-+"[side:side+1], text)
				}
			}
		}
	}
	return b.String()
}

// compares says whether the table's live changes may be older than its lake rows.
func (f *facts) compares(t *PinnedTable) bool {
	return slices.ContainsFunc(t.Live, func(s catalog.Slice) bool {
		return s.Rows > 0 && s.Counts.MinToken <= t.Lake.MaxToken
	})
}

// torn says whether the tables of a pin are each as of some moment, but not of one; or
// one is as of the middle of a transaction.
func (f *facts) torn(v *View, p *pinFacts, results []*query.Result) bool {
	h := v.Source.History
	var common map[int64]bool
	for i, r := range results {
		t := p.pin.Tables[i].Table
		at := momentsOf(h, p.admits[i], t.Current, r.Digest)
		if len(at) == 0 {
			return inTransaction(h, p.admits[i], t.Current, r.Digest)
		}
		if common == nil {
			common = at
		}
		maps.DeleteFunc(common, func(lsn int64, _ bool) bool { return !at[lsn] })
	}
	return len(common) == 0
}

// momentsOf are the LSNs at which a table has those rows.
func momentsOf(h *source.History, a admitted, shape *schema.Table, want query.Digest) map[int64]bool {
	o, out := newOracle(), map[int64]bool{}
	if want == (query.Digest{}) {
		out[0] = true
	}
	for _, txn := range h.Txns {
		if o.at(h, a, txn.LSN, shape).digest == want {
			out[txn.LSN] = true
		}
	}
	return out
}

// inTransaction says whether a table has those rows between two changes of a transaction.
func inTransaction(h *source.History, a admitted, shape *schema.Table, want query.Digest) bool {
	x := &oracleTable{admitted: a, rows: map[string]*oracleRow{}, shape: shape}
	for _, txn := range h.Txns {
		for i := range txn.Changes {
			if c := &txn.Changes[i]; c.Table.OID == a.oid && txn.LSN > a.after {
				x.fold(c)
				if x.digest == want {
					return true
				}
			}
		}
	}
	return false
}

// lostSlice says whether a slice of a pin was handed to a reclaim.
func (f *facts) lostSlice(p *pinFacts) bool {
	for _, t := range p.pin.Tables {
		for i := range t.Live {
			if f.asked[segmentKey{t.Table.Pipeline, t.Live[i].Ref.Seq}] {
				return true
			}
		}
	}
	return false
}

// everRows are all rows that a table ever had, rendered under its present shape.
func everRows(h *source.History, t *catalog.Table) map[string]bool {
	out := map[string]bool{}
	for _, txn := range h.Txns {
		for i := range txn.Changes {
			if c := &txn.Changes[i]; c.Table.OID == t.SourceOID && c.New != nil {
				out[string(renderRow(t.Current, c.Version, c.New))] = true
			}
		}
	}
	return out
}

// difference returns what a has beyond b, and b beyond a. Both are sorted.
func difference(a, b []string) (extra, missing []string) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			extra, a = append(extra, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			missing, b = append(missing, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return extra, missing
}

// keyColumnsOf are the places of a table's key columns.
func keyColumnsOf(t *catalog.Table) []int {
	var out []int
	for _, id := range t.Current.Key {
		out = append(out, t.Current.Index(id))
	}
	return out
}

// keyText is the key in a rendered row.
func keyText(row string, keys []int) string {
	values := splitRow(row)
	var b strings.Builder
	for _, k := range keys {
		if k < len(values) {
			b.WriteString(values[k])
		}
		b.WriteByte('|')
	}
	return b.String()
}

// splitRow takes a rendered row apart; what is escaped stays so.
func splitRow(row string) []string {
	var out []string
	start := 0
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '|':
			out = append(out, row[start:i])
			start = i + 1
		}
	}
	return append(out, row[start:])
}

func countKey(rows []string, key string, keys []int) int {
	n := 0
	for _, r := range rows {
		if keyText(r, keys) == key {
			n++
		}
	}
	return n
}
