package own

import (
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// The labels of what a client was told wrongly.
const (
	// labelCommit: a commit is durable, once and for ever, if its client was told so, and never
	// if its client was told that it is not.
	labelCommit = "A3"
	// labelAnswer: a statement's answer is that of a naive execution.
	labelAnswer = "K1"
	// labelValue: a value of a sequence is given once, and those behind setval are the next ones.
	labelValue = "V1"
	// labelUnique: no two rows have a value that is to be unique.
	labelUnique = "U1"
	// labelForeign: no row refers to one that is not there.
	labelForeign = "I1"
	// labelLocked: rows that a transaction has locked are as it saw them until its commit.
	labelLocked = "K2"
)

// Ledger is the fate of the transactions of clients, over all lives of all hosts. The history
// of its DB are those that are durable, by their order tokens. Used by one goroutine.
type Ledger struct {
	DB *source.DB
	// Fail is told of what must not be.
	Fail func(label, detail string)
	// Held is the greatest token of a transaction that a catalog's has committed.
	Held int64
	// attempts are the transactions that were given to a log and are not known to be durable, by
	// the token that they had there.
	attempts map[int64]attempt
	durable  int64
	// reign is the newest epoch that is known to have read its log.
	reign segment.Epoch
	// tables are those that there ever were, by number.
	tables map[uint32]*source.Table
	// there says of tables that come and go whether they do exist; not known when missing.
	there map[string]bool
	// making are the statements under way that make or drop them, and begun how many ever were.
	making, begun int
	// definitions are those that a catalog that counts was seen with, seen at which moment of
	// which, and defining the transactions that may yet change them.
	definitions definitions
	seen        seenCatalog
	defining    []*Txn
	sequence    sequenceFate
}

// attempt is a transaction under way into the log of an epoch.
type attempt struct {
	epoch segment.Epoch
	txn   *Txn
}

// Txn is a client's transaction.
type Txn struct {
	changes []source.Change
	// token is the last that a store gave it.
	token int64
	// lsn is where it became durable, 0 while it is not known to be.
	lsn int64
	// refused: its client was told that nothing of it takes place.
	refused bool
	// edits are what it changes of definitions, in order; done: they are there.
	edits []edit
	done  bool
	// so: they were so before, at a moment since it may be committed.
	so bool
	// held: its rows become visible with the definitions, in a transaction of the catalog.
	held bool
	// server is where it is committed.
	server *Server
	// locked are the rows that it has locked, in order.
	locked []lockedRows
}

// rows are rows of a table after what a transaction has done; changes: also to rows.
func (t *Txn) rows(table *source.Table, rows []source.Row, changes bool) []source.Row {
	edits := t.edits
	step := func(at int) {
		for ; len(edits) > 0 && edits[0].at <= at; edits = edits[1:] {
			if e := edits[0]; e.table == table && e.step != nil {
				out := make([]source.Row, len(rows))
				for i, r := range rows {
					out[i] = e.step(r)
				}
				rows = out
			}
		}
	}
	for i := range t.changes {
		step(i)
		if changes {
			rows = apply(table, rows, t.changes[i:i+1])
		}
	}
	step(len(t.changes))
	return rows
}

// NewLedger makes the ledger of a system without transactions.
func NewLedger(db *source.DB, fail func(label, detail string)) *Ledger {
	db.Own()
	return &Ledger{
		DB: db, Fail: fail, attempts: map[int64]attempt{}, tables: map[uint32]*source.Table{}, there: map[string]bool{spare: false},
		sequence: sequenceFate{given: map[int64]bool{}},
	}
}

// Learn takes in what the catalog of all hosts has at first.
func (l *Ledger) Learn(c *catalog.Catalog) {
	snap := c.Snapshot()
	defer snap.Close()
	for _, t := range snap.AllTables() {
		l.table(t)
	}
	l.definitions = definitionsOf(snap)
}

// table is the table of a catalog's.
func (l *Ledger) table(of *catalog.Table) *source.Table {
	if t := l.tables[of.SourceOID]; t != nil {
		return t
	}
	t := &source.Table{OID: of.SourceOID, Schema: of.Schema, Name: of.Name, Versions: []*source.Version{versionOf(of, 1)}}
	l.tables[t.OID] = t
	l.DB.AddTable(t)
	return t
}

// versionOf is the version of a table of a catalog's.
func versionOf(of *catalog.Table, number int) *source.Version {
	v := &source.Version{Number: number, WholeRow: !of.Current.HasKey()}
	for _, f := range of.Current.Fields {
		v.Columns = append(v.Columns, source.Column{Name: f.Name, AttNum: f.AttNum, Type: f.Type, OID: f.OID, TypMod: f.TypMod})
	}
	for _, id := range of.Current.Key {
		v.Key = append(v.Key, of.Current.Fields[of.Current.Index(id)].Name)
	}
	return v
}

// rows are the rows of a table, which may be one that is not made yet.
func (l *Ledger) rows(t *source.Table) []source.Row {
	if t.OID == 0 {
		return nil
	}
	return l.DB.Rows(t)
}

// spareVersion is how the spare table looks when it is made.
func (l *Ledger) spareVersion() *source.Version {
	for _, t := range l.DB.Tables {
		if t.Name == spareLike {
			return t.Versions[0]
		}
	}
	return nil
}

// spareLike is the table that looks as the spare one does.
const spareLike = "ints"

// deliver notes that a transaction was given to a log as a whole. One of a later epoch takes
// the place of an earlier one's: who writes later has read what the log had, and nothing that an
// earlier one is given from then on is in it.
func (l *Ledger) deliver(epoch segment.Epoch, token int64, t *Txn) {
	if epoch < l.reign {
		return
	}
	if had, ok := l.attempts[token]; !ok || had.epoch <= epoch {
		l.attempts[token] = attempt{epoch, t}
	}
}

// begin says that the log of an epoch ends at a token: what it was given beyond is not in it,
// and never will be.
func (l *Ledger) begin(epoch segment.Epoch, at int64) {
	l.Durable(at)
	l.reign = max(l.reign, epoch)
	for token, a := range l.attempts {
		if token > at && a.epoch <= epoch {
			delete(l.attempts, token)
		}
	}
	l.defining = slices.DeleteFunc(l.defining, func(t *Txn) bool { return t.server == nil || !t.server.hooks.Alive() })
}

// Durable says that the log has everything up to a token.
func (l *Ledger) Durable(to int64) {
	for ; l.durable < to; l.durable++ {
		token := l.durable + 1
		a, ok := l.attempts[token]
		if !ok {
			continue // it was given up in the stream
		}
		delete(l.attempts, token)
		switch {
		case a.txn.refused && len(a.txn.edits) == 0: // rows of drafts may stay, which nobody sees
			l.Fail(labelCommit, fmt.Sprintf("transaction %d is durable, and its client was told that nothing of it takes place", token))
		case a.txn.lsn != 0:
			l.Fail(labelCommit, fmt.Sprintf("transaction %d became durable again as %d", a.txn.lsn, token))
		}
		l.enter(token, a.txn)
	}
}

// enter puts a transaction into the history.
func (l *Ledger) enter(token int64, t *Txn) {
	l.fits(token, t)
	l.lockKept(token, t)
	t.lsn = token
	l.reshape(t, !t.done)
	l.DB.CommitAt(token, t.settled())
	for _, c := range t.settled() {
		if d := l.definitions[c.Table.Name]; repeated(l.rows(c.Table), uniquesIn(d, c.Table.Current())) {
			l.Fail(labelUnique, fmt.Sprintf("after transaction %d table %s has a value of %s twice: %q", token, c.Table.Name, d.unique, l.rows(c.Table)))
			break
		}
	}
	l.whole(token, t.settled())
}

// fits makes sure that a transaction finds the rows that it was made for: what it has seen of a
// table is what there was until its own commit.
func (l *Ledger) fits(token int64, t *Txn) {
	rows := map[*source.Table][]source.Row{}
	edits := t.edits
	dropped := func(of *source.Table) bool {
		return slices.ContainsFunc(t.edits, func(e edit) bool { return e.dropped != nil && e.dropped == of })
	}
	for i := range t.changes {
		c := &t.changes[i]
		if dropped(c.Table) {
			continue
		}
		for ; len(edits) > 0 && edits[0].at <= i; edits = edits[1:] {
			if e := edits[0]; e.step != nil && !dropped(e.table) {
				if _, known := rows[e.table]; !known {
					rows[e.table] = l.rows(e.table)
				}
				rows[e.table] = slices.Clone(rows[e.table])
				for at, r := range rows[e.table] {
					rows[e.table][at] = e.step(r)
				}
			}
		}
		had, known := rows[c.Table]
		if !known {
			had = l.rows(c.Table)
		}
		same := func(r source.Row) bool { return keyOf(c.Version, r) == keyOf(c.Version, c.New) }
		switch {
		case c.Old != nil && !slices.ContainsFunc(had, func(r source.Row) bool { return source.SameRow(r, c.Old) }):
			l.Fail(labelAnswer, fmt.Sprintf("transaction %d changes row %q of table %s, which is not there any more", token, c.Old, c.Table.Name))
		case c.Op == change.Insert && len(c.Version.Key) > 0 && slices.ContainsFunc(had, same):
			l.Fail(labelAnswer, fmt.Sprintf("transaction %d adds row %q to table %s, whose key is there", token, c.New, c.Table.Name))
		}
		rows[c.Table] = apply(c.Table, had, t.changes[i:i+1])
	}
}

// Refused and committed are what a client is told of a transaction.
func (l *Ledger) refuse(t *Txn) {
	t.refused = true
	if t.lsn != 0 {
		l.Fail(labelCommit, fmt.Sprintf("transaction %d is durable, and its client is told that nothing of it takes place", t.lsn))
	}
}

func (l *Ledger) commit(t *Txn) {
	if t.lsn == 0 {
		l.Fail(labelCommit, fmt.Sprintf("the client of transaction %d is told that it is committed, which is not durable and visible", t.token))
	}
}

// Spare says whether there may be the table that comes and goes.
func (l *Ledger) Spare() bool {
	there, known := l.there[spare]
	return there || !known
}
