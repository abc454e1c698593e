package segment_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/wal/segment"
)

var checkpoint = segment.Checkpoint{
	Epoch: 3, Pipeline: 7, Serial: 12, Low: 42, Group: 900, Previous: [32]byte{1, 2, 3},
	Gone: []segment.Seq{44, 47}, Position: "0/16B3748", Facts: []byte("facts of the catalog"),
}

var fence = segment.Fence{
	Epoch: 3, Pipeline: 7, Beat: 88, Writer: [16]byte{9, 8, 7}, Released: true, Host: "db1.example",
}

func encodeCheckpoint(t testing.TB, c segment.Checkpoint) []byte {
	t.Helper()
	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCheckpointGolden(t *testing.T) {
	now := encodeCheckpoint(t, checkpoint)
	want := golden(t, "checkpoint_v1.hex", now)
	got, err := segment.ParseCheckpoint(want)
	if err != nil || !reflect.DeepEqual(got, checkpoint) {
		t.Errorf("golden checkpoint reads as %+v, %v", got, err)
	}
	if !bytes.Equal(now, want) {
		t.Error("today's bytes differ from the golden ones")
	}
}

func TestFenceGolden(t *testing.T) {
	now := fence.Encode()
	want := golden(t, "fence_v1.hex", now)
	got, err := segment.ParseFence(want)
	if err != nil || got != fence {
		t.Errorf("golden fence reads as %+v, %v", got, err)
	}
	if !bytes.Equal(now, want) {
		t.Error("today's bytes differ from the golden ones")
	}
}

// No byte of the two may change unseen, and none may be missing.
func TestCheckpointAndFenceDamage(t *testing.T) {
	parse := map[string]func([]byte) error{
		"checkpoint": func(b []byte) error { _, err := segment.ParseCheckpoint(b); return err },
		"fence":      func(b []byte) error { _, err := segment.ParseFence(b); return err },
	}
	whole := map[string][]byte{"checkpoint": encodeCheckpoint(t, checkpoint), "fence": fence.Encode()}
	for name, b := range whole {
		for i := range b {
			bad := bytes.Clone(b)
			bad[i] ^= 0x10
			if parse[name](bad) == nil {
				t.Errorf("%s: byte %d changed, and it reads", name, i)
			}
			if parse[name](b[:i]) == nil {
				t.Errorf("%s: cut at byte %d, and it reads", name, i)
			}
		}
		if parse[name](append(bytes.Clone(b), 0)) == nil {
			t.Errorf("%s with a byte more reads", name)
		}
	}
}

func TestCheckpointLimits(t *testing.T) {
	c := checkpoint
	c.Facts = make([]byte, segment.FactsBytesMax+1)
	if _, err := c.Encode(); !errors.Is(err, segment.ErrTooLarge) {
		t.Errorf("large facts: %v", err)
	}
	for name, change := range map[string]func(*segment.Checkpoint){
		"no pipeline": func(c *segment.Checkpoint) { c.Pipeline = 0 },
		"no serial":   func(c *segment.Checkpoint) { c.Serial = 0 },
		"no low":      func(c *segment.Checkpoint) { c.Low = 0 },
		"no group":    func(c *segment.Checkpoint) { c.Group = 0 },
		"low is gone": func(c *segment.Checkpoint) { c.Gone = []segment.Seq{42} },
		"disorder":    func(c *segment.Checkpoint) { c.Gone = []segment.Seq{47, 44} },
	} {
		c := checkpoint
		change(&c)
		if _, err := segment.ParseCheckpoint(encodeCheckpoint(t, c)); !errors.Is(err, segment.ErrIdentity) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(readGolden(f, filepath.Join("testdata", "checkpoint_v1.hex")))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := segment.ParseCheckpoint(b)
		if err != nil {
			return
		}
		if again := encodeCheckpoint(t, c); !bytes.Equal(again, b) {
			t.Fatalf("%x reads as %+v, which is %x", b, c, again)
		}
	})
}

func FuzzParseFence(f *testing.F) {
	f.Add(readGolden(f, filepath.Join("testdata", "fence_v1.hex")))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := segment.ParseFence(b)
		if err != nil {
			return
		}
		if again := x.Encode(); !bytes.Equal(again, b) {
			t.Fatalf("%x reads as %+v, which is %x", b, x, again)
		}
	})
}
