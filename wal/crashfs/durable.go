package crashfs

import (
	"path/filepath"
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

// Names are the durable names that begin with prefix, sorted.
func (d Durable) Names(prefix string) []string {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	var out []string
	for _, name := range sortedNames(d.fs.mu.durable) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
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
