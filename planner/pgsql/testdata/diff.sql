SELECT 1
SELECT 1 AS a, 'x', 2.50, true, NULL
SELECT 7/2, -7/2, 7%2, -7%2, 7.0/2, 1/3.0, 10/4.0
SELECT 1/0
SELECT 1%0
SELECT 1.0/0
SELECT 1::float8/0
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1
SELECT 1.5*2.25, 1.50+2.5, 3 - 1.25, 7.5 % 2, -2.5
SELECT 'abc' ~ 'b', 'abc' ~* 'B', 'abc' !~ 'b', 'abc' !~* 'X'
SELECT 'abc' LIKE 'a%', 'a_c' LIKE 'a\_c', 'abc' LIKE 'a\_c', 'ABC' ILIKE 'a%', 'abc' NOT LIKE 'b%', 'a%c' LIKE 'a!%c' ESCAPE '!'
SELECT 'abc' SIMILAR TO 'a%', 'abc' SIMILAR TO '(a|b)_c', 'abc' NOT SIMILAR TO 'x%'
SELECT 2^3, 2.0::float8^0.5
SELECT 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 3, 16 >> 2
SELECT 'a' || 'b', 'a' || 1, 1 || 'a', 'a' || NULL, 'x' || 1.5, 'x' || true
SELECT 'a' + 1
SELECT 'a' || b FROM t WHERE id = 1
SELECT round(2.5), round(2.567, 2), round(2.5::float8), round(3.5::float8), round(-2.5), round(5), trunc(1.99), trunc(1.999, 2), ceil(1.2), floor(-1.2), ceil(1.5::float8)
SELECT abs(-1), abs(-1.5), sign(-2.5), mod(7,3), mod(7.5,2), power(2,3), sqrt(16), exp(0), ln(1), log(100), pi() > 3
SELECT length('héllo'), char_length('abc'), octet_length('héllo'), lower('ABC'), upper('abc'), initcap('hello wORLD foo-bar')
SELECT substring('hello' from 2 for 3), substring('hello' from 2), substr('hello', 2, 2), left('hello', 2), right('hello', 2), left('hello', -1), substring('hello', 0, 3), substring('hello', -1, 3)
SELECT trim('  a '), trim(both 'x' from 'xxaxx'), ltrim('  a'), rtrim('a  '), btrim('xax', 'x'), lpad('5', 3, '0'), rpad('a', 3), lpad('abcd', 2)
SELECT position('l' in 'hello'), strpos('hello', 'z'), replace('hello', 'l', 'L'), translate('hello', 'el', 'ip'), reverse('abc'), repeat('ab', 2), repeat('a', -1)
SELECT split_part('a,b,c', ',', 2), split_part('a,b', ',', 5), split_part('a,b,c', ',', -1), starts_with('abc', 'ab'), ascii('a'), chr(65), md5('a'), to_hex(255)
SELECT concat('a', NULL, 1, true), concat_ws(',', 'a', NULL, 'b'), format('%s-%s', 'a', 1), quote_ident('A b'), quote_literal('it''s'), overlay('abcdef' placing 'ZZ' from 2 for 3)
SELECT regexp_replace('foobar', 'o+', 'x'), regexp_replace('aaa', 'a', 'b', 'g'), regexp_replace('abc', '(b)', '[\1]')
SELECT string_to_array('a,b,c', ','), array_to_string(ARRAY[1,NULL,3], ','), array_to_string(ARRAY[1,NULL,3], ',', '*')
SELECT encode('abc'::bytea, 'hex'), decode('616263', 'hex'), '\xdead'::bytea, encode('abc'::bytea, 'base64')
SELECT coalesce(NULL, 1), nullif(1, 1), nullif(1, 2), greatest(1, 3, 2), least(1, NULL, 2), greatest(1, 2.5)
SELECT CASE WHEN true THEN 'a' ELSE 'b' END, CASE 1 WHEN 1 THEN 10 ELSE 20 END, CASE WHEN false THEN 1 END
SELECT 'true'::bool, 'on'::bool, 'f'::bool, 1::bool, true::int, 't'::boolean::text
SELECT '5'::int, '5.5'::numeric, '1e3'::float8, '42'::int8, ' 7 '::int2
SELECT '5.0'::int
SELECT 'abc'::int
SELECT '99999999999'::int
SELECT 'maybe'::bool
SELECT 1.5::int, 2.5::int, -2.5::int, 2.5::float8::int, 3.7::int8, 1.999::numeric(5,2), 12345.678::numeric(10,1)
SELECT 0.1::float8, 1e20::float8, 1.0::float8, 1e-5::float8, 'NaN'::float8, 'Infinity'::float8, 1.5::float4
SELECT 0.1::float8::text, 1::float8::text, 1e20::float8::text, true::text, 1.50::text, 5::text
SELECT '2024-01-15'::date, '2024-01-15 10:30'::timestamp, '2024-01-15 10:30:00+02'::timestamptz, '10:30'::time, '1 year 2 months'::interval
SELECT date '2024-01-15', timestamp '2024-01-15 10:00:00.5', interval '1 day', interval '2' hour, interval '1 day 02:03:04'
SELECT '2024-13-01'::date
SELECT 'garbage'::date
SELECT date '2024-01-31' + 1, date '2024-01-31' - date '2024-01-01', date '2024-01-31' + interval '1 month', timestamp '2024-03-01' - timestamp '2024-02-01', timestamp '2024-01-01 10:00' - interval '90 minutes'
SELECT date '2024-01-01' + time '10:30', time '10:00' - time '08:30', interval '1 day' * 2, interval '1 hour' / 2, 2 * interval '1 hour', -interval '1 day'
SELECT extract(year from date '2024-03-05'), extract(epoch from timestamp '2024-01-01 00:00:00.5'), extract(dow from date '2024-01-07'), extract(second from timestamp '2024-01-01 00:00:01.5'), date_part('month', date '2024-03-05'), extract(epoch from interval '1 day')
SELECT date_trunc('month', timestamp '2024-03-05 10:11:12'), date_trunc('hour', timestamptz '2024-03-05 10:11:12+00'), date_trunc('day', date '2024-03-05')
SELECT age(timestamp '2024-03-01', timestamp '2023-01-15'), make_date(2024, 1, 2), make_timestamp(2024, 1, 2, 3, 4, 5.5), to_timestamp(0)
SELECT timestamp '2024-01-01 12:00' AT TIME ZONE 'Europe/Paris', timestamptz '2024-01-01 12:00+00' AT TIME ZONE 'Asia/Tokyo'
SELECT to_char(timestamp '2024-03-05 14:05:06', 'YYYY-MM-DD HH24:MI:SS'), to_char(date '2024-03-05', 'Mon DD, YYYY')
SELECT ARRAY[1,2,3], ARRAY['a','b'], '{1,2}'::int[], ARRAY[]::int[], ARRAY[1.5, 2], '{a,"b c",NULL}'::text[]
SELECT (ARRAY[1,2,3])[2], (ARRAY[1,2,3])[5], (ARRAY[1,2,3])[1:2], array_length(ARRAY[1,2], 1), array_length('{}'::int[], 1), cardinality(ARRAY[1,2])
SELECT ARRAY[1,2] || ARRAY[3], ARRAY[1,2] || 3, 0 || ARRAY[1], array_append(ARRAY[1], 2), array_prepend(0, ARRAY[1]), array_position(ARRAY[1,2], 2), array_remove(ARRAY[1,2,1], 1)
SELECT 1 = ANY(ARRAY[1,2]), 3 = ANY('{1,2}'), 1 <> ALL(ARRAY[2,3]), 1 = ANY(NULL::int[]), 1 = ANY(ARRAY[2,NULL]), ARRAY[1,2] @> ARRAY[1], ARRAY[1] <@ ARRAY[1,2], ARRAY[1] && ARRAY[2]
SELECT ARRAY[1,2]::text, ARRAY['a','b c']::text, '{1,2}'::int[]::text[]
SELECT 1 IN (1,2), 3 NOT IN (1,2), 1 IN (NULL, 2), 'a' IN ('a', 'b'), 1.5 IN (1, 1.5)
SELECT 5 BETWEEN 1 AND 10, 5 NOT BETWEEN 1 AND 3, 5 BETWEEN SYMMETRIC 10 AND 1
SELECT NULL IS NULL, 1 IS NOT NULL, true IS TRUE, NULL::bool IS UNKNOWN, 1 IS DISTINCT FROM NULL, NULL IS NOT DISTINCT FROM NULL, false IS NOT TRUE
SELECT (1,2) = (1,2), (1,2) < (1,3), (1,NULL) IS NULL, ROW(NULL,NULL) IS NULL
SELECT * FROM t ORDER BY id
SELECT id, i2, i8, n, nn, f8, s, v, c, b, d, ts, tz, iv, j, a FROM t ORDER BY id DESC
SELECT t.id, t.s AS name FROM t WHERE id = 2
SELECT x.* FROM t AS x WHERE x.id > 3 ORDER BY 1
SELECT id FROM t ORDER BY i8, id
SELECT id FROM t ORDER BY i8 DESC, id
SELECT id FROM t ORDER BY i8 DESC NULLS LAST, id
SELECT id FROM t ORDER BY nn, id
SELECT id FROM t ORDER BY nn DESC NULLS LAST LIMIT 2
SELECT count(*), count(i8), sum(i2), sum(id), sum(i8), sum(n), sum(f8) FROM t WHERE id < 5
SELECT avg(id), avg(i8), avg(n), avg(f8) FROM t WHERE id < 5
SELECT avg(i2) FROM t
SELECT min(id), max(n), min(s), max(d), min(ts), max(nn), min(nn) FROM t
SELECT sum(nn) FROM t
SELECT v, count(*) FROM t GROUP BY v ORDER BY v
SELECT v, count(*) AS c FROM t GROUP BY 1 ORDER BY c DESC, 1
SELECT v, sum(id), avg(id) FROM t GROUP BY v HAVING count(*) > 1
SELECT date_trunc('month', ts) AS m, count(*) FROM t GROUP BY 1 ORDER BY 1
SELECT date_trunc('month', ts), count(*) FROM t GROUP BY date_trunc('month', ts) ORDER BY 1
SELECT id, count(*), s FROM t GROUP BY id ORDER BY id
SELECT s, count(*) FROM t
SELECT s FROM t GROUP BY v
SELECT count(*) FROM t WHERE count(*) > 1
SELECT DISTINCT v FROM t ORDER BY v
SELECT DISTINCT ON (v) v, id FROM t ORDER BY v, id DESC
SELECT count(DISTINCT v), count(*) FILTER (WHERE b), bool_and(b), bool_or(b), every(b) FROM t
SELECT string_agg(v, ',' ORDER BY id), array_agg(id ORDER BY id DESC), array_agg(v ORDER BY id) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), percentile_disc(0.5) WITHIN GROUP (ORDER BY id), mode() WITHIN GROUP (ORDER BY v) FROM t
SELECT v, b, count(*), grouping(v) FROM t GROUP BY ROLLUP (v, b) ORDER BY 1, 2, 3
SELECT v, count(*) FROM t GROUP BY GROUPING SETS ((v), ()) ORDER BY 1, 2
SELECT id, row_number() OVER (ORDER BY id DESC), rank() OVER (PARTITION BY v ORDER BY id), lag(id) OVER (ORDER BY id), lead(id, 2, 0) OVER (ORDER BY id) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id), avg(id) OVER (), count(*) OVER w, first_value(s) OVER w FROM t WINDOW w AS (PARTITION BY v ORDER BY id) ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), ntile(2) OVER (ORDER BY id), nth_value(id, 2) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t ORDER BY id
SELECT a.id, b.id FROM t a JOIN t b ON a.i8 = b.i8 AND a.id < b.id
SELECT a.id, b.s FROM t a LEFT JOIN t b ON b.id = a.id + 1 ORDER BY 1
SELECT * FROM (SELECT id, v FROM t) x JOIN (SELECT id, s FROM t) y USING (id) ORDER BY id
SELECT * FROM (SELECT 1 AS a, 2 AS b) x NATURAL JOIN (SELECT 1 AS a, 3 AS c) y
SELECT * FROM (SELECT 1 AS a) x FULL JOIN (SELECT 2 AS a) y USING (a) ORDER BY a
SELECT count(*) FROM t a, t b
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.i8 = a.i8 AND b.id <> a.id) ORDER BY 1
SELECT id FROM t WHERE id IN (SELECT id + 1 FROM t) ORDER BY id
SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE id < 3) ORDER BY id
SELECT (SELECT max(id) FROM t), (SELECT s FROM t WHERE id = 99), ARRAY(SELECT id FROM t ORDER BY id)
SELECT id, (SELECT count(*) FROM t b WHERE b.v = a.v) FROM t a ORDER BY id
SELECT id > ALL (SELECT id FROM t WHERE id < 3) FROM t ORDER BY id
WITH x AS (SELECT id, v FROM t) SELECT v, count(*) FROM x GROUP BY v ORDER BY 1
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
SELECT 1 UNION SELECT 2 ORDER BY 1
SELECT 1 UNION ALL SELECT 2.5
SELECT 'a' UNION SELECT 'b' ORDER BY 1 DESC
SELECT NULL UNION SELECT 1 ORDER BY 1
SELECT 1 UNION SELECT 'a'
SELECT id FROM t INTERSECT SELECT 2
SELECT id FROM t EXCEPT SELECT 2 ORDER BY id LIMIT 2
SELECT 1, 2 UNION SELECT 3
VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v(x, y) ORDER BY x DESC
SELECT column1 FROM (VALUES (1), (2.5)) v ORDER BY 1
TABLE t ORDER BY id LIMIT 1
SELECT * FROM generate_series(1, 3)
SELECT g, g * 2 AS d FROM generate_series(1, 10, 4) AS g
SELECT * FROM generate_series(date '2024-01-01'::timestamp, '2024-01-03', '1 day') AS x(ts)
SELECT generate_series(1, 3)
SELECT id, unnest(a) FROM t WHERE id < 3 ORDER BY 1, 2
SELECT id, x FROM t, unnest(a) AS x ORDER BY 1, 2 NULLS FIRST
SELECT x, o FROM unnest(ARRAY['a','b']) WITH ORDINALITY AS u(x, o)
SELECT t.id, l.m FROM t, LATERAL (SELECT t.id * 2 AS m) l ORDER BY 1
SELECT j->'k', j->>'k', j->'o'->>'x', j #>> '{o,x}', j->'l'->1 FROM t WHERE id = 1
SELECT j->'l'->>1, j->>'missing' FROM t WHERE id = 2
SELECT c = 'x', c = 'x    ', length(c), c || '|', v = 'red' FROM t WHERE id = 1
SELECT iv, iv + interval '1 hour', iv::text FROM t WHERE id < 4 ORDER BY id
SELECT nn + 1, nn * 2, nn::text, nn > 1 FROM t WHERE id < 4 ORDER BY id
SELECT n / 3, n * n, n + nn, n::int FROM t WHERE id < 4 ORDER BY id
SELECT id / 2, i2 + i8, id * 1.5, f8 + id, n + f8 FROM t WHERE id = 2
SELECT current_database(), current_user, session_user, current_schema
SELECT pg_typeof(1), pg_typeof('a'::text), pg_typeof(1.5), pg_typeof(now())
SELECT 'a'::varchar(3), 'abcdef'::varchar(3), 'ab'::char(4), 'x'::name, 'abc'::"char"
SELECT id AS "Weird Name", id "x" FROM t WHERE id = 1
SELECT s AS a, s AS a FROM t WHERE id = 1
SELECT t.id FROM t ORDER BY t.s COLLATE "C"
SELECT s COLLATE "C" < 'b' FROM t WHERE id = 1
SELECT 1 OPERATOR(pg_catalog.+) 2, 'a' OPERATOR(pg_catalog.~) 'a'
SELECT pg_catalog.lower('A'), 'a'::pg_catalog.text, 1::pg_catalog.int8
SELECT id FROM t LIMIT 2 OFFSET 1
SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY
SELECT id FROM t LIMIT -1
SELECT nope FROM t
SELECT t.nope FROM t
SELECT x.id FROM t
SELECT * FROM nope
SELECT * FROM public.nope
SELECT * FROM t a, t a
SELECT id FROM t a, t b
SELECT nofunc(1)
SELECT lower(1, 2)
SELECT sum(s) FROM t
SELECT 1 + 'a'
SELECT true + 1
SELECT s + 1 FROM t
SELECT id FROM t WHERE s
SELECT id FROM t WHERE id = 'x'
SELECT id FROM t GROUP BY 5
SELECT id FROM t ORDER BY 5
SELECT '1 day'::interval > '1 hour'::interval, date '2024-01-01' < timestamp '2024-01-02', '2024-01-01' < date '2024-01-02'
SELECT FROM
SELEC 1
SELECT 1 +
SELECT * FROM t WHERE
SELECT id, * FROM t WHERE id = 1
SELECT "ID" FROM t
SELECT ID, T.S FROM T WHERE Id = 1
SELECT 10000000000, 123456789012345678901234567890, 1e3, 1.5e-3
SELECT 'it''s', E'a\nb', U&'\0041', $$dollar$$, 'a' 'b'
SELECT sum(id) / count(*), sum(n) / count(*), sum(id)::float8 / count(*), 100.0 * count(*) / 3 FROM t
SELECT round(avg(n), 2), round(sum(n) / 3, 4), round(100.0 * 1 / 3, 1) FROM t
SELECT avg(n)::numeric(10,2), (sum(n) * 1.1)::numeric(10,2) FROM t
SELECT max(id) - min(id), max(ts) - min(ts) FROM t
SELECT stddev(f8) IS NOT NULL FROM t
SELECT count(*) FROM (SELECT DISTINCT v, b FROM t) q
SELECT x.total FROM (SELECT v, sum(id) AS total FROM t GROUP BY v) x WHERE x.total > 3 ORDER BY 1
SELECT avg FROM (SELECT avg(id) FROM t) q
SELECT CASE WHEN id > 2 THEN 'big' ELSE 'small' END AS size, count(*) FROM t GROUP BY size ORDER BY size
SELECT CASE WHEN id > 2 THEN 1 ELSE 2.5 END FROM t ORDER BY id
SELECT coalesce(s, 'none'), coalesce(n, 0), coalesce(nn, 0), coalesce(i8, id) FROM t ORDER BY id
SELECT upper(v) AS u FROM t WHERE v IS NOT NULL GROUP BY upper(v) ORDER BY u
SELECT d, d + 1, d - 1, extract(month from d), to_char(d, 'YYYY-MM') FROM t WHERE d IS NOT NULL ORDER BY id
SELECT ts::date, tz::date, ts::time, ts::text, tz::text, d::timestamp FROM t WHERE id < 4 ORDER BY id
SELECT id FROM t WHERE ts >= '2024-02-01' AND ts < '2024-03-01' ORDER BY id
SELECT id FROM t WHERE d BETWEEN '2024-01-01' AND '2024-02-28' ORDER BY id
SELECT id FROM t WHERE (id, i8) IN ((1, 100), (2, 5)) ORDER BY id
SELECT id FROM t WHERE s LIKE '%\%%'
SELECT id FROM t WHERE lower(s) = 'banana' OR id = any('{1,3}') ORDER BY id
SELECT bit_and(id), bit_or(id) FROM t
SELECT json_typeof('[1]'::json), json_array_length('[1,2]'::json), jsonb_typeof(j) FROM t WHERE id = 1
SELECT now() - now(), now() > '2020-01-01', current_date > '2020-01-01'
SELECT 5 = 5.0, 5::int8 = 5::int2, 1.0 = 1.00, 'a' < 'b'
SELECT a[1], a[2], array_length(a, 1) FROM t ORDER BY id
SELECT -id, +id, @(-5), |/ 16.0, ||/ 27.0 FROM t WHERE id = 1
SELECT -2147483648, -5 % 3, - 5.5
SELECT NULL = ANY(ARRAY[]::int[]), NULL = ANY(ARRAY[1]), 1 <> ALL(ARRAY[1,NULL]), 1 <> ALL(ARRAY[2,NULL]), 'a' = ANY(ARRAY['a','b']), 2 = ANY(ARRAY[1.5,2.0]), 1 < ANY(ARRAY[0,2]), 1 >= ALL(ARRAY[0,1])
SELECT id FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.id = ANY(x.a)) ORDER BY id
SELECT (SELECT count(*) FROM t y WHERE x.id = ANY(y.a)) FROM t x ORDER BY x.id
SELECT pg_size_pretty(0::int8), pg_size_pretty(10239::int8), pg_size_pretty(10240::int8), pg_size_pretty(123456789::int8), pg_size_pretty(99999999999::int8)
SELECT 'int4'::regtype::text, pg_typeof(1)::text
SELECT id FROM t ORDER BY s
SELECT id, s FROM t ORDER BY lower(s), id LIMIT 3
SELECT DISTINCT b FROM t ORDER BY 1
SELECT count(*) FROM t WHERE NOT b
SELECT id FROM t WHERE b IS NOT TRUE ORDER BY 1
SELECT id FROM t WHERE v NOT IN ('red') ORDER BY id
SELECT id FROM t WHERE v <> 'red' OR v IS NULL ORDER BY id
SELECT min(c), max(v), min(tz) FROM t
SELECT sum(CASE WHEN b THEN 1 ELSE 0 END), count(CASE WHEN b THEN 1 END) FROM t
SELECT sum(n) FILTER (WHERE b), avg(n) FILTER (WHERE NOT b) FROM t
SELECT coalesce(sum(n), 0) FROM t WHERE false
SELECT sum(id), avg(id), min(id), count(*) FROM t WHERE false
SELECT string_agg(s, '; ' ORDER BY s DESC) FROM t
SELECT array_agg(DISTINCT v ORDER BY v) FROM t
SELECT array_agg(n ORDER BY id) FROM t
SELECT v, array_agg(id ORDER BY id) FROM t GROUP BY v ORDER BY v NULLS FIRST
SELECT extract(year from ts) AS y, count(*) FROM t GROUP BY y ORDER BY y
SELECT extract(day from iv), extract(epoch from iv), extract(hour from iv) FROM t ORDER BY id
SELECT to_char(ts, 'YYYY') , to_char(tz, 'HH24:MI') FROM t ORDER BY id
SELECT date_trunc('week', d), date_trunc('quarter', ts), date_trunc('year', tz) FROM t ORDER BY id
SELECT ts + iv, d + iv, tz - iv FROM t ORDER BY id
SELECT iv * 2, -iv FROM t ORDER BY id
SELECT sum(iv) FROM t
SELECT sum(iv) FROM t WHERE id < 3
SELECT max(iv), min(iv) FROM t
SELECT id FROM t ORDER BY iv, id
SELECT id FROM t WHERE iv > '1 hour' ORDER BY id
SELECT nn FROM t WHERE nn > 1.4 ORDER BY nn DESC
SELECT nn = 1.5, nn IN (1.5, 10.25), nn BETWEEN 0 AND 20 FROM t ORDER BY id
SELECT round(nn, 1), floor(nn), abs(nn), nn::int, nn::float8, nn::numeric(10,1) FROM t ORDER BY id
SELECT n::text, n::float8, n::int8, f8::numeric, f8::int, f8::text FROM t WHERE id < 4 ORDER BY id
SELECT f8::numeric(10,2), (f8 * 100)::int FROM t WHERE id < 4 ORDER BY id
SELECT s || ' ' || v || id FROM t ORDER BY id
SELECT upper(s), length(v), reverse(s), substr(s, 2, 3), left(v, 2) FROM t ORDER BY id
SELECT a || 9, array_length(a, 1), a[2:3], a @> ARRAY[1], 4 = ANY(a) FROM t ORDER BY id
SELECT unnest(a) + 1 FROM t ORDER BY 1 NULLS LAST
SELECT sum(x) FROM t, unnest(a) x
SELECT count(*) FROM t WHERE a IS NULL OR cardinality(a) = 0
SELECT j FROM t ORDER BY id
SELECT j ->> 'k' AS k, count(*) FROM t GROUP BY 1 ORDER BY 1 NULLS FIRST
SELECT id FROM t WHERE j ->> 'k' = '1'
SELECT (j ->> 'k')::int + 1 FROM t WHERE id = 1
SELECT x.v, y.cnt FROM t x JOIN (SELECT v, count(*) AS cnt FROM t GROUP BY v) y ON x.v = y.v ORDER BY x.id
SELECT a.id FROM t a WHERE a.id = (SELECT max(b.id) FROM t b WHERE b.v = a.v) ORDER BY 1
SELECT a.id, (SELECT b.s FROM t b WHERE b.id > a.id ORDER BY b.id LIMIT 1) FROM t a ORDER BY a.id
SELECT a.id, l.s FROM t a LEFT JOIN LATERAL (SELECT s FROM t b WHERE b.id < a.id ORDER BY b.id DESC LIMIT 1) l ON true ORDER BY a.id
SELECT a.id, b.id FROM t a FULL JOIN t b ON a.id = b.id + 3 ORDER BY 1, 2
SELECT a.id, b.id FROM t a RIGHT JOIN t b ON a.id = b.id + 3 ORDER BY 2
SELECT count(*) FROM t a CROSS JOIN t b WHERE a.id < b.id
SELECT * FROM (SELECT id, v FROM t) AS q(x, y) ORDER BY x LIMIT 2
WITH q AS (SELECT v, sum(n) AS total FROM t GROUP BY v) SELECT v, total, total / (SELECT sum(total) FROM q) AS share FROM q ORDER BY v
WITH q(a, b) AS (VALUES (1, 'x'), (2, 'y')) SELECT b, a FROM q ORDER BY a DESC
WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 50) SELECT a FROM f
WITH RECURSIVE tree AS (SELECT 1 AS id, 'a'::text AS path UNION ALL SELECT id + 1, path || '>' || id FROM tree WHERE id < 4) SELECT * FROM tree
SELECT id, rank() OVER (ORDER BY v), dense_rank() OVER (ORDER BY v NULLS FIRST), percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM t ORDER BY id
SELECT id, sum(n) OVER (PARTITION BY v ORDER BY id), n / sum(n) OVER () FROM t WHERE n IS NOT NULL ORDER BY id
SELECT id, last_value(id) OVER (PARTITION BY b ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t ORDER BY id
SELECT v, sum(sum(id)) OVER (ORDER BY v) FROM t GROUP BY v ORDER BY v
SELECT v, rank() OVER (ORDER BY count(*) DESC), count(*) FROM t GROUP BY v ORDER BY 2, 1
SELECT id, lag(s, 1, 'none') OVER (ORDER BY id), lead(n) OVER (ORDER BY id) FROM t ORDER BY id
SELECT id FROM t WHERE s > 'B' ORDER BY s
SELECT id FROM t WHERE s ILIKE '%AN%'
SELECT id FROM t WHERE s ~ '^[a-c]'
SELECT regexp_replace(s, '[aeiou]', '*', 'g') FROM t ORDER BY id
SELECT split_part(s, 'a', 2), strpos(s, 'p'), position('n' in s) FROM t ORDER BY id
SELECT 'abc' < 'abd', 'a' < 'B' COLLATE "C", '' = '', 'a ' = 'a', 'a '::char(3) = 'a'
SELECT 0.1 + 0.2, 0.1::float8 + 0.2::float8, 1e-7::float8, 123456789.123456789::float8, 1/3::float8
SELECT 1000000 * 1000000
SELECT 1000000::int8 * 1000000, 2::int2 + 2::int2, 5::int2 / 2::int2
SELECT 99999999999999999999 + 1, 0.00001 * 0.00001, 123.456 * 1000
SELECT 10 % 3.3, -7 / 2, -7 % 3, 7 / -2, mod(-7, 3), div(7, 2), 5.5 / 2, 1 / 7.0, 22 / 7.0, 100 / 3.0, 2.0 / 3
SELECT 12345.6789 / 0.0001, 1.0 / 3.0 * 3.0, (1.0 / 3.0) + 1
SELECT round(1234.5678, -2), round(0.5), round(1.5), round(-0.5), trunc(-1.5), ceil(-1.5), floor(-1.5)
SELECT greatest('a', 'b'), least(1.5, 2), greatest(date '2024-01-01', date '2024-02-01'), greatest(NULL, NULL)
SELECT CASE WHEN NULL THEN 1 ELSE 2 END, CASE NULL WHEN NULL THEN 1 ELSE 2 END, coalesce(NULL, NULL, 'x')
SELECT NULL + 1, NULL || 'a', NULL AND false, NULL OR true, NOT NULL::bool
SELECT nullif('a', 'a'), nullif(1.0, 2), nullif(5, 5.0)
SELECT '2024-02-30'::date
SELECT '25:00'::time
SELECT '2024-01-01 25:00'::timestamp
SELECT ''::int
SELECT 'abc'::uuid
SELECT '{1,2'::int[]
SELECT '{"a":'::json
SELECT repeat('ab', 3), lpad('x', 5, 'ab'), translate('abc', 'abc', 'x'), initcap('o''neil mc-donald')
SELECT make_date(2024, 13, 1)
SELECT date '2024-03-31' - interval '1 month', date '2024-01-31' + interval '1 month', timestamp '2024-03-10 12:00' - timestamp '2024-03-09 13:30'
SELECT age(date '2024-03-01', date '2024-01-31'), age(timestamp '2024-01-01 10:00', timestamp '2023-12-31 22:30')
SELECT interval '1 month' + interval '40 days', interval '90 minutes', interval '1.5 hours', interval '-1 day 2 hours', interval 'P1Y2M3DT4H5M6S'
SELECT extract(week from date '2024-12-30'), extract(isoyear from date '2024-12-30'), extract(doy from date '2024-12-31'), extract(century from date '2024-01-01'), extract(isodow from date '2024-01-07')
SELECT extract(milliseconds from time '00:00:01.5'), extract(hour from timestamptz '2024-01-01 10:00+00'), extract(epoch from timestamptz '2024-01-01 00:00+00')
SELECT timestamptz '2024-06-01 00:00' AT TIME ZONE 'America/New_York', (timestamp '2024-06-01 00:00' AT TIME ZONE 'America/New_York')::text
SELECT to_timestamp(1700000000.5), date '1970-01-01' + 19000
SELECT generate_series(1, 3) AS x, 'a' AS y
SELECT * FROM generate_series(3, 1, -1)
SELECT * FROM generate_series(1, 0)
SELECT * FROM generate_series(1, 3) a, generate_series(1, a) b ORDER BY 1, 2
SELECT count(*) FROM generate_series(1, 100000) g WHERE g % 7 = 0
SELECT d::date FROM generate_series('2024-01-30'::timestamp, '2024-02-02', interval '1 day') d
SELECT string_agg(x::text, ',') FROM generate_series(1, 5) x
SELECT count(*), count(DISTINCT g % 3), sum(g), avg(g), max(g), stddev(g::float8)::numeric(10,4) FROM generate_series(1, 10) g
SELECT 'x' IN (SELECT s FROM t), 5 > ANY (SELECT id FROM t), 5 >= ALL (SELECT id FROM t), 1 NOT IN (SELECT i2 FROM t)
SELECT (1, 'a') IN (SELECT 1, 'a'), (SELECT count(*) FROM t) + 1, EXISTS (SELECT 1 FROM t WHERE id = 99)
SELECT id, CASE WHEN i8 IS NULL THEN 'none' WHEN i8 < 0 THEN 'neg' ELSE 'pos' END FROM t ORDER BY id
SELECT b::int, b::text, id::text, id::float8, d::text, ts::text, a::text FROM t ORDER BY id
SELECT count(*) AS "Count", 'x' AS "select" FROM t
--known: the type of a whole row is record
SELECT t FROM t
SELECT ROW(1, 'a b', NULL, true, 1.50, ''), (1, 2)::text, ROW(ARRAY['x','y z'], date '2024-01-01', E'q"\\')
SELECT t::text FROM t ORDER BY id
SELECT row_to_json(x) FROM (SELECT id, s FROM t WHERE id < 3) x
SELECT t.* FROM t, t u WHERE t.id = u.id AND t.id = 1
SELECT id AS v, v AS id FROM t ORDER BY id, v
SELECT id + 1 AS id FROM t ORDER BY id
SELECT -id AS x FROM t ORDER BY x
SELECT -id AS x FROM t ORDER BY -id
SELECT v AS x, count(*) FROM t GROUP BY x HAVING count(*) >= 1 ORDER BY x DESC
SELECT b, v, count(*) FROM t GROUP BY CUBE (b, v) ORDER BY 1, 2, 3
SELECT sum(id) FROM t HAVING sum(id) > 100
SELECT 1 FROM t HAVING true
SELECT DISTINCT v, b FROM t ORDER BY v, b
SELECT v FROM t UNION SELECT s FROM t ORDER BY 1
SELECT id, s FROM t WHERE id = 1 UNION ALL SELECT id, s FROM t WHERE id = 2 ORDER BY 1 DESC
(SELECT id FROM t ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM t ORDER BY id DESC LIMIT 1)
SELECT 1 UNION SELECT 2 EXCEPT SELECT 1
SELECT NULL AS a UNION ALL SELECT 'x' UNION ALL SELECT NULL
SELECT n FROM t UNION ALL SELECT id FROM t WHERE id = 1 ORDER BY 1
SELECT x FROM (VALUES (1), (NULL), (3)) v(x) ORDER BY x DESC
SELECT ts FROM t UNION SELECT d FROM t ORDER BY 1
SELECT md5('abc'), encode(sha256('abc'), 'hex'), length('\x0102'::bytea), '\x41'::bytea || '\x42'::bytea
SELECT concat_ws('-', d, id, b) FROM t ORDER BY id
SELECT overlay('Txxxxas' placing 'hom' from 2 for 4), trim(leading 'z' from 'zzabc'), trim(trailing from 'abc  ')
SELECT quote_literal(s), quote_nullable(NULL) FROM t WHERE id = 5
SELECT substring('foobar' from 'o(.)b'), substring('foobar' from 'o+'), substring('abc' from 'x')
SELECT width_bucket(5, 0, 10, 5)
SELECT to_number('12', '99')
SELECT array_to_string(array_agg(s ORDER BY id), '|') FROM t
SELECT max(a) FROM t
SELECT id FROM t ORDER BY a, id
SELECT id FROM t WHERE a = '{4}' OR a = ARRAY[1,2,3] ORDER BY id
SELECT '1'::int4 = '1'::int8, 1 = 1.0::float8, 'a'::varchar = 'a'::text, 'x'::name = 'x'
SELECT * FROM t WHERE (id = 1 AND b) OR (id = 2 AND NOT b) ORDER BY id
SELECT count(*) FROM t WHERE ts::date = date '2024-01-31'
SELECT id FROM t WHERE ts = '2024-01-31 10:00:00'
SELECT id FROM t WHERE tz = '2024-01-31 11:00:00+01'
SELECT id FROM t WHERE n = 1.5 OR n = 2.250
SELECT id FROM t WHERE f8 = 1e20
SELECT id FROM t WHERE i8 = '100'
SELECT f8 / 3, f8 * f8, f8 + 1, -f8 FROM t WHERE id < 4 ORDER BY id
SELECT sum(f8), avg(f8) FROM t WHERE id < 4
SELECT bool_or(id > 4), every(id > 0), bool_and(b) FROM t
SELECT corr(id, i8), regr_slope(id, i8), covar_pop(id, id) IS NOT NULL FROM t WHERE id IN (1, 2)
SELECT count(i8) * 100.0 / count(*) FROM t
SELECT round(count(i8) * 100.0 / count(*), 1) || '%' FROM t
SELECT 5 / 2 * 2.0, 2.0 * 5 / 2, (5 / 2)::float8, 5::float8 / 2
SELECT avg(x) FROM (VALUES (1), (2), (4)) v(x)
SELECT avg(x) FROM (VALUES (1.0), (2.0), (4.5)) v(x)
SELECT sum(x), max(x) FROM (VALUES (1.25), (100)) v(x)
SELECT avg(x), sum(x) FROM (VALUES (10000000000::int8), (20000000001)) v(x)
SELECT nn, count(*) FROM (VALUES (1.0), (1.00), (2.5), (NULL)) v(nn) GROUP BY nn ORDER BY nn
SELECT count(*) FROM (SELECT DISTINCT x FROM (VALUES (1.0), (1.00), (2.5), (NULL), (NULL)) v(x)) q
SELECT DISTINCT x, y FROM (VALUES (1.0, 'a'), (1.0, 'a'), (2.50, 'b')) v(x, y) ORDER BY x
SELECT count(*) FROM (SELECT 1.0 UNION SELECT 1.00 UNION SELECT 1) q
SELECT count(DISTINCT x), sum(x), avg(x), min(x), max(x) FROM (VALUES (1.0), (2.00), (2.5), (NULL)) v(x)
SELECT x, count(*), grouping(x), sum(x) FROM (VALUES (1.0), (1.00), (2.5), (NULL)) v(x) GROUP BY ROLLUP (x) ORDER BY 3, 1
SELECT 1.0 INTERSECT SELECT 1.0 UNION SELECT 2.50 EXCEPT SELECT 2.5 ORDER BY 1
SELECT iv, count(*) FROM (SELECT iv FROM t UNION ALL SELECT interval '24 hours') q GROUP BY iv ORDER BY iv LIMIT 2
SELECT array_append(ARRAY[1.5], 2), array_prepend(2, ARRAY[1.50]), array_position(ARRAY[1.5,2], 2.0), array_remove(ARRAY[1.5,2.0], 2), array_agg(n) FROM t WHERE id < 3
SELECT 1.0 = 1.00, 1.0 IN (1.00, 2), 1.5::numeric < 1.50000000000000000000000000000000000000000001, 'NaN'::numeric = 'NaN'::numeric, 'Infinity'::numeric > 1e100
SELECT 1e50::numeric + 1, 123456789012345678901234567890123456789012345678901234567890 * 2, 1 / 3e30, 2 ^ 100::numeric, 2.0 ^ 0.5, 10.0 ^ -5
SELECT stddev(id), variance(i8), stddev_pop(n), var_pop(nn), stddev(f8), stddev_samp(id) FROM t
SELECT sum(nn), avg(nn), min(nn), max(nn), sum(nn) FILTER (WHERE id > 1), count(DISTINCT nn) FROM t
SELECT id, sum(nn) OVER (ORDER BY id), avg(nn) OVER (PARTITION BY b ORDER BY id), max(nn) OVER (ORDER BY id), lag(nn) OVER (ORDER BY id) FROM t ORDER BY id
SELECT 'NaN'::numeric, '-Infinity'::numeric + 5, 'Infinity'::numeric - 'Infinity'::numeric, '12345678901234567890123456789012345678901234567890.5'::numeric(60,2)
SELECT 1.5::numeric(50,40), 123.456::numeric(5,-1), 0.00123::numeric(3,5)
SELECT 123.456::numeric(3,-5), 1234::numeric(2,0)
SELECT sqrt(2.0), exp(1.0), ln(2.0), log(100.0), log(2.0, 64.0), power(2.0, 3), factorial(20), gcd(12.5, 7.5), lcm(12.5, 7.5), scale(1.500), min_scale(1.500), trim_scale(1.500)
SELECT round(nn, 2), trunc(nn, 1), ceil(nn), floor(nn), sign(nn), abs(nn), -nn, nn % 2, div(nn, 2) FROM t ORDER BY id
SELECT round(n, 1), round(n, 4), trunc(n), trunc(n, 1), ceil(n), floor(n), sign(n), abs(n), -n, n % 2, mod(n, 0.7) FROM t ORDER BY id
SELECT coalesce(n, 0) + 1, coalesce(n, nn), CASE WHEN b THEN n ELSE 0 END, greatest(n, 2.5), least(nn, 5), nullif(n, 1.5) FROM t ORDER BY id
SELECT sum(coalesce(n, 0)), avg(CASE WHEN b THEN n END), sum(CASE WHEN id > 3 THEN n ELSE 0 END), max(coalesce(n, 0)), sum(n * 1.10), avg(n / 3) FROM t
SELECT ARRAY[1.5, 2]::numeric[] || 3.25, (ARRAY[1.5, 2.50])[2], unnest(ARRAY[1.0, 2.25]), '{1.50,NULL,3}'::numeric[], '{1.5,2}'::numeric(10,3)[]
SELECT ARRAY[1,2]::numeric[], ARRAY[1.5,2.5]::int[], ARRAY['1.50','2']::numeric[], ARRAY[1.5,2]::text[], ARRAY[0.1]::float8[]
SELECT 1e-20::float8::numeric, 0.1::float4::numeric, 123456789.123456789::float8::numeric, 'NaN'::float8::numeric, 'Infinity'::float8::numeric(10,2)
SELECT '2024.015'::date, 'J2451187'::date
SELECT concat(c, '|'), format('%s|', c), to_json(c), ARRAY[c]::text, ROW(c) FROM t WHERE id = 1
SELECT j, count(*) FROM t GROUP BY j ORDER BY j
SELECT DISTINCT j -> 'k' FROM t ORDER BY 1
SELECT '[]'::jsonb < 'null'::jsonb, '{"a": 1}'::jsonb > '[1,2,3]'::jsonb, '1.0'::jsonb = '1'::jsonb, '"b"'::jsonb > '"a"'::jsonb, '[1,2]'::jsonb > '[3]'::jsonb
SELECT greatest('{"a":1}'::jsonb, '[]'), '{"a":[1,2]}'::jsonb @> '{"a":[2]}', '[1,[2,3]]'::jsonb @> '[[3]]', '"x"'::jsonb ? 'x'
SELECT interval '24:00:00' = interval '1 day', interval '1 mon -1 day' = interval '29 days', greatest(interval '100 hours', interval '1 day'), min(x), max(x) FROM (VALUES (interval '1 mon'), (interval '31 days')) v(x)
SELECT avg(iv), sum(iv), count(DISTINCT iv) FROM t
SELECT timestamp '2024-03-31 02:30' AT TIME ZONE 'Europe/Paris', timestamp '2024-10-27 02:30' AT TIME ZONE 'Europe/Paris', timestamptz '2024-10-27 00:30+00' AT TIME ZONE 'Europe/Paris', timestamp '2024-11-03 01:30' AT TIME ZONE 'America/New_York'
SELECT date 'infinity' > date '2024-01-01', timestamp '-infinity' + interval '1 day', isfinite(date 'infinity')
--known: the year of an infinite moment is refused
SELECT extract(year from timestamp 'infinity')
SELECT date '0044-03-15 BC' - date '0001-01-01', extract(year from date '0044-03-15 BC'), (date '0044-03-15 BC')::text, timestamp '0001-01-01' - interval '1 day', to_char(date '0044-03-15 BC', 'YYYY BC')
SELECT regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g'), regexp_match('foobarbequebaz', '(bar)(beque)'), regexp_split_to_array('hello world', '\s+'), regexp_count('ABCABC', 'abc', 1, 'i'), substring('foobar' from 'ab|o.b')
SELECT 'abc' ~ '(a)\1'
SELECT x FROM regexp_split_to_table('a1b2c', '\d') x
SELECT encode('\x00ff41'::bytea, 'escape'), get_byte('\x0102'::bytea, 1), set_byte('\x0102'::bytea, 0, 255), overlay('\x010203'::bytea placing '\xff'::bytea from 2), '\x4125'::bytea LIKE '\x4125'::bytea
SELECT 1e308::float8 * 10
SELECT 1e-308::float8 / 1e10
SELECT 'Infinity'::float8 * 2, 0::float8 / 5, 1.5::float4 * 2::float4
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(3, ARRAY[1,2,4]), array_fill(7, ARRAY[2]), trim_array(ARRAY[1,2,3], 1), array_positions(ARRAY[1,2,1], 1), array_replace(ARRAY[1,2], 2, 9)
SELECT array_fill(7, ARRAY[0]), array_fill(NULL::int, ARRAY[3]), array_fill('a'::text, ARRAY[2]), repeat('', 2147483647), repeat('ab', -1), lpad('x', NULL), rpad('abc', 2, ''), repeat('x', NULL), repeat(NULL, 2)
SELECT substring('abc' from NULL::int), substr('abc', NULL), substr('abc', n), substring('abc' from n), lpad('abc', n), rpad('abc', n, 'x'), repeat('abc', n), lpad('abc', n, '') FROM (SELECT nullif(id, 2) AS n FROM t) q ORDER BY n
SELECT array_fill(1, ARRAY[-1])
SELECT array_fill(1, ARRAY[NULL::int])
SELECT repeat(v, id), lpad(v, id), rpad(v, id, 'xy'), array_fill(v, ARRAY[id]) FROM t WHERE id < 6
SELECT array_fill(1, ARRAY[2147483647])
SELECT length(repeat('ab', 2147483647))
SELECT length(repeat('ab', 536870912))
SELECT length(lpad('x', 2147483647))
SELECT length(rpad('x', 268435455, 'yz'))
SELECT format('%-5s|%5s|%2$s', 'a', 'b'), format('%I.%L', 'A b', 'it''s')
SELECT jsonb_set('{"a":[1,2]}', '{a,0}', '9'), jsonb_insert('{"a":[1,2]}', '{a,1}', '7'), '{"a":1,"b":2}'::jsonb - 'a', '[1,2,3]'::jsonb - 1, '{"a":{"b":1}}'::jsonb #- '{a,b}', jsonb_pretty('{"a":[1]}')
SELECT percentile_cont(ARRAY[0, 0.25, 0.5, 1]) WITHIN GROUP (ORDER BY f8), percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY v DESC) FROM t WHERE id < 4
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY iv), percentile_disc(0.5) WITHIN GROUP (ORDER BY nn), percentile_cont(0.3) WITHIN GROUP (ORDER BY n) FILTER (WHERE id < 3) FROM t
SELECT v, percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM t GROUP BY v ORDER BY v
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY id) FROM t
SELECT 7::int2 / (i2 + 32767::int2) FROM t
SELECT extract(julian from timestamp '2000-01-01'), extract(julian from date '2000-01-01'), make_timestamptz(2024, 1, 2, 3, 4, 5, '+03'), timestamp '2024-01-02' AT TIME ZONE '+03'
