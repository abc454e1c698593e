"""Prints sections for the comparison with PostgreSQL: "## name", then lines."""
import contextlib
import sys


@contextlib.contextmanager
def section(name):
    print("##", name)
    try:
        yield
    except Exception as e:  # the other sections are of interest all the same
        print("FAILED", type(e).__name__, str(e).strip())
    sys.stdout.flush()


def refused(error, run, *arguments):
    """What run raises: the state and the first line of the message."""
    try:
        print("not refused:", run(*arguments))
    except error as e:
        state = getattr(e, "sqlstate", None) or getattr(e, "pgcode", None)
        print(type(e).__name__, state, str(e).strip().splitlines()[0])


def show(rows):
    for row in rows:
        print(repr(tuple(row)))


CUSTOMERS = "SELECT id, name, email, tags, paid, doc, u, d, f4, f8, i2, b, ts, tz, t, n, big, ints, c FROM shop.customers ORDER BY id"
