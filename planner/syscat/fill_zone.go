package syscat

import (
	"context"
	"fmt"

	pgencode "github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner"
)

// fillZones are the time zones that can be set, as they are now.
func fillZones(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	names, err := fileRows("zone_names")
	if err != nil {
		return nil, err
	}
	rows := make([]row, 0, len(names))
	for _, n := range names {
		name, _ := n[0].(string)
		loc, err := pgencode.LoadZone(name)
		if err != nil {
			continue // PostgreSQL's list knows one that this machine does not
		}
		at := env.Now.In(loc)
		abbrev, offset := at.Zone()
		rows = append(rows, row{"name": name, "abbrev": abbrev, "utc_offset": offsetText(offset), "is_dst": at.IsDST()})
	}
	return c.build("pg_catalog.pg_timezone_names", rows)
}

// offsetText is an offset from UTC as an interval.
func offsetText(seconds int) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	return fmt.Sprintf("%s%02d:%02d:%02d", sign, seconds/3600, seconds/60%60, seconds%60)
}
