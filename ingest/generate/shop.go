package generate

import "github.com/skipprd/skipprd/wal/change"

// Row is a row's values in the order of the table's columns: nil, bool, Int4, int64,
// float64, string, Money, Instant, Day, UUID, []int32 or []string.
type Row []any

// Int4 is an integer, Money cents, Instant µs since 1970 UTC, Day days since 1970.
type (
	Int4    int32
	Money   int64
	Instant int64
	Day     int32
	UUID    [16]byte
)

// Change is one change of a transaction. A delete's row has its key only.
type Change struct {
	Table Table
	Op    change.Op
	Row   Row
	id    int64 // what the row is about, for State
}

// Shop is the history of a configuration. Its methods are pure.
type Shop struct{ cfg Config }

// NewShop returns the shop of a configuration; what is zero takes its default.
func NewShop(cfg Config) Shop { return Shop{cfg.withDefaults()} }

// Initial is how many rows a table has before the first transaction.
func (s Shop) Initial(t Table) int64 {
	switch t {
	case Customers:
		return s.cfg.Customers
	case Products:
		return s.cfg.Products()
	case Orders, Visits:
		return s.cfg.Orders
	case Payments:
		return s.cfg.Orders / 2
	default:
		return s.cfg.Accounts()
	}
}

// How a transaction's number decides what it does: ten slots in turn. The distances
// lead from a slot back to the order that it continues.
const (
	slots          = 10
	slotPayA       = 4 // pays the order placed payDistance before
	slotPayB       = 5
	slotShip       = 6
	slotCancel     = 7
	slotTransfer   = 8
	slotPeople     = 9
	payDistance    = 4  // slots 0 and 1
	shipDistance   = 16 // slot 0 of the ten before
	cancelDistance = 15 // slot 2 of the ten before
	rekeyEvery     = 1000
	rekeyAt        = 9
)

// Transaction appends the changes of transaction n ≥ 1 to dst; there is at least one.
func (s Shop) Transaction(dst []Change, n int64) []Change {
	start := len(dst)
	switch slot := n % slots; slot {
	case slotPayA, slotPayB:
		if n > payDistance {
			dst = s.put(dst, Orders, change.Update, s.cfg.Orders+n-payDistance, n)
			dst = s.put(dst, Payments, change.Insert, s.Initial(Payments)+n, n)
		}
	case slotShip:
		if n > shipDistance {
			dst = s.put(dst, Orders, change.Update, s.cfg.Orders+n-shipDistance, n)
		}
	case slotCancel:
		if n > cancelDistance {
			dst = s.remove(dst, Orders, s.cfg.Orders+n-cancelDistance, n)
		}
	case slotTransfer:
		dst = s.transfer(dst, n)
	case slotPeople:
		dst = s.people(dst, n)
	default:
		dst = s.put(dst, Orders, change.Insert, s.cfg.Orders+n, n)
		dst = s.put(dst, Customers, change.Update, 1+s.below(n, 1, s.cfg.Customers), n)
		if slot == 0 {
			dst = s.put(dst, Visits, change.Insert, s.Initial(Visits)+n, n)
		}
	}
	if len(dst) == start {
		dst = s.put(dst, Visits, change.Insert, s.Initial(Visits)+n, n)
	}
	return dst
}

// transfer moves money between the two accounts of one owner; now and then in two
// steps, so that one transaction changes a row twice.
func (s Shop) transfer(dst []Change, n int64) []Change {
	id := 1 + s.below(n, 2, s.cfg.Accounts())
	if s.below(n, 3, 8) == 0 {
		row := s.row(AccountsA, id, n)
		row[2] = row[2].(Money) / 2
		dst = append(dst, Change{AccountsA, change.Update, row, id})
	}
	dst = s.put(dst, AccountsA, change.Update, id, n)
	return s.put(dst, AccountsB, change.Update, id, n)
}

// people brings a customer, changes an earlier one, sees some leave, and changes a
// product, once in a thousand transactions its key.
func (s Shop) people(dst []Change, n int64) []Change {
	j := n / slots
	first := s.cfg.Customers + 1
	dst = s.put(dst, Customers, change.Insert, first+j, n)
	if j >= 2 {
		dst = s.put(dst, Customers, change.Update, first+j-2, n)
	}
	if j >= 4 && j%2 == 1 {
		dst = s.remove(dst, Customers, first+j-4, n)
	}
	if n%rekeyEvery != rekeyAt {
		return s.put(dst, Products, change.Update, 1+s.below(n, 4, s.cfg.Products()), n)
	}
	id := 1 + (n/rekeyEvery)%s.cfg.Products()
	old := Row{sku(id, s.edition(id, n-1)), nil, nil, nil, nil, nil, nil}
	dst = append(dst, Change{Products, change.Delete, old, id})
	return s.put(dst, Products, change.Insert, id, n)
}

func (s Shop) put(dst []Change, t Table, op change.Op, id, n int64) []Change {
	return append(dst, Change{t, op, s.row(t, id, n), id})
}

func (s Shop) remove(dst []Change, t Table, id, _ int64) []Change {
	row := make(Row, len(shopTables[t].columns))
	row[0] = id
	return append(dst, Change{t, change.Delete, row, id})
}

// edition counts how often the product's key has changed up to transaction n.
func (s Shop) edition(id, n int64) int64 {
	if n < rekeyAt {
		return 0
	}
	last, products := (n-rekeyAt)/rekeyEvery, s.cfg.Products()
	if last < id-1 {
		return 0
	}
	return (last-(id-1))/products + 1
}

// hash mixes the seed with two numbers (SplitMix64's finish).
func (s Shop) hash(a, b int64) uint64 {
	x := uint64(s.cfg.Seed)*0x9e3779b97f4a7c15 + uint64(a)*0xbf58476d1ce4e5b9 + uint64(b)*0x94d049bb133111eb
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// below is a number from 0 to limit-1 that depends on n and salt.
func (s Shop) below(n, salt, limit int64) int64 {
	return int64(s.hash(n, salt) % uint64(limit))
}
