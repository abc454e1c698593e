import psycopg
from psycopg.rows import dict_row
from matrix import CUSTOMERS, refused, section, show

c = psycopg.connect("", autocommit=True)
for binary in (False, True):
    with section(f"values, binary={binary}"):
        cur = c.cursor(binary=binary)
        show(cur.execute(CUSTOMERS))
        print([(d.name, d.type_code, d.internal_size, d.precision, d.scale) for d in cur.description])
with section("intervals"):
    show(c.execute("SELECT i FROM shop.customers WHERE id = 2"))
with section("parameters"):
    show(c.execute("SELECT %s, %s::text, %s::int, %s, %b, %t", (1, "it's", None, [1, 2], 5, 6)))
with section("server-side names"):
    for i in range(8):
        show(c.execute("SELECT name FROM shop.customers WHERE id = %s", (i % 3 + 1,), prepare=True))
    print(c.execute("SELECT count(*) > 0 FROM pg_prepared_statements").fetchone())
with section("errors"):
    refused(psycopg.Error, c.execute, "SELECT 1/0")
    refused(psycopg.Error, c.execute, "SELECT %s::int", ("x",))
    refused(psycopg.Error, c.execute, "SELECT * FROM nosuch")
with section("pipeline"):
    with c.pipeline() as p:
        a = c.execute("SELECT 1")
        b = c.execute("SELECT count(*) FROM shop.orders")
        p.sync()
        print(a.fetchall(), b.fetchall())
with section("pipeline error"):
    try:
        with c.pipeline():
            c.execute("SELECT 1")
            c.execute("SELECT 1/0")
            c.execute("SELECT 2")
    except psycopg.Error as e:
        print(type(e).__name__, e.sqlstate)
    print(c.info.transaction_status)
with section("transactions"):
    with c.transaction():
        c.execute("INSERT INTO loads VALUES (1, 'a', 1)")
        try:
            with c.transaction():
                c.execute("INSERT INTO loads VALUES (2, 'b', 2)")
                c.execute("SELECT 1/0")
        except psycopg.errors.DivisionByZero:
            print("rolled back to the savepoint")
    show(c.execute("SELECT * FROM loads"))
with section("executemany"):
    cur = c.cursor()
    cur.executemany("INSERT INTO loads VALUES (%s, %s, %s) RETURNING id", [(i, f"v{i}", i) for i in range(10, 13)], returning=True)
    while True:
        show(cur)
        if not cur.nextset():
            break
for kind in ("text", "binary"):
    with section(f"copy {kind}"):
        c.execute("TRUNCATE loads")
        with c.cursor().copy(f"COPY loads (id, v, n) FROM STDIN (FORMAT {kind})") as copy:
            copy.set_types(["int8", "text", "numeric"])
            copy.write_row((1, "one", 1))
            copy.write_row((2, None, None))
        with c.cursor().copy(f"COPY (SELECT id, v, n FROM loads ORDER BY id) TO STDOUT (FORMAT {kind})") as copy:
            copy.set_types(["int8", "text", "numeric"])
            show(copy.rows())
with section("copy broken off"):
    try:
        with c.cursor().copy("COPY loads FROM STDIN") as copy:
            copy.write_row((9, "x", 1))
            raise RuntimeError("no more")
    except RuntimeError as e:
        print(e)
    show(c.execute("SELECT count(*) FROM loads WHERE id = 9"))
    c.execute("TRUNCATE loads")
with section("server cursor"):
    with c.transaction(), c.cursor(name="s", row_factory=dict_row) as cur:
        cur.execute("SELECT id, line FROM shop.orders ORDER BY id, line")
        print(cur.fetchmany(3), cur.fetchone())
with section("multi-statement"):
    cur = c.execute("SELECT 1; SELECT 2, 3")
    print(cur.fetchall(), cur.nextset(), cur.fetchall(), cur.nextset())
with section("stream"):
    print(sum(1 for _ in c.cursor().stream("SELECT * FROM shop.orders")))
with section("type info"):
    print(psycopg.types.TypeInfo.fetch(c, "int4"))
    print(psycopg.types.TypeInfo.fetch(c, "text").array_oid)
with section("cancel"):
    c.execute("SET statement_timeout = 100")
    refused(psycopg.Error, c.execute, "SELECT pg_sleep(60)")
