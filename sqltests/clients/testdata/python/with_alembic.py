"""Prints sections for the comparison with PostgreSQL: Alembic's migrations of three versions of a model, made by its autogenerate."""
import contextlib
import io
import logging
import os
import re
import sys
import tempfile

if os.environ.get("PYTHONHASHSEED") != "0":  # what it finds is in the order of sets
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import (ARRAY, CHAR, REAL, UUID, BigInteger, Boolean, CheckConstraint, Column, Computed, Date, DateTime, DefaultClause, Enum, Float, ForeignKey,
                        Identity, Index, Integer, Interval, LargeBinary, MetaData, Numeric, SmallInteger, String, Table, Text, Time, UniqueConstraint,
                        column, create_engine, func, table, text, true)
from sqlalchemy.dialects import postgresql as pg

engine = create_engine(f"postgresql+psycopg2://postgres@127.0.0.1:{os.environ['PGPORT']}/lake")

NAMES = {"ix": "ix_%(column_0_label)s", "uq": "uq_%(table_name)s_%(column_0_name)s", "ck": "ck_%(table_name)s_%(constraint_name)s",
         "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s", "pk": "pk_%(table_name)s"}


def model(version):
    meta = MetaData(schema="alb", naming_convention={} if version == 1 else NAMES)
    person = [
        Column("id", BigInteger, primary_key=True), Column("email", String(100), nullable=False, unique=True, comment="where to"), Column("name", Text),
        Column("active", Boolean, nullable=False, server_default=true()), Column("balance", Numeric(12, 2), server_default="0"), Column("doc", pg.JSONB),
        Column("ref", UUID, server_default=text("gen_random_uuid()")), Column("created", DateTime(timezone=True), server_default=func.now()),
        Column("tags", ARRAY(Text)), Column("words", ARRAY(String(20))), Column("f", Float), Column("r", REAL), Column("b", LargeBinary), Column("d", Date),
        Column("t", Time), Column("iv", Interval), Column("si", SmallInteger), Column("mood", Enum("sad", "ok", name="mood", schema="alb"), server_default="ok"),
        Column("total", Numeric(12, 2), Computed("balance * 2", persisted=True)), Column("ch", CHAR(3)), Column("ts", pg.TIMESTAMP(precision=3)),
        Column("ip", pg.INET), Column("rg", pg.INT4RANGE),
    ]
    if version >= 2:
        person = [c for c in person if c.name not in ("name", "si")]
        person.append(Column("nick", String(20), nullable=False, server_default="none"))
        person.append(Column("age", Integer, CheckConstraint("age > 0", name="age"), index=True))
        by = {c.name: c for c in person}
        by["email"].nullable, by["email"].comment, by["email"].type, by["email"].unique = True, "changed", String(200), None
        by["balance"].server_default = DefaultClause("1")
        by["d"].nullable, by["d"].server_default = False, DefaultClause(text("CURRENT_DATE"))
        if version >= 3:
            by["f"].type = Text()
    Table("person", meta, *person, comment="people" if version == 1 else "folk")
    Table("pet", meta, Column("id", Integer, Identity(start=5), primary_key=True),
          Column("owner", BigInteger, ForeignKey("alb.person.id", ondelete="CASCADE" if version == 1 else "SET NULL", name="fk_owner"), index=True),
          Column("kind", String(10)), Column("code", Integer), UniqueConstraint("owner", "kind", name="uq_pet"), Index("ix_lower_kind", text("lower(kind)")),
          Index("ix_kind_desc", text("kind DESC")), Index("ix_part", "code", postgresql_where=text("code > 5")), CheckConstraint("code < 1000", name="code_small"))
    if version >= 2:
        Table("visit", meta, Column("pet", Integer, ForeignKey("alb.pet.id"), primary_key=True),
              Column("at", DateTime, primary_key=True, server_default=func.now()), Column("note", pg.JSON))
    return meta


MODELS = {v: model(v) for v in (1, 2, 3)}
VERSION, EACH = 1, False  # the model, and whether each migration has a transaction of its own

ENV = """
import __main__ as m
from alembic import context
with m.engine.connect() as c:
    context.configure(connection=c, target_metadata=m.MODELS[m.VERSION], include_schemas=True, version_table_schema="alb", compare_type=True,
                      compare_server_default=True, transaction_per_migration=m.EACH, include_name=lambda name, kind, _: kind != "schema" or name == "alb")
    with context.begin_transaction():
        context.run_migrations()
"""
MAKO = '''"""${message}"""
from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
import sqlalchemy.dialects.postgresql
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
def upgrade():
    ${upgrades if upgrades else "pass"}
def downgrade():
    ${downgrades if downgrades else "pass"}
'''
out = io.StringIO()


def plain(s):
    lines = (line for line in s.replace(PLACE, "PLACE").splitlines() if "Generating" not in line and "alembic.runtime.plugins" not in line)
    return re.sub("0x[0-9a-f]+", "AT", "\n".join(lines))


def section(name, run):
    print("##", name)
    out.seek(0)
    out.truncate(0)
    try:
        with contextlib.redirect_stdout(out):
            result = run()
        print(plain(out.getvalue() + (result if isinstance(result, str) else "")))
    except Exception as e:  # a difference found, and what the server refuses, are among the answers
        print(plain(out.getvalue() + f"{type(e).__name__} " + str(e).split("[SQL")[0]))


def sql(query):
    with engine.begin() as c:
        result = c.execute(text(query))
        return "\n".join(str(tuple(r)) for r in result) if result.returns_rows else str(result.rowcount)


def made(number):
    def run():
        command.revision(config, f"v{number}", autogenerate=True, rev_id=f"{number:04d}")
        with open(f"{PLACE}/versions/{number:04d}_v{number}.py", encoding="utf-8") as f:
            return f.read()
    return run


def ops(*steps):
    def run():
        with engine.begin() as c:
            op = Operations(MigrationContext.configure(c, opts={"transactional_ddl": True}))
            for step in steps:
                step(op)
    return run


with tempfile.TemporaryDirectory() as PLACE:
    os.mkdir(PLACE + "/versions")
    for file, body in (("env.py", ENV), ("script.py.mako", MAKO)):
        with open(f"{PLACE}/{file}", "w", encoding="utf-8") as f:
            f.write(body)
    config = Config(stdout=out, output_buffer=out)
    config.set_main_option("script_location", PLACE)
    config.set_main_option("path_separator", "os")
    logging.basicConfig(stream=out, level=logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.INFO)
    sql("CREATE SCHEMA alb")

    section("current", lambda: command.current(config))
    section("autogenerate", made(1))
    section("upgrade", lambda: command.upgrade(config, "head"))
    section("current after it", lambda: command.current(config))
    section("check", lambda: command.check(config))
    sql("INSERT INTO alb.person (id, email, tags, words, f, d) VALUES (1, 'a@b', '{x,y}', '{z}', 1.5, '2024-01-01'), (2, 'b@b', NULL, NULL, NULL, '2024-01-01')")
    sql("INSERT INTO alb.pet (owner, kind) VALUES (1, 'cat'), (2, 'dog')")
    VERSION = 2
    section("check finds", lambda: command.check(config))
    section("autogenerate of the second", made(2))
    section("upgrade to it", lambda: command.upgrade(config, "head"))
    section("check of it", lambda: command.check(config))
    section("rows", lambda: sql("SELECT id, email, nick, age, balance, total, tags, words, mood FROM alb.person ORDER BY 1") + sql("SELECT * FROM alb.pet ORDER BY 1"))
    section("downgrade", lambda: command.downgrade(config, "-1"))
    VERSION = 1
    section("check after downgrade", lambda: command.check(config))
    section("upgrade again", lambda: command.upgrade(config, "head"))
    VERSION = 3
    section("autogenerate of the third", made(3))
    section("upgrade to the third", lambda: command.upgrade(config, "head"))
    section("check of the third", lambda: command.check(config))
    section("a type that does not fit", lambda: command.downgrade(config, "-1"))
    section("stamp", lambda: (command.stamp(config, "0001"), command.current(config), command.stamp(config, "head"))[1])
    section("history", lambda: command.history(config))
    sql("ALTER TABLE alb.person ALTER f TYPE float8 USING f::float8")
    command.stamp(config, "0002")
    EACH = True
    section("downgrade to nothing", lambda: command.downgrade(config, "base"))
    section("what is left", lambda: sql("SELECT relname, relkind FROM pg_class WHERE relnamespace = 'alb'::regnamespace ORDER BY 1")
            + sql("SELECT typname FROM pg_type WHERE typnamespace = 'alb'::regnamespace ORDER BY 1"))
    section("offline", lambda: command.upgrade(config, "head", sql=True))

    section("create and insert", ops(
        lambda op: op.create_table("t", Column("id", Integer, primary_key=True), Column("a", String(10)), Column("b", Integer), Column("c", Text, server_default="5"), schema="alb"),
        lambda op: op.bulk_insert(table("t", column("id"), column("a"), column("b"), schema="alb"), [{"id": 1, "a": "x", "b": 7}, {"id": 2, "a": "1", "b": None}])))
    section("a longer varchar, and a shorter one", ops(lambda op: op.alter_column("t", "a", type_=String(50), schema="alb"),
                                                       lambda op: op.alter_column("t", "a", type_=String(20), schema="alb")))
    section("integer to text and back", ops(lambda op: op.alter_column("t", "b", type_=Text(), existing_type=Integer, schema="alb"),
                                            lambda op: op.alter_column("t", "b", type_=BigInteger(), postgresql_using="b::bigint", schema="alb")))
    section("a default that does not fit", ops(lambda op: op.alter_column("t", "c", type_=Numeric(10, 2), postgresql_using="c::numeric", schema="alb")))
    section("rename", ops(lambda op: op.alter_column("t", "a", new_column_name="aa", nullable=False, comment="x", schema="alb"),
                          lambda op: op.rename_table("t", "tt", schema="alb")))
    section("constraints and indexes", ops(lambda op: op.create_unique_constraint("uq", "tt", ["aa"], schema="alb"),
                                           lambda op: op.create_index("ix", "tt", [text("lower(aa)"), "b"], unique=True, schema="alb", postgresql_where=text("b > 0"), if_not_exists=True),
                                           lambda op: op.create_check_constraint("ck", "tt", "b > 0", schema="alb"),
                                           lambda op: op.execute("UPDATE alb.tt SET b = 5 WHERE b IS NULL")))
    section("its rows", lambda: sql("SELECT * FROM alb.tt ORDER BY 1") + sql("SELECT indexdef FROM pg_indexes WHERE schemaname = 'alb' ORDER BY indexname"))
    section("drop", ops(lambda op: op.drop_constraint("uq", "tt", schema="alb"), lambda op: op.drop_index("ix", "tt", schema="alb"),
                        lambda op: op.drop_column("tt", "b", schema="alb"), lambda op: op.drop_table("tt", schema="alb")))
