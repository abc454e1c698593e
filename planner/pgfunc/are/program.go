package are

import "sync"

// program is a nondeterministic automaton.
type program struct {
	code []inst
}

type instKind uint8

const (
	instEnd instKind = iota
	instStep
	instSplit
	instJump
	instMust
	instLook
)

type inst struct {
	kind instKind
	of   *node    // of a step or an assertion
	look *program // of a look
	x, y int
}

// sizeMost bounds the instructions of an expression.
const sizeMost = 200_000

type compiler struct {
	code []inst
	size *int
}

func compileNode(n *node, size *int) (*program, error) {
	c := &compiler{size: size}
	if err := c.emit(n); err != nil {
		return nil, err
	}
	if err := c.add(inst{kind: instEnd}); err != nil {
		return nil, err
	}
	return &program{code: c.code}, nil
}

func (c *compiler) add(i inst) error {
	if *c.size++; *c.size > sizeMost {
		return ErrSize
	}
	c.code = append(c.code, i)
	return nil
}

func (c *compiler) emit(n *node) error {
	switch n.kind {
	case nodeChar, nodeSet, nodeAny:
		return c.add(inst{kind: instStep, of: n})
	case nodeMust:
		return c.add(inst{kind: instMust, of: n})
	case nodeLook:
		look, err := compileNode(n.kids[0], c.size)
		if err != nil {
			return err
		}
		return c.add(inst{kind: instLook, of: n, look: look})
	case nodeSeq:
		for _, k := range n.kids {
			if err := c.emit(k); err != nil {
				return err
			}
		}
	case nodeAlt:
		return c.alt(n)
	case nodeRep:
		return c.rep(n)
	}
	return nil
}

func (c *compiler) alt(n *node) error {
	var jumps []int
	for i, k := range n.kids {
		split := -1
		if i+1 < len(n.kids) {
			split = len(c.code)
			if err := c.add(inst{kind: instSplit, x: split + 1}); err != nil {
				return err
			}
		}
		if err := c.emit(k); err != nil {
			return err
		}
		if split >= 0 {
			jumps = append(jumps, len(c.code))
			if err := c.add(inst{kind: instJump}); err != nil {
				return err
			}
			c.code[split].y = len(c.code)
		}
	}
	for _, j := range jumps {
		c.code[j].x = len(c.code)
	}
	return nil
}

func (c *compiler) rep(n *node) error {
	for range n.m {
		if err := c.emit(n.kids[0]); err != nil {
			return err
		}
	}
	if n.n == unbounded {
		split := len(c.code)
		if err := c.add(inst{kind: instSplit, x: split + 1}); err != nil {
			return err
		}
		if err := c.emit(n.kids[0]); err != nil {
			return err
		}
		if err := c.add(inst{kind: instJump, x: split}); err != nil {
			return err
		}
		c.code[split].y = len(c.code)
		return nil
	}
	var splits []int
	for range n.n - n.m {
		splits = append(splits, len(c.code))
		if err := c.add(inst{kind: instSplit, x: len(c.code) + 1}); err != nil {
			return err
		}
		if err := c.emit(n.kids[0]); err != nil {
			return err
		}
	}
	for _, s := range splits {
		c.code[s].y = len(c.code)
	}
	return nil
}

// states is a set of instructions, with for each the place where its match began.
type states struct {
	list  []int
	at    []int // where in list an instruction is, plus 1
	began []int
}

func newStates(n int) *states { return &states{at: make([]int, n), began: make([]int, n)} }

func (s *states) clear() {
	for _, i := range s.list {
		s.at[i] = 0
	}
	s.list = s.list[:0]
}

// simulation is room to simulate in; it is used again and again.
type simulation struct {
	now, then *states
	stack     []int
}

var simulations sync.Pool

func takeSimulation(n int) *simulation {
	if s, ok := simulations.Get().(*simulation); ok && len(s.now.at) >= n {
		return s
	}
	n = max(n, 64)
	return &simulation{now: newStates(n), then: newStates(n)}
}

func (s *simulation) release() {
	s.now.clear()
	s.then.clear()
	simulations.Put(s)
}
