// Package objbackup keeps the backup of a catalog (Store) and the pointers of its lake (KV)
// in an object store, where the next machine finds them. Neither is a lease: who may write
// is decided by the log; what they keep out is a machine that has been taken over, whose
// statements and commits then fail.
package objbackup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
)

// The object, little-endian:
//
//	 0  magic 4 "SKOB"
//	 4  version 1
//	 5  reserved 3
//	 8  serial 8, counts a writer's writes
//	16  writer 16; with the serial it keeps any two writes from having the same bytes
//	32  CRC32C of all before 4
//	36  image
const (
	formatVersion = 1
	atVersion     = 4
	atReserved    = 5
	atSerial      = 8
	atWriter      = 16
	atCRC         = 32
	atImage       = 36
)

var (
	magic      = [4]byte{'S', 'K', 'O', 'B'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// attempts bounds how often one write is tried while the store does not answer.
const attempts = 5

// Store is a catalog.BackupStore. The catalog that it belongs to must begin with an empty
// key-value store on every machine and at every start: what a local one has may be of
// before another machine wrote.
type Store struct {
	objects objstore.Store
	key     string
	writer  [16]byte
	serial  uint64
	// version is that of the object which the next write replaces, "" for none; read says
	// that it is known.
	version objstore.Version
	read    bool

	clock  env.Clock // nil: tries are not bounded in time
	within time.Duration
}

var _ catalog.BackupStore = (*Store)(nil)

// Within has a write that fails be tried again only while it has taken less than d, and
// returns s. Set before use.
func (s *Store) Within(clock env.Clock, d time.Duration) *Store {
	s.clock, s.within = clock, d
	return s
}

// New makes a store of the object with the key.
func New(objects objstore.Store, key string, ids env.IDs) *Store {
	return &Store{objects: objects, key: key, writer: ids.UUID()}
}

// Read implements catalog.BackupStore.
func (s *Store) Read() ([]byte, error) {
	b, version, err := s.get()
	if err != nil {
		return nil, err
	}
	s.version, s.read = version, true
	if b == nil {
		return nil, nil
	}
	return b[atImage:], nil
}

// get is the object as it is, nil when there is none.
func (s *Store) get() ([]byte, objstore.Version, error) {
	o, err := s.objects.Get(context.Background(), s.key, objstore.Range{})
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read backup: %w", err)
	}
	return o.Data, o.Version, check(o.Data)
}

func check(b []byte) error {
	switch {
	case len(b) < atImage || [4]byte(b) != magic:
		return fmt.Errorf("backup of %d bytes: %w", len(b), catalog.ErrCorrupt)
	case binary.LittleEndian.Uint32(b[atCRC:]) != crc32.Checksum(b[:atCRC], castagnoli):
		return fmt.Errorf("backup checksum: %w", catalog.ErrCorrupt)
	case b[atVersion] != formatVersion:
		return fmt.Errorf("backup version %d: %w", b[atVersion], catalog.ErrFormat)
	case !bytes.Equal(b[atReserved:atSerial], make([]byte, atSerial-atReserved)):
		return fmt.Errorf("backup header: %w", catalog.ErrCorrupt)
	}
	return nil
}

// Write implements catalog.BackupStore. It wraps ErrSuperseded and wal.ErrFenced. After an error that
// wraps objstore.ErrUnknown the image may be there, now or later, until the next Write.
func (s *Store) Write(image []byte) error {
	if !s.read {
		if _, err := s.Read(); err != nil {
			return err
		}
	}
	s.serial++
	body := s.encode(image)
	var err, open error // open: of a try that may have happened, whatever a later one says
	var began time.Time
	if s.clock != nil {
		began = s.clock.Now()
	}
	for range attempts {
		var done bool
		if done, err = s.write(body); done && err == nil {
			return nil
		}
		if errors.Is(err, objstore.ErrUnknown) {
			open = err
		}
		if done {
			return errors.Join(err, open)
		}
		if s.clock != nil && s.clock.Since(began) >= s.within {
			break // who waits for the commit mutex must not wait out an outage
		}
	}
	return fmt.Errorf("write backup: %w", errors.Join(err, open))
}

// write tries once; done says that trying again is of no use.
func (s *Store) write(body []byte) (done bool, err error) {
	condition := objstore.IfAbsent()
	if s.version != "" {
		condition = objstore.IfMatch(s.version)
	}
	version, err := s.objects.Put(context.Background(), s.key, body, condition)
	switch {
	case err == nil:
		s.version = version
		return true, nil
	case errors.Is(err, objstore.ErrUnavailable):
		return false, err
	case !objstore.IsRetryable(err) && !errors.Is(err, objstore.ErrPrecondition):
		return true, fmt.Errorf("write backup: %w", err)
	}
	// The outcome is unknown, or this or an earlier try has happened after all.
	have, version, getErr := s.get()
	switch {
	case getErr != nil:
		return false, errors.Join(err, getErr)
	case have == nil || version == s.version:
		return false, err
	case [16]byte(have[atWriter:]) != s.writer:
		return true, fmt.Errorf("write backup: %w: %w", ErrSuperseded, wal.ErrFenced)
	}
	s.version = version
	return bytes.Equal(have, body), nil
}

func (s *Store) encode(image []byte) []byte {
	b := make([]byte, atCRC, atImage+len(image))
	copy(b, magic[:])
	b[atVersion] = formatVersion
	binary.LittleEndian.PutUint64(b[atSerial:], s.serial)
	copy(b[atWriter:], s.writer[:])
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return append(b, image...)
}
