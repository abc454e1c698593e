package generate

import (
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
)

// Table is one of the shop's tables.
type Table int

// The tables, in the order of discovery.
const (
	Customers Table = iota
	Products
	Orders
	Payments
	Visits // has no key: append only
	AccountsA
	AccountsB

	tableCount
)

// Tables lists all tables.
func Tables() []Table {
	return []Table{Customers, Products, Orders, Payments, Visits, AccountsA, AccountsB}
}

// SourceSchema is the schema that the tables have at the source.
const SourceSchema = "public"

const oidBase = 100_000

// OID is the table's number at the source.
func (t Table) OID() uint32 { return oidBase + uint32(t) }

// String is the table's name.
func (t Table) String() string { return shopTables[t].name }

// Columns are the names of the table's columns, in the order of its rows.
func (t Table) Columns() []string {
	names := make([]string, len(shopTables[t].columns))
	for i, c := range shopTables[t].columns {
		names[i] = c.Name
	}
	return names
}

// Key are the indexes of the key's columns, nil for a table without a key.
func (t Table) Key() []int {
	if t == Visits {
		return nil
	}
	return []int{0}
}

// Source describes the table.
func (t Table) Source(rows int64) ingest.SourceTable {
	d := shopTables[t]
	s := ingest.SourceTable{
		Schema: SourceSchema, Name: d.name, OID: t.OID(), EstimatedRows: rows,
		EstimatedBytes: rows * rowBytes, ReplicaIdentity: "default",
		Columns: append([]ingest.SourceColumn(nil), d.columns...),
	}
	for i := range s.Columns {
		s.Columns[i].AttNum = int16(i + 1)
	}
	for _, k := range t.Key() {
		s.Key = append(s.Key, d.columns[k].Name)
		s.Columns[k].NotNull = true
	}
	return s
}

const rowBytes = 120 // about what a row takes, for progress only

type shopTable struct {
	name    string
	columns []ingest.SourceColumn
}

var (
	textElem = schema.Type{Kind: schema.String}
	intElem  = schema.Type{Kind: schema.Int32}

	int4Type    = ingest.SourceColumn{OID: 23, TypMod: -1, TypeName: "integer", Type: schema.Type{Kind: schema.Int32}}
	int8Type    = ingest.SourceColumn{OID: 20, TypMod: -1, TypeName: "bigint", Type: schema.Type{Kind: schema.Int64}}
	float8Type  = ingest.SourceColumn{OID: 701, TypMod: -1, TypeName: "double precision", Type: schema.Type{Kind: schema.Float64}}
	boolType    = ingest.SourceColumn{OID: 16, TypMod: -1, TypeName: "boolean", Type: schema.Type{Kind: schema.Bool}}
	textType    = ingest.SourceColumn{OID: 25, TypMod: -1, TypeName: "text", Type: schema.Type{Kind: schema.String}}
	jsonbType   = ingest.SourceColumn{OID: 3802, TypMod: -1, TypeName: "jsonb", Type: schema.Type{Kind: schema.String}, Note: "exact text"}
	uuidType    = ingest.SourceColumn{OID: 2950, TypMod: -1, TypeName: "uuid", Type: schema.Type{Kind: schema.UUID}}
	dateType    = ingest.SourceColumn{OID: 1082, TypMod: -1, TypeName: "date", Type: schema.Type{Kind: schema.Date}}
	instantType = ingest.SourceColumn{OID: 1184, TypMod: -1, TypeName: "timestamp with time zone", Type: schema.Type{Kind: schema.TimestampTZ}}
	moneyType   = ingest.SourceColumn{
		OID: 1700, TypMod: 12<<16 | 2 + 4, TypeName: "numeric(12,2)",
		Type: schema.Type{Kind: schema.Decimal, Precision: 12, Scale: 2},
	}
	intsType  = ingest.SourceColumn{OID: 1007, TypMod: -1, TypeName: "integer[]", Type: schema.Type{Kind: schema.List, Elem: &intElem}}
	textsType = ingest.SourceColumn{OID: 1009, TypMod: -1, TypeName: "text[]", Type: schema.Type{Kind: schema.List, Elem: &textElem}}
)

func column(name string, of ingest.SourceColumn) ingest.SourceColumn {
	of.Name = name
	return of
}

var shopTables = [tableCount]shopTable{
	Customers: {"customers", []ingest.SourceColumn{
		column("id", int8Type), column("email", textType), column("name", textType),
		column("active", boolType), column("credit", moneyType), column("tags", textsType),
		column("profile", jsonbType), column("created_at", instantType), column("updated_at", instantType),
	}},
	Products: {"products", []ingest.SourceColumn{
		column("sku", textType), column("title", textType), column("price", moneyType),
		column("stock", int4Type), column("ratings", intsType), column("ref", uuidType),
		column("weight", float8Type),
	}},
	Orders: {"orders", []ingest.SourceColumn{
		column("id", int8Type), column("customer_id", int8Type), column("status", textType),
		column("total", moneyType), column("items", intsType), column("note", textType),
		column("ref", uuidType), column("placed_at", instantType), column("updated_at", instantType),
	}},
	Payments: {"payments", []ingest.SourceColumn{
		column("id", int8Type), column("order_id", int8Type), column("amount", moneyType),
		column("method", textType), column("paid_on", dateType), column("ok", boolType),
	}},
	Visits: {"visits", []ingest.SourceColumn{
		column("customer_id", int8Type), column("path", textType), column("ms", int4Type),
		column("at", instantType),
	}},
	AccountsA: {"accounts_a", []ingest.SourceColumn{
		column("id", int4Type), column("owner", textType), column("balance", moneyType),
	}},
	AccountsB: {"accounts_b", []ingest.SourceColumn{
		column("id", int4Type), column("owner", textType), column("balance", moneyType),
	}},
}
