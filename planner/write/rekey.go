package write

import (
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/change"
)

// Rekey has the changes of a table be what they came to by the key, or without one, that it had
// before, now that it has another: an update, and a delete, means other rows then. New rows mean
// the same, since they are proved to be unique. alone says that the transaction, or session, has
// made the table: then, and if it has truncated it, what there is is written anew.
func (c *Changes) Rekey(before, now *Table, alone bool) error {
	if !c.Touches(before.ID) {
		return nil
	}
	o, err := c.of(before)
	if err != nil {
		return err
	}
	plain := true
	for _, b := range o.batches {
		ops := b.Column(0).(*array.Uint8)
		for i := range ops.Len() {
			plain = plain && change.Op(ops.Value(i)) == change.Insert
		}
	}
	switch {
	case plain:
		return nil
	case !alone && !o.truncated:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "cannot change the key of table \"%s\" in the transaction that has changed its rows", now.Name).
			WithHint("COMMIT first.")
	}
	winners, err := o.winners()
	if err != nil {
		return err
	}
	parts, err := o.left(winners)
	if err != nil {
		return err
	}
	mark := c.Mark()
	if err = c.Truncate(now); err == nil && len(parts) > 0 {
		var all Rows
		if all, err = Concat(parts); err == nil {
			err = c.Put(now, change.Insert, all.New)
			all.Release()
		}
	}
	if err != nil {
		c.Rollback(mark)
	}
	return err
}
