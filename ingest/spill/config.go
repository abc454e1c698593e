package spill

import "cmp"

// Config tunes a store. The zero value of a field means its default.
type Config struct {
	// Dir holds the files; stores may share it. Prefix begins the names of this store's.
	Dir, Prefix string
	// BytesMax is how much all transactions of the store may have together. Default
	// 64 GiB.
	BytesMax int64
	// FreeMin is how much of the disk must stay free for others, where that is known.
	// Default 1 GiB.
	FreeMin int64
	// FrameBytes is how much is gathered before it is written, which is also what a
	// replay holds in memory beside one message. Default 256 KiB.
	FrameBytes int
}

func (c Config) withDefaults() Config {
	c.BytesMax = cmp.Or(c.BytesMax, 64<<30)
	c.FreeMin = cmp.Or(c.FreeMin, 1<<30)
	c.FrameBytes = cmp.Or(c.FrameBytes, 256<<10)
	return c
}
