package source

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// DB is the external system. It outlives hosts and their connections.
type DB struct {
	History
	// LSN is the newest position: of the last transaction, or idle after it.
	LSN int64
	// Healed says that texts which were refused can be taken in now; Letters is how many
	// were.
	Healed  bool
	Letters int
	// items are transactions in the order of their ends, aborted ones too.
	items []item
	slot  slot
	// published says since when the changes of a table are sent.
	published map[uint32]int64
	state     map[uint32]*contents
	// steps turn a row of the version before into one of a version; nil: they are the same.
	steps map[*Version]func(Row) Row
	now   func() time.Time
	last  uint32 // OID
	att   map[uint32]int16
}

// item is a transaction as the stream sends it.
type item struct {
	*Txn
	aborted bool
}

// slot is the replication slot; it exists when number is not zero.
type slot struct {
	number    int
	taken     int // how many there ever were
	start     int64
	confirmed int64
	// active is the connection that streams from it; nil: none does.
	active *Conn
	// exported are the rows when the slot was made.
	exported map[uint32][]Row
	ats      map[uint32]*Version
	files    map[uint32]int
}

// contents is the rows of a table, in the order in which they came in.
type contents struct {
	rows  []Row
	index map[string]int // by key, with a key
	file  int            // another after each rewrite of the table
}

// firstOID is the first of user tables.
const firstOID = 16384

// NewDB makes an empty system.
func NewDB(now func() time.Time) *DB {
	return &DB{
		state: map[uint32]*contents{}, steps: map[*Version]func(Row) Row{}, now: now, last: firstOID,
		att: map[uint32]int16{}, LSN: 100,
	}
}

// CreateTable adds a table.
func (d *DB) CreateTable(schemaName, name string, columns []Column, key ...string) *Table {
	t := &Table{OID: d.last, Schema: schemaName, Name: name}
	d.last++
	for i := range columns {
		columns[i].AttNum = d.attNum(t)
	}
	t.Versions = []*Version{{Number: 1, Columns: columns, Key: key}}
	d.Tables = append(d.Tables, t)
	d.state[t.OID] = &contents{index: map[string]int{}}
	return t
}

func (d *DB) attNum(t *Table) int16 {
	d.att[t.OID]++
	return d.att[t.OID]
}

// AddColumn, DropColumn, RenameColumn and RetypeColumn change a table's shape for the next
// transaction.
func (d *DB) AddColumn(t *Table, c Column) {
	c.AttNum = d.attNum(t)
	d.alter(t, func(v *Version) { v.Columns = append(v.Columns, c) }, func(r Row) Row { return append(slices.Clone(r), nil) })
}

// DropColumn takes the i-th column out.
func (d *DB) DropColumn(t *Table, i int) {
	d.alter(t, func(v *Version) { v.Columns = slices.Delete(v.Columns, i, i+1) },
		func(r Row) Row { return slices.Delete(slices.Clone(r), i, i+1) })
}

// RenameColumn renames the i-th column.
func (d *DB) RenameColumn(t *Table, i int, name string) {
	d.alter(t, func(v *Version) {
		for k, key := range v.Key {
			if key == v.Columns[i].Name {
				v.Key[k] = name
			}
		}
		v.Columns[i].Name = name
	}, nil)
}

// RetypeColumn gives the i-th column another type.
func (d *DB) RetypeColumn(t *Table, i int, to schema.Type, oid uint32) {
	d.alter(t, func(v *Version) { v.Columns[i].Type, v.Columns[i].OID = to, oid }, func(r Row) Row {
		r = slices.Clone(r)
		r[i] = Convert(r[i], to)
		return r
	})
	d.state[t.OID].file++
}

// Convert is what a column's value becomes when the column gets another type: a text that
// becomes a number is its length.
func Convert(v any, to schema.Type) any {
	if text, ok := v.(string); ok && to.Kind == schema.Int64 {
		return int64(len(text))
	}
	return v
}

func (d *DB) alter(t *Table, change func(*Version), rows func(Row) Row) {
	old := t.Current()
	v := &Version{Number: old.Number + 1, Columns: slices.Clone(old.Columns), Key: slices.Clone(old.Key), WholeRow: old.WholeRow}
	change(v)
	d.Reshape(t, v, rows)
}

// Reshape gives a table its next version: rows turns one of the version before into one of it;
// nil: they are the same.
func (d *DB) Reshape(t *Table, v *Version, rows func(Row) Row) {
	t.Versions = append(t.Versions, v)
	d.steps[v] = rows
	if rows == nil {
		return
	}
	c := d.state[t.OID]
	for i := range c.rows {
		c.rows[i] = rows(c.rows[i])
	}
}

// Upgrade is a row of a version in the shape that its table has now.
func (d *DB) Upgrade(t *Table, from *Version, r Row) Row {
	for _, v := range t.Versions[from.Number:] {
		if step := d.steps[v]; step != nil {
			r = step(r)
		}
	}
	return r
}

// Rows are a table's rows now. They must not be changed.
func (d *DB) Rows(t *Table) []Row { return d.state[t.OID].rows }

// Find returns the row with a key.
func (d *DB) Find(t *Table, r Row) (Row, bool) {
	c := d.state[t.OID]
	i, ok := c.index[keyOf(t.Current(), r)]
	if !ok {
		return nil, false
	}
	return c.rows[i], true
}

func keyOf(v *Version, r Row) string {
	b := make([]byte, 0, 24)
	for _, i := range v.KeyIndexes() {
		b = AppendValue(b, r[i])
		b = append(b, 0)
	}
	return string(b)
}

// SameRow says whether two rows of one version are equal, nulls and NaNs like themselves.
func SameRow(a, b Row) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool { return string(AppendValue(nil, x)) == string(AppendValue(nil, y)) })
}

// AppendValue renders a value: equal values alike, others differently.
func AppendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "NULL"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case string:
		return strconv.AppendQuote(b, v)
	case []byte:
		return append(strconv.AppendQuote(append(b, 'x'), string(v)), ';')
	}
	return fmt.Append(b, v)
}

// Commit applies changes as one transaction, which commits at the next LSN. Huge ones are
// sent in parts where the receiver wants that.
func (d *DB) Commit(changes []Change, huge bool) *Txn {
	d.LSN++
	t := &Txn{LSN: d.LSN, CommittedAt: d.now(), Changes: changes, Huge: huge}
	for i := range changes {
		d.apply(&changes[i])
	}
	d.Txns = append(d.Txns, t)
	d.items = append(d.items, item{Txn: t})
	return t
}

// Own makes the system one that has what clients commit here: CommitAt adds to it, Confirm is
// told what was acknowledged, and nothing is sent from it.
func (d *DB) Own() { d.LSN, d.slot = 0, slot{number: 1, taken: 1} }

// CommitAt applies changes as one transaction, which has committed at an LSN greater than any
// before.
func (d *DB) CommitAt(lsn int64, changes []Change) {
	d.LSN = lsn - 1
	d.Commit(changes, false)
}

// Confirm is told an LSN that was acknowledged.
func (d *DB) Confirm(lsn int64) { d.slot.confirmed = max(d.slot.confirmed, lsn) }

// AddTable adds a table that has a number already.
func (d *DB) AddTable(t *Table) {
	d.Tables = append(d.Tables, t)
	d.state[t.OID] = &contents{index: map[string]int{}}
}

// Abort sends changes that never become visible. They must fit to the present rows.
func (d *DB) Abort(changes []Change) {
	d.LSN++
	d.items = append(d.items, item{Txn: &Txn{LSN: d.LSN, CommittedAt: d.now(), Changes: changes, Huge: true}, aborted: true})
}

// Idle moves the newest position without a transaction of ours.
func (d *DB) Idle() { d.LSN++ }

func (d *DB) apply(c *Change) {
	s := d.state[c.Table.OID]
	if c.Truncate {
		*s = contents{index: map[string]int{}, file: s.file + 1}
		return
	}
	keyed := len(c.Version.Key) > 0
	if c.Old != nil && keyed {
		key := keyOf(c.Version, c.Old)
		i := s.index[key]
		last := len(s.rows) - 1
		if i != last {
			s.rows[i] = s.rows[last]
			s.index[keyOf(c.Version, s.rows[i])] = i
		}
		s.rows = s.rows[:last]
		delete(s.index, key)
	}
	if c.Old != nil && !keyed {
		old := d.Upgrade(c.Table, c.Version, c.Old)
		i := slices.IndexFunc(s.rows, func(r Row) bool { return SameRow(r, old) })
		s.rows = slices.Delete(slices.Clone(s.rows), i, i+1)
	}
	if c.New != nil {
		if keyed {
			s.index[keyOf(c.Version, c.New)] = len(s.rows)
		}
		s.rows = append(s.rows, d.Upgrade(c.Table, c.Version, c.New))
	}
}

// snapshot is the rows of all tables now.
func (d *DB) snapshot() (map[uint32][]Row, map[uint32]*Version) {
	rows, ats := map[uint32][]Row{}, map[uint32]*Version{}
	for _, t := range d.Tables {
		rows[t.OID] = slices.Clone(d.state[t.OID].rows)
		ats[t.OID] = t.Current()
	}
	return rows, ats
}

// Confirmed is what was acknowledged on the slot, Start where it began, and number which
// slot it is: 0 when there is none.
func (d *DB) Confirmed() (confirmed, start int64, number int) {
	return d.slot.confirmed, d.slot.start, d.slot.number
}

// DropSlot loses the slot, as an administrator does.
func (d *DB) DropSlot() { d.slot.number = 0 }

func (d *DB) createSlot() {
	d.slot.taken++
	rows, ats := d.snapshot()
	d.slot = slot{
		number: d.slot.taken, taken: d.slot.taken, start: d.LSN, confirmed: d.LSN, exported: rows, ats: ats,
		files: d.files(),
	}
}

// files are the numbers of the files that tables have now.
func (d *DB) files() map[uint32]int {
	out := map[uint32]int{}
	for oid, c := range d.state {
		out[oid] = c.file
	}
	return out
}

// Position is the position of an LSN.
func Position(lsn int64) change.Position { return change.Position(strconv.FormatInt(lsn, 10)) }

// LSN is that of a position, 0 for the empty one.
func LSN(p change.Position) int64 {
	n, _ := strconv.ParseInt(string(p), 10, 64)
	return n
}
