package duckdb

import (
	"fmt"
	"strings"
	"sync"
)

// describedMax bounds the remembered descriptions; their keys are statements, some
// kilobytes at most in practice.
const describedMax = 2048

// describeCache remembers descriptions, the half used last. Safe for concurrent use.
type describeCache struct {
	mu struct {
		sync.Mutex
		young, old map[string]*Description
	}
}

func (c *describeCache) init() { c.mu.young = make(map[string]*Description) }

func (c *describeCache) get(key string) (*Description, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.mu.young[key]
	if !ok {
		if d, ok = c.mu.old[key]; ok {
			c.mu.young[key] = d
		}
	}
	return d, ok
}

func (c *describeCache) put(key string, d *Description) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.young) >= describedMax/2 {
		c.mu.old, c.mu.young = c.mu.young, make(map[string]*Description)
	}
	c.mu.young[key] = d
}

// describeKey has all that a description depends on.
func describeKey(p *Plan) string {
	var b strings.Builder
	b.WriteString(p.SQL)
	for _, r := range p.Relations {
		fmt.Fprintf(&b, "\x00%s\x00%t", r.Name, r.WithPosition)
		for _, c := range r.Columns {
			b.WriteString("\x01" + c.Name + "\x02" + c.EngineType)
		}
	}
	return b.String()
}

// describedPlan is p without what a description does not look at.
func describedPlan(p *Plan) *Plan {
	out := &Plan{SQL: p.SQL, Settings: p.Settings}
	for _, r := range p.Relations {
		out.Relations = append(out.Relations, Relation{Name: r.Name, Columns: r.Columns, WithPosition: r.WithPosition})
	}
	return out
}
