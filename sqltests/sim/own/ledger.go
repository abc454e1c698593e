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
)

// Ledger is the fate of the transactions of clients, over all lives of all hosts. The history
// of its DB are those that are durable, by their order tokens. Used by one goroutine.
type Ledger struct {
	DB *source.DB
	// Fail is told of what must not be.
	Fail func(label, detail string)
	// attempts are the transactions that were given to a log and are not known to be durable, by
	// the token that they had there.
	attempts map[int64]attempt
	durable  int64
	// tables are those that there ever were, by number.
	tables map[uint32]*source.Table
	// there says of tables that come and go whether they do exist; not known when missing.
	there map[string]bool
	// defining are the statements under way that make or drop them, and begun how many ever were.
	defining, begun int
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
}

// NewLedger makes the ledger of a system without transactions.
func NewLedger(db *source.DB, fail func(label, detail string)) *Ledger {
	db.Own()
	return &Ledger{
		DB: db, Fail: fail, attempts: map[int64]attempt{}, tables: map[uint32]*source.Table{}, there: map[string]bool{spare: false},
	}
}

// Learn takes in the tables of a catalog.
func (l *Ledger) Learn(c *catalog.Catalog) {
	snap := c.Snapshot()
	defer snap.Close()
	for _, t := range snap.AllTables() {
		l.table(t)
	}
}

// table is the table of a catalog's.
func (l *Ledger) table(of *catalog.Table) *source.Table {
	if t := l.tables[of.SourceOID]; t != nil {
		return t
	}
	v := &source.Version{Number: 1, WholeRow: !of.Current.HasKey()}
	for _, f := range of.Current.Fields {
		v.Columns = append(v.Columns, source.Column{Name: f.Name, AttNum: f.AttNum, Type: f.Type, OID: f.OID, TypMod: f.TypMod})
	}
	for _, id := range of.Current.Key {
		v.Key = append(v.Key, of.Current.Fields[of.Current.Index(id)].Name)
	}
	t := &source.Table{OID: of.SourceOID, Schema: of.Schema, Name: of.Name, Versions: []*source.Version{v}}
	l.tables[t.OID] = t
	l.DB.AddTable(t)
	return t
}

// Shape is how a table of a name looks, whether or not there is one now; nil: nobody knows.
func (l *Ledger) Shape(name string) *source.Table {
	if name == spare {
		name = spareLike
	}
	for _, t := range l.DB.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// spareLike is the table that looks as the spare one does.
const spareLike = "ints"

// deliver notes that a transaction was given to a log as a whole. One of a later epoch takes
// the place of an earlier one's: who writes later has read what the log had.
func (l *Ledger) deliver(epoch segment.Epoch, token int64, t *Txn) {
	if had, ok := l.attempts[token]; !ok || had.epoch <= epoch {
		l.attempts[token] = attempt{epoch, t}
	}
}

// begin says that the log of an epoch ends at a token: what it was given beyond is not in it,
// and never will be.
func (l *Ledger) begin(epoch segment.Epoch, at int64) {
	l.Durable(at)
	for token, a := range l.attempts {
		if token > at && a.epoch <= epoch {
			delete(l.attempts, token)
		}
	}
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
		case a.txn.refused:
			l.Fail(labelCommit, fmt.Sprintf("transaction %d is durable, and its client was told that nothing of it takes place", token))
		case a.txn.lsn != 0:
			l.Fail(labelCommit, fmt.Sprintf("transaction %d became durable again as %d", a.txn.lsn, token))
		}
		l.fits(token, a.txn)
		a.txn.lsn = token
		l.DB.CommitAt(token, a.txn.changes)
	}
}

// fits makes sure that a transaction finds the rows that it was made for: what it has seen of a
// table is what there was until its own commit.
func (l *Ledger) fits(token int64, t *Txn) {
	rows := map[*source.Table][]source.Row{}
	for i := range t.changes {
		c := &t.changes[i]
		had, known := rows[c.Table]
		if !known {
			had = l.DB.Rows(c.Table)
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
