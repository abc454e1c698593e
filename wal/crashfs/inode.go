package crashfs

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// inode is a file. data is what reads see; disk is what is durable; dirty are the
// sectors in which they may differ because they are not synced. Either slice may be
// shared with another file system: it is copied before it is written.
type inode struct {
	data, disk             []byte
	dataShared, diskShared bool
	dirty                  sectorSet
	// lost: a sync failed, so data may differ from disk in clean sectors too.
	lost bool
	// stamp is the file system's version when disk changed last.
	stamp uint64
}

// sectorSet is a set of sectors.
type sectorSet []uint64

func (s *sectorSet) add(i int) {
	for i/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i/64] |= 1 << (i % 64)
}

func (s sectorSet) has(i int) bool { return i/64 < len(s) && s[i/64]&(1<<(i%64)) != 0 }

// each calls fn for the sectors in order.
func (s sectorSet) each(fn func(i int)) {
	for w, word := range s {
		for word != 0 {
			fn(w*64 + bits.TrailingZeros64(word))
			word &= word - 1
		}
	}
}

func (s sectorSet) empty() bool {
	return !slices.ContainsFunc(s, func(w uint64) bool { return w != 0 })
}

func (n *inode) ownData() {
	if n.dataShared {
		n.data, n.dataShared = slices.Clone(n.data), false
	}
}

func (n *inode) ownDisk() {
	if n.diskShared {
		n.disk, n.diskShared = slices.Clone(n.disk), false
	}
}

// write needs a file that is long enough.
func (n *inode) write(b []byte, at int) {
	n.ownData()
	copy(n.data[at:], b)
	n.markDirty(at, at+len(b))
}

func (n *inode) grow(size int) {
	from := len(n.data)
	n.ownData()
	n.data = append(n.data, make([]byte, size-from)...)
	n.markDirty(from, size)
}

func (n *inode) markDirty(from, to int) {
	for s := from / sectorBytes; s*sectorBytes < to; s++ {
		n.dirty.add(s)
	}
}

func (n *inode) sync() {
	if len(n.disk) != len(n.data) {
		disk := make([]byte, len(n.data))
		copy(disk, n.disk)
		n.disk, n.diskShared = disk, false
	}
	if n.dirty.empty() {
		return
	}
	n.ownDisk()
	n.dirty.each(func(s int) {
		from, to := s*sectorBytes, min((s+1)*sectorBytes, len(n.data))
		if from < to {
			copy(n.disk[from:to], n.data[from:to])
		}
	})
	clear(n.dirty)
}

// lose is a sync that failed: the pages are clean now, and no later sync writes them.
func (n *inode) lose() {
	clear(n.dirty)
	n.lost = true
}

// crash is the file as a restart finds it. r is not used when keep is zero.
func (n *inode) crash(r *rand.Rand, keep float64) *inode {
	size := len(n.disk)
	if len(n.data) != size && keep > 0 && r.Float64() < keep {
		size = len(n.data)
	}
	if size == len(n.disk) && (n.dirty.empty() || keep <= 0) {
		n.diskShared = true
		return &inode{data: n.disk, disk: n.disk, dataShared: true, diskShared: true}
	}
	out := make([]byte, size)
	copy(out, n.disk)
	n.dirty.each(func(s int) {
		from, to := s*sectorBytes, min((s+1)*sectorBytes, len(n.data), size)
		if from < to && r.Float64() < keep {
			copy(out[from:to], n.data[from:to])
		}
	})
	return &inode{data: out, disk: out, dataShared: true, diskShared: true}
}

// evict forgets what the cache has and the disk need not be told.
func (n *inode) evict() {
	if !n.lost {
		return // clean sectors are equal
	}
	n.ownData()
	for s := 0; s*sectorBytes < len(n.data); s++ {
		from, to := s*sectorBytes, min((s+1)*sectorBytes, len(n.data))
		if n.dirty.has(s) {
			continue
		}
		clear(n.data[from:to])
		if from < len(n.disk) {
			copy(n.data[from:to], n.disk[from:])
		}
	}
}

// rot flips a bit of the medium, and of the cache unless that has newer bytes.
func (n *inode) rot(bit int64) bool {
	at := int(bit / 8)
	if at >= len(n.disk) {
		return false
	}
	n.ownDisk()
	n.disk[at] ^= 1 << (bit % 8)
	if at < len(n.data) && !n.dirty.has(at/sectorBytes) {
		n.ownData()
		n.data[at] = n.disk[at]
	}
	return true
}
