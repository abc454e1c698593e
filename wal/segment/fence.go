package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/skipprd/skipprd/wal/change"
)

var fenceMagic = [4]byte{'S', 'K', 'F', 'N'}

// HostBytesMax bounds the name of a fence's holder.
const HostBytesMax = 255

// Fence says whose a log on an object store is. The epoch makes it safe; the beat,
// raised while the writer lives, lets others see that it does.
type Fence struct {
	Epoch    Epoch
	Pipeline change.PipelineID
	// Beat counts the writes of this object, without regard to epochs, so that no two
	// states of it are equal.
	Beat uint64
	// Writer is random, one per opening of a log, and that of the bodies' headers.
	Writer [16]byte
	// Released: the writer has ended in peace; nobody needs to wait.
	Released bool
	// Host is the writer's name for people.
	Host string
}

// Offsets in a fence.
const (
	fenceAtVersion  = 4
	fenceAtFlags    = 5
	fenceAtHost     = 6
	fenceAtZero     = 7
	fenceAtEpoch    = 8
	fenceAtPipeline = 12
	fenceAtBeat     = 16
	fenceAtWriter   = 24
	fenceFixedBytes = 40
	fenceCRCBytes   = 4

	fenceReleased = 1
)

// FenceBytesMax bounds an encoded fence.
const FenceBytesMax = fenceFixedBytes + HostBytesMax + fenceCRCBytes

// Encode renders the fence. A longer host name is cut.
func (f Fence) Encode() []byte {
	host := f.Host[:min(len(f.Host), HostBytesMax)]
	b := make([]byte, fenceFixedBytes, fenceFixedBytes+len(host)+fenceCRCBytes)
	le := binary.LittleEndian
	copy(b, fenceMagic[:])
	b[fenceAtVersion] = formatVersion
	if f.Released {
		b[fenceAtFlags] = fenceReleased
	}
	b[fenceAtHost] = byte(len(host))
	le.PutUint32(b[fenceAtEpoch:], uint32(f.Epoch))
	le.PutUint32(b[fenceAtPipeline:], uint32(f.Pipeline))
	le.PutUint64(b[fenceAtBeat:], f.Beat)
	copy(b[fenceAtWriter:], f.Writer[:])
	b = append(b, host...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// ParseFence reads a fence.
func ParseFence(b []byte) (Fence, error) {
	if len(b) < fenceFixedBytes+fenceCRCBytes || len(b) > FenceBytesMax {
		return Fence{}, fmt.Errorf("fence of %d bytes: %w", len(b), ErrLength)
	}
	le := binary.LittleEndian
	body := b[:len(b)-fenceCRCBytes]
	switch {
	case [4]byte(b) != fenceMagic:
		return Fence{}, fmt.Errorf("fence: %w", ErrMagic)
	case le.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli):
		return Fence{}, fmt.Errorf("fence: %w", ErrChecksum)
	case b[fenceAtVersion] != formatVersion:
		return Fence{}, fmt.Errorf("fence: %w", ErrVersion)
	case b[fenceAtFlags]&^fenceReleased != 0, b[fenceAtZero] != 0:
		return Fence{}, fmt.Errorf("fence: %w", ErrReserved)
	case len(body) != fenceFixedBytes+int(b[fenceAtHost]):
		return Fence{}, fmt.Errorf("fence: %w", ErrLength)
	}
	f := Fence{
		Epoch:    Epoch(le.Uint32(b[fenceAtEpoch:])),
		Pipeline: change.PipelineID(le.Uint32(b[fenceAtPipeline:])),
		Beat:     le.Uint64(b[fenceAtBeat:]),
		Writer:   [16]byte(b[fenceAtWriter:]),
		Released: b[fenceAtFlags]&fenceReleased != 0,
		Host:     string(body[fenceFixedBytes:]),
	}
	if f.Epoch == 0 || f.Pipeline == 0 || f.Beat == 0 {
		return Fence{}, fmt.Errorf("fence without identity: %w", ErrIdentity)
	}
	return f, nil
}
