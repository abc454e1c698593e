import json
import os
import pathlib
import sys
import tempfile

os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
from dbt.cli.main import dbtRunner  # noqa: E402
from matrix import section  # noqa: E402

top = pathlib.Path(tempfile.mkdtemp())


def write(path, text):
    path = top / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


write("dbt_project.yml", "name: x\nversion: '1.0.0'\nprofile: x\nmodel-paths: [models]\nflags: {send_anonymous_usage_stats: false}\n")
write("profiles.yml", f"""x:
  target: x
  outputs:
    x: {{type: postgres, host: 127.0.0.1, port: {os.environ['PGPORT']}, user: postgres, password: unused, dbname: lake, schema: public, threads: 1}}
""")
write("models/sources.yml", """sources:
  - name: shop
    tables:
      - name: orders
        loaded_at_field: at
        columns:
          - name: id
            data_tests: [not_null]
      - name: customers
        columns:
          - name: id
            data_tests: [unique, not_null]
          - name: name
            data_tests: [{accepted_values: {arguments: {values: ['ada', 'Zoë', '']}}}]
""")
write("models/m.sql", "select customer, count(*) as n from {{ source('shop', 'orders') }} group by customer")


def dbt(*arguments):
    result = dbtRunner().invoke([*arguments, "--project-dir", str(top), "--profiles-dir", str(top), "--quiet", "--no-partial-parse"])
    if result.exception:
        print("FAILED", result.exception)
    return result


with section("debug"):
    print(dbt("debug").success)
with section("tests"):
    for r in sorted(dbt("test").result.results, key=lambda r: r.node.name):
        print(r.node.name, r.status, r.failures)
with section("catalog"):
    dbt("docs", "generate", "--empty-catalog") if len(sys.argv) > 1 else dbt("docs", "generate")
    catalog = json.loads((top / "target" / "catalog.json").read_text())
    for name, s in sorted(catalog["sources"].items()):
        print(name, s["metadata"], [(c["name"], c["type"], c["index"]) for c in s["columns"].values()])
with section("show"):
    for r in dbt("show", "--inline", "select line, sum(total) from {{ source('shop', 'orders') }} group by 1 order by 1").result.results:
        print([tuple(map(str, row)) for row in r.agate_table.rows])
with section("compile"):
    print(dbt("compile").success)
with section("run"):
    for r in dbt("run").result.results:
        print(r.node.name, r.status, r.message)
