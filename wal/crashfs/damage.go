package crashfs

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// ReadFault is what goes wrong with one read, unseen by whoever reads. The zero value is
// nothing.
type ReadFault struct {
	// Flip flips the bit of this number, modulo the bits that are read. Zero flips none:
	// the first bit is 1.
	Flip int64
	// From names a file whose bytes at the same place are read instead, if it exists.
	From string
}

// damageLocked asks what happens to a read, and returns the bytes to read from and the
// bit to flip; negative: none.
func (f *file) damageLocked(op Op) (from []byte, flip int64) {
	fault := f.fs.Damage(op)
	from = f.ino.data
	if fault.From != "" {
		if other := f.fs.mu.names[filepath.Clean(fault.From)]; other != nil && other != f.ino {
			from = other.data
			f.fs.mu.damaged++
		}
	}
	return from, fault.Flip - 1
}

// Rot flips a bit of a file on the medium, where no sync repairs it.
func (f *FS) Rot(name string, bit int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.mu.names[filepath.Clean(name)]
	if n == nil {
		return &fs.PathError{Op: "rot", Path: name, Err: fs.ErrNotExist}
	}
	if !n.rot(bit) {
		return fmt.Errorf("rot %s: bit %d is not on the medium", name, bit)
	}
	f.mu.damaged++
	f.mu.version++
	n.stamp = f.mu.version
	return nil
}

// Damaged is how many reads and files were damaged.
func (f *FS) Damaged() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.damaged
}
