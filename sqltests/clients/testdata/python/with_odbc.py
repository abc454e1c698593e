import os
import sys

import pyodbc
from matrix import CUSTOMERS, refused, section, show

pyodbc.pooling = False
base = f"Driver={sys.argv[1]};Server=127.0.0.1;Port={os.environ['PGPORT']};Database=lake;Uid=postgres;Pwd=unused;SSLmode=disable;BoolsAsChar=0"
for mode in ("UseServerSidePrepare=1", "UseServerSidePrepare=0", "UseDeclareFetch=1;Fetch=7"):
    with section(f"{mode} values"):
        c = pyodbc.connect(base + ";" + mode, autocommit=True)
        cur = c.cursor()
        show(cur.execute(CUSTOMERS.replace(" d,", " d::text,").replace(" ts, tz,", " ts::text, tz::text,")))
        print([(d[0], d[1].__name__, d[3], d[4], d[5], d[6]) for d in cur.description])
    with section(f"{mode} parameters"):
        show(cur.execute("SELECT ?::int + 1, ?::text, ?::numeric", 1, "it's", None))
        show(cur.execute("SELECT id, name FROM shop.customers WHERE id = ?", 2))
    with section(f"{mode} catalog"):
        show((r.table_schem, r.table_name, r.table_type) for r in cur.tables(schema="shop"))
        show((r.column_name, r.type_name, r.column_size, r.nullable, r.ordinal_position) for r in cur.columns("customers", schema="shop"))
        show((r.column_name, r.key_seq, r.pk_name) for r in cur.primaryKeys("orders", schema="shop"))
        show((r.index_name, r.column_name, r.non_unique) for r in cur.statistics("orders", schema="shop") if r.index_name)
        show(cur.foreignKeys("orders", schema="shop"))
        show(r[:2] for r in cur.getTypeInfo() if r[0] in ("int4", "text", "numeric"))
        show((r.column_name, r.type_name) for r in cur.rowIdColumns("orders", schema="shop"))
    with section(f"{mode} rows"):
        print(sum(1 for _ in cur.execute("SELECT * FROM shop.orders")))
    with section(f"{mode} errors"):
        for sql in ("SELECT 1/0", "SELECT * FROM nosuch", "SELEC 1"):
            try:
                cur.execute(sql).fetchall()
                print("not refused")
            except pyodbc.Error as e:
                print(e.args[0], e.args[1].split(";")[0].splitlines()[0])
    with section(f"{mode} transactions"):
        c.autocommit = False
        cur.execute("INSERT INTO loads VALUES (?, ?, ?)", 1, "a", 1)
        print(cur.rowcount)
        c.rollback()
        cur.executemany("INSERT INTO loads VALUES (?, ?, ?)", [(i, f"v{i}", i) for i in range(3)])
        c.commit()
        show(cur.execute("SELECT * FROM loads ORDER BY id"))
        cur.execute("DELETE FROM loads")
        c.commit()
        c.close()
