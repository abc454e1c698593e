# Prints sections for the comparison with PostgreSQL, "## name" and then lines: what
# pg_dump makes of the database. The argument is the directory of its programs.
set -euo pipefail
bin=$1
section() {
  echo "## $1"
  shift
  "$@" || echo "FAILED $*"
}
dump() { "$bin/pg_dump" "$@"; }
restored() { dump -Fc "$@" | "$bin/pg_restore" -f -; }
made() {
  "$bin/psql" -Xq -v ON_ERROR_STOP=1 <<'SQL'
CREATE TABLE public.kept (id int PRIMARY KEY, "Two Words" text NOT NULL, at timestamptz DEFAULT now(), n numeric(5,1) DEFAULT 1.5, list numeric(5,1)[], ok boolean DEFAULT true);
COMMENT ON TABLE public.kept IS 'what is kept';
COMMENT ON COLUMN public.kept.ok IS 'it''s';
GRANT SELECT ON public.kept TO PUBLIC;
GRANT SELECT (id, name) ON shop.customers TO PUBLIC;
CREATE VIEW shop.totals AS SELECT customer, sum(total) AS total FROM shop.orders GROUP BY customer;
COMMENT ON VIEW shop.totals IS 'per customer';
INSERT INTO public.loads VALUES (1, E'a\tb', 1.5), (2, NULL, NULL), (3, '\.', -2);
SQL
}
section 'made' made
section 'schema only' dump -s -T shop.totals
section 'view' dump -s -t shop.totals
section 'one schema, clean, without owners' dump -s -n shop -T shop.totals -c --if-exists -O -x
section 'custom format' restored -s -n public
section 'to create the database' dump -C -s -t public.notes --no-comments
section 'data' dump -a
section 'data as INSERTs' dump -a --column-inserts -t public.loads
section 'several jobs' restored -j 1 -t shop.orders
section 'undone' "$bin/psql" -Xqc 'REVOKE SELECT (id, name) ON shop.customers FROM PUBLIC'
