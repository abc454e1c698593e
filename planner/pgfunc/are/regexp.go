package are

// Regexp is a compiled expression.
type Regexp struct {
	tree    *part
	groups  int
	fold    bool
	refers  bool
	divided bool // there are groups or back references
}

// Compile reads an expression with option letters as of PostgreSQL's functions, but g.
func Compile(expr, letters string) (*Regexp, error) {
	p, tree, err := parse(expr, letters)
	if err != nil {
		return nil, err
	}
	re := &Regexp{tree: tree, groups: p.groups, fold: p.fold, refers: tree.flags&refers != 0}
	re.divided = re.groups > 0 || re.refers
	size, id := 0, 0
	var walk func(t *part) error
	walk = func(t *part) (err error) {
		t.id = id
		id++
		if t.prog, err = compileNode(t.expr, &size); err != nil {
			return err
		}
		for _, k := range t.kids {
			if err := walk(k); err != nil {
				return err
			}
		}
		return nil
	}
	return re, walk(tree)
}

// Groups is how many groups the expression has.
func (re *Regexp) Groups() int { return re.groups }

// Find finds the first match that begins at the character from or behind it. The result has where
// the match and each group begin and end, counted in characters, -1 for a group that has no
// part in it; nil when there is no match. ErrSteps when the search was given up.
func (re *Regexp) Find(text []rune, from int) (loc []int, err error) {
	m := &matcher{re: re, text: text, locs: make([]int, 2*re.groups+2)}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case tooMany:
			loc, err = nil, ErrSteps
		default:
			panic(p)
		}
	}()
	for from <= len(text) {
		begin := m.begin(re.tree.prog, from)
		if begin < 0 {
			return nil, nil
		}
		if m.match(begin) {
			return m.locs, nil
		}
		from = begin + 1
	}
	return nil, nil
}

// match finds the match that begins at a place where the automaton has one; false when back
// references say that it is none.
func (m *matcher) match(begin int) bool {
	t := m.re.tree
	less := t.flags&shorter != 0
	end := m.end(less, begin, begin, len(m.text))
	for end >= 0 {
		for i := range m.locs {
			m.locs[i] = -1
		}
		if !m.re.divided || m.divide(t, begin, end) {
			m.locs[0], m.locs[1] = begin, end
			return true
		}
		if less {
			end = m.end(less, begin, end+1, len(m.text))
		} else {
			end = m.end(less, begin, begin, end-1)
		}
	}
	return false
}

func (m *matcher) end(less bool, begin, least, limit int) int {
	if less {
		return m.shortest(m.re.tree, begin, least, limit)
	}
	return m.longest(m.re.tree, begin, limit)
}
