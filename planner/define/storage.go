package define

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// storageParameter is what values a storage parameter of a table has: integers, numbers, or, with
// neither, words.
type storageParameter struct {
	integer, number bool
	min, max        float64
}

const (
	int32Max    = 1<<31 - 1
	freezeLimit = 2_000_000_000
)

// storageParameters are PostgreSQL's, of tables. Here they are kept, and do nothing.
var storageParameters = map[string]storageParameter{
	"fillfactor":                            {integer: true, min: 10, max: 100},
	"toast_tuple_target":                    {integer: true, min: 128, max: 8160},
	"parallel_workers":                      {integer: true, max: 1024},
	"autovacuum_vacuum_threshold":           {integer: true, max: int32Max},
	"autovacuum_vacuum_insert_threshold":    {integer: true, min: -1, max: int32Max},
	"autovacuum_analyze_threshold":          {integer: true, max: int32Max},
	"autovacuum_vacuum_cost_limit":          {integer: true, min: 1, max: 10_000},
	"autovacuum_freeze_min_age":             {integer: true, max: 1_000_000_000},
	"autovacuum_freeze_max_age":             {integer: true, min: 100_000, max: freezeLimit},
	"autovacuum_freeze_table_age":           {integer: true, max: freezeLimit},
	"autovacuum_multixact_freeze_min_age":   {integer: true, max: 1_000_000_000},
	"autovacuum_multixact_freeze_max_age":   {integer: true, min: 10_000, max: freezeLimit},
	"autovacuum_multixact_freeze_table_age": {integer: true, max: freezeLimit},
	"log_autovacuum_min_duration":           {integer: true, min: -1, max: int32Max},
	"autovacuum_vacuum_cost_delay":          {number: true, min: 0, max: 100},
	"autovacuum_vacuum_scale_factor":        {number: true, min: 0, max: 100},
	"autovacuum_vacuum_insert_scale_factor": {number: true, min: 0, max: 100},
	"autovacuum_analyze_scale_factor":       {number: true, min: 0, max: 100},
	"autovacuum_enabled":                    {},
	"user_catalog_table":                    {},
	"vacuum_index_cleanup":                  {},
	"vacuum_truncate":                       {},
}

// setStorage adds parameters to those that there are.
func setStorage(have []string, options []*pg.Node) ([]string, error) {
	out := slices.Clone(have)
	for _, o := range options {
		d := o.GetDefElem()
		if d.Defname == "oids" && d.Defnamespace == "" {
			if value := storageValue(d.Arg); value != "false" && value != "off" && value != "0" {
				return nil, unsupported("tables declared WITH OIDS are not supported")
			}
			continue
		}
		value := storageValue(d.Arg)
		if err := checkStorage(d, value); err != nil {
			return nil, err
		}
		if d.Defnamespace != "" { // of a table of its own, which there is none of here
			continue
		}
		out = append(withoutStorage(out, d.Defname), d.Defname+"="+value)
	}
	return out, nil
}

// resetStorage takes parameters away.
func resetStorage(have []string, options []*pg.Node) []string {
	out := slices.Clone(have)
	for _, o := range options {
		out = withoutStorage(out, o.GetDefElem().GetDefname())
	}
	return out
}

func withoutStorage(list []string, name string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return strings.HasPrefix(s, name+"=") })
}

func checkStorage(d *pg.DefElem, value string) error {
	if d.Defnamespace != "" && d.Defnamespace != "toast" {
		return pgerr.New(codes.InvalidParameterValue, "unrecognized parameter namespace \"%s\"", d.Defnamespace)
	}
	p, ok := storageParameters[d.Defname]
	if !ok {
		return pgerr.New(codes.InvalidParameterValue, "unrecognized parameter \"%s\"", d.Defname)
	}
	var n float64
	var err error
	kind := "integer"
	switch {
	case p.integer:
		var i int64
		i, err = strconv.ParseInt(value, 10, 64)
		n = float64(i)
	case p.number:
		n, err = strconv.ParseFloat(value, 64)
		kind = "floating point"
	default:
		return nil
	}
	switch {
	case err != nil:
		return pgerr.New(codes.InvalidParameterValue, "invalid value for %s option \"%s\": %s", kind, d.Defname, value)
	case n < p.min || n > p.max:
		bound := func(f float64) string {
			if p.integer {
				return strconv.FormatInt(int64(f), 10)
			}
			return fmt.Sprintf("%f", f)
		}
		return pgerr.New(codes.InvalidParameterValue, "value %s out of bounds for option \"%s\"", value, d.Defname).
			WithDetail("Valid values are between \"%s\" and \"%s\".", bound(p.min), bound(p.max))
	}
	return nil
}

// storageValue is the text of a parameter's value; one that is not given is true.
func storageValue(n *pg.Node) string {
	switch {
	case n == nil:
		return "true"
	case n.GetInteger() != nil:
		return strconv.FormatInt(int64(n.GetInteger().Ival), 10)
	case n.GetFloat() != nil:
		return n.GetFloat().Fval
	case n.GetString_() != nil:
		return n.GetString_().Sval
	case n.GetTypeName() != nil:
		names := n.GetTypeName().Names
		return names[len(names)-1].GetString_().GetSval()
	}
	return ""
}
