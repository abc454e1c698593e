package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Frame options of a window, as PostgreSQL's parser numbers them.
const (
	frameNonDefault     = 0x00001
	frameRows           = 0x00004
	frameGroups         = 0x00008
	frameStartUnbounded = 0x00020
	frameEndUnbounded   = 0x00100
	frameStartCurrent   = 0x00200
	frameEndCurrent     = 0x00400
	frameStartPreceding = 0x00800
	frameEndPreceding   = 0x01000
	frameStartFollowing = 0x02000
	frameEndFollowing   = 0x04000
	frameExcludeCurrent = 0x08000
	frameExcludeGroup   = 0x10000
	frameExcludeTies    = 0x20000
)

// window prints the inside of OVER (…).
func (a *analyzer) window(w *pg.WindowDef, s *scope) (string, error) {
	ref := w.Refname
	if ref == "" && w.Name != "" {
		ref = w.Name // OVER w
	}
	partition, order := w.PartitionClause, w.OrderClause
	frame := w
	if ref != "" {
		base, ok := s.windows[ref]
		if !ok {
			return "", a.errAt(w.Location, pgerr.New(codes.UndefinedObject, "window \"%s\" does not exist", ref))
		}
		if base.Refname != "" {
			return "", unsupported("a window that copies a window that copies another is not supported")
		}
		partition = append(base.PartitionClause[:len(base.PartitionClause):len(base.PartitionClause)], partition...)
		if len(order) == 0 {
			order = base.OrderClause
		}
		if w.FrameOptions&frameNonDefault == 0 {
			frame = base
		}
	}
	var parts, list []string
	var orders []Type
	for _, p := range partition {
		e, err := a.expr(p, s)
		if err != nil {
			return "", err
		}
		if e, err = a.settled(e); err != nil {
			return "", err
		}
		if err := a.equatable(e); err != nil {
			return "", err
		}
		list = append(list, equalKey(e))
	}
	if len(list) > 0 {
		parts = append(parts, "PARTITION BY "+strings.Join(list, ", "))
	}
	list = nil
	for _, o := range order {
		e, err := a.expr(o.GetSortBy().Node, s)
		if err != nil {
			return "", err
		}
		if e, err = a.settled(e); err != nil {
			return "", err
		}
		if err := a.sortable(e); err != nil {
			return "", err
		}
		orders = append(orders, e.typ)
		list = append(list, sortKey(e)+sortDirection(o.GetSortBy()))
	}
	if len(list) > 0 {
		parts = append(parts, "ORDER BY "+strings.Join(list, ", "))
	}
	f, err := a.frame(frame, orders, s)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.Join(parts, " ") + f), nil
}

// frame prints the frame of a window that is ordered by values of some types.
func (a *analyzer) frame(w *pg.WindowDef, orders []Type, s *scope) (string, error) {
	o := w.FrameOptions
	if o&frameNonDefault == 0 {
		return "", nil
	}
	mode := "RANGE"
	switch {
	case o&frameRows != 0:
		mode = "ROWS"
	case o&frameGroups != 0:
		mode = "GROUPS"
	}
	bound := func(n *pg.Node, unboundedWord string, unbounded, current, preceding, following int32) (string, error) {
		switch {
		case o&unbounded != 0:
			return unboundedWord, nil
		case o&current != 0:
			return "CURRENT ROW", nil
		}
		e, err := a.expr(n, s)
		if err != nil {
			return "", err
		}
		if e.num != nil && *e.num < 0 {
			return "", a.errAt(e.loc, pgerr.New("22013",
				"invalid preceding or following size in window function"))
		}
		if mode == "RANGE" {
			e, err = a.rangeOffset(e, orders)
		} else {
			e, err = a.coerce(e, plain(OIDInt8), implicit)
		}
		if err != nil {
			return "", err
		}
		word := " FOLLOWING"
		if o&preceding != 0 {
			word = " PRECEDING"
		}
		return native(e) + word, nil
	}
	start, err := bound(w.StartOffset, "UNBOUNDED PRECEDING", frameStartUnbounded, frameStartCurrent,
		frameStartPreceding, frameStartFollowing)
	if err != nil {
		return "", err
	}
	end, err := bound(w.EndOffset, "UNBOUNDED FOLLOWING", frameEndUnbounded, frameEndCurrent, frameEndPreceding,
		frameEndFollowing)
	if err != nil {
		return "", err
	}
	out := " " + mode + " BETWEEN " + start + " AND " + end
	switch {
	case o&frameExcludeCurrent != 0:
		out += " EXCLUDE CURRENT ROW"
	case o&frameExcludeGroup != 0:
		out += " EXCLUDE GROUP"
	case o&frameExcludeTies != 0:
		out += " EXCLUDE TIES"
	}
	return out, nil
}

// rangeOffset gives the offset of a RANGE frame the type that values of the order's have.
func (a *analyzer) rangeOffset(e expr, orders []Type) (expr, error) {
	if len(orders) != 1 {
		return e, a.errAt(e.loc, pgerr.New(codes.Windowing, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"))
	}
	order := orders[0]
	to := order
	switch order.OID {
	case OIDDate, OIDTimestamp, OIDTimestamptz, OIDTime, OIDInterval:
		to = plain(OIDInterval)
	case OIDFloat4, OIDFloat8:
		to = plain(OIDFloat8)
	}
	to.Mod = -1
	known := numericRank(order.OID) > 0 || to.OID == OIDInterval
	fits := e.undecided() || e.typ.OID == to.OID || isInt(order.OID) && isInt(e.typ.OID) ||
		to.OID != OIDInterval && numericRank(e.typ.OID) > 0 && numericRank(e.typ.OID) <= numericRank(to.OID)
	if !known || !fits {
		return e, a.errAt(e.loc, unsupported("RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s and offset type %s",
			order.Name(), e.typ.Name()))
	}
	if isInt(e.typ.OID) && isInt(order.OID) {
		return e, nil
	}
	return a.coerce(e, to, implicit)
}
