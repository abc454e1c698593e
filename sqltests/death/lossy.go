package death

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// pageSize is the unit in which a disk keeps or loses what was written.
const pageSize = 4096

// Lie is what a Disk only pretends to do.
type Lie uint8

// The lies, from none to all.
const (
	// Honest keeps what was synced.
	Honest Lie = iota
	// LieAboutFiles answers a file's fsync and does nothing.
	LieAboutFiles
	// LieAboutNames answers a directory's fsync and does nothing.
	LieAboutNames
)

// Disk is a file tree in memory with two states: what processes see, and what is on the
// platter. A file's contents get there by fsync or fdatasync of the file, its name by
// fsync of the directory that holds it, and nothing else. Safe for concurrent use.
type Disk struct {
	// Lie is set before the disk is mounted.
	Lie Lie

	mu     sync.Mutex
	nodes  map[uint64]*inode
	next   uint64
	cut    bool
	syncs  int64
	blocks int64 // free, as statfs tells
}

const rootID = 1

// inode is a file or a directory.
type inode struct {
	id    uint64
	dir   bool
	mode  uint32
	mtime time.Time
	links int
	opens int

	// A file's bytes as seen and as kept, and the pages in which they differ.
	data, kept []byte
	dirty      map[int]struct{}

	// A directory's names as seen and as kept, and the changes that lie between.
	names, keptNames map[string]uint64
	changes          []nameChange
}

// nameChange is one atomic change of a directory: names with their new file, 0 for none.
type nameChange map[string]uint64

// Lost counts what a power loss took.
type Lost struct{ Pages, Files, Names int }

// NewDisk returns an empty disk with about freeBytes of room.
func NewDisk(freeBytes int64) *Disk {
	d := &Disk{nodes: map[uint64]*inode{}, next: rootID, blocks: freeBytes / pageSize}
	root := d.add(true, 0o755)
	root.links = 1
	return d
}

func (d *Disk) add(dir bool, mode uint32) *inode {
	n := &inode{id: d.next, dir: dir, mode: mode & 0o7777, mtime: time.Now()}
	if dir {
		n.names, n.keptNames = map[string]uint64{}, map[string]uint64{}
	} else {
		n.dirty = map[int]struct{}{}
	}
	d.nodes[n.id] = n
	d.next++
	return n
}

// Cut takes the power away: from now on nothing reaches the disk, every operation fails.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
}

// Syncs is how many files and directories were synced so far.
func (d *Disk) Syncs() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

// PowerOn turns the disk on after Cut, with what was kept. Of what was not synced r
// decides page by page and name by name what had reached the platter by itself; nil
// keeps nothing of it.
func (d *Disk) PowerOn(r *rand.Rand) Lost {
	d.mu.Lock()
	defer d.mu.Unlock()
	var lost Lost
	seen := map[uint64]bool{rootID: true}
	for queue := []uint64{rootID}; len(queue) > 0; {
		n := d.nodes[queue[0]]
		queue = queue[1:]
		if !n.dir {
			lost.add(n.powerOn(r))
			continue
		}
		lost.Names += n.powerOnNames(r)
		for _, name := range sortedNames(n.names) {
			if id := n.names[name]; !seen[id] {
				seen[id] = true
				queue = append(queue, id)
			}
		}
	}
	for id := range d.nodes {
		if !seen[id] {
			delete(d.nodes, id)
		}
	}
	d.countLinks()
	d.cut = false
	return lost
}

func (l *Lost) add(pages int) {
	if pages > 0 {
		l.Pages += pages
		l.Files++
	}
}

// powerOn gives a file what was kept and says how many pages are lost.
func (n *inode) powerOn(r *rand.Rand) (lost int) {
	var pages []int
	for p := range n.dirty {
		pages = append(pages, p)
	}
	slices.Sort(pages)
	now := slices.Clone(n.kept)
	if r != nil && len(n.data) != len(n.kept) && r.IntN(2) == 0 {
		now = resized(now, len(n.data))
	}
	for _, p := range pages {
		at, end := p*pageSize, min((p+1)*pageSize, len(n.data), len(now))
		if r != nil && r.IntN(2) == 0 && at < end {
			copy(now[at:end], n.data[at:end])
		} else {
			lost++
		}
	}
	n.data, n.kept = now, slices.Clone(now)
	n.dirty, n.opens = map[int]struct{}{}, 0
	return lost
}

// powerOnNames gives a directory the names that were kept, and with r a first part of
// the changes since.
func (n *inode) powerOnNames(r *rand.Rand) (lost int) {
	survive := 0
	if r != nil {
		survive = r.IntN(len(n.changes) + 1)
	}
	for _, c := range n.changes[:survive] {
		c.apply(n.keptNames)
	}
	lost = len(n.changes) - survive
	n.changes, n.opens = nil, 0
	n.names = map[string]uint64{}
	for name, id := range n.keptNames {
		n.names[name] = id
	}
	return lost
}

func (c nameChange) apply(names map[string]uint64) {
	for name, id := range c {
		if id == 0 {
			delete(names, name)
		} else {
			names[name] = id
		}
	}
}

func (d *Disk) countLinks() {
	for _, n := range d.nodes {
		n.links = 0
	}
	d.nodes[rootID].links = 1
	for _, n := range d.nodes {
		for _, id := range n.names {
			d.nodes[id].links++
		}
	}
}

// change changes a directory's names at once, as seen.
func (d *Disk) change(dir *inode, c nameChange) {
	var gone []*inode
	for name := range c {
		if old := d.nodes[dir.names[name]]; old != nil {
			old.links--
			gone = append(gone, old)
		}
	}
	c.apply(dir.names)
	for _, id := range c {
		if n := d.nodes[id]; n != nil {
			n.links++
		}
	}
	for _, n := range gone { // not what was only renamed
		d.tidy(n)
	}
	dir.changes = append(dir.changes, c)
	dir.mtime = time.Now()
}

// tidy frees the memory of a file that nobody can reach any more. What is kept of it
// stays, because a kept name may lead to it.
func (d *Disk) tidy(n *inode) {
	if n.links == 0 && n.opens == 0 && !n.dir {
		n.data = nil
	}
}

// sync keeps what is seen of a file or of a directory's names.
func (d *Disk) sync(n *inode) {
	d.syncs++
	if n.dir {
		if d.Lie == LieAboutNames {
			return
		}
		for _, c := range n.changes {
			c.apply(n.keptNames)
		}
		n.changes = nil
		return
	}
	if d.Lie == LieAboutFiles {
		return
	}
	n.kept = resized(n.kept, len(n.data))
	for p := range n.dirty {
		at, end := p*pageSize, min((p+1)*pageSize, len(n.data))
		if at < end {
			copy(n.kept[at:end], n.data[at:end])
		}
	}
	clear(n.dirty)
}

// write puts b at an offset of a file.
func (n *inode) write(b []byte, at int) {
	if at > len(n.data) {
		n.resize(at)
	}
	if at+len(b) > len(n.data) {
		n.data = resized(n.data, at+len(b))
	}
	copy(n.data[at:], b)
	n.touch(at, at+len(b))
}

// resize cuts a file or extends it by zeros.
func (n *inode) resize(size int) {
	old := len(n.data)
	n.data = resized(n.data, size)
	n.touch(min(old, size), max(old, size))
}

func (n *inode) touch(from, to int) {
	for p := from / pageSize; p <= max(from, to-1)/pageSize; p++ {
		n.dirty[p] = struct{}{}
	}
	n.mtime = time.Now()
}

// resized is b with another length, new bytes zero.
func resized(b []byte, size int) []byte {
	if size <= len(b) {
		clear(b[size:])
		return b[:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

func sortedNames(names map[string]uint64) []string {
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
