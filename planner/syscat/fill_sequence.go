package syscat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// sequenceColumns are those that a sequence has as a relation.
var sequenceColumns = []struct {
	name string
	oid  uint32
}{{"last_value", oidInt8}, {"log_cnt", oidInt8}, {"is_called", oidBool}}

// sequenceClasses are the pg_class rows of sequences.
func sequenceClasses(env *planner.SystemEnv) []row {
	var rows []row
	for _, s := range env.Snapshot.Sequences() {
		r := classRow(planner.TableOID(s.ID), s.Name, namespaceOID(env, s.Schema), "S", len(sequenceColumns))
		r["relam"], r["relpages"], r["reltuples"], r["relreplident"] = 0, 1, 1.0, "n"
		rows = append(rows, r)
	}
	return rows
}

// sequenceAttributes are the pg_attribute rows of sequences.
func (c *Catalog) sequenceAttributes(env *planner.SystemEnv) []row {
	var rows []row
	for _, s := range env.Snapshot.Sequences() {
		for i, col := range sequenceColumns {
			rows = append(rows, c.attributeRow(planner.TableOID(s.ID), i+1, col.name, col.oid, -1, true))
		}
	}
	return rows
}

// sequenceDepends says with which columns sequences go, and which defaults draw from them.
func sequenceDepends(env *planner.SystemEnv) []row {
	var rows []row
	depends := func(class, obj, ref uint32, column int, kind string) {
		rows = append(rows, row{
			"classid": class, "objid": obj, "objsubid": 0, "refclassid": classRelation, "refobjid": ref, "refobjsubid": column, "deptype": kind,
		})
	}
	for _, s := range env.Snapshot.Sequences() {
		if t, err := env.Snapshot.TableByFace(s.Table); err == nil {
			kind := "a"
			if s.Identity != "" {
				kind = "i"
			}
			depends(classRelation, planner.TableOID(s.ID), planner.TableOID(s.Table), columnNumber(t, s.Column), kind)
		}
		text := pgsql.Nextval(s.Schema, s.Name)
		for _, t := range env.Snapshot.AllTables() {
			for i, f := range t.Current.Fields {
				if pgsql.Draws(t.Defaults[f.ID], text) {
					depends(classDefault, defaultOID(t.Face(), attNum(f, i)), planner.TableOID(s.ID), 0, "n")
				}
			}
		}
	}
	return rows
}

// columnNumber is the attribute number of a field.
func columnNumber(t *catalog.Table, id int32) int {
	for i, f := range t.Current.Fields {
		if f.ID == id {
			return attNum(f, i)
		}
	}
	return 0
}

// identities are the sequences of identity columns, by table and field.
func identities(env *planner.SystemEnv) map[change.TableID]map[int32]*sequence.Sequence {
	out := map[change.TableID]map[int32]*sequence.Sequence{}
	for _, s := range env.Snapshot.Sequences() {
		if s.Identity == "" {
			continue
		}
		if out[s.Table] == nil {
			out[s.Table] = map[int32]*sequence.Sequence{}
		}
		out[s.Table][s.Column] = s
	}
	return out
}

// identityColumn puts what information_schema.columns says of an identity.
func identityColumn(r row, s *sequence.Sequence) {
	if s == nil {
		return
	}
	r["is_identity"], r["identity_generation"] = "YES", "ALWAYS"
	if s.Identity == "d" {
		r["identity_generation"] = "BY DEFAULT"
	}
	r["identity_start"], r["identity_increment"] = fmt.Sprint(s.Start), fmt.Sprint(s.Increment)
	r["identity_maximum"], r["identity_minimum"] = fmt.Sprint(s.Max), fmt.Sprint(s.Min)
	r["identity_cycle"] = yesNo(s.Cycle)
}

// shownDefault is a default as PostgreSQL shows it: sequences that the search path finds
// are named without their schema.
func shownDefault(env *planner.SystemEnv, text string) string {
	if !strings.Contains(text, "::regclass") {
		return text
	}
	for _, s := range env.Snapshot.Sequences() {
		if slices.Contains(env.SearchPath, s.Schema) {
			long := quote.Text(quote.NameIfNeeded(s.Schema) + "." + quote.NameIfNeeded(s.Name))
			text = strings.ReplaceAll(text, long+"::regclass", quote.Text(quote.NameIfNeeded(s.Name))+"::regclass")
		}
	}
	return text
}

func fillSequence(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, s := range env.Snapshot.Sequences() {
		rows = append(rows, row{
			"seqrelid": planner.TableOID(s.ID), "seqtypid": s.Type, "seqstart": s.Start, "seqincrement": s.Increment, "seqmax": s.Max,
			"seqmin": s.Min, "seqcache": s.Cache, "seqcycle": s.Cycle,
		})
	}
	return c.build("pg_catalog.pg_sequence", rows)
}

func fillSequences(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, s := range env.Snapshot.Sequences() {
		last, called := s.Last, s.Called
		if env.Shown != nil {
			last, called = env.Shown(s)
		}
		r := row{
			"schemaname": s.Schema, "sequencename": s.Name, "sequenceowner": "postgres", "data_type": s.Type, "start_value": s.Start,
			"min_value": s.Min, "max_value": s.Max, "increment_by": s.Increment, "cycle": s.Cycle, "cache_size": s.Cache,
		}
		o := right.SequenceOf(uint32(s.ID))
		if env.Rights != nil {
			r["sequenceowner"] = env.Rights.Name(env.Rights.Owner(o))
		}
		if called && (env.Rights == nil || env.Rights.Superuser(env.Role) || env.Rights.Has(env.Role, o, right.Select|right.Usage) != 0) {
			r["last_value"] = last
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_sequences", rows)
}

func fillInfoSequences(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, s := range env.Snapshot.Sequences() {
		o := right.SequenceOf(uint32(s.ID))
		if s.Identity == "" && (env.Rights == nil || env.Rights.Superuser(env.Role) || env.Rights.Has(env.Role, o, right.Select|right.Update|right.Usage) != 0) {
			bits := map[uint32]int{21: 16, 23: 32, 20: 64}[s.Type]
			rows = append(rows, row{
				"sequence_catalog": env.Database, "sequence_schema": s.Schema, "sequence_name": s.Name, "data_type": schema.PostgresTypeName(s.Type, -1),
				"numeric_precision": bits, "numeric_precision_radix": 2, "numeric_scale": 0, "start_value": fmt.Sprint(s.Start),
				"minimum_value": fmt.Sprint(s.Min), "maximum_value": fmt.Sprint(s.Max), "increment": fmt.Sprint(s.Increment), "cycle_option": yesNo(s.Cycle),
			})
		}
	}
	return c.build("information_schema.sequences", rows)
}

// serialSequence is the sequence that goes with the column $2 of the table $1.
var serialSequence = `(SELECT CASE WHEN t.o IS NULL THEN CAST(error('42P01: relation "' || $1 || '" does not exist') AS VARCHAR)
	WHEN NOT EXISTS (SELECT 1 FROM {rel:pg_catalog.pg_attribute} a WHERE a.attrelid = t.o AND a.attname = $2)
	THEN CAST(error('42703: column "' || $2 || '" of relation "' || $1 || '" does not exist') AS VARCHAR)
	ELSE (SELECT min(skippr_quote_ident(n.nspname) || '.' || skippr_quote_ident(s.relname)) FROM {rel:pg_catalog.pg_depend} d
		JOIN {rel:pg_catalog.pg_class} s ON s.oid = d.objid AND s.relkind = 'S' JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = s.relnamespace
		JOIN {rel:pg_catalog.pg_attribute} b ON b.attrelid = d.refobjid AND b.attnum = d.refobjsubid
		WHERE d.classid = 1259 AND d.refclassid = 1259 AND d.deptype IN ('a', 'i') AND d.refobjid = t.o AND b.attname = $2) END
	FROM (SELECT ` + classOfName + ` AS o) t)`

// sequenceLast is the newest value of the sequence $1, as pg_sequence_last_value has it.
const sequenceLast = `(SELECT min(q.last_value) FROM {rel:pg_catalog.pg_sequences} q JOIN {rel:pg_catalog.pg_namespace} n ON n.nspname = q.schemaname
	JOIN {rel:pg_catalog.pg_class} c ON c.relnamespace = n.oid AND c.relname = q.sequencename WHERE c.oid = $1)`

// enumOIDs is below the oids of enumerated types.
const enumOIDs uint32 = 1 << 30

// enumTypes are the pg_type rows of enumerated types and of their arrays.
func enumTypes(env *planner.SystemEnv) []row {
	var rows []row
	for _, e := range env.Snapshot.Enums() {
		owner := uint32(oidBootstrap)
		var acl any
		if o := (right.Object{Class: right.Type, ID: e.OID()}); env.Rights != nil {
			owner = env.Rights.Owner(o)
			if x := env.Rights.Entry(o); x != nil && x.Set {
				acl = aclText(env, x.ACL)
			}
		}
		r := row{
			"oid": e.OID(), "typname": e.Name, "typnamespace": namespaceOID(env, e.Schema), "typowner": owner, "typacl": acl,
			"typlen": 4, "typbyval": true, "typtype": "e", "typcategory": "E", "typispreferred": false, "typisdefined": true,
			"typdelim": ",", "typrelid": 0, "typsubscript": 0, "typelem": 0, "typarray": e.ArrayOID(), "typinput": 3504, "typoutput": 3505,
			"typreceive": 3532, "typsend": 3533, "typmodin": 0, "typmodout": 0, "typanalyze": 0, "typalign": "i", "typstorage": "p",
			"typnotnull": false, "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
		}
		array := maps.Clone(r)
		maps.Copy(array, row{
			"oid": e.ArrayOID(), "typname": "_" + e.Name, "typacl": nil, "typlen": -1, "typbyval": false, "typtype": "b", "typcategory": "A",
			"typsubscript": 6179, "typelem": e.OID(), "typarray": 0, "typinput": 750, "typoutput": 751, "typreceive": 2400, "typsend": 2401,
			"typanalyze": 3816, "typstorage": "x",
		})
		rows = append(rows, r, array)
	}
	return rows
}

// fillEnum is pg_enum: its oids are of one moment.
func fillEnum(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, e := range env.Snapshot.Enums() {
		for i, label := range e.Labels {
			rows = append(rows, row{"oid": 1<<27 + len(rows), "enumtypid": e.OID(), "enumsortorder": float64(i + 1), "enumlabel": label})
		}
	}
	return c.build("pg_catalog.pg_enum", rows)
}

// enumColumn puts what information_schema.columns says of the type of a column.
func enumColumn(env *planner.SystemEnv, r row, oid uint32) {
	for _, e := range env.Snapshot.Enums() {
		if e.OID() == oid {
			r["data_type"], r["udt_schema"], r["udt_name"] = "USER-DEFINED", e.Schema, e.Name
		}
	}
}
