package spill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/skipprd/skipprd/wal"
)

// FS is what a store asks of a file system; wal.FS has it.
type FS interface {
	MkdirAll(dir string) error
	List(dir string) ([]wal.FileInfo, error)
	Open(name string, mode wal.OpenMode) (wal.File, error)
	Remove(name string) error
}

// spaceFS is an FS that knows how much space there is.
type spaceFS interface {
	FreeBytes(dir string) (int64, error)
}

// suffix ends the names of all files of stores.
const suffix = ".spill"

// spaceEvery is after how many bytes written the free space is looked at again.
const spaceEvery = 16 << 20

// Store keeps transactions that have not ended. Owned by one goroutine.
type Store struct {
	fs    FS
	cfg   Config
	txns  map[uint32]*transaction
	bytes int64
	// unseen is what was written since the free space was looked at.
	unseen int64
	// block is the transaction whose changes come now, nil between blocks; file is its
	// file and frame what is to be written to it next.
	block *transaction
	file  wal.File
	frame []byte
}

// transaction is one that has not ended.
type transaction struct {
	name string
	size int64
	made bool // the file exists
	// aborted are the subtransactions that were rolled back after changes of theirs had
	// come: at most as many as were open at the end of some block.
	aborted map[uint32]struct{}
}

// Open makes a store and removes files that an earlier one of the same prefix left.
func Open(fsys FS, cfg Config) (*Store, error) {
	s := &Store{fs: fsys, cfg: cfg.withDefaults(), txns: map[uint32]*transaction{}}
	if err := fsys.MkdirAll(s.cfg.Dir); err != nil {
		return nil, fmt.Errorf("make spill directory: %w", err)
	}
	if err := Empty(fsys, s.cfg.Dir, s.cfg.Prefix); err != nil {
		return nil, err
	}
	return s, nil
}

// Empty removes the files of stores whose names begin with prefix. A directory that
// does not exist is empty.
func Empty(fsys FS, dir, prefix string) error {
	files, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list spill files: %w", err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name, prefix) || !strings.HasSuffix(f.Name, suffix) {
			continue
		}
		if err := fsys.Remove(filepath.Join(dir, f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove spill file %s: %w", f.Name, err)
		}
	}
	return nil
}

// Bytes is how much all transactions have on disk.
func (s *Store) Bytes() int64 { return s.bytes }

// Transactions is how many have not ended.
func (s *Store) Transactions() int { return len(s.txns) }

// Start begins a block of changes of transaction xid.
func (s *Store) Start(xid uint32) error {
	if s.block != nil {
		return fmt.Errorf("%w: a block begins inside of one", ErrProtocol)
	}
	t := s.txns[xid]
	if t == nil {
		t = &transaction{name: filepath.Join(s.cfg.Dir, fmt.Sprintf("%s%d%s", s.cfg.Prefix, xid, suffix))}
		s.txns[xid] = t
	}
	s.block, s.frame = t, s.frame[:0]
	return nil
}

// Add appends a change that subtransaction sub made to the open block; the message is
// the two parts one after the other. It does not keep them.
func (s *Store) Add(sub uint32, head byte, tail []byte) error {
	if s.block == nil {
		return fmt.Errorf("%w: a change comes outside of a block", ErrProtocol)
	}
	s.frame = appendRecord(s.frame, sub, head, tail)
	if len(s.frame) < s.cfg.FrameBytes {
		return nil
	}
	return s.flush()
}

// Stop ends the open block.
func (s *Store) Stop() error {
	if s.block == nil {
		return fmt.Errorf("%w: a block ends that never began", ErrProtocol)
	}
	err := s.flush()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	s.block, s.file = nil, nil
	return err
}

// flush writes the gathered changes as one frame.
func (s *Store) flush() error {
	if len(s.frame) == 0 {
		return nil
	}
	t := s.block
	head := frameHead(s.frame)
	n := int64(len(head) + len(s.frame))
	if err := s.room(n); err != nil {
		return err
	}
	if s.file == nil {
		mode := wal.ReadWrite
		if !t.made {
			mode = wal.Create
		}
		file, err := s.fs.Open(t.name, mode)
		if err != nil {
			return spaceError("open", t.name, err)
		}
		s.file, t.made = file, true
	}
	for _, b := range [][]byte{head[:], s.frame} {
		if _, err := s.file.WriteAt(b, t.size); err != nil {
			return spaceError("write", t.name, err)
		}
		t.size += int64(len(b))
		s.bytes += int64(len(b))
	}
	s.frame = s.frame[:0]
	if cap(s.frame) > 4*s.cfg.FrameBytes {
		s.frame = nil // one huge message must not stay in memory
	}
	return nil
}

// room makes sure that n more bytes may be written.
func (s *Store) room(n int64) error {
	if s.bytes+n > s.cfg.BytesMax {
		return fmt.Errorf("%w: %d transactions have %d MiB, at most %d MiB are allowed", ErrFull, len(s.txns), s.bytes>>20, s.cfg.BytesMax>>20)
	}
	s.unseen += n
	space, ok := s.fs.(spaceFS)
	if !ok || s.unseen < spaceEvery && s.bytes > 0 {
		return nil
	}
	s.unseen = 0
	free, err := space.FreeBytes(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("look at the disk of %s: %w", s.cfg.Dir, err)
	}
	if free-n < s.cfg.FreeMin {
		return fmt.Errorf("%w: the disk has %d MiB left, and %d MiB must stay free", ErrFull, free>>20, s.cfg.FreeMin>>20)
	}
	return nil
}

// Abort forgets what subtransaction sub of transaction xid has changed, all of the
// transaction if they are the same. One that is not known has changed nothing.
func (s *Store) Abort(xid, sub uint32) error {
	t := s.txns[xid]
	switch {
	case s.block != nil:
		return fmt.Errorf("%w: a transaction aborts inside of a block", ErrProtocol)
	case t == nil:
		return nil
	case xid == sub:
		return s.drop(xid)
	}
	if t.aborted == nil {
		t.aborted = map[uint32]struct{}{}
	}
	t.aborted[sub] = struct{}{}
	return nil
}

// Replay hands the messages of transaction xid to apply in the order in which they
// came, without those of subtransactions that were rolled back, and then forgets the
// transaction. A message is good until apply returns. It ends early with apply's
// error, or with the cause of ctx's end.
func (s *Store) Replay(ctx context.Context, xid uint32, apply func(message []byte) error) error {
	if s.block != nil {
		return fmt.Errorf("%w: a transaction commits inside of a block", ErrProtocol)
	}
	t := s.txns[xid]
	if t == nil {
		return nil // it changed nothing of interest
	}
	if t.made {
		if err := s.replay(ctx, t, apply); err != nil {
			return err
		}
	}
	return s.drop(xid)
}

func (s *Store) replay(ctx context.Context, t *transaction, apply func([]byte) error) (err error) {
	file, err := s.fs.Open(t.name, wal.ReadOnly)
	if err != nil {
		return fmt.Errorf("open spill file %s: %w", t.name, err)
	}
	defer func() { _ = file.Close() }() // only read
	var frame []byte
	for at := int64(0); at < t.size; {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if frame, err = readFrame(file, at, t.size, frame); err != nil {
			return fmt.Errorf("spill file %s at %d: %w", t.name, at, err)
		}
		at += frameHeadBytes + int64(len(frame))
		if err := eachRecord(frame, t.aborted, apply); err != nil {
			return err
		}
	}
	return nil
}

// drop forgets a transaction.
func (s *Store) drop(xid uint32) error {
	t := s.txns[xid]
	delete(s.txns, xid)
	s.bytes -= t.size
	if !t.made {
		return nil
	}
	if err := s.fs.Remove(t.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove spill file %s: %w", t.name, err)
	}
	return nil
}

// Close removes everything. The store is of no use afterwards.
func (s *Store) Close() error {
	var errs []error
	if s.file != nil {
		errs = append(errs, s.file.Close())
		s.file = nil
	}
	s.block = nil
	for xid := range s.txns {
		errs = append(errs, s.drop(xid))
	}
	return errors.Join(errs...)
}

// spaceError says so when the disk is full.
func spaceError(verb, name string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%s spill file %s: %w: %w", verb, name, ErrFull, err)
	}
	return fmt.Errorf("%s spill file %s: %w", verb, name, err)
}
