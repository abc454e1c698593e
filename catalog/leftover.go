package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
)

// Leftovers are what dropped tables and pipelines still have outside the catalog. A
// drop notes them with the rows it deletes, so that who removes them may be killed and
// begin again.
type Leftovers struct {
	Lakes []change.TableID    // lake sides, by the id of their table
	Logs  []change.PipelineID // logs
}

// LeaveLake notes that the lake side of a deleted table is to be removed.
func (t *Txn) LeaveLake(id change.TableID) error {
	if err := t.setJSON(tableKey(prefixLeftLake, id), struct{}{}); err != nil {
		return fmt.Errorf("note lake side of table %d: %w", id, err)
	}
	return nil
}

// LeaveLog notes that the log of a deleted pipeline is to be removed.
func (t *Txn) LeaveLog(id change.PipelineID) error {
	if err := t.setJSON(pipelineKey(prefixLeftLog, id), struct{}{}); err != nil {
		return fmt.Errorf("note log of pipeline %d: %w", id, err)
	}
	return nil
}

// ForgetLeftovers notes that what l names has been removed. What is not noted is no
// error.
func (t *Txn) ForgetLeftovers(l Leftovers) error {
	var err error
	for _, id := range l.Lakes {
		err = errors.Join(err, t.delete(tableKey(prefixLeftLake, id)))
	}
	for _, id := range l.Logs {
		err = errors.Join(err, t.delete(pipelineKey(prefixLeftLog, id)))
	}
	if err != nil {
		return fmt.Errorf("forget leftovers: %w", err)
	}
	return nil
}

// Leftovers are what is still to be removed.
func (r *reader) Leftovers() (l Leftovers, err error) {
	err = errors.Join(
		r.leftovers(prefixLeftLake, func(id uint32) { l.Lakes = append(l.Lakes, change.TableID(id)) }),
		r.leftovers(prefixLeftLog, func(id uint32) { l.Logs = append(l.Logs, change.PipelineID(id)) }),
	)
	return l, err
}

func (r *reader) leftovers(prefix byte, add func(id uint32)) error {
	err := kv.IteratePrefix(r.kv, []byte{prefix}, func(k, _ []byte) error {
		if len(k) != 5 {
			return fmt.Errorf("key %x: %w", k, ErrCorrupt)
		}
		add(binary.BigEndian.Uint32(k[1:]))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read leftovers: %w", err)
	}
	return nil
}
