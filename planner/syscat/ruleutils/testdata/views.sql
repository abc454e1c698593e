SELECT id, name FROM c
SELECT id AS a, name AS "B c" FROM c x
SELECT x.id, upper(x.name) AS u, lower(email) FROM c x
SELECT id FROM c WHERE name = 'x'
SELECT id FROM c WHERE name = 'x' AND active
SELECT id FROM c WHERE name LIKE 'a%' OR email IS NULL AND NOT active
SELECT id FROM c WHERE id = 5 AND sm = 3 AND i > 7 AND score >= 1.5 AND f8 < 2
SELECT id FROM c WHERE id IN (1, 2, 3)
SELECT id FROM c WHERE name IN ('a', 'b')
SELECT id FROM c WHERE email IN ('a', 'b') AND email NOT IN ('c', 'd')
SELECT id FROM c WHERE name IN ('a')
SELECT id FROM c WHERE i IN (sm, 3, 4)
SELECT id FROM c WHERE i IN (sm, i)
SELECT id FROM c WHERE i BETWEEN 1 AND 10 AND i NOT BETWEEN 3 AND 5
SELECT id FROM c WHERE born BETWEEN '2020-01-01' AND '2020-12-31'
SELECT id FROM c WHERE i BETWEEN SYMMETRIC 1 AND 10
SELECT id, CASE WHEN active THEN 'yes' ELSE 'no' END AS a FROM c
SELECT id, CASE WHEN active THEN 1 END AS a, CASE i WHEN 1 THEN 'one' WHEN 2 THEN name ELSE email END AS b FROM c
SELECT CASE name WHEN 'x' THEN 1 ELSE 2 END AS k, id FROM c
SELECT coalesce(name, email, 'none') AS x, nullif(i, 0) AS y, greatest(i, id) AS g, least(sm, 5) AS l FROM c
SELECT i + 1 AS a, i - sm AS b, i * 2.5 AS c, i / 2 AS d, i % 3 AS e, - i AS f, score ^ 2 AS g FROM c
SELECT (i + 1) * 2 AS a, i + 1 * 2 AS b, i - (sm - 1) AS c, (i - sm) - 1 AS d, i * (sm / 2) AS e FROM c
SELECT name || ' ' || email AS full_name, name || id AS k, 'a' || name AS m FROM c
SELECT id::text AS a, i::bigint AS b, score::int AS c, '5'::int AS d, name::text AS e, email::varchar(5) AS f, 'abc'::char(2) AS g, i::numeric(8,2) AS h FROM c
SELECT cast(born AS text) AS a, at::date AS b, ts::timestamptz AS c, '2020-01-01'::date AS d, '1 day'::interval AS e, f4::float8 AS f FROM c
SELECT count(*) AS n, sum(total) AS s, avg(total) AS a, min(note) AS m, max(at) AS x FROM o
SELECT customer, count(*) AS n FROM o GROUP BY customer
SELECT customer, count(*) FROM o GROUP BY 1 HAVING count(*) > 5 ORDER BY 2 DESC, 1
SELECT date_trunc('month', at) AS m, sum(total) AS s FROM o GROUP BY date_trunc('month', at) ORDER BY m
SELECT date_trunc('month', at) AS m, sum(total) AS s FROM o GROUP BY 1 ORDER BY 1 NULLS FIRST
SELECT customer, sum(total) FILTER (WHERE line > 1) AS s, count(DISTINCT id) AS d, string_agg(note, ',' ORDER BY id DESC) AS l, array_agg(id ORDER BY line, id) AS a FROM o GROUP BY customer
SELECT c.id, o.total FROM c, o WHERE c.id = o.customer
SELECT c.id, o.total FROM c JOIN o ON c.id = o.customer
SELECT c.id, o.total FROM c LEFT JOIN o ON c.id = o.customer AND o.total > 5
SELECT a.id, b.total, d.v FROM c a JOIN o b ON a.id = b.customer LEFT JOIN far.d d ON d.id = a.id
SELECT a.id, b.total, d.v FROM c a JOIN (o b JOIN far.d d ON d.id = b.id) ON a.id = b.customer
~ SELECT id, o.total, d.v FROM o JOIN far.d USING (id)
SELECT id, d.v FROM c JOIN far.d USING (id)
SELECT id, d.v, x.v AS w FROM c JOIN far.d USING (id) JOIN far.d x USING (id)
SELECT id, d.v FROM c FULL JOIN far.d USING (id)
SELECT id, d.v, c.id AS c, d.id AS e FROM c RIGHT JOIN far.d USING (id)
SELECT id, d.v FROM c LEFT JOIN far.d USING (id)
SELECT c.id FROM c CROSS JOIN o
SELECT c.id FROM c FULL JOIN far.d ON c.id = d.id RIGHT JOIN o ON o.customer = c.id
SELECT d."odd name" AS "Odd", d.v FROM far.d
SELECT id FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.customer = c.id)
SELECT id FROM c WHERE NOT EXISTS (SELECT o.line FROM o WHERE o.customer = c.id AND o.total > 10)
SELECT id FROM c WHERE id IN (SELECT customer FROM o)
SELECT id FROM c WHERE id NOT IN (SELECT customer FROM o WHERE total > 5)
SELECT id FROM c WHERE i > ALL (SELECT line FROM o) AND i < ANY (SELECT line FROM o WHERE line > 2)
SELECT id, (SELECT max(total) FROM o WHERE o.customer = c.id) AS m, ARRAY(SELECT line FROM o WHERE o.customer = c.id ORDER BY line) AS l FROM c
SELECT q.n, q.customer FROM (SELECT customer, count(*) AS n FROM o GROUP BY customer) q WHERE q.n > 1
SELECT q.a FROM (SELECT id, name FROM c) q(a, b)
SELECT x.id FROM c x JOIN LATERAL (SELECT total FROM o WHERE o.customer = x.id ORDER BY total LIMIT 1) y ON true
WITH s AS (SELECT customer, sum(total) AS t FROM o GROUP BY customer) SELECT c.id, s.t FROM c JOIN s ON s.customer = c.id
WITH s(a, b) AS (SELECT customer, sum(total) FROM o GROUP BY customer), r AS MATERIALIZED (SELECT a FROM s) SELECT s.b, r.a FROM s, r WHERE s.a = r.a
SELECT id FROM c UNION SELECT customer FROM o
SELECT id, 'c' AS k FROM c UNION ALL SELECT customer, 'o' FROM o ORDER BY 1 LIMIT 5
SELECT id FROM c UNION ALL SELECT id FROM o UNION ALL SELECT id FROM far.d
SELECT id FROM c UNION SELECT id FROM o EXCEPT SELECT id FROM far.d
SELECT id FROM c EXCEPT (SELECT id FROM o INTERSECT SELECT id FROM far.d)
(SELECT id FROM c ORDER BY id LIMIT 1) UNION ALL SELECT id FROM o
SELECT i FROM c UNION SELECT NULL
SELECT DISTINCT name FROM c
SELECT DISTINCT ON (customer) customer, total FROM o ORDER BY customer, total DESC
SELECT id FROM c ORDER BY name, id DESC NULLS LAST LIMIT 10 OFFSET 5
SELECT id FROM c ORDER BY upper(name), i + 1, -i
SELECT id FROM c ORDER BY id FETCH FIRST 3 ROWS WITH TIES
SELECT id, row_number() OVER (ORDER BY id) AS r, sum(total) OVER (PARTITION BY customer ORDER BY at DESC) AS s, lag(total, 1) OVER w AS l FROM o WINDOW w AS (PARTITION BY customer ORDER BY at)
SELECT id, sum(total) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s, avg(total) OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS a, rank() OVER () AS k FROM o
SELECT id, ntile(4) OVER (ORDER BY total) AS q, first_value(note) OVER (PARTITION BY customer, line ORDER BY id) AS f FROM o
SELECT extract(year FROM born) AS y, date_part('month', at) AS m, extract(epoch FROM at) AS e, now() AS n, current_date AS d, current_timestamp AS t, localtimestamp AS l FROM c
SELECT at AT TIME ZONE 'UTC' AS u, ts AT TIME ZONE 'Europe/Berlin' AS v FROM c
SELECT substring(name FROM 1 FOR 3) AS a, substring(name, 2) AS b, position('x' IN name) AS c, trim(both ' ' from name) AS d, trim(name) AS e, ltrim(name, 'x') AS f, overlay(name placing 'y' from 2) AS g, left(name, 2) AS h, "right"(email, 1) AS k FROM c
SELECT concat(name, '-', id) AS a, concat_ws(',', name, email) AS b, format('%s %s', name, id) AS f, length(name) AS l, replace(name, 'a', 'b') AS r, split_part(email, '@', 2) AS s, md5(name) AS m FROM c
SELECT round(score) AS a, round(score, 1) AS b, abs(i) AS c, floor(f8) AS d, ceil(score) AS e, mod(i, 2) AS f, power(i, 2) AS g, sqrt(f8) AS h, random() AS r FROM c
SELECT at + interval '1 day' AS a, born + 7 AS b, at - at AS c, born - born AS d, ts - '1 hour'::interval AS e, age(at) AS f, born - interval '1 month' AS g FROM c
SELECT to_char(at, 'YYYY-MM') AS a, to_char(score, '999.99') AS b, to_date(name, 'YYYY') AS d, to_timestamp(i) AS t, make_date(2020, 1, sm) AS m FROM c
SELECT doc -> 'a' AS a, doc ->> 'b' AS b, doc #> '{a,b}' AS c, doc #>> '{a,0}' AS d, doc @> '{"a": 1}' AS e, doc ? 'x' AS f, (doc ->> 'n')::int AS g, jsonb_array_length(doc) AS h FROM c
SELECT jsonb_build_object('id', id, 'n', name) AS a, json_build_array(i, 'x') AS b, to_jsonb(name) AS c, jsonb_agg(id) OVER () AS g FROM c
SELECT tags[1] AS a, array_length(tags, 1) AS b, 'x' = ANY (tags) AS c, tags || 'y'::text AS d, ARRAY[1, 2, i] AS e, array_to_string(tags, ',') AS f, cardinality(ints) AS g, tags @> ARRAY['a'] AS h, i = ANY ('{1,2}') AS k FROM c
SELECT unnest(tags) AS tag, id FROM c
SELECT g.g FROM generate_series(1, 10) g
SELECT x.n, x.ordinality FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY x(n, ordinality)
SELECT c.id, e.key, e.value FROM c, jsonb_each(c.doc) e
SELECT c.id, e.key, e.value FROM c CROSS JOIN LATERAL jsonb_each_text(c.doc) AS e(key, value)
SELECT d.d::date AS day FROM generate_series('2020-01-01'::timestamp, '2020-02-01', '1 day') d(d)
VALUES (1, 'a'), (2, 'b')
SELECT v.a, v.b FROM (VALUES (1, 'x'), (2, NULL)) v(a, b)
SELECT id FROM c WHERE active IS TRUE OR active IS NOT FALSE OR (i > 1) IS UNKNOWN
SELECT id FROM c WHERE name IS DISTINCT FROM email AND i IS NOT DISTINCT FROM 5
SELECT id FROM c WHERE name ~ '^a' AND name !~* 'b' AND name ILIKE '%x' AND name NOT LIKE 'y%'
SELECT id FROM c WHERE name SIMILAR TO 'a(b|c)'
SELECT id FROM c WHERE c3 = 'ab' AND c3 = name
SELECT id FROM c WHERE u = '5f2c6a1e-0d7b-4c3a-9a51-2f60c5d3a111' AND b = '\x00ff'
SELECT id FROM c WHERE at > '2020-01-01 00:00:00+00' AND ts < '2020-01-01 10:00:00' AND iv > '1 day'
SELECT id FROM c WHERE at > now() - interval '7 days' AND born = current_date
SELECT id FROM c WHERE f8 = 1.5 AND f4 = 2.5 AND n = 3 AND score = 4
SELECT id FROM c WHERE (i > 1 OR sm < 2) AND NOT (active AND i = 3)
SELECT id FROM c WHERE NOT active
SELECT id FROM c WHERE i <> 3 AND i != 4 AND id = i AND sm = id
SELECT 1 AS one, -1 AS m, 'x' AS t, NULL AS n, true AS b, 1.5 AS d, 10000000000 AS big, NULL::int AS ni
~ SELECT 1e10 AS e
SELECT o."Qty" AS q, o."Qty" + 1 AS r FROM o
SELECT customer, line, sum(total) AS s, grouping(customer) AS g FROM o GROUP BY ROLLUP (customer, line)
SELECT customer, line, sum(total) AS s FROM o GROUP BY GROUPING SETS ((customer, line), (customer), ())
SELECT customer, line, sum(total) AS s FROM o GROUP BY CUBE (customer, line)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) AS m, mode() WITHIN GROUP (ORDER BY note DESC) AS x FROM o
SELECT a.id FROM c a WHERE a.id = (SELECT min(b.id) FROM c b WHERE b.name = a.name)
SELECT c.id FROM c WHERE c.id = (SELECT max(c.id) FROM c)
SELECT name COLLATE "C" AS n FROM c ORDER BY email COLLATE "C"
SELECT bool_and(active) AS a, bool_or(active) AS b, every(active) AS e, stddev(score) AS s, variance(f8) AS v, corr(f8, f4) AS r FROM c
~ SELECT row_to_json(r.*) AS j FROM c r
SELECT CASE WHEN i > 0 THEN CASE WHEN sm > 0 THEN 'a' ELSE 'b' END ELSE upper(name) END AS x, id FROM c
SELECT id, upper(CASE WHEN active THEN name ELSE email END) AS x FROM c
SELECT sum(CASE WHEN line > 1 THEN total ELSE 0 END) AS s, count(CASE WHEN note = 'x' THEN 1 END) AS n FROM o
SELECT id FROM c WHERE CASE WHEN active THEN i > 1 ELSE i < 1 END
SELECT ROW(id, name)::text AS r FROM c
SELECT i & 3 AS a, i | 4 AS b, i # 5 AS x, ~ i AS n, i << 2 AS l, i >> 1 AS r FROM c
SELECT |/ f8 AS a, @ i AS b, - score AS c, + i AS d FROM c
SELECT length(name::text) AS a, char_length(c3) AS b, octet_length(email) AS c, ascii(name) AS d, chr(i) AS e, initcap(name) AS f, reverse(name) AS g FROM c
SELECT array_agg(DISTINCT name) AS a, string_agg(DISTINCT email, ', ') AS s FROM c
SELECT count(*) FILTER (WHERE active) AS a, sum(i) FILTER (WHERE i > 0 AND active) AS b FROM c
SELECT max(sum(total)) OVER () AS m FROM o GROUP BY customer
SELECT lead(total, 2, 0) OVER (PARTITION BY customer ORDER BY id, line) AS l, total - lag(total) OVER (ORDER BY id) AS d FROM o
SELECT dense_rank() OVER (PARTITION BY customer ORDER BY total DESC NULLS LAST) AS r, cume_dist() OVER (ORDER BY total) AS c, sum(total) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS s FROM o
SELECT a.id, b.id AS b_id, c.id AS c_id FROM c a LEFT JOIN c b ON b.id = a.id LEFT JOIN c ON c.id = b.id WHERE a.active
SELECT x.a, count(*) AS n FROM (SELECT c.name AS a FROM c UNION ALL SELECT o.note FROM o) x GROUP BY x.a
SELECT t.id FROM (SELECT id FROM c WHERE active ORDER BY id LIMIT 3) t
SELECT e.id, e.x FROM (SELECT id, CASE WHEN active THEN 1 ELSE 2 END AS x FROM c) e
SELECT id, score * 1.1 AS s, score / nullif(i, 0) AS q, round(100.0 * i / 7, 2) AS p FROM c
SELECT coalesce(sum(total), 0) AS s, coalesce(max(note), '') AS m FROM o
SELECT id FROM c WHERE lower(name) = lower(email) AND length(trim(name)) > 3
SELECT id FROM c WHERE name = ANY (ARRAY['a', 'b']) AND i = ANY (ints)
SELECT id FROM c WHERE born IS NULL OR born > '2000-01-01'::date
SELECT id FROM c WHERE doc ->> 'kind' = 'x' AND (doc ->> 'n')::int > 5
SELECT date(at) AS d, text(i) AS t, int4(score) AS i4 FROM c
SELECT 'a'::text || 'b' AS ab, 5 + 3 AS x, '5'::int + 1 AS y, ('x')::varchar AS v
SELECT 1 + i AS a, 2 * i + 3 AS b, (1 + 2) * i AS d FROM c
SELECT min(id) AS id FROM o GROUP BY customer, date_trunc('day', at), upper(note)
SELECT name AS n FROM c GROUP BY name HAVING count(*) > 1 AND max(i) IS NOT NULL
SELECT c.id FROM c JOIN o ON c.id = o.customer AND (o.total > 1 OR o.note IS NULL) WHERE c.active
SELECT c.name FROM ((c JOIN o ON c.id = o.customer) JOIN far.d ON d.id = o.id)
SELECT o.id FROM o, c, far.d WHERE o.customer = c.id AND d.id = c.id
SELECT "left".id AS "select", "left".name AS "Name" FROM c "left"
SELECT id, tags[2:3] AS s FROM c
~ SELECT id FROM c WHERE (id, i) IN (SELECT id, line FROM o)
~ SELECT id FROM c WHERE (id, i) = (1, 2)
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r
SELECT string_to_array(email, '@') AS p, regexp_replace(name, 'a+', 'b', 'g') AS r, lpad(name, 5) AS l, repeat(name, 2) AS m, strpos(name, 'x') AS s, starts_with(email, 'a') AS w FROM c
SELECT encode(b, 'hex') AS h, sha256(b) AS s, gen_random_uuid() AS u, pg_typeof(i) AS t FROM c
SELECT i::text || name AS a, (i || '')::int AS b, name::varchar(10)::text AS c, score::text::numeric AS d FROM c
SELECT id, now() - at AS age, extract(day FROM now() - at) AS days, at::date - born AS diff FROM c
SELECT json_agg(json_build_object('a', id)) AS j, jsonb_object_agg(name, i) AS o FROM c
SELECT id FROM c WHERE at >= date_trunc('day', now()) AND at < date_trunc('day', now()) + '1 day'
SELECT iv * 2 AS a, iv / 2 AS b, -iv AS c, justify_days(iv) AS d FROM c
~ SELECT make_interval(days => 1) AS e FROM c
SELECT customer, line, id FROM o GROUP BY (customer, line), id
SELECT customer, sum(total) AS s FROM o GROUP BY customer, ROLLUP (line, (id, note))
