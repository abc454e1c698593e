import io

import psycopg2
import psycopg2.extras
from matrix import CUSTOMERS, refused, section, show

c = psycopg2.connect("")
cur = c.cursor()
with section("status"):
    print(c.server_version // 10000, c.encoding, c.get_parameter_status("standard_conforming_strings"), c.get_parameter_status("DateStyle"))
with section("values"):
    cur.execute(CUSTOMERS.replace(" b,", " encode(b, 'hex'),").replace(" d,", " nullif(d, '0001-01-01') AS d,"))
    show(cur)
    print([(d.name, d.type_code) for d in cur.description])
with section("parameters"):
    cur.execute("SELECT %s, %s, %s, %s, %s::jsonb", (1, "it's", None, [1, 2], psycopg2.extras.Json({"a": 1})))
    show(cur)
with section("rowcount"):
    cur.execute("SELECT * FROM shop.orders")
    print(cur.rowcount, cur.statusmessage)
with section("errors"):
    refused(psycopg2.Error, cur.execute, "SELECT 1/0")
    refused(psycopg2.Error, cur.execute, "SELECT 1")
    c.rollback()
    refused(psycopg2.Error, cur.execute, "SELECT * FROM nosuch")
    c.rollback()
with section("named cursor"):
    with c.cursor(name="named") as named:
        named.itersize = 10
        named.execute("SELECT id, line, total FROM shop.orders ORDER BY id, line")
        print(sum(1 for _ in named))
    c.commit()
with section("scrollable cursor"):
    with c.cursor(name="scroll", scrollable=True) as named:
        named.execute("SELECT id FROM shop.customers ORDER BY id")
        print(named.fetchone())
        named.scroll(1)
        print(named.fetchall())
        named.scroll(0, mode="absolute")
        print(named.fetchmany(2))
    c.commit()
c.rollback()  # of what was refused
with section("with hold"):
    named = c.cursor(name="held", withhold=True)
    named.execute("SELECT id FROM shop.customers ORDER BY id")
    c.commit()
    print(named.fetchall())
    named.close()
    c.commit()
with section("copy"):
    cur.copy_expert("COPY loads FROM STDIN", io.StringIO("1\ta\t1.50\n2\t\\N\t\\N\n"))
    print(cur.rowcount)
    cur.copy_from(io.StringIO("3;x;2\n"), "loads", sep=";")
    c.commit()
    out = io.StringIO()
    cur.copy_expert("COPY (SELECT * FROM loads ORDER BY id) TO STDOUT (FORMAT csv, HEADER)", out)
    print(out.getvalue())
with section("execute_values"):
    psycopg2.extras.execute_values(cur, "INSERT INTO loads (id, v) VALUES %s", [(i, f"v{i}") for i in range(10, 20)])
    cur.execute("SELECT count(*), max(v) FROM loads")
    show(cur)
    c.rollback()
with section("write"):
    cur.execute("INSERT INTO loads VALUES (%s, %s, %s) RETURNING id, n", (7, "seven", 7))
    show(cur)
    cur.execute("UPDATE loads SET v = upper(v) WHERE id < 8")
    print(cur.rowcount)
    cur.execute("TRUNCATE loads")
    c.commit()
with section("isolation"):
    c.set_session(isolation_level="REPEATABLE READ", readonly=True)
    cur.execute("SHOW transaction_isolation")
    show(cur)
    cur.execute("SHOW transaction_read_only")
    show(cur)
    c.rollback()
    c.set_session(isolation_level="DEFAULT", readonly=False)
with section("autocommit"):
    c.autocommit = True
    cur.execute("SELECT 1")
    print(c.info.transaction_status, cur.fetchall())
with section("cancel"):
    with psycopg2.connect("") as other, other.cursor() as limited:
        limited.execute("SET statement_timeout = 500")
        refused(psycopg2.Error, limited.execute, "SELECT pg_sleep(60)")
with section("reset"):
    c.reset()
    print(c.status)
