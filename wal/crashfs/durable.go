package crashfs

import (
	"path/filepath"
	"slices"
	"strings"
)

// Durable is what a file system would have left after a crash that kept nothing which was
// not synced. It follows the file system and takes nothing from it.
type Durable struct{ fs *FS }

// Durable returns the durable side of the file system.
func (f *FS) Durable() Durable { return Durable{f} }

// Version is another after each change of what is durable.
func (d Durable) Version() uint64 {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	return d.fs.mu.version
}

// Listing is another after each change of the durable names.
func (d Durable) Listing() uint64 {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	return d.fs.mu.listing
}

// Stamp is another after each change of the durable bytes of a name, which must be clean.
func (d Durable) Stamp(name string) uint64 {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if ino := d.fs.mu.durable[name]; ino != nil {
		return ino.stamp
	}
	return 0
}

// Names are the durable names that begin with prefix, sorted.
func (d Durable) Names(prefix string) []string {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	out := make([]string, 0, len(d.fs.mu.durable))
	for name := range d.fs.mu.durable {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Read returns the durable bytes of a name, which must not be changed; false if there is
// none.
func (d Durable) Read(name string) ([]byte, bool) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	ino := d.fs.mu.durable[filepath.Clean(name)]
	if ino == nil {
		return nil, false
	}
	return ino.disk, true
}
