package iceberg

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"

	icebergo "github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

const formatVersion = 2

// metadataSuffix ends the names of metadata files; they begin with their version.
const metadataSuffix = ".metadata.json"

// newMetadata is the first metadata of a table. Unlike iceberg-go's own it keeps the
// schema's field ids, which are permanent with us (S1).
func (c *Catalog) newMetadata(sc *icebergo.Schema, cfg icecat.CreateTableCfg, location string) (table.Metadata, error) {
	b, err := table.NewMetadataBuilder(formatVersion)
	if err != nil {
		return nil, err
	}
	spec, order := icebergo.UnpartitionedSpec, cfg.SortOrder
	if cfg.PartitionSpec != nil {
		spec = cfg.PartitionSpec
	}
	for _, step := range []func() error{
		func() error { return b.SetUUID(uuid.UUID(c.ids.UUID())) },
		func() error { return b.SetLoc(location) },
		func() error { return b.AddSchema(sc) },
		func() error { return b.SetCurrentSchemaID(-1) },
		func() error { return b.AddSortOrder(&order) },
		func() error { return b.SetDefaultSortOrderID(-1) },
		func() error { return b.AddPartitionSpec(spec, true) },
		func() error { return b.SetDefaultSpecID(-1) },
		func() error { return b.SetProperties(cfg.Properties) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.Build()
}

// writeMetadata writes a new metadata file, synced.
func (c *Catalog) writeMetadata(meta table.Metadata, version int) (string, error) {
	raw, err := json.Marshal(meta)
	if err != nil {
		return "", fmt.Errorf("encode metadata: %w", err)
	}
	file := fmt.Sprintf("%s/metadata/%05d-%s%s", meta.Location(), version, uuid.UUID(c.ids.UUID()), metadataSuffix)
	if err := c.io.WriteFile(file, raw); err != nil {
		return "", fmt.Errorf("write metadata: %w", err)
	}
	return file, nil
}

// metadataVersion is the number a metadata file's name begins with, 0 if none.
func metadataVersion(location string) int {
	digits, _, _ := strings.Cut(path.Base(location), "-")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// metadataCacheMax bounds the parsed metadata kept: every table's current one for a
// few hundred tables.
const metadataCacheMax = 256

// metadataCache holds parsed metadata files, which are immutable, by location; the
// least recently used goes first. Safe for concurrent use.
type metadataCache struct {
	mu     sync.Mutex
	clock  uint64
	parsed map[string]*metadataEntry
}

type metadataEntry struct {
	meta table.Metadata
	used uint64
}

func (c *metadataCache) get(location string) table.Metadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.parsed[location]
	if e == nil {
		return nil
	}
	c.clock++
	e.used = c.clock
	return e.meta
}

func (c *metadataCache) put(location string, meta table.Metadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed == nil {
		c.parsed = map[string]*metadataEntry{}
	}
	c.clock++
	c.parsed[location] = &metadataEntry{meta: meta, used: c.clock}
	for len(c.parsed) > metadataCacheMax {
		oldest, at := "", c.clock+1
		for l, e := range c.parsed {
			if e.used < at {
				oldest, at = l, e.used
			}
		}
		delete(c.parsed, oldest)
	}
}
