import json
import os
import pathlib
import tempfile

import psycopg2

os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
from dbt.cli.main import dbtRunner  # noqa: E402
from matrix import section  # noqa: E402

top = pathlib.Path(tempfile.mkdtemp())


def write(path, text):
    path = top / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


write("dbt_project.yml", """name: x
version: '1.0.0'
profile: x
flags: {send_anonymous_usage_stats: false}
models: {x: {+persist_docs: {relation: true, columns: true}}}
""")
write("profiles.yml", f"""x:
  target: x
  outputs:
    x: {{type: postgres, host: 127.0.0.1, port: {os.environ['PGPORT']}, user: postgres, password: unused, dbname: lake, schema: dbt, threads: 1,
      connect_timeout: 600}}
""")
write("models/models.yml", """sources:
  - name: shop
    tables:
      - name: orders
        loaded_at_field: at
        freshness: {warn_after: {count: 1, period: day}}
        columns:
          - name: id
            data_tests: [not_null]
      - name: customers
        columns:
          - name: id
            data_tests: [unique, not_null]
          - name: name
            data_tests: [{accepted_values: {arguments: {values: ['ada', 'Zoë', '']}}}]
models:
  - name: as_view
    description: orders of each customer
    columns:
      - name: customer
        description: who
        data_tests: [{relationships: {arguments: {to: "source('shop', 'customers')", field: id}}}]
  - name: as_table
    columns:
      - name: id
        data_tests: [unique]
""")
write("models/as_view.sql", "select customer, count(*) as n from {{ source('shop', 'orders') }} group by customer")
write("models/as_table.sql", "{{ config(materialized='table') }} select id, sum(total) as total from {{ source('shop', 'orders') }} group by id")
write("models/as_incremental.sql", """{{ config(materialized='incremental', unique_key='id') }}
select id, max(at) as at from {{ source('shop', 'orders') }} {% if is_incremental() %} where id > 40 {% else %} where id <= 45 {% endif %} group by id""")
write("models/as_ephemeral.sql", "{{ config(materialized='ephemeral') }} select 1 as one")
write("models/of_ephemeral.sql", "select one + 1 as two from {{ ref('as_ephemeral') }}")
write("models/of_seed.sql", "{{ config(materialized='table') }} select s.code, v.n from {{ ref('seeded') }} s join {{ ref('as_view') }} v on v.customer = s.id")
write("seeds/seeded.csv", "id,code,price,day,ok\n1,a,1.5,2024-01-01,true\n2,\"b, c\",,2024-02-29,false\n3,d,-3,,\n")
write("snapshots/held.sql", """{% snapshot held %}{{ config(target_schema='dbt', unique_key='id', strategy='check', check_cols=['code']) }}
select id, code from {{ ref('seeded') }}{% endsnapshot %}""")
where = ["--project-dir", str(top), "--profiles-dir", str(top), "--log-level", "none", "--quiet"]


def dbt(*arguments):
    result = dbtRunner().invoke([*arguments, *where])
    if result.exception:
        print("FAILED", result.exception)
    return result


def results(*arguments):
    for r in sorted(dbt(*arguments).result.results, key=lambda r: r.node.name):
        print(r.node.name, r.status, r.failures if r.node.resource_type == "test" else r.message)


def show(query):
    with psycopg2.connect("") as c, c.cursor() as cur:
        cur.execute(query)
        for row in cur:
            print(tuple(map(str, row)))


with section("debug"):
    print(dbt("debug").success)
with section("seed"):
    results("seed")
    results("seed")
    show("select * from dbt.seeded order by id")
with section("run"):
    results("run")
with section("run again"):
    results("run")
with section("snapshot"):
    results("snapshot")
    write("seeds/seeded.csv", (top / "seeds/seeded.csv").read_text().replace("1,a,", "1,changed,"))
    results("seed")
    results("snapshot")
    show("select id, code, dbt_valid_to is null as current from dbt.held order by id, current")
with section("full refresh"):
    results("run", "--full-refresh", "--select", "as_incremental", "as_table")
with section("tests"):
    results("test")
with section("rows"):
    show("select * from dbt.as_view order by customer")
    show("select * from dbt.as_table order by id limit 3")
    show("select count(*), max(id), min(at) from dbt.as_incremental")
    show("select * from dbt.of_seed order by code")
    show("select two from dbt.of_ephemeral")
with section("show"):
    for r in dbt("show", "--limit", "2", "--inline", "select customer, n from {{ ref('as_view') }} order by 1").result.results:
        print([tuple(map(str, row)) for row in r.agate_table.rows])
with section("catalog"):
    dbt("docs", "generate")
    catalog = json.loads((top / "target" / "catalog.json").read_text())
    for name, s in sorted([*catalog["sources"].items(), *catalog["nodes"].items()]):
        print(name, s["metadata"], [(c["name"], c["type"], c["index"], c["comment"]) for c in s["columns"].values()])
with section("freshness"):
    for r in dbt("source", "freshness").result.results:
        print(r.node.name, r.status, r.max_loaded_at)
