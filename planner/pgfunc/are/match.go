package are

import "unicode"

// stepsMost is how many steps a search may take: about a second. A query is canceled between
// searches.
const stepsMost = 20_000_000

// matcher is one search in a text.
type matcher struct {
	re    *Regexp
	text  []rune
	steps int
	locs  []int // of the groups
	ends  map[[2]int]*reach
}

// tooMany is thrown by a search that takes too long.
type tooMany struct{}

func (m *matcher) step(n int) {
	if m.steps += n; m.steps > stepsMost {
		panic(tooMany{})
	}
}

// holds reports whether an assertion holds at a place.
func (m *matcher) holds(what rune, at int) bool {
	switch what {
	case assertLineStart, assertStart:
		return at == 0
	case assertLineEnd, assertEnd:
		return at == len(m.text)
	case assertAfterLine:
		return at == 0 || m.text[at-1] == '\n'
	case assertBeforeLine:
		return at == len(m.text) || m.text[at] == '\n'
	}
	before := at > 0 && isWord(m.text[at-1])
	after := at < len(m.text) && isWord(m.text[at])
	switch what {
	case assertWordStart:
		return !before && after
	case assertWordEnd:
		return before && !after
	case assertWordEdge:
		return before != after
	}
	return before == after
}

func (n *node) takes(c rune) bool {
	switch n.kind {
	case nodeChar:
		return n.char == c
	case nodeAny:
		return !n.not || c != '\n'
	}
	return n.set.has(c)
}

// follow adds an instruction and what can be reached from it without a character.
func (m *matcher) follow(p *program, s *simulation, to *states, pc, at, began int) {
	s.stack = append(s.stack[:0], pc)
	for len(s.stack) > 0 {
		pc := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		if i := to.at[pc]; i > 0 && to.began[pc] <= began {
			continue
		} else if i == 0 {
			to.list = append(to.list, pc)
			to.at[pc] = len(to.list)
		}
		to.began[pc] = began
		m.step(1)
		switch in := &p.code[pc]; in.kind {
		case instSplit:
			s.stack = append(s.stack, in.x, in.y)
		case instJump:
			s.stack = append(s.stack, in.x)
		case instMust:
			if m.holds(in.of.what, at) {
				s.stack = append(s.stack, pc+1)
			}
		case instLook:
			if m.looks(in, at) != in.of.not {
				s.stack = append(s.stack, pc+1)
			}
		}
	}
}

// looks reports whether the text ahead begins with a match, or that behind ends with one.
func (m *matcher) looks(in *inst, at int) bool {
	s := takeSimulation(len(in.look.code))
	defer s.release()
	from, to := at, len(m.text)
	if in.of.what == lookBehind {
		from, to = 0, at
	}
	end := len(in.look.code) - 1
	for i := from; ; i++ {
		if i == from || in.of.what == lookBehind {
			m.follow(in.look, s, s.now, 0, i, 0)
		}
		found := s.now.at[end] > 0
		if in.of.what == lookAhead && found {
			return true
		}
		if i == to {
			return found
		}
		if len(s.now.list) == 0 {
			return false
		}
		m.advance(in.look, s, i)
	}
}

// advance takes the character at i.
func (m *matcher) advance(p *program, s *simulation, i int) {
	c := m.text[i]
	m.step(len(s.now.list))
	for _, pc := range s.now.list {
		if in := &p.code[pc]; in.kind == instStep && in.of.takes(c) {
			m.follow(p, s, s.then, pc+1, i+1, s.now.began[pc])
		}
	}
	s.now.clear()
	s.now, s.then = s.then, s.now
}

// begin is where the first match begins that does so at from or behind it; -1 for nowhere.
func (m *matcher) begin(p *program, from int) int {
	s := takeSimulation(len(p.code))
	defer s.release()
	end, best := len(p.code)-1, -1
	for i := from; ; i++ {
		if best < 0 {
			m.follow(p, s, s.now, 0, i, i)
		}
		if s.now.at[end] > 0 && (best < 0 || s.now.began[end] < best) {
			best = s.now.began[end]
		}
		if i == len(m.text) || best == from {
			return best
		}
		if best >= 0 && !s.now.before(best) {
			return best
		}
		m.advance(p, s, i)
	}
}

// before reports whether some state began before a place.
func (s *states) before(place int) bool {
	for _, pc := range s.list {
		if s.began[pc] < place {
			return true
		}
	}
	return false
}

// reach is where the matches of a part end that begin at one place: a bit for each distance.
type reach struct {
	bits []uint64
}

func (r *reach) has(d int) bool { return d/64 < len(r.bits) && r.bits[d/64]&(1<<(d%64)) != 0 }

func (r *reach) set(d int) {
	for d/64 >= len(r.bits) {
		r.bits = append(r.bits, 0)
	}
	r.bits[d/64] |= 1 << (d % 64)
}

// reaches computes where a part ends that begins at from.
func (m *matcher) reaches(t *part, from int) *reach {
	key := [2]int{t.id, from}
	if r := m.ends[key]; r != nil {
		return r
	}
	p := t.prog
	s := takeSimulation(len(p.code))
	defer s.release()
	r := &reach{}
	end := len(p.code) - 1
	m.follow(p, s, s.now, 0, from, 0)
	for i := from; ; i++ {
		if s.now.at[end] > 0 {
			r.set(i - from)
		}
		if i == len(m.text) || len(s.now.list) == 0 {
			break
		}
		m.advance(p, s, i)
	}
	if m.ends == nil {
		m.ends = map[[2]int]*reach{}
	}
	m.step(len(r.bits))
	m.ends[key] = r
	return r
}

// longest is the farthest end of a part up to limit, -1 for none.
func (m *matcher) longest(t *part, from, limit int) int {
	r := m.reaches(t, from)
	for d := min(limit-from, len(r.bits)*64-1); d >= 0; d-- {
		m.step(1)
		if r.has(d) {
			return from + d
		}
	}
	return -1
}

// shortest is the nearest end of a part from least to limit, -1 for none.
func (m *matcher) shortest(t *part, from, least, limit int) int {
	r := m.reaches(t, from)
	for d := least - from; d <= min(limit-from, len(r.bits)*64-1); d++ {
		m.step(1)
		if r.has(d) {
			return from + d
		}
	}
	return -1
}

// exact reports whether a part can be all of a range, as far as back references are not asked.
func (m *matcher) exact(t *part, from, to int) bool { return m.reaches(t, from).has(to - from) }

// zap forgets the groups of a part.
func (m *matcher) zap(t *part) {
	if t.group > 0 {
		m.locs[2*t.group], m.locs[2*t.group+1] = -1, -1
	}
	for _, k := range t.kids {
		m.zap(k)
	}
}

// divide finds the groups of a part that is all of a range.
func (m *matcher) divide(t *part, from, to int) bool {
	ok := true
	switch t.kind {
	case partRef:
		ok = m.again(t, from, to)
	case partConcat:
		if t.kids[0].flags&shorter != 0 {
			ok = m.concatShort(t, from, to)
		} else {
			ok = m.concat(t, from, to)
		}
	case partAlt:
		ok = m.alternative(t, from, to)
	case partLoop:
		if t.kids[0].flags&shorter != 0 {
			ok = m.loopShort(t, from, to)
		} else {
			ok = m.loop(t, from, to)
		}
	case partGroup:
		ok = m.divide(t.kids[0], from, to)
	}
	if ok && t.group > 0 {
		m.locs[2*t.group], m.locs[2*t.group+1] = from, to
	}
	return ok
}

func (m *matcher) concat(t *part, from, to int) bool {
	left, right := t.kids[0], t.kids[1]
	for mid := m.longest(left, from, to); mid >= 0; mid = m.longest(left, from, mid-1) {
		if m.exact(right, mid, to) && m.divide(left, from, mid) && m.divide(right, mid, to) {
			return true
		}
		if mid == from {
			return false
		}
		m.zap(left)
		m.zap(right)
	}
	return false
}

func (m *matcher) concatShort(t *part, from, to int) bool {
	left, right := t.kids[0], t.kids[1]
	for mid := m.shortest(left, from, from, to); mid >= 0; mid = m.shortest(left, from, mid+1, to) {
		if m.exact(right, mid, to) && m.divide(left, from, mid) && m.divide(right, mid, to) {
			return true
		}
		if mid == to {
			return false
		}
		m.zap(left)
		m.zap(right)
	}
	return false
}

func (m *matcher) alternative(t *part, from, to int) bool {
	for _, k := range t.kids {
		if m.exact(k, from, to) && m.divide(k, from, to) {
			return true
		}
	}
	return false
}

// again matches a back reference.
func (m *matcher) again(t *part, from, to int) bool {
	start, end := m.locs[2*t.ref], m.locs[2*t.ref+1]
	size := end - start
	switch {
	case start < 0:
		return false
	case size == 0:
		return from == to && (t.n == unbounded || t.m <= t.n)
	case from == to:
		return t.m == 0
	case (to-from)%size != 0:
		return false
	}
	if n := (to - from) / size; n < t.m || t.n != unbounded && n > t.n {
		return false
	}
	m.step(to - from)
	for i := from; i < to; i++ {
		a, b := m.text[start+(i-from)%size], m.text[i]
		if a != b && !(m.re.fold && unicode.ToLower(a) == unicode.ToLower(b)) {
			return false
		}
	}
	return true
}

// bounds are the least and the most turns of a loop over a range.
func (t *part) bounds(from, to int) (least, most int) {
	least, most = max(t.m, 1), to-from
	if t.n != unbounded {
		most = min(most, t.n)
	}
	return least, max(most, least)
}

// verified divides the turns of a loop from the done'th on; it returns how many are well.
func (m *matcher) verified(t *part, ends []int, done, k int) int {
	for i := done + 1; i <= k; i++ {
		m.zap(t.kids[0])
		if !m.divide(t.kids[0], ends[i-1], ends[i]) {
			return i - 1
		}
	}
	return k
}

// loop divides a range among the turns of a loop, the first turns as long as can be.
func (m *matcher) loop(t *part, from, to int) bool {
	least, most := t.bounds(from, to)
	ends := make([]int, most+1)
	ends[0] = from
	done, k, limit := 0, 1, to
	back := func() { // a shorter one of the k'th, or of one before
		for ; k > 0; k-- {
			before := ends[k-1]
			if ends[k] > before {
				limit = ends[k] - 1
				if limit > before || k < least && least-k >= to-before {
					return
				}
			}
		}
	}
	for k > 0 {
		m.step(1)
		ends[k] = m.longest(t.kids[0], ends[k-1], limit)
		if ends[k] < 0 {
			k--
			back()
			continue
		}
		done = min(done, k-1)
		switch {
		case ends[k] != to && k >= most:
			k--
			back()
		case ends[k] != to:
			if ends[k] == ends[k-1] && (k >= least || least-k < to-ends[k]) {
				back()
				continue
			}
			k++
			limit = to
		case k < least:
			back()
		default:
			if done = m.verified(t, ends, done, k); done == k {
				return true
			}
			back()
		}
	}
	return t.m == 0 && from == to // no turn at all
}

// loopShort is loop with the first turns as short as can be.
func (m *matcher) loopShort(t *part, from, to int) bool {
	if t.m == 0 && from == to {
		return true // no turn at all
	}
	least, most := t.bounds(from, to)
	ends := make([]int, most+1)
	ends[0] = from
	done, k, limit := 0, 1, from
	back := func() {
		for ; k > 0; k-- {
			if ends[k] < to {
				limit = ends[k] + 1
				return
			}
		}
	}
	for k > 0 {
		m.step(1)
		if limit == ends[k-1] && limit != to && (k >= least || least-k < to-limit) {
			limit++
		}
		if k >= most {
			limit = to
		}
		ends[k] = m.shortest(t.kids[0], ends[k-1], limit, to)
		if ends[k] < 0 {
			k--
			back()
			continue
		}
		done = min(done, k-1)
		switch {
		case ends[k] != to && k >= most:
			k--
			back()
		case ends[k] != to:
			k++
			limit = ends[k-1]
		case k < least:
			back()
		default:
			if done = m.verified(t, ends, done, k); done == k {
				return true
			}
			back()
		}
	}
	return false
}
