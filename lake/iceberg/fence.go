package iceberg

import (
	"context"
	"fmt"
	"strconv"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/segment"
)

// notFenced is the requirement that a table's fence lets an epoch through. Checked by
// the swap of the metadata itself, so that nothing comes between.
type notFenced struct{ epoch segment.Epoch }

var _ table.Requirement = notFenced{}

// GetType implements table.Requirement.
func (notFenced) GetType() string { return "skippr-assert-fence" }

// Validate implements table.Requirement.
func (r notFenced) Validate(meta table.Metadata) error {
	fence, err := fenceOf(meta)
	if err != nil {
		return err
	}
	if r.epoch < fence {
		return fmt.Errorf("%w: epoch %d, fence %d", lake.ErrFenced, r.epoch, fence)
	}
	return nil
}

func fenceOf(meta table.Metadata) (segment.Epoch, error) {
	text, ok := meta.Properties()[lake.KeyFence]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("table property %s: %w", lake.KeyFence, err)
	}
	return segment.Epoch(n), nil
}

// raiseFence is what a commit of an epoch does to a lower fence.
func (t *tableHandle) raiseFence(epoch segment.Epoch) []table.Update {
	if have, err := fenceOf(t.meta); err != nil || epoch <= have {
		return nil // an error is one of the requirement, too
	}
	return []table.Update{setFence(epoch)}
}

func setFence(epoch segment.Epoch) table.Update {
	return table.NewSetPropertiesUpdate(icebergo.Properties{lake.KeyFence: strconv.FormatUint(uint64(epoch), 10)})
}

// Fence implements lake.Fencer.
func (t *tableHandle) Fence(ctx context.Context, epoch segment.Epoch) error {
	if err := t.fence(ctx, epoch); err != nil {
		return fmt.Errorf("fence lake table %s: %w", t.ident, err)
	}
	return nil
}

func (t *tableHandle) fence(ctx context.Context, epoch segment.Epoch) error {
	if err := t.reload(ctx); err != nil {
		return err
	}
	if have, err := fenceOf(t.meta); err != nil || have == epoch {
		return err
	}
	_, _, err := t.w.catalog.CommitTable(ctx, identifier(t.ident),
		[]table.Requirement{table.AssertTableUUID(t.meta.TableUUID()), notFenced{epoch}},
		[]table.Update{setFence(epoch)})
	if err != nil {
		return err
	}
	if err := t.reload(ctx); err != nil {
		return err
	}
	if now, err := fenceOf(t.meta); err != nil || now == epoch {
		return err
	}
	return fmt.Errorf("%w: epoch %d was passed", lake.ErrFenced, epoch)
}

// Commits implements lake.History.
func (t *tableHandle) Commits(context.Context) ([]lake.Committed, error) {
	var out []lake.Committed
	for _, s := range t.meta.Snapshots() {
		if s.Summary == nil {
			continue
		}
		c, ok, err := lake.CommittedOf(s.SnapshotID, s.Summary.Properties)
		if err != nil {
			return nil, fmt.Errorf("lake table %s: %w", t.ident, err)
		}
		if ok {
			out = append(out, c)
		}
	}
	return out, nil
}
