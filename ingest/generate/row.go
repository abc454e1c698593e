package generate

import (
	"encoding/binary"
	"strconv"
)

// epoch is the shop's first moment, 2026-01-01 00:00:00 UTC, in µs; transactions
// follow each other every step.
const (
	epoch        = 1_767_225_600_000_000
	step         = 5_000
	microsPerDay = 86_400_000_000
	// openingCents is what every account has at first.
	openingCents = 1_000_000
)

// TotalCents is the sum of all balances of both tables of accounts, at any time.
func (c Config) TotalCents() int64 { return 2 * openingCents * c.withDefaults().Accounts() }

var (
	firstNames = []string{"Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Fatou", "Goro", "Håkon", "Inés", "Jun"}
	lastNames  = []string{"Okafor", "Silva", "Müller", "Novák", "Tanaka", "O'Brien", "Larsen", "Rossi", "Kaya", "Nguyen"}
	methods    = []string{"card", "transfer", "cash", "voucher"}
	paths      = []string{"/", "/search?q=tea", "/cart", "/p/42", "/account", "/checkout"}
	tagWords   = []string{"new", "vip", "b2b", "say \"hi\"", "eu,west"}
	nouns      = []string{"kettle", "lamp", "chair", "notebook", "scarf", "clock", "bowl"}
)

// row is the row of id as transaction n wrote it; n = 0 is the row at first.
func (s Shop) row(t Table, id, n int64) Row {
	switch t {
	case Customers:
		return s.customer(id, n)
	case Products:
		return s.product(id, n)
	case Orders:
		return s.order(id, n)
	case Payments:
		return s.payment(id, n)
	case Visits:
		return Row{
			1 + s.below(id, 50, s.cfg.Customers), paths[s.below(id, 51, int64(len(paths)))],
			Int4(s.below(id, 52, 900)), instant(id-s.cfg.Orders, 3),
		}
	case AccountsA:
		return Row{Int4(id), owner(id), Money(openingCents - s.moved(id, n))}
	default:
		return Row{Int4(id), owner(id), Money(openingCents + s.moved(id, n))}
	}
}

// moved is what transaction n leaves shifted from the first account to the second.
func (s Shop) moved(id, n int64) int64 {
	if n == 0 {
		return 0
	}
	return s.below(n, 60+id, openingCents) - openingCents/2
}

func (s Shop) customer(id, n int64) Row {
	h := s.hash(id, 10)
	first, last := firstNames[h%10], lastNames[h/10%10]
	var tags any
	if count := s.below(id+n, 11, 4); count < 3 {
		list := make([]string, count)
		for i := range list {
			list[i] = tagWords[s.below(id+n, 12+int64(i), int64(len(tagWords)))]
		}
		tags = list
	}
	profile := `{"visits": ` + strconv.FormatInt(n%1000, 10) + `, "city": "` + lastNames[h/100%10] + `"}`
	created := instant(0, id)
	if id > s.cfg.Customers {
		created = instant((id-s.cfg.Customers-1)*slots+slotPeople, 0)
	}
	return Row{
		id, first + "." + strconv.FormatInt(id, 10) + "@example.com", first + " " + last,
		h%7 != 0, Money(s.below(id+n, 16, 2_000_000) - 1_000_000), tags, profile, created, instant(n, 0),
	}
}

func (s Shop) product(id, n int64) Row {
	ratings := make([]int32, s.below(id+n, 20, 5))
	for i := range ratings {
		ratings[i] = int32(1 + s.below(n, 21+int64(i), 5))
	}
	return Row{
		sku(id, s.edition(id, n)), nouns[s.below(id, 27, int64(len(nouns)))] + " no. " + strconv.FormatInt(id, 10),
		Money(100 + s.below(id+n, 28, 100_000)), Int4(s.below(n+id, 29, 500)), ratings,
		s.uuid(id, 30), float64(s.below(id, 31, 40_000)) / 8,
	}
}

func (s Shop) order(id, n int64) Row {
	placed := id - s.cfg.Orders // the transaction that placed it; ≤ 0 when there at first
	status := "new"
	switch {
	case placed <= 0:
		status = []string{"new", "paid", "shipped"}[s.below(id, 40, 3)]
	case n%slots == slotShip:
		status = "shipped"
	case n%slots == slotPayA, n%slots == slotPayB:
		status = "paid"
	}
	items := make([]int32, 1+s.below(id, 41, 4))
	for i := range items {
		items[i] = int32(1 + s.below(id, 42+int64(i), s.cfg.Products()))
	}
	var note any
	if s.below(id, 46, 5) == 0 {
		note = "leave at the door, ring " + strconv.FormatInt(s.below(id, 47, 9), 10) + "×"
	}
	return Row{
		id, 1 + s.below(id, 48, s.cfg.Customers), status, Money(s.below(id, 49, 5_000_000)), items, note,
		s.uuid(id, 53), instant(placed, 1), instant(max(n, placed), 2),
	}
}

func (s Shop) payment(id, n int64) Row {
	order := 2 * id // at first every second order is paid
	if n > 0 {
		order = s.cfg.Orders + n - payDistance
	}
	return Row{
		id, order, Money(s.below(order, 49, 5_000_000)), methods[s.below(id, 54, int64(len(methods)))],
		Day(int64(instant(n, 0)) / microsPerDay), s.below(id, 55, 50) != 0,
	}
}

func owner(id int64) string { return "owner " + strconv.FormatInt(id, 10) }

func sku(id, edition int64) string {
	return "SKU-" + strconv.FormatInt(id, 10) + "-" + strconv.FormatInt(edition, 10)
}

// instant is the moment of transaction n; what was there before the first has
// negative n.
func instant(n, micros int64) Instant { return Instant(epoch + n*step + micros) }

func (s Shop) uuid(id, salt int64) UUID {
	var u UUID
	binary.BigEndian.PutUint64(u[:8], s.hash(id, salt))
	binary.BigEndian.PutUint64(u[8:], s.hash(id, salt+1000))
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}
