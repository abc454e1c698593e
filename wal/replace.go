package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ReplaceFile puts b under name, in place of what has it: durable when it returns, and
// whole or not at all after a crash. Its directory exists. After an error the old file
// or, once it is renamed, the new one has the name. One call at a time for a name.
func ReplaceFile(fsys FS, name string, b []byte) error {
	if err := writeWhole(fsys, name, b, File.Sync); err != nil {
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeWhole writes b to a new file, has sync done to it, and gives it the name.
func writeWhole(fsys FS, name string, b []byte, sync func(File) error) error {
	fresh := name + temporarySuffix
	if err := fsys.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", fresh, err)
	}
	f, err := fsys.Open(fresh, Create)
	if err != nil {
		return fmt.Errorf("write %s: %w", fresh, err)
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = sync(f)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = fsys.Remove(fresh) // a full disk needs the space; else the next write does it
		return fmt.Errorf("write %s: %w", fresh, err)
	}
	if err := fsys.Rename(fresh, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
