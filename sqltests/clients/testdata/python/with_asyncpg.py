import asyncio

import asyncpg
from matrix import CUSTOMERS, section, show


async def refused(run):
    try:
        print("not refused:", await run)
    except asyncpg.PostgresError as e:
        print(type(e).__name__, e.sqlstate, e)


async def main():
    c = await asyncpg.connect(timeout=600)
    with section("settings"):
        s = c.get_settings()
        print(s.client_encoding, s.standard_conforming_strings, s.integer_datetimes, c.get_server_version().major)
    with section("values"):
        show(await c.fetch(CUSTOMERS))
    with section("intervals"):
        show(await c.fetch("SELECT i FROM shop.customers ORDER BY id"))
    with section("parameters"):
        show(await c.fetch("SELECT $1::int + 1, $2::text, $3::text[], $4::jsonb, $5::timestamptz IS NULL", 1, "x", ["a", None], "{}", None))
    with section("prepared"):
        p = await c.prepare("SELECT id, name FROM shop.customers WHERE id = $1")
        print(p.get_parameters(), [(a.name, a.type.name, a.type.oid) for a in p.get_attributes()])
        print(await p.fetchval(2, column=1), p.get_statusmsg())
    with section("cursor"):
        async with c.transaction():
            ids = [r["id"] async for r in c.cursor("SELECT id FROM shop.orders ORDER BY id, line", prefetch=7)]
            print(len(ids), sum(ids))
            cur = await c.cursor("SELECT id FROM shop.orders ORDER BY id, line")
            print(await cur.forward(10), await cur.fetch(2))
    with section("transactions"):
        async with c.transaction(isolation="repeatable_read", readonly=True):
            print(await c.fetchval("SHOW transaction_isolation"), await c.fetchval("SHOW transaction_read_only"))
        try:
            async with c.transaction():
                await c.execute("INSERT INTO loads VALUES (1)")
                async with c.transaction():
                    await c.execute("SELECT 1/0")
        except asyncpg.DivisionByZeroError as e:
            print(e)
        print(await c.fetchval("SELECT count(*) FROM loads"))
    with section("errors"):
        await refused(c.fetch("SELECT 1/0"))
        await refused(c.fetch("SELECT * FROM nosuch"))
        await refused(c.fetch("SELECT nosuch(1)"))
    with section("executemany"):
        await c.executemany("INSERT INTO loads VALUES ($1, $2, $3)", [(i, f"v{i}", i) for i in range(5)])
        show(await c.fetch("SELECT * FROM loads ORDER BY id"))
        print(await c.execute("TRUNCATE loads"))
    with section("copy"):
        print(await c.copy_records_to_table("loads", records=[(1, "a", None), (2, None, 2)], columns=["id", "v", "n"]))
        show(await c.fetch("SELECT * FROM loads ORDER BY id"))
        out = bytearray()

        async def take(data):
            out.extend(data)

        print(await c.copy_from_query("SELECT * FROM loads ORDER BY id", output=take, format="csv"), bytes(out))
        await c.execute("TRUNCATE loads")
    with section("composite introspection"):
        show(await c.fetch("SELECT typname::text, typtype FROM pg_type WHERE oid = ANY($1::oid[]) ORDER BY 1", [23, 25]))
    with section("record"):
        show(await c.fetch("SELECT (1, 'x'::text, NULL::int)"))
    with section("cancel"):
        try:
            await c.fetch("SELECT pg_sleep(60)", timeout=0.3)
        except asyncio.TimeoutError:
            print("timeout")
        print(await c.fetchval("SELECT 1"))
    with section("reset"):
        await c.execute("SET application_name = 'x'")
        await c.reset()
        print(repr(await c.fetchval("SHOW application_name")))
    with section("listen"):
        got = asyncio.get_running_loop().create_future()
        await c.add_listener("channel", lambda *a: got.done() or got.set_result(a[2:]))
        await c.execute("NOTIFY channel, 'hello'")
        print(await asyncio.wait_for(got, 600))
    await c.close()
    with section("pool"):
        async with asyncpg.create_pool(min_size=1, max_size=2, timeout=600) as pool:
            print(await asyncio.gather(*[pool.fetchval("SELECT $1::int", i) for i in range(6)]))


asyncio.run(main())
