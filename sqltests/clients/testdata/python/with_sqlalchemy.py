import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from matrix import section, show

for driver in ("psycopg2", "psycopg"):
    e = sa.create_engine(f"postgresql+{driver}://")
    with section(f"{driver} connect"):
        with e.connect() as c:
            print(e.dialect.server_version_info[0], e.dialect.default_schema_name, c.get_isolation_level())
    inspect = sa.inspect(e)
    with section(f"{driver} names"):
        print([s for s in inspect.get_schema_names() if s != "skippr"])
        for s in ("public", "shop"):
            print(s, sorted(inspect.get_table_names(s)), inspect.get_view_names(s), inspect.get_materialized_view_names(s), inspect.get_sequence_names(s))
        print(inspect.has_table("customers", "shop"), inspect.has_table("customers"), inspect.has_schema("nosuch"))
    with section(f"{driver} columns"):
        for t in ("customers", "orders", "Odd Names"):
            for column in inspect.get_columns(t, "shop"):
                print(t, column["name"], repr(column["type"]), column["nullable"], column["comment"])
    with section(f"{driver} constraints"):
        for t in ("customers", "orders", "Odd Names"):
            print(t, inspect.get_pk_constraint(t, "shop"), inspect.get_foreign_keys(t, "shop"), inspect.get_unique_constraints(t, "shop"))
            print(t, inspect.get_indexes(t, "shop"), inspect.get_check_constraints(t, "shop"), inspect.get_table_comment(t, "shop"))
    with section(f"{driver} enums and domains"):
        print(inspect.get_enums("*"), inspect.get_domains("shop"))
    with section(f"{driver} reflect"):
        meta = sa.MetaData()
        meta.reflect(e, schema="shop")
        for t in meta.sorted_tables:
            print(sa.schema.CreateTable(t).compile(dialect=postgresql.dialect()) if t.name != "customers" else t.primary_key)
    with section(f"{driver} query"):
        orders = meta.tables["shop.orders"]
        with e.connect() as c:
            show(c.execute(sa.select(orders.c.line, sa.func.sum(orders.c.total)).where(orders.c.id < 10).group_by(orders.c.line).order_by(orders.c.line)))
            show(c.execute(sa.select(orders).order_by(orders.c.id.desc(), orders.c.line).limit(2).offset(1)))
    with section(f"{driver} stream"):
        with e.connect().execution_options(stream_results=True, max_row_buffer=10) as c:
            print(sum(1 for _ in c.execute(sa.select(orders))))
    with section(f"{driver} write"):
        loads = sa.Table("loads", sa.MetaData(), autoload_with=e)
        with e.begin() as c:
            print(c.execute(loads.insert().returning(loads.c.id), [{"id": i, "v": f"v{i}", "n": i} for i in range(3)]).fetchall())
            c.execute(postgresql.insert(loads).values(id=1, v="again").on_conflict_do_update(index_elements=["id"], set_={"v": "twice"}))
            with c.begin_nested() as nested:
                c.execute(loads.delete())
                nested.rollback()
            show(c.execute(sa.select(loads).order_by(loads.c.id)))
            c.execute(sa.text("TRUNCATE loads"))
    e.dispose()
