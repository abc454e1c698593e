package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
)

// typesQuery lists the types that columns of tables $1 reach: their own, and those inside of
// arrays, domains, ranges and composite types. {multirange} is what only newer servers have.
const typesQuery = `
WITH RECURSIVE reached(type) AS (
  SELECT a.atttypid FROM pg_catalog.pg_attribute a
   WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384
  UNION
  SELECT n.type
    FROM reached r JOIN pg_catalog.pg_type t ON t.oid = r.type,
         LATERAL (
           SELECT t.typelem
           UNION ALL SELECT t.typbasetype
           UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
                      WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
           UNION ALL SELECT g.rngsubtype FROM pg_catalog.pg_range g WHERE g.rngtypid = t.oid
           {multirange}) n(type)
   WHERE n.type >= 16384),
found AS (
  SELECT t.oid, n.nspname, t.typname, t.typtype, t.typlen, t.typcategory, t.typarray,
         CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 AND t.typtype = 'b' THEN t.typelem ELSE 0 END AS elem, t.typbasetype AS base,
         coalesce(x.extname, '') AS extension,
         coalesce(p.proname IN ('enum_send', 'citextsend', 'textsend', 'varcharsend', 'bpcharsend'), false) AS textual,
         t.typtype = 'c' AS composite, EXISTS (SELECT FROM pg_catalog.pg_cast c WHERE c.castsource = t.oid AND c.casttarget = 114) AS json,
         ARRAY(SELECT a.atttypid::oid FROM pg_catalog.pg_attribute a
                WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) ||
         ARRAY(SELECT g.rngsubtype FROM pg_catalog.pg_range g WHERE g.rngtypid = t.oid {subtype}) AS parts
    FROM reached r
    JOIN pg_catalog.pg_type t ON t.oid = r.type
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_proc p ON p.oid = t.typsend
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
    LEFT JOIN pg_catalog.pg_extension x ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND x.oid = d.refobjid)
`

const (
	multirange = `UNION ALL SELECT g.rngtypid FROM pg_catalog.pg_range g WHERE g.rngmultitypid = t.oid`
	subtype    = `OR g.rngmultitypid = t.oid`
)

// readQuery lists them with their labels, digestQuery is a digest of all that.
const (
	readQuery = `
SELECT f.oid, {{f.nspname}}, {{f.typname}}, f.typtype::text, f.typlen, f.typcategory::text, f.typarray, f.elem::oid, f.base, f.extension, f.textual, f.composite, f.json, f.parts,
       ARRAY(SELECT e.oid FROM pg_catalog.pg_enum e WHERE e.enumtypid = f.oid ORDER BY e.enumsortorder),
       ARRAY(SELECT {{e.enumlabel}} FROM pg_catalog.pg_enum e WHERE e.enumtypid = f.oid ORDER BY e.enumsortorder)
  FROM found f ORDER BY f.oid`
	digestQuery = `
SELECT pg_catalog.md5(coalesce(string_agg(f::text || ' ' ||
         coalesce((SELECT string_agg(e.oid || ' ' || e.enumlabel, E'\n' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = f.oid), ''),
       E'\n' ORDER BY f.oid), '')) FROM found f`
	columnsQuery = `
SELECT DISTINCT a.attrelid, a.atttypid FROM pg_catalog.pg_attribute a
 WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384`
)

// versionMultirange is the first server with multiranges.
const versionMultirange = 140000

func query(version int, tail string) string {
	with := []string{"{multirange}", "", "{subtype}", ""}
	if version >= versionMultirange {
		with = []string{"{multirange}", multirange, "{subtype}", subtype}
	}
	return strings.NewReplacer(with...).Replace(typesQuery + tail)
}

// kind is a type as the server has it.
type kind struct {
	usertype.Found
	typtype, extension string
	elem, base         uint32
	// parts are the types of attributes, or what a range is of, or a multirange.
	parts []uint32
}

// Read returns the types that tables' columns are of, by the numbers of the tables, as a server of
// a version has them at the connection's snapshot. Arrays and domains come as what they are of.
func Read(ctx context.Context, conn *pgx.Conn, version int, tables []uint32) (map[uint32][]usertype.Found, error) {
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(query(version, readQuery)), tables)
	if err != nil {
		return nil, fmt.Errorf("list types: %w", err)
	}
	all := types{}
	var k kind
	_, err = pgx.ForEachRow(rows, []any{
		&k.OID, &k.Schema, &k.Name, &k.typtype, &k.Length, &k.Category, &k.ArrayOID, &k.elem, &k.base, &k.extension, &k.Textual, &k.Composite, &k.JSON, &k.parts, &k.LabelOIDs, &k.Labels,
	}, func() error {
		one := k
		names.Read(&one.Schema, &one.Name)
		names.Texts(one.Labels)
		one.Schema, one.Name = naming.Show(one.Schema), naming.Show(one.Name)
		all[one.OID] = &one
		k.parts, k.LabelOIDs, k.Labels = nil, nil, nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list types: %w", err)
	}
	rows, err = conn.Query(ctx, columnsQuery, tables)
	if err != nil {
		return nil, fmt.Errorf("list columns of types: %w", err)
	}
	out := map[uint32][]usertype.Found{}
	var table, oid uint32
	_, err = pgx.ForEachRow(rows, []any{&table, &oid}, func() error {
		k := all.meant(oid)
		if k != nil && !slices.ContainsFunc(out[table], func(f usertype.Found) bool { return f.OID == k.OID }) {
			k.Kind = all.kindOf(k)
			out[table] = append(out[table], k.Found)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list columns of types: %w", err)
	}
	return out, nil
}

// Digest is another text whenever Read would return other types for tables.
func Digest(ctx context.Context, conn *pgx.Conn, version int, tables []uint32) (digest string, err error) {
	if err := conn.QueryRow(ctx, query(version, digestQuery), tables).Scan(&digest); err != nil {
		return "", fmt.Errorf("digest types: %w", err)
	}
	return digest, nil
}

type types map[uint32]*kind

// depthMax bounds how deep types are followed into each other.
const depthMax = 64

// meant is the type of users that a column of a type is of: what a domain is of, the elements of
// arrays; nil when that is one of the server's own.
func (t types) meant(oid uint32) *kind {
	k := t[oid]
	for depth := 0; k != nil && k.typtype == "d" && depth < depthMax; depth++ {
		k = t[k.base]
	}
	if k != nil && k.elem != 0 {
		return t[k.elem] // a domain as it is: the array has a type of its own
	}
	return k
}

func (t types) kindOf(k *kind) usertype.Kind {
	switch {
	case k.typtype == "e":
		return usertype.Enum
	case k.extension == "citext" && k.Name == "citext":
		return usertype.Folded
	case t.canonical(k.OID, 0):
		return usertype.Canonical
	}
	return usertype.Opaque
}

// canonicalTypes are types of extensions of which equal values have one text.
var canonicalTypes = map[[2]string]bool{
	{"hstore", "hstore"}: true, {"ltree", "ltree"}: true,
}

// canonicalOwn are the server's types of which equal values have one text. Not of them: floats
// (0 and -0), numeric (1.0 and 1.00), interval (24 hours and 1 day), bpchar, what is made of
// them, what has no equality, and names of objects.
var canonicalOwn = map[uint32]bool{
	16: true, 17: true, 18: true, 19: true, 20: true, 21: true, 23: true, 25: true, 26: true, 27: true, 28: true, 29: true, 650: true, 774: true,
	829: true, 869: true, 1043: true, 1082: true, 1083: true, 1114: true, 1184: true, 1560: true, 1562: true, 2950: true, 3220: true, 3614: true,
	3904: true, 3908: true, 3910: true, 3912: true, 3926: true, 4451: true, 4533: true, 4534: true, 4535: true, 4536: true, 5069: true,
}

// canonical says whether equal values of a type have one text.
func (t types) canonical(oid uint32, depth int) bool {
	if oid < schema.OIDFirstUser {
		if elem := schema.ElementOID(oid); elem != 0 {
			oid = elem
		}
		return canonicalOwn[oid]
	}
	k := t[oid]
	if k == nil || depth > depthMax {
		return false
	}
	switch {
	case k.typtype == "e":
		return true
	case k.typtype == "d":
		return t.canonical(k.base, depth+1)
	case k.elem != 0:
		return t.canonical(k.elem, depth+1)
	case k.typtype == "c", k.typtype == "r", k.typtype == "m":
		return !slices.ContainsFunc(k.parts, func(part uint32) bool { return !t.canonical(part, depth+1) })
	}
	return canonicalTypes[[2]string{k.extension, k.Name}]
}
