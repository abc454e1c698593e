package define

import (
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// droppedSequence is a sequence that a DROP names: that of an identity goes with its column alone.
func (c *Context) droppedSequence(rel *pgsql.Relation) (object, error) {
	s, err := c.Snapshot.SequenceByName(rel.Schema, rel.Name)
	if err != nil {
		return object{}, err
	}
	if t, err := c.Snapshot.TableByFace(s.Table); err == nil && s.Identity != "" {
		f, _ := t.Current.Field(s.Column)
		column := "column " + f.Name + " of table " + shownName(t.Schema, t.Name, c.Env)
		return object{}, pgerr.New(codes.DependentObjectsStillExist, "cannot drop sequence %s because %s requires it", shownName(s.Schema, s.Name, c.Env), column).
			WithHint("You can drop %s instead.", column)
	}
	return object{kind: "sequence", schema: s.Schema, name: s.Name, id: s.ID}, nil
}

// addDrawers adds the defaults that draw from a sequence, but for those of one table.
func (d *removal) addDrawers(s *sequence.Sequence, but change.TableID) {
	on := object{kind: "sequence", schema: s.Schema, name: s.Name}
	for _, w := range d.context.drawers(s) {
		if w.table.Face() == but || d.goes(object{kind: "table", schema: w.table.Schema, name: w.table.Name, id: w.table.Face()}) {
			continue
		}
		f, _ := w.table.Current.Field(w.field)
		d.add(object{kind: "default", schema: w.table.Schema, name: w.table.Name, id: w.table.Face(), column: f.Name, field: w.field}, on)
	}
}

// addSequences adds what goes with the sequences of a table, or with a sequence.
func (d *removal) addSequences(o object) {
	for _, q := range d.context.Snapshot.Sequences() {
		t, err := d.context.Snapshot.TableByFace(q.Table)
		switch {
		case o.kind == "sequence" && q.ID == o.id:
			d.addDrawers(q, 0)
		case o.kind == "table" && q.Table == o.id:
			d.addDrawers(q, o.id)
		case o.kind == "schema" && q.Schema == o.name && (err != nil || t.Schema != o.name):
			d.add(object{kind: "sequence", schema: q.Schema, name: q.Name, id: q.ID}, o)
		}
	}
}
