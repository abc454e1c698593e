package merge

// newest maps each key to the newest change of it. A change is named by its row
// number in the index, which never repeats. Entries whose row was evicted are
// dropped by sweep, and are ignored until then.
type newest struct {
	ints  intMap
	keys  map[string]int32 // into entries
	items []entry
	bytes int64 // of the keys' text
}

// entry is the newest change of a key; row is the row number plus one, zero for an
// empty entry.
type entry struct {
	token int64
	row   uint64
}

// ofInt returns the entry of an integer key, made empty if there is none. It is
// valid until the next call.
func (n *newest) ofInt(key int64) *entry { return n.ints.slot(key) }

// ofBytes is ofInt for an encoded key.
func (n *newest) ofBytes(key []byte) *entry {
	if at, ok := n.keys[string(key)]; ok {
		return &n.items[at]
	}
	if n.keys == nil {
		n.keys = make(map[string]int32)
	}
	n.keys[string(key)] = int32(len(n.items))
	n.items = append(n.items, entry{})
	n.bytes += int64(len(key))
	return &n.items[len(n.items)-1]
}

// count is the number of entries, evicted ones included.
func (n *newest) count() int { return n.ints.used + len(n.items) }

// sweep drops the entries whose row is below base.
func (n *newest) sweep(base uint64) {
	n.ints.sweep(base)
	if len(n.keys) == 0 {
		return
	}
	old, items := n.keys, n.items
	n.keys, n.items, n.bytes = make(map[string]int32), nil, 0
	for key, at := range old {
		if items[at].row > base {
			n.keys[key] = int32(len(n.items))
			n.items = append(n.items, items[at])
			n.bytes += int64(len(key))
		}
	}
}

// keyOverhead is what a map entry costs besides the key's text: string header,
// index, control byte and slack.
const keyOverhead = 48

// size is the memory held, in bytes.
func (n *newest) size() int64 {
	return int64(len(n.ints.slots))*slotBytes + int64(cap(n.items))*16 + n.bytes +
		int64(len(n.keys))*keyOverhead
}

// intMap is an open-addressing table of integer keys: half the memory and a third
// of the time of a Go map for this one use.
type intMap struct {
	slots []intSlot
	used  int
	shift uint
}

type intSlot struct {
	key int64
	entry
}

const (
	slotBytes     = 24
	slotsMin      = 64
	fibonacciHash = 0x9E3779B97F4A7C15
)

// slot returns the entry of key. A new entry is counted at once: the caller fills it.
func (m *intMap) slot(key int64) *entry {
	if m.used*4 >= len(m.slots)*3 {
		m.rehash(max(slotsMin, 2*len(m.slots)), 0)
	}
	s := m.find(key)
	if s.row == 0 {
		s.key = key
		m.used++
	}
	return &s.entry
}

// find returns the slot of key, or the empty one where it belongs.
func (m *intMap) find(key int64) *intSlot {
	mask := uint64(len(m.slots) - 1)
	at := uint64(key) * fibonacciHash >> m.shift
	for {
		s := &m.slots[at&mask]
		if s.row == 0 || s.key == key {
			return s
		}
		at++
	}
}

// rehash moves the entries whose row number is at least base to a table of size
// slots, a power of two.
func (m *intMap) rehash(size int, base uint64) {
	old := m.slots
	m.slots = make([]intSlot, size)
	m.used = 0
	m.shift = 64
	for n := size; n > 1; n >>= 1 {
		m.shift--
	}
	for i := range old {
		if old[i].row > base {
			*m.find(old[i].key) = old[i]
			m.used++
		}
	}
}

func (m *intMap) sweep(base uint64) {
	live := 0
	for i := range m.slots {
		if m.slots[i].row > base {
			live++
		}
	}
	size := slotsMin
	for size*3 < live*5 {
		size *= 2
	}
	if m.slots != nil {
		m.rehash(size, base)
	}
}
