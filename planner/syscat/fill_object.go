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
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/define"
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

// userTypes finds types that users have made, those of sources by the columns that are of them.
type userTypes struct {
	known usertype.Index
	byOID map[uint32]*usertype.Type // arrays, too
}

func userTypesOf(env *planner.SystemEnv) userTypes {
	all := env.Snapshot.Types()
	u := userTypes{known: usertype.IndexOf(all), byOID: map[uint32]*usertype.Type{}}
	for _, e := range all {
		u.byOID[e.OID()], u.byOID[e.ArrayOID()] = e, e
	}
	return u
}

// announced is the type that clients see for a column.
func (u userTypes) announced(t *catalog.Table, f schema.Field) (oid uint32, typmod int32) {
	kind := define.ColumnType(t, f, u.known)
	return kind.OID, kind.Mod
}

// attribute puts what pg_attribute says of the type of a column.
func (u userTypes) attribute(r row, oid uint32) row {
	e := u.byOID[oid]
	if e == nil {
		return r
	}
	t := typeRow(nil, e)
	if oid == e.ArrayOID() {
		t = arrayTypeRow(nil, e)
		r["attndims"] = 1
	}
	r["attlen"], r["attbyval"], r["attalign"], r["attstorage"], r["attcollation"] = t["typlen"], t["typbyval"], t["typalign"], t["typstorage"], t["typcollation"]
	return r
}

// column puts what information_schema.columns says of the type of a column.
func (u userTypes) column(r row, oid uint32) row {
	if e := u.byOID[oid]; e != nil {
		r["data_type"], r["udt_schema"], r["udt_name"] = "USER-DEFINED", e.Schema, e.Name
		if oid == e.ArrayOID() {
			r["data_type"], r["udt_name"] = "ARRAY", "_"+e.Name
		}
	}
	return r
}

// userTypeRows are the pg_type rows of types that users have made, and of their arrays.
func userTypeRows(env *planner.SystemEnv) []row {
	var rows []row
	for _, e := range env.Snapshot.Types() {
		rows = append(rows, typeRow(env, e))
		if e.Source == nil || e.Source.ArrayOID != 0 {
			rows = append(rows, arrayTypeRow(env, e))
		}
	}
	return rows
}

// typeRow is the pg_type row of a type. Those of sources but enums are base types, also where
// they are composite there: their values are texts here. env is nil where its owner does not
// matter.
func typeRow(env *planner.SystemEnv, e *usertype.Type) row {
	r := row{
		"oid": e.OID(), "typname": e.Name, "typlen": 4, "typbyval": true, "typtype": "e", "typcategory": "E", "typispreferred": false,
		"typisdefined": true, "typdelim": ",", "typrelid": 0, "typsubscript": 0, "typelem": 0, "typarray": e.ArrayOID(), "typinput": 3506,
		"typoutput": 3507, "typreceive": 3532, "typsend": 3533, "typmodin": 0, "typmodout": 0, "typanalyze": 0, "typalign": "i",
		"typstorage": "p", "typnotnull": false, "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
	}
	if s := e.Source; s != nil && e.Kind != usertype.Enum {
		maps.Copy(r, row{
			"typlen": s.Length, "typbyval": false, "typtype": "b", "typcategory": s.Category, "typinput": 46, "typoutput": 47,
			"typreceive": 0, "typsend": 0, "typstorage": "x",
		})
		if s.Length >= 0 {
			r["typstorage"] = "p"
		}
		if s.Textual {
			r["typreceive"], r["typsend"] = 2414, 2415
		}
		if e.Kind == usertype.Folded {
			r["typcollation"] = 100
		}
		if s.ArrayOID == 0 {
			r["typarray"] = 0
		}
	}
	if env == nil {
		return r
	}
	r["typnamespace"], r["typowner"], r["typacl"] = namespaceOID(env, e.Schema), oidBootstrap, nil
	if o := (right.Object{Class: right.Type, ID: e.OID()}); env.Rights != nil {
		r["typowner"] = env.Rights.Owner(o)
		if x := env.Rights.Entry(o); x != nil && x.Set {
			r["typacl"] = aclText(env, x.ACL)
		}
	}
	return r
}

func arrayTypeRow(env *planner.SystemEnv, e *usertype.Type) row {
	r := typeRow(env, e)
	maps.Copy(r, row{
		"oid": e.ArrayOID(), "typname": "_" + e.Name, "typacl": nil, "typlen": -1, "typbyval": false, "typtype": "b", "typcategory": "A",
		"typsubscript": 6179, "typelem": e.OID(), "typarray": 0, "typinput": 750, "typoutput": 751, "typreceive": 2400, "typsend": 2401,
		"typanalyze": 3816, "typstorage": "x",
	})
	return r
}

// fillEnum is pg_enum: its oids are of one moment.
func fillEnum(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, e := range env.Snapshot.Types() {
		for i, label := range e.Labels {
			rows = append(rows, row{"oid": 1<<27 + len(rows), "enumtypid": e.OID(), "enumsortorder": float64(i + 1), "enumlabel": label})
		}
	}
	return c.build("pg_catalog.pg_enum", rows)
}

// isArray says whether an oid is of the arrays of such a type.
func (u userTypes) isArray(oid uint32) bool {
	e := u.byOID[oid]
	return e != nil && oid == e.ArrayOID()
}

// element puts what information_schema.element_types says of arrays of such a type.
func (u userTypes) element(r row, oid uint32) row {
	if u.isArray(oid) {
		e := u.byOID[oid]
		r["data_type"], r["udt_schema"], r["udt_name"] = "USER-DEFINED", e.Schema, e.Name
	}
	return r
}
