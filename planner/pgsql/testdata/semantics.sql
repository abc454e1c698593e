-- Statements by topic, as testdata/diff.sql.
SELECT 7/2, -7/2, 7%-3, -7%3, 7/2.0, 7::float8/2, 5::int2/2::int2
SELECT EXISTS (SELECT FROM t)
SELECT count(*) FROM (SELECT FROM t) q
SELECT * FROM ROWS FROM (generate_series(1,3), generate_series(1,2)) AS x(a,b)
SELECT * FROM ROWS FROM (generate_series(1,3), unnest(ARRAY['a','b'])) WITH ORDINALITY AS x(a,b,c)
SELECT * FROM json_each('{"a":1,"b":"x"}')
SELECT * FROM json_each_text('{"a":1,"b":"x"}')
SELECT * FROM jsonb_each('{"a":1,"b":"x"}')
SELECT * FROM jsonb_each_text('{"a":1,"b":"x","c":null}')
SELECT id, k, v2 FROM t, jsonb_each(j) AS e(k, v2) WHERE id = 1 ORDER BY k
SELECT t.id, key, value FROM t, LATERAL jsonb_each_text(t.j) WHERE id < 3 ORDER BY 1,2
SELECT jsonb_each('{"a":1}')
SELECT (jsonb_each('{"a":1}')).*
SELECT (jsonb_each('{"a":1}')).key
SELECT * FROM json_to_recordset('[{"a":1,"b":"x"},{"a":2}]') AS x(a int, b text)
SELECT * FROM jsonb_to_recordset('[{"a":1,"b":"x"},{"a":"2","c":3}]') AS x(a int, b text, c numeric)
SELECT * FROM json_to_record('{"a":1,"b":[1,2]}') AS x(a int, b int[])
SELECT * FROM jsonb_to_record('{"a":1,"b":{"z":1}}') AS x(a text, b jsonb)
SELECT * FROM json_array_elements('[1,"a",{"x":null}]')
SELECT * FROM json_array_elements_text('[1,"a",{"x":null},null]')
SELECT * FROM jsonb_array_elements('[1,"a",{"x":null}]')
SELECT * FROM jsonb_array_elements_text('[1,"a",{"x":null},null]')
SELECT jsonb_array_elements('[1,2]'), 'x'
SELECT value, ordinality FROM jsonb_array_elements('[1,2]') WITH ORDINALITY
SELECT * FROM jsonb_array_elements('[1,2]') WITH ORDINALITY AS e(v, n)
SELECT * FROM jsonb_object_keys('{"b":1,"a":2}')
SELECT * FROM json_object_keys('{"b":1,"a":2}')
SELECT regexp_match('foobarbequebaz', '(bar)(beque)')
SELECT regexp_match('abc', 'd')
SELECT regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g')
SELECT id, regexp_matches(s, 'a', 'g') FROM t ORDER BY id
SELECT regexp_split_to_table('hello world  x', '\s+')
SELECT regexp_split_to_array('hello world', '\s+')
SELECT regexp_replace('foobarbaz', 'b..', 'X', 'g'), regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g')
SELECT regexp_substr('foobar', 'o+'), regexp_count('abcabc','b'), regexp_instr('abcabc','c',1,2), regexp_like('x','X','i')
SELECT parse_ident('"SomeSchema".someTable'), parse_ident('a.b.c')
SELECT parse_ident('a.b(c)', false)
SELECT parse_ident('1a')
SELECT quote_literal(42), quote_literal(1.5), quote_literal('it''s'), quote_literal(E'a\\b'), quote_nullable(NULL), quote_ident('Foo bar'), quote_nullable(3)
SELECT quote_literal(NULL::text), quote_literal('2024-01-01'::date), quote_literal(ARRAY[1,2]), quote_nullable(true)
SELECT pg_size_bytes('1 GB'), pg_size_bytes('10kB'), pg_size_bytes('1.5 MB'), pg_size_bytes('123'), pg_size_bytes('-1MB')
SELECT pg_size_bytes('1 XB')
SELECT pg_size_pretty(10240::bigint), pg_size_pretty(123456789::bigint), pg_size_pretty(1234567890123::numeric), pg_size_pretty(-5::bigint)
SELECT array_append(ARRAY[1,2],3), array_prepend(0,ARRAY[1]), array_cat(ARRAY[1],ARRAY[2,3]), array_remove(ARRAY[1,2,1],1), array_replace(ARRAY[1,2,1],1,9), array_position(ARRAY['a','b'],'b'), array_positions(ARRAY[1,2,1],1)
SELECT array_to_string(ARRAY[1,NULL,3],',','*'), array_to_string(ARRAY[1,NULL,3],','), string_to_array('a,b,,c',','), string_to_array('a,b,,c',',',''), string_to_array('abc',NULL), string_to_array('',','), string_to_array('abc','')
SELECT array_length(ARRAY[1,2],1), array_length(ARRAY[1,2],2), array_dims(ARRAY[1,2]), array_ndims(ARRAY[1,2]), array_upper(ARRAY[1,2],1), array_lower(ARRAY[1,2],1), cardinality(ARRAY[1,2]), array_length('{}'::int[],1)
SELECT trim_array(ARRAY[1,2,3,4],2)
SELECT unnest(ARRAY[1,2]), unnest(ARRAY['a','b','c'])
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c']) WITH ORDINALITY AS x(a,b,n)
SELECT ARRAY[[1,2],[3,4]], ARRAY[[1,2],[3,4]][2][1], array_dims(ARRAY[[1,2],[3,4]])
SELECT (ARRAY[1,2,3])[2:], (ARRAY[1,2,3])[:2], (ARRAY[1,2,3])[2:2], (ARRAY[1,2,3])[5], (ARRAY[1,2,3])[0:1]
SELECT ARRAY[1,2]||3, 0||ARRAY[1], ARRAY[1]||ARRAY[2], ARRAY[1,2] @> ARRAY[1], ARRAY[1] <@ ARRAY[1,2], ARRAY[1,2] && ARRAY[2,3]
SELECT width_bucket(5, ARRAY[1,3,4,6])
SELECT format('Hello %s, %1$s', 'World'), format('%I = %L', 'Foo bar', E'a\'b'), format('%10s|%-10s|', 'a', 'b'), format('%%'), format('%s', NULL), format('%L', NULL)
SELECT format('%z', 1)
SELECT format('%s')
SELECT * FROM string_to_table('a,b,c', ',')
SELECT string_to_table('a,b,NULL', ',', 'NULL')
SELECT date_bin('15 minutes', TIMESTAMP '2020-02-11 15:44:17', TIMESTAMP '2001-01-01'), date_bin('1 day', timestamptz '2020-02-11 15:44:17+00', '2001-01-01')
SELECT date_bin('1 month', TIMESTAMP '2020-02-11 15:44:17', TIMESTAMP '2001-01-01')
SELECT make_date(2020,2,30)
SELECT make_date(2020,2,29), make_date(-44,3,15), make_time(8,15,23.5), make_timestamp(2013,7,15,8,15,23.5), make_timestamptz(2013,7,15,8,15,23.5), make_timestamptz(2013,7,15,8,15,23.5,'America/New_York')
SELECT make_interval(days => 10), make_interval(1,2,3,4,5,6,7.5), make_interval(years := 10, secs => 0.5)
SELECT justify_days('35 days'), justify_hours('27 hours'), justify_interval('1 mon -1 hour')
SELECT age(timestamp '2001-04-10', timestamp '1957-06-13'), age('2024-02-29'::date, '2023-03-31'::date)
SELECT extract(century from timestamp '2000-12-16 12:21:13'), extract(isoyear from date '2006-01-01'), extract(julian from date '2006-01-01'), extract(week from date '2006-01-01'), extract(epoch from timestamptz '2001-02-16 20:38:40.12-08'), extract(milliseconds from time '17:12:28.5')
SELECT extract(timezone from timestamptz '2001-02-16 20:38:40+00'), extract(timezone_hour from timestamptz '2001-02-16 20:38:40+00')
SELECT extract(epoch from interval '5 days 3 hours'), extract(month from interval '3 years 15 months'), extract(quarter from date '2024-05-01'), extract(dow from date '2024-05-01'), extract(isodow from date '2024-05-05')
SELECT date_part('year', date '2024-01-01'), date_trunc('week', timestamp '2024-05-01 12:00'), date_trunc('quarter', date '2024-05-01'), date_trunc('day', timestamptz '2024-05-01 12:00+00', 'Asia/Tokyo'), date_trunc('hour', interval '3 days 02:47:33')
SELECT * FROM generate_series('2024-01-01'::timestamp, '2024-01-03', '1 day')
SELECT * FROM generate_series('2024-01-31'::timestamptz, '2024-04-30', '1 month')
SELECT * FROM generate_series('2024-01-01'::date, '2024-01-03'::date, '1 day')
SELECT * FROM generate_series(1.0, 3.0, 0.5)
SELECT * FROM generate_series(5, 1, -2)
SELECT * FROM generate_series(1, 3, 0)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f8), percentile_disc(0.5) WITHIN GROUP (ORDER BY id), mode() WITHIN GROUP (ORDER BY i2) FROM t
SELECT percentile_cont(ARRAY[0.25,0.75]) WITHIN GROUP (ORDER BY id) FROM t
SELECT id FROM t ORDER BY i2 FETCH FIRST 2 ROWS WITH TIES
SELECT id FROM t ORDER BY i2 DESC NULLS LAST FETCH FIRST 1 ROW WITH TIES
SELECT i2 FROM t ORDER BY i2 OFFSET 1 FETCH FIRST 2 ROWS WITH TIES
SELECT DISTINCT ON (v) v, id FROM t ORDER BY v, id DESC
SELECT id, sum(i8) OVER (ORDER BY id GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM t
SELECT id, sum(i8) OVER (ORDER BY i8 RANGE BETWEEN 100 PRECEDING AND CURRENT ROW EXCLUDE GROUP) FROM t ORDER BY id
SELECT id, array_agg(id) OVER (ORDER BY d RANGE BETWEEN '1 month' PRECEDING AND '1 month' FOLLOWING) FROM t ORDER BY id
SELECT id, first_value(s) OVER w, last_value(s) OVER w, nth_value(s,2) OVER w FROM t WINDOW w AS (ORDER BY id ROWS UNBOUNDED PRECEDING)
SELECT v, b, count(*), grouping(v,b) FROM t GROUP BY CUBE(v,b) ORDER BY 1,2,4
SELECT id FROM t GROUP BY GROUPING SETS ((id), ()) ORDER BY 1
SELECT '5'::int + 1
SELECT 'abc'::int
SELECT '1e3'::int
SELECT ' 42 '::int
SELECT '99999999999'::int
SELECT '1.5'::int
SELECT 1.5::int, 2.5::int, -1.5::int, 2.5::float8::int, 3.5::float8::int
SELECT 1e400::float8
SELECT '1e400'::float8
SELECT 'NaN'::float8 = 'NaN'::float8, 'NaN'::numeric > 1e10::numeric
SELECT 32767::int2 + 1::int2
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1
SELECT -9223372036854775808 / -1
SELECT (-2147483648)::int4 / -1
SELECT abs(-2147483648)
SELECT 1/0
SELECT 1.0/0
SELECT 1::float8/0
SELECT mod(5,0)
SELECT 5 % 0
SELECT 0.1+0.2, 0.1::float8+0.2::float8, 0.1::float4+0.2::float4, 1e15::float8, 1e16::float8, 123456789012345678::float8, 1e-5::float8, 0.0001::float8
SELECT 1.10 * 2.20, 1.10 + 2.2, 10/3.0, 1/3::numeric, 2::numeric ^ 0.5, 100::numeric/7
SELECT sqrt(2), sqrt(2::numeric), cbrt(27), exp(1), exp(1::numeric), ln(10), ln(10::numeric), log(100), log(2, 64), log(100::float8), pi()
SELECT round(2.5), round(-2.5), round(2.567, 2), round(1234, -2), round(2.5::float8), trunc(2.567,1), ceil(1.2), floor(-1.2), sign(-3), sign(-2.5)
SELECT round(1.5::float4), trunc(1.5::float8), ceiling(1.5::float8)
SELECT power(2,10), power(2.0,10), 2^10, 2.0^10, power(2,-1), power(2.0, 0.5)
SELECT div(7,2), div(-7.5,2), mod(7.5,2), gcd(12,18), lcm(4,6), factorial(5), scale(1.230), trim_scale(1.230), min_scale(1.230)
SELECT degrees(1), radians(180), sin(1), cos(1), tan(1), asin(1), acos(1), atan(1), atan2(1,2), cot(1), sinh(1), cosh(1), tanh(1)
SELECT asinh(1), acosh(2), atanh(0.5)
SELECT asin(2)
SELECT sqrt(-1)
SELECT ln(0)
SELECT to_hex(255), to_hex(-1), to_hex(255::bigint)
SELECT 1 <> 2, 1 != 1, 3 <= 3, 1 = 1.0, 1::int2 = 1::int8
SELECT NULL = NULL, NULL IS NULL, NULL IS DISTINCT FROM NULL, 1 IS DISTINCT FROM NULL, 1 IS NOT DISTINCT FROM 1
SELECT true AND NULL, false AND NULL, true OR NULL, NOT NULL::bool
SELECT 'yes'::bool, 'off'::bool, '1'::bool, 't'::bool, 'tru'::bool, ' true '::bool
SELECT 'x'::bool
SELECT 1::bool, 0::bool, 5::bool, true::int
SELECT 2::bigint::bool
SELECT true::text, true || 'x', 'a' || 1, 'a' || NULL, 1 || 'b'
SELECT 'abc' LIKE 'a%', 'abc' LIKE '_b_', 'a%c' LIKE 'a\%c', 'a%c' LIKE 'a#%c' ESCAPE '#', 'ABC' ILIKE 'abc', 'abc' NOT LIKE 'b%', 'a\c' LIKE 'a\\c', 'abc' LIKE 'abc\'
SELECT 'abc' LIKE 'abc\' ESCAPE ''
SELECT 'abc' LIKE 'abc' ESCAPE 'xx'
SELECT 'abc' ~ 'b', 'abc' ~* 'B', 'abc' !~ 'x', 'abc' !~* 'B', 'abc' ~~ 'a%', 'abc' ~~* 'A%', 'abc' !~~ 'x%', 'abc' !~~* 'A%'
SELECT 'abc' SIMILAR TO 'a(b|x)c', 'abc' SIMILAR TO '%(b|d)%', 'abc' SIMILAR TO '(b|c)%'
SELECT 'abc' ~ '('
SELECT 'a.b' ~ 'a\.b', 'a1b' ~ '\d', 'foo bar' ~ '\ybar\y', 'foobar' ~ '(?i)FOO', 'a
b' ~ 'a.b'
SELECT 'aaa' ~ '^a{2}$', 'aaa' ~ '^a{2,}$', 'a' ~ '[[:alpha:]]', 'é' ~ '\w', 'A' ~ '[^a-z]', '-' ~ '[a-]', ']' ~ '[]]'
SELECT regexp_replace('abc', '', '-', 'g'), regexp_replace('abc','(a)(b)','\2\1'), regexp_replace('abc','b','[\&]'), regexp_replace('ABC','b','x','i'), regexp_replace('aXbXc','X','-',3), regexp_replace('aXbXc','X','-',1,2)
SELECT length('héllo'), char_length('日本'), octet_length('日本'), bit_length('a'), upper('straße'), lower('ÀÉ'), initcap('hello wORLD foo_bar a1b'), reverse('abc日')
SELECT left('abc',2), left('abc',-1), right('abc',2), right('abc',-1), left('abc',10), lpad('a',3), lpad('abc',2), lpad('a',5,'xy'), rpad('a',5,'xy'), lpad('a',3,''), repeat('ab',3), repeat('a',-1)
SELECT substr('abcdef',2), substr('abcdef',2,3), substr('abcdef',-1,4), substring('abcdef',0,3), substr('abc',5), overlay('abcdef' placing 'XX' from 2 for 3), overlay('abc' placing 'X' from 2)
SELECT substr('abc',1,-1)
SELECT position('c' in 'abc'), strpos('abc','z'), strpos('abc',''), ascii('a'), ascii(''), chr(97), chr(8364), ascii('€')
SELECT chr(0)
SELECT chr(-1)
SELECT trim('  a  '), trim(both 'x' from 'xxaxx'), ltrim('xyxa','xy'), rtrim('abab','b'), btrim('  x '), trim(leading from ' a '), trim('xy' from 'xyaxy')
SELECT split_part('a,b,c',',',2), split_part('a,b,c',',',-1), split_part('a,b,c',',',9), split_part('a,b','',1)
SELECT split_part('a,b',',',0)
SELECT translate('12345','143','ax'), replace('abcabc','b','XX'), concat('a',NULL,1,true), concat_ws(',','a',NULL,'b',1.50), starts_with('abc','ab'), 'abc' ^@ 'b'
SELECT md5('abc'), sha256('abc'), sha224('abc'), sha384('abc'), sha512('abc'), encode('abc','base64'), encode('abc','hex'), encode('a\b'::bytea,'escape')
SELECT encode(sha256('abc'),'hex'), decode('YWJj','base64'), decode('616263','hex'), decode('\141b','escape')
SELECT decode('6','hex')
SELECT decode('zz','hex')
SELECT decode('Y','base64')
SELECT encode('abc','foo')
SELECT '\x616263'::bytea, 'a\\b'::bytea, '\141'::bytea, E'\\x41'::bytea || '\x42', length('\x4142'::bytea), get_byte('\x4142',1), set_byte('\x4142',0,255), substring('\x414243'::bytea from 2 for 1), position('\x42'::bytea in '\x4142'::bytea), trim('\x00'::bytea from '\x004100'::bytea)
SELECT '\xzz'::bytea
SELECT '\x4'::bytea
SELECT convert_from('\xff','UTF8')
SELECT to_char(1234.5,'9999.99'), to_char(1234.5,'FM9,999.00'), to_char(-5,'S9'), to_char(-5,'9PR'), to_char(5,'RN'), to_char(485,'FMRN'), to_char(0.5,'0.9'), to_char(12,'EEEE'), to_char(12345,'9.99EEEE'), to_char(12,'L99'), to_char(12,'99th'), to_char(123,'99'), to_char(-1,'MI9'), to_char(1,'9MI'), to_char(1.5,'V99'), to_char(12.3,'99V9')
SELECT to_char(timestamp '2024-03-05 14:07:09.123456','YYYY-MM-DD HH24:MI:SS.US'), to_char(timestamp '2024-03-05 14:07:09','HH12:MI AM'), to_char(timestamp '2024-03-05 14:07:09','Day, DD Month YYYY'), to_char(timestamp '2024-03-05 14:07:09','FMDay, FMDDth FMMonth'), to_char(timestamp '2024-03-05','J Q WW IW IYYY ID D DDD W CC'), to_char(timestamp '2024-03-05','Dy Mon MON mon dy DY'), to_char(timestamp '2024-03-05','"text" YY Y,YYY RM rm'), to_char(timestamp '2024-03-05 14:07:09','SSSS SSSSS MS FF3 FF1')
SELECT to_char(timestamptz '2024-03-05 14:07:09+00','TZ tz OF TZH TZM'), to_char(timestamptz '2024-03-05 14:07:09+00','YYYY-MM-DD"T"HH24:MI:SSOF')
SELECT to_char(interval '1 day 25 hours','HH24:MI:SS'), to_char(interval '15 months','YYYY MM DD'), to_char(interval '-1 hour','HH24:MI'), to_char(time '14:05','HH:MI am')
SELECT to_char(date '2024-03-05','YYYYMMDD'), to_char(date '0044-03-15 BC','YYYY BC')
SELECT to_date('2024-13-01','YYYY-MM-DD')
SELECT to_date('2024-02-30','YYYY-MM-DD')
SELECT to_date('abc','YYYY-MM-DD')
SELECT to_timestamp('05 Dec 2000','DD Mon YYYY'), to_timestamp(1284352323), to_timestamp(1284352323.5), to_timestamp('2024-03-05 14:07:09.5','YYYY-MM-DD HH24:MI:SS.MS'), to_timestamp('2:30 PM','HH:MI AM'), to_timestamp('2024-03-05T14:07','YYYY-MM-DD"T"HH24:MI')
SELECT date '2024-01-31' + 1, date '2024-01-31' - date '2024-01-01', date '2024-01-31' + interval '1 month', timestamp '2024-01-31' + interval '1 month', date '2024-01-31' + time '12:00', timestamp '2024-03-01' - timestamp '2024-01-31', interval '1 day' * 1.5, interval '1 month' / 2, interval '1 day' - interval '25 hours', -interval '1 day'
SELECT interval '1 year 2 months 3 days 04:05:06.789', interval '1-2', interval '3 4:05:06', interval 'P1Y2M3DT4H5M6S', interval '1' year, interval '1.5 days', interval '1.5 months', interval '-1 day +2 hours', interval '1 week', interval '1 decade', interval '100 ms', interval '2 hours ago'
SELECT interval 'foo'
SELECT interval '1 day' = interval '24 hours', interval '1 month' > interval '29 days', interval '1 month' = interval '30 days'
SELECT extract(day from interval '40 days'), extract(hour from interval '40 hours'), extract(second from interval '1.5 s'), extract(epoch from interval '1 month'), extract(microseconds from interval '1.5 s'), extract(decade from interval '25 years')
SELECT extract(foo from now())
SELECT date '2024-02-30'
SELECT date 'foo'
SELECT timestamp '2024-01-01 25:00'
SELECT date 'infinity', timestamp '-infinity', date 'epoch', date '01/02/2024', date 'Jan 5, 2024', date '5 January 2024', date '20240105', date '2024-Jan-05', date '99-01-05', date '2024.5', date '0001-01-01 BC'
SELECT timestamp '2024-01-01 12:00:00.1234567', timestamp '2024-01-01 24:00', timestamp '2024-01-01T12:00Z', timestamptz '2024-01-01 12:00 America/New_York', timestamptz '2024-01-01 12:00 EST', timestamptz '2024-01-01 12:00-05:30', timestamp(0) '2024-01-01 12:00:00.5', timestamp '2024-01-01 12:00 PM', time '12:30 PM', time '040506', time '24:00', timetz '12:00 PST'
SELECT timestamptz '2024-07-01 12:00' AT TIME ZONE 'Europe/Berlin', timestamp '2024-07-01 12:00' AT TIME ZONE 'Europe/Berlin', timestamp '2024-07-01 12:00' AT TIME ZONE '+03', timestamp '2024-07-01 12:00' AT TIME ZONE 'EST', timezone('UTC', timestamp '2024-07-01')
SELECT timestamp '2024-07-01' AT TIME ZONE 'Foo/Bar'
SELECT age(timestamp '2024-03-31', timestamp '2024-02-29'), age(timestamp '2024-01-01', timestamp '2024-03-31'), isfinite(date 'infinity'), date_trunc('month', timestamptz '2024-03-05 14:00+00'), date_trunc('millennium', timestamp '2024-03-05'), date_trunc('decade', date '2024-03-05')
SELECT date_trunc('foo', now())
SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', date '2024-03-01'), (date '2024-01-01', interval '10 days') OVERLAPS (date '2024-01-11', interval '1 day')
SELECT justify_interval(interval '1 mon -1 hour'), make_interval(hours => 25), interval '1 day' BETWEEN interval '0' AND interval '25 hours'
SELECT now() = transaction_timestamp(), statement_timestamp() >= now(), current_date = now()::date, localtimestamp::date = current_date, current_time IS NOT NULL, clock_timestamp() >= now()
SELECT pg_typeof(now()), pg_typeof(current_date), pg_typeof(current_time), pg_typeof(localtime), pg_typeof(1), pg_typeof(1.5), pg_typeof('a'), pg_typeof('a'::text), pg_typeof(NULL), pg_typeof(ARRAY[1]), pg_typeof(1::numeric(5,2)), pg_typeof(row(1)), pg_typeof(sum(1)), pg_typeof(avg(1)), pg_typeof(count(*))
SELECT sum(id), sum(i2), sum(i8), sum(n), sum(f8), avg(id), avg(i2), avg(n), avg(f8), min(s), max(v), min(b::int) FROM t
SELECT min(b) FROM t
SELECT sum(s) FROM t
SELECT avg(d) FROM t
SELECT count(*), count(s), count(DISTINCT v), count(DISTINCT (v,b)) FROM t
SELECT string_agg(s, ',' ORDER BY s), string_agg(DISTINCT v, ',' ), array_agg(id ORDER BY id DESC), array_agg(DISTINCT b), json_agg(v ORDER BY id), jsonb_agg(n ORDER BY id), json_object_agg(id, v ORDER BY id), jsonb_object_agg(id, v) FROM t
SELECT bool_and(b), bool_or(b), every(b), bit_and(id), bit_or(id), bit_xor(id) FROM t
SELECT array_agg(s ORDER BY s NULLS FIRST), array_agg(id ORDER BY v, id DESC) FILTER (WHERE id > 1), sum(DISTINCT i2), avg(DISTINCT i2) FROM t
SELECT json_agg(t ORDER BY id) FROM (SELECT id, v FROM t) t
SELECT row_to_json(t) FROM t WHERE id < 3
SELECT to_json(t), to_jsonb(t) FROM t WHERE id = 1
SELECT to_json('a"b'::text), to_json(1.50), to_json(now() IS NULL), to_json(ARRAY['a',NULL]), to_json(date '2024-01-01'), to_json(timestamp '2024-01-01 12:00'), to_json(timestamptz '2024-01-01 12:00+00'), to_jsonb(interval '1 day'), to_json('NaN'::float8), to_json(1e20::float8), to_json(NULL::int), to_json('\x00'::bytea)
SELECT '{"a":1}'::json -> 'a', '{"a":{"b":2}}'::json #> '{a,b}', '[1,2,3]'::json -> 1, '[1,2,3]'::json ->> -1, '{"a":"x"}'::jsonb ->> 'a', '{"a":[1,2]}'::jsonb #>> '{a,1}', '{"a":1}'::jsonb -> 'z', '[1]'::jsonb -> 'a'
SELECT '{"b":1,"a":2, "a":3}'::jsonb, '{"b":1,"a":2, "a":3}'::json, '[1, 2.50, 1e2, -0]'::jsonb, ' "x" '::jsonb, '1.0'::jsonb, '{"a": "\u00e9"}'::jsonb
SELECT '{"a":1}'::jsonb @> '{"a":1}', '[1,2]'::jsonb @> '1', '{"a":{"b":1}}'::jsonb @> '{"a":{}}', '{"a":1}'::jsonb ? 'a', '["a"]'::jsonb ? 'a', '{"a":1}'::jsonb ?| '{b,a}', '{"a":1}'::jsonb ?& '{b,a}'
SELECT '{"a":1}'::jsonb || '{"b":2}', '[1]'::jsonb || '2', '1'::jsonb || '2'::jsonb, '{"a":1,"b":2}'::jsonb - 'a', '["a","b"]'::jsonb - 0, '["a","b"]'::jsonb - -1, '{"a":1,"b":2}'::jsonb - '{a,b}'::text[], '{"a":{"b":1}}'::jsonb #- '{a,b}'
SELECT '{"a":1'::json
SELECT '{"a":1,}'::jsonb
SELECT ('{"a":5}'::jsonb -> 'a')::int, ('{"a":5.5}'::jsonb -> 'a')::numeric, ('{"a":true}'::jsonb -> 'a')::bool, ('{"a":"5"}'::jsonb ->> 'a')::int
SELECT ('"x"'::jsonb)::int
SELECT ('{"a":1}'::jsonb)['a'], ('[1,2]'::jsonb)[0], ('{"a":{"b":1}}'::jsonb)['a']['b']
SELECT '1'::jsonb < '2'::jsonb, '[1]'::jsonb < '{"a":1}'::jsonb, '"a"'::jsonb < '"b"'::jsonb, '{"a":1}'::jsonb = '{"a":1.0}'::jsonb
SELECT '{"a":1}'::json::text, '{"a":1}'::jsonb::text, '{"a" : 1}'::json::jsonb, '{"a":1}'::jsonb::json
SELECT gen_random_uuid() IS NOT NULL, 'a0eebc999c0b4ef8bb6d6bb9bd380a11'::uuid, '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}'::uuid
SELECT 'x'::uuid
SELECT ROW(1,2) = ROW(1,2), ROW(1,NULL) = ROW(1,2), ROW(1,2) < ROW(1,3), (1,2) <> (1,3), ROW(1,NULL) IS NULL, ROW(NULL,NULL) IS NULL, ROW(1,2) IS NOT NULL, ROW(1,NULL) IS DISTINCT FROM ROW(1,NULL), (1,2) IN ((1,2),(3,4)), ROW(1,'a')::text
SELECT ROW(1,2) = ROW(1,2,3)
SELECT (SELECT 1,2)
SELECT 1 = ANY (ARRAY[1,2]), 3 = ANY ('{1,2}'), 1 < ALL (ARRAY[2,3]), 1 = ANY (ARRAY[NULL,2]), 1 = SOME (ARRAY[1]), 1 = ANY (NULL::int[]), 'a' LIKE ANY (ARRAY['a%','b%']), 'a' ~ ANY (ARRAY['x','a'])
SELECT 1 IN (1,2,NULL), 3 IN (1,2,NULL), 3 NOT IN (1,2,NULL), 1 IN (SELECT id FROM t), NULL IN (1)
SELECT greatest(1,2.5,NULL), least('a','b'), greatest(NULL,NULL), coalesce(NULL,1,2), nullif(1,1), nullif('a','b'), coalesce(NULL,NULL)
SELECT CASE WHEN true THEN 1 ELSE 2.5 END, CASE 1 WHEN 1 THEN 'a' ELSE NULL END, CASE WHEN false THEN 1 END, CASE 'a' WHEN 'b' THEN 1 WHEN 'a' THEN 2 END
SELECT CASE WHEN true THEN 1 ELSE 'a' END
SELECT coalesce(1,'a')
SELECT 1 BETWEEN 0 AND 2, 1 NOT BETWEEN 0 AND 2, 2 BETWEEN SYMMETRIC 3 AND 1, NULL BETWEEN 1 AND 2
SELECT cast('1' as int), int '5', '5'::int4::text::numeric(5,2), cast(5.678 as numeric(4,1)), 12345.678::numeric(4,1)
SELECT 123.45::numeric(4,3)
SELECT 'abc'::varchar(2), 'abc'::char(5) || '|', 'abc  '::char(5) = 'abc', 'a'::char(3)::text || '|', 'abc'::"char", 'abc'::name, length('a  '::char(5)), 'ab '::char(3) = 'ab'::text
SELECT 'abc'::varchar(2)::varchar(5), 'a'::bpchar(3) < 'b', upper('a'::char(3)) || '|'
SELECT current_schema, current_database(), current_user, session_user, current_catalog, current_schemas(true), user, version() LIKE 'PostgreSQL 15%'
SELECT 1 AS "A", 2 AS a, 3 AS "a b", 4 "x""y"
SELECT 1, 2, 1, 'a', now() IS NULL, count(*), sum(1) + 1, CASE WHEN true THEN 1 END, ARRAY[1], ROW(1), '1'::int, 1::text, (SELECT 1), EXISTS (SELECT 1), NOT true, -1, a.x FROM (SELECT 1 AS x) a GROUP BY a.x
SELECT id, id FROM t WHERE id=1
SELECT * FROM (SELECT id, id FROM t WHERE id=1) q
SELECT q.id FROM (SELECT id, id FROM t WHERE id=1) q
SELECT ID, "id", T.Id FROM T WHERE iD = 1
SELECT "ID" FROM t
SELECT 1 UNION SELECT 1.5 ORDER BY 1
SELECT 1 UNION SELECT 'a'
SELECT '1' UNION SELECT 2
SELECT 'a' UNION ALL SELECT NULL UNION ALL SELECT 'b'
SELECT 1,2 UNION SELECT 1
SELECT 1 INTERSECT SELECT 1, 2
SELECT i2 FROM t UNION SELECT id FROM t ORDER BY i2 NULLS FIRST
SELECT i2 FROM t EXCEPT SELECT id FROM t ORDER BY 1
SELECT i2 FROM t INTERSECT ALL SELECT i2 FROM t ORDER BY 1
(SELECT id FROM t ORDER BY id DESC LIMIT 1) UNION ALL (SELECT id FROM t ORDER BY id LIMIT 1)
SELECT id FROM t UNION SELECT 1 ORDER BY id+1
VALUES (1,'a'),(2,'b')
VALUES (1,'a'),(2.5,'b')
VALUES (1,'a'),(2)
SELECT * FROM (VALUES (1,'a'),(2,NULL)) AS v(x,y) ORDER BY x DESC
SELECT * FROM (VALUES (1),(NULL),(3)) v(x) ORDER BY x, 1
VALUES (1),(2) ORDER BY 1 DESC LIMIT 1
SELECT column1, column2 FROM (VALUES (1,2)) q
TABLE t LIMIT 0
WITH x AS (SELECT 1 AS a), y AS (SELECT a+1 AS b FROM x) SELECT * FROM x, y
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n+1 FROM r WHERE n<5) SELECT sum(n), count(*) FROM r
WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n%3)+1 FROM r) SELECT * FROM r ORDER BY n
WITH RECURSIVE fib(a,b) AS (VALUES (0,1) UNION ALL SELECT b,a+b FROM fib WHERE b<50) SELECT a FROM fib
WITH RECURSIVE r(n,p) AS (SELECT 1, ARRAY[1] UNION ALL SELECT n+1, p||(n+1) FROM r WHERE n<3) SELECT * FROM r
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1.5 FROM r WHERE n<3) SELECT * FROM r
WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x
WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x
WITH x(a,b) AS (SELECT 1) SELECT * FROM x
SELECT * FROM nosuch
SELECT nosuch FROM t
SELECT t.nosuch FROM t
SELECT x.id FROM t
SELECT nosuch(1)
SELECT lower(1)
SELECT 1 + 'a'
SELECT 'a' + 'b'
SELECT 1 + true
SELECT id FROM t GROUP BY v
SELECT v, id FROM t GROUP BY v
SELECT sum(id) FROM t WHERE sum(id) > 1
SELECT sum(sum(id)) FROM t
SELECT id FROM t HAVING id > 1
SELECT count(*) FROM t HAVING count(*) > 10
SELECT 1 FROM t HAVING true
SELECT v FROM t ORDER BY 5
SELECT v FROM t GROUP BY 2
SELECT id FROM t LIMIT -1
SELECT id FROM t LIMIT 'a'
SELECT id FROM t ORDER BY id LIMIT NULL OFFSET 3
SELECT id FROM t ORDER BY id LIMIT 1.5
SELECT id FROM t ORDER BY id LIMIT (SELECT 2)
SELECT id FROM t ORDER BY id FETCH FIRST ROW ONLY
SELECT id, v FROM t ORDER BY v, id
SELECT id, v FROM t ORDER BY v DESC, id
SELECT id, v FROM t ORDER BY v COLLATE "C", id
SELECT id FROM t ORDER BY b, -id
SELECT id AS x FROM t ORDER BY x + 1
SELECT id AS x, -id AS id FROM t ORDER BY id
SELECT v, count(*) c FROM t GROUP BY v ORDER BY c DESC, v
SELECT DISTINCT v FROM t ORDER BY id
SELECT DISTINCT v, b FROM t ORDER BY v, b
SELECT DISTINCT ON (v) v, id FROM t ORDER BY id
SELECT t1.id, t2.id FROM t t1 CROSS JOIN t t2 WHERE t1.id < 2 ORDER BY 2
SELECT * FROM (SELECT 1 a) x NATURAL JOIN (SELECT 1 a, 2 b) y
SELECT * FROM (SELECT 1 a, 2 c) x JOIN (SELECT 1 a, 3 b) y USING (a)
SELECT x.a, y.a, a FROM (SELECT 1 a) x LEFT JOIN (SELECT 2 a) y USING (a)
SELECT * FROM (SELECT 1 a) x FULL JOIN (SELECT 2 a) y USING (a) ORDER BY 1
SELECT * FROM (SELECT 1 a) x FULL JOIN (SELECT 2 a) y ON x.a = y.a ORDER BY 1
SELECT * FROM (SELECT 1 a) x RIGHT JOIN (SELECT 2 a) y ON x.a = y.a
SELECT * FROM (SELECT 1 a) x JOIN (SELECT 1 a) y USING (a) AS j
SELECT a FROM (SELECT 1 a) x, (SELECT 2 a) y
SELECT * FROM t x JOIN t x ON true
SELECT t.* FROM t AS q
SELECT t.id, l.* FROM t, LATERAL (SELECT t.id * 2 AS dbl) l ORDER BY 1
SELECT t.id, g FROM t LEFT JOIN LATERAL generate_series(1, t.id) g ON g > 2 ORDER BY 1,2
SELECT * FROM generate_series(1,3) AS g(x) WHERE x > 1
SELECT generate_series(1,3), generate_series(1,2)
SELECT generate_series(1,2) + 10, 'x'
SELECT id, generate_series(1,id) FROM t WHERE id < 3 ORDER BY 1, 2
SELECT count(*) FROM t WHERE generate_series(1,2) = 1
SELECT s, rank() OVER (ORDER BY v), dense_rank() OVER (ORDER BY v), row_number() OVER (ORDER BY id) FROM t ORDER BY id
SELECT id, lag(id) OVER (ORDER BY id), lead(id,2,0) OVER (ORDER BY id), ntile(2) OVER (ORDER BY id), percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM t
SELECT id, sum(id) OVER (PARTITION BY v ORDER BY id), avg(id) OVER (), count(*) FILTER (WHERE b) OVER (ORDER BY id) FROM t ORDER BY id
SELECT id, sum(i8) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM t
SELECT rank() OVER (ORDER BY id) FROM t GROUP BY v
SELECT sum(id) OVER w FROM t WINDOW w AS (PARTITION BY v), w2 AS (w ORDER BY id) ORDER BY 1
SELECT id, count(*) OVER (ORDER BY i2 RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY ts RANGE BETWEEN interval '30 days' PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT nth_value(id,0) OVER () FROM t
SELECT id, sum(f8) OVER (ORDER BY id RANGE 1 PRECEDING) FROM t
SELECT id, string_agg(v, ',') OVER (ORDER BY id) FROM t
SELECT id, array_agg(v) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t
SELECT first_value(id IGNORE NULLS) OVER () FROM t
SELECT '[1.0,2.50]'::numrange
SELECT '1.2.3'::inet
SELECT '16/B374D848'::pg_lsn
SELECT '<a>x</a>'::xml
SELECT '(0,1)'::tid
SELECT 'postgres=r/postgres'::aclitem
SELECT '1 2 3'::int2vector, '1 2'::oidvector
SELECT 'nope'::regclass
SELECT 'nope'::regtype
SELECT '4294967295'::oid, '-1'::oid
SELECT '4294967296'::oid
SELECT 'abc'::name || 'x', 'abc'::name = 'abc'
SELECT '1'::int2[], '{1,2}'::int2[]
SELECT '{1,2'::int[]
SELECT '{a,"b c",NULL,"NULL"}'::text[]
SELECT '{1.5,2}'::numeric(5,2)[], '{t,f}'::bool[], '{"2024-01-01"}'::date[], '{1 day}'::interval[]
SELECT ARRAY['a','b']::varchar(1)[], ARRAY[1,2]::text[], ARRAY['1','2']::int[], ARRAY[1.5]::int[]
SELECT ARRAY[1,NULL,3], ARRAY[NULL]::int[], ARRAY[]::int[], ARRAY[1,2.5], ARRAY['a',NULL]
SELECT ARRAY[1,2] = ARRAY[1,2], ARRAY[1,2] < ARRAY[1,3], ARRAY[1] < ARRAY[1,0], ARRAY[1,NULL] = ARRAY[1,NULL], ARRAY['a'] < ARRAY['B'], '{}'::int[] = '{}'
SELECT ARRAY[1,2]::text, ARRAY['a b','c"d','e\f','','NULL',NULL]::text, ARRAY[true]::text
SELECT (ARRAY[1,2,3])[1], (ARRAY[1,2,3])[0], (ARRAY[1,2,3])[-1], (ARRAY[1,2,3])[NULL], ('{a,b}'::text[])[2]
SELECT a[1], a[2:3], array_length(a,1), a || 9, 1 = ANY(a), a @> ARRAY[1], cardinality(a), a::text FROM t ORDER BY id
SELECT f8::int FROM t WHERE id = 5
SELECT 0.1::float4::float8, 1.1::float4::numeric, 123456789::float4, 16777217::float4::int, 1e38::float4, 0.1::float8::numeric, 1e-10::float8::text, 1234567.891::float4
SELECT 1e39::float4
SELECT '1e-400'::float8
SELECT 'inf'::float8, '-Infinity'::float4, 'nan'::float8, 'infinity'::numeric, '-inf'::numeric, 'NaN'::numeric + 1, 'inf'::float8 - 'inf'::float8, 'inf'::numeric * 0
SELECT '0x1F'::int
SELECT '1_000'::int
SELECT '1.'::numeric, '.5'::numeric, '5e-3'::numeric, '  1.50 '::numeric, '-0'::numeric, '-0'::float8, 0.00, -0.0, 1.0e3, 1E-3, 00.10
SELECT 1.5e300 * 1e300, 1e-300 / 1e300 > 0
SELECT 12345678901234567890 + 1, 12345678901234567890 % 7, 99999999999999999999.99 * 99999999999999999999.99
SELECT 1.0/3, 10.0/3.0, 1/3.0::numeric(10,5), 2.0/3*3, 1e10/3, 1/7.0, 22.0/7, 0.0001/3, 1000000/3.0, 5.00/2.0
SELECT sum(x), avg(x), stddev(x), variance(x) FROM (VALUES (1.1),(2.22),(3.333)) v(x)
SELECT sum(x), avg(x), stddev(x), variance(x) FROM (VALUES (1),(2),(4)) v(x)
SELECT avg(x), sum(x) FROM (VALUES (1.1::float8),(2.2),(3.3)) v(x)
SELECT avg(x), sum(x), min(x) FROM (VALUES ('NaN'::numeric),(2.2)) v(x)
SELECT sum(x) FROM (VALUES (9223372036854775807),(1)) v(x)
SELECT sum(x::int4) FROM (VALUES (2147483647),(1)) v(x)
SELECT sum(NULL::int), avg(NULL::float8), count(NULL), max(NULL::text), array_agg(NULL::int), string_agg(NULL,','), bool_and(NULL), json_agg(NULL) FROM t
SELECT sum(id) FROM t WHERE false
SELECT count(*), array_agg(id), json_agg(id), string_agg(v,',') FROM t WHERE false
SELECT var_pop(x), var_samp(x), stddev_pop(x), stddev_samp(x) FROM (VALUES (1)) v(x)
SELECT 1 + '2', '3' * 4, 1.5 + '2.5', '2024-01-01'::date - '2023-12-31', '1 day'::interval + '2024-01-01'::timestamp, now() - '1 day'::interval < now(), '5' > 3, 'b' > 'a', '10' > '9', 10 > '9'
SELECT '2024-01-01' < now(), d > '2024-01-01', d = '2024-01-31' FROM t WHERE id = 1
SELECT 1 = 1.0::float8, 0.1::float4 = 0.1, 0.1::float4 = 0.1::float8, 1::numeric = 1::float8, 'a'::text = 'a'::varchar, 'a '::char(2) = 'a', 'a '::char(2) = 'a '::text
SELECT date '2024-01-01' = timestamp '2024-01-01', timestamptz '2024-01-01' = timestamp '2024-01-01', date '2024-01-01' < timestamptz '2024-01-01 00:00:01'
SELECT true > false, 'a'::"char" < 'b', '\x01'::bytea < '\x02', 1::oid = 1, ROW(1,'a') < ROW(1,'b')
SELECT 'a' < 'B', 'a' < 'b', 'Z' < 'a', 'é' > 'z', '' < 'a', 'a' || chr(10) < 'a!', 'abc' < 'abd'
SELECT 1 < true
SELECT 'a' = 1
SELECT now() = 'x'
SELECT date '2024-01-01' + 1.5
SELECT date '2024-01-01' * 2
SELECT interval '1 day' * '2', interval '1 day' / 0
SELECT interval '1 day' / 2, interval '3 days' / 2, interval '1 mon' * 0.5, 2 * interval '1 h', interval '1 year' / 7, interval '1.5 months' * 3, interval '1 day 12 hours' * 0.333
SELECT timestamp '2024-02-29' + interval '1 year', timestamp '2024-03-31' - interval '1 month', date '2024-03-31' - interval '1 mon 1 day', timestamp '2024-01-01' + interval '1 month 1 day 1 hour', timestamptz '2024-03-31 02:30+00' + interval '1 month'
SELECT date '5874898-01-01'
SELECT date '2024-01-01' + 2147483647
SELECT timestamp '294276-12-31' + interval '1 year'
SELECT extract(year from timestamp '0044-03-15 BC'), extract(century from timestamp '0044-03-15 BC'), date_part('year', date '0001-01-01 BC'), to_char(timestamp '0044-03-15 BC', 'YYYY-MM-DD BC AD b.c.')
SELECT extract(week from d), extract(isodow from d), extract(doy from d), extract(epoch from d), extract(epoch from ts), extract(epoch from tz), extract(seconds from ts), extract(millisecond from ts), extract(microsecond from ts) FROM t ORDER BY id
SELECT extract(hour from d) FROM t
SELECT date_part('epoch', timestamp '2024-01-01 00:00:00.5'), date_part('hour', time '10:00'), date_part('dow', date '2024-01-07'), date_part('timezone', timestamptz '2024-01-01')
SELECT date_trunc('second', ts), date_trunc('minute', ts), date_trunc('milliseconds', ts), date_trunc('year', d), date_trunc('century', ts), date_trunc('week', d) FROM t ORDER BY id
SELECT date_trunc('day', time '10:00'), date_trunc('month', interval '1 year 2 months 3 days')
SELECT age(d), age(ts) IS NOT NULL FROM t WHERE false
SELECT age(date '2024-03-01', date '2024-02-01'), age(timestamp '2024-03-01 10:00', timestamp '2024-02-29 12:00'), age(timestamptz '2024-03-01', timestamptz '2023-01-15')
SELECT to_char(n, '999D99'), to_char(n, 'FM999.00'), to_char(id, '09'), to_char(f8, '9.9EEEE'), to_char(nn, 'S9999999.99') FROM t ORDER BY id
SELECT to_char(1234567.891, 'FM9,999,999.99'), to_char(0, '9'), to_char(0, 'FM9'), to_char(0.0, 'FM0.0'), to_char(-0.5, '9.9'), to_char(1e20, '9'), to_char(123.456, '000.0000'), to_char(5, '"n="9'), to_char(1, 'S9'), to_char(-1, '9S'), to_char(1, 'SG9'), to_char(-1.5, 'PL9.9'), to_char(1234, '9 999'), to_char(12, 'B99'), to_char(0, 'B9')
SELECT to_char(ts, 'YYYY-MM-DD'), to_char(ts, 'HH12:MI:SS.MS am'), to_char(ts, 'Dth Month'), to_char(ts, 'IYYY-IW'), to_char(d, 'Day'), to_char(d, 'TMDay') FROM t ORDER BY id
SELECT to_char(timestamp '2024-01-05', 'FMDD"th of" FMMonth, YYYY'), to_char(timestamp '2024-01-05', 'DDTH'), to_char(timestamp '2024-01-05 00:30', 'HH12 HH24 HH'), to_char(timestamp '2024-01-05 12:30', 'P.M. p.m. PM'), to_char(timestamp '2024-01-05', 'FX YYYY'), to_char(timestamp '2024-01-05', 'YYYYYY'), to_char(timestamp '2024-01-05', 'Y YY YYY'), to_char(timestamp '2024-01-05','WW W D ID I IY IYY'), to_char(timestamp '2024-01-05','\"YYYY\"'), to_char(timestamp '2024-12-30','IYYY IW IDDD')
SELECT concat('a', 1, 2.50, true, NULL, date '2024-01-01', ARRAY[1], '{"a":1}'::jsonb, 1.5::float8, '\x01'::bytea, ROW(1,2), interval '1 day'), concat_ws('-', 1, NULL, 'x'), concat(), concat_ws(NULL, 'a')
SELECT greatest('a', 'B', NULL), least(1, 2.5), greatest(date '2024-01-01', timestamp '2024-01-01 10:00'), greatest(interval '1 day', interval '25 h'), least(true, false), greatest(ARRAY[1], ARRAY[2])
SELECT nullif(1, 2.0), nullif('a', 'a'), nullif(1, '1'), nullif(NULL, 1), coalesce(NULL, 'x'), coalesce(1, 2.5), coalesce(NULL::int, '5')
SELECT upper(v), lower(s), length(c), c || '|', c || v, v || c || '|', rpad(c, 7, '-'), c LIKE 'x%', c = 'x', c LIKE 'x', length(v), position('e' in s), substr(s, 2, 2), replace(c, ' ', '_') FROM t ORDER BY id
SELECT string_to_array('a,b', ','), array_to_string(ARRAY[1.50, NULL], ','), array_to_string(ARRAY[true,false], ','), array_to_string(ARRAY[date '2024-01-01'], ','), array_to_string(ARRAY[1.5::float8, 1e20], ',')
SELECT regexp_match('abc123', '([a-z]+)(\d+)'), (regexp_match('abc123', '\d+'))[1], regexp_split_to_array('a1b2c', '\d'), regexp_split_to_array('abc', ''), regexp_matches('abcabc', 'b(c)?', 'g')
SELECT regexp_replace('Hello World', '(\w+) (\w+)', '\2 \1'), regexp_replace('aaa', 'a', 'b'), regexp_replace('abc', '.', '\0', 'g'), regexp_replace('a.b', '\.', '\\'), regexp_replace('x', 'x', '\&\&')
SELECT split_part('a.b.c', '.', 3), split_part('', ',', 1), ltrim('0012', '0'), lpad('12', 5, '0'), to_hex(10), chr(65), ascii('A'), repeat('-', 3), translate('hello', 'el', 'ip'), initcap('o''neil mc-donald')
SELECT overlay('Txxxxas' placing 'hom' from 2 for 4), overlay('abc' placing 'ZZZ' from 5), substring('Thomas' from '...$'), substring('Thomas' from 2), substring('Thomas' for 2), position('' in 'abc'), strpos('', 'a'), left('abc', 0), right('abc', 0), reverse('')
SELECT normalize('é'), is_normalized('é'), 'é' IS NORMALIZED, unistr('\00e9'), U&'\00e9', E'\u00e9\t\101', $$a'b$$, $x$y$x$, 'a' 'b'
SELECT 'a'
'b'
SELECT quote_ident('a"b'), quote_ident('select'), quote_ident('abc'), quote_literal('a\b'), quote_nullable('x'), quote_literal('O''Reilly')
SELECT current_setting('nope')
SELECT set_config('application_name', 'x', false), current_setting('application_name')
SELECT generate_series(1,3) LIMIT 2
SELECT generate_series(1,3) AS g ORDER BY g DESC
SELECT unnest(ARRAY[1,2]) + 1, unnest('{a,b}'::text[])
SELECT unnest(ARRAY[1,2]) UNION SELECT 3 ORDER BY 1
SELECT * FROM unnest('{1,2}'::int[]) WITH ORDINALITY
SELECT * FROM generate_series(1,2) WITH ORDINALITY
SELECT * FROM generate_series(1,2) g, generate_series(1,2) h ORDER BY 1,2
SELECT g.* FROM generate_series(1,2) g
SELECT g FROM generate_series(1,2) g
SELECT t FROM (SELECT 1 a, 'x' b) t
SELECT (t).a FROM (SELECT 1 a, 'x' b) t
SELECT (t).* FROM (SELECT 1 a, 'x' b) t
SELECT t.a, t::text FROM (SELECT 1 a, 'x' b) t
SELECT count(t) FROM t
SELECT count(t.*) FROM t
SELECT count(DISTINCT t) FROM t
SELECT row(t.*) FROM (SELECT 1 a, 2 b) t
SELECT t = t FROM (SELECT 1 a, 2 b) t
SELECT t IS NULL, t IS NOT NULL FROM (SELECT 1 a, NULL b) t
SELECT (ROW(1,'a')).f1
SELECT 'now'::timestamptz = now(), 'today'::date = current_date, 'tomorrow'::timestamp = current_date + 1, timestamp 'yesterday' = current_date - 1
SELECT id FROM t WHERE d < 'today' ORDER BY id
SELECT row_to_json(e) FROM jsonb_each('{"a":1}') e
SELECT id, v FROM t WHERE (id, v) IN (SELECT id, v FROM t) ORDER BY id
SELECT (id, v) = (1, 'red') FROM t ORDER BY id
SELECT * FROM t WHERE id = ALL (ARRAY[1])
SELECT count(*) FROM t WHERE v NOT IN (SELECT v FROM t)
SELECT count(*) FROM t WHERE id NOT IN (SELECT i2 FROM t WHERE i2 IS NOT NULL)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t x WHERE x.id = t.i2)
SELECT id, (SELECT max(x.id) FROM t x WHERE x.v = t.v) FROM t ORDER BY id
SELECT (SELECT id FROM t)
SELECT id, (SELECT x.id FROM t x WHERE x.id = t.id + 10) FROM t ORDER BY id
SELECT v, array_agg(id ORDER BY id) FROM t GROUP BY v HAVING count(*) > 1
SELECT v || 'x' AS vx, count(*) FROM t GROUP BY vx ORDER BY 1
SELECT v, count(*) FROM t GROUP BY ROLLUP(v) ORDER BY v NULLS FIRST, 2
SELECT count(DISTINCT v), count(DISTINCT (v)), count(v) FROM t
SELECT sum(id) FILTER (WHERE v = 'red'), sum(id) FILTER (WHERE false) FROM t
SELECT v, sum(sum(id)) OVER (ORDER BY v) FROM t GROUP BY v ORDER BY v
SELECT id, rank() OVER (PARTITION BY v ORDER BY id DESC), sum(id) OVER (PARTITION BY v) FROM t ORDER BY id
SELECT id, lag(v, 1, 'none') OVER (ORDER BY id) FROM t
SELECT id, last_value(id) OVER (ORDER BY v) FROM t ORDER BY id
SELECT id, first_value(id) OVER (ORDER BY v NULLS FIRST, id) FROM t ORDER BY id
SELECT id, count(*) OVER (ORDER BY id RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM t
SELECT id, avg(n) OVER (ORDER BY id ROWS 1 PRECEDING), sum(nn) OVER (ORDER BY id) FROM t
SELECT id, max(v) OVER (ORDER BY id DESC) FROM t ORDER BY id
SELECT id, row_number() OVER () FROM t ORDER BY id LIMIT 1
SELECT id, ntile(3) OVER (ORDER BY id) FROM t
SELECT id, cume_dist() OVER (ORDER BY v), percent_rank() OVER (ORDER BY v) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM t
SELECT id, count(*) OVER (ORDER BY v GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t ORDER BY id
SELECT id, count(*) OVER (ORDER BY v GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN '1' PRECEDING AND CURRENT ROW) FROM t
SELECT id, sum(id) OVER (ORDER BY n RANGE BETWEEN 1.5 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY f8 RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY d RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id, v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN -1 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY id DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT sum(id) OVER w, count(*) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY id) ORDER BY id
SELECT id FROM t ORDER BY row_number() OVER (ORDER BY id DESC)
SELECT v, rank() OVER (ORDER BY count(*) DESC, v) FROM t GROUP BY v ORDER BY 2
SELECT DISTINCT rank() OVER (ORDER BY b) FROM t ORDER BY 1
SELECT mode() WITHIN GROUP (ORDER BY v), percentile_disc(0.5) WITHIN GROUP (ORDER BY v), percentile_cont(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM t
SELECT v, percentile_cont(0.5) WITHIN GROUP (ORDER BY id DESC) FROM t GROUP BY v ORDER BY v
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY id) FROM t
SELECT string_agg(v, ', ' ORDER BY v DESC) FILTER (WHERE id < 4), string_agg(v, NULL ORDER BY id), string_agg(id::text, '') FROM t
SELECT array_agg(v ORDER BY v NULLS FIRST), array_agg(DISTINCT v ORDER BY v DESC) FROM t
SELECT jsonb_agg(t ORDER BY id) FROM (SELECT id, n, d, ts, tz, iv, a, j FROM t) t
SELECT json_agg(x) FROM (SELECT 1 a UNION ALL SELECT 2) x
SELECT bit_and(i2), bit_or(i2), bool_and(id > 0), every(b) FROM t
SELECT count(*) FROM t, t t2, t t3
SELECT x.id, y.id FROM t x LEFT JOIN t y ON y.id = x.id + 3 ORDER BY 1
SELECT x.id, y.id FROM t x FULL JOIN t y ON y.id = x.id + 3 ORDER BY 1, 2
SELECT * FROM (SELECT id, v FROM t) a NATURAL LEFT JOIN (SELECT id, n FROM t WHERE id > 2) b ORDER BY id
SELECT a.id FROM t a JOIN t b USING (id) JOIN t c USING (id) ORDER BY id
SELECT * FROM (VALUES (1,2)) a(x,y) JOIN (VALUES (1,3)) b(x,z) USING (x)
SELECT id FROM t a WHERE id = (SELECT max(id) FROM t b WHERE b.v = a.v) ORDER BY id
SELECT t1.id, (SELECT count(*) FROM t t2 WHERE t2.id < t1.id) FROM t t1 ORDER BY 1
SELECT id, g FROM t, generate_series(1, t.id) g WHERE id < 3 ORDER BY 1, 2
SELECT id, u.x, u.n FROM t, unnest(a) WITH ORDINALITY AS u(x, n) ORDER BY 1, 3
SELECT id, k FROM t, LATERAL jsonb_object_keys(CASE jsonb_typeof(j) WHEN 'object' THEN j ELSE '{}' END) k ORDER BY 1, 2
SELECT id, e.* FROM t, jsonb_each_text(CASE jsonb_typeof(j) WHEN 'object' THEN j END) e ORDER BY 1, 2
SELECT id, x.* FROM t, jsonb_to_record(j) AS x(k text) WHERE id <> 3 ORDER BY 1
SELECT * FROM json_to_recordset('[{"a":1.50,"b":"2024-01-01","c":[1,2],"d":{"x":1}},{"a":null}]') AS x(a numeric, b date, c int[], d json, e text)
SELECT * FROM jsonb_to_recordset('{"a":1}') AS x(a int)
SELECT * FROM jsonb_to_recordset('[1]') AS x(a int)
SELECT * FROM json_to_record('{"a":"x"}') AS x(a int)
SELECT * FROM json_to_record(NULL) AS x(a int)
SELECT * FROM jsonb_to_recordset('[{"a":1}]')
SELECT jsonb_array_elements('{"a":1}')
SELECT json_array_elements('1')
SELECT jsonb_each('[1]')
SELECT jsonb_each(NULL)
SELECT * FROM jsonb_each(NULL)
SELECT * FROM json_each('{"a" : [1, 2] , "b": {"c" :1}}')
SELECT * FROM json_array_elements('[ 1 , {"a" : 2} , "x\u00e9" ]')
SELECT * FROM json_array_elements_text('[ 1 , {"a" : 2} , "x\u00e9", null ]')
SELECT json_object_keys('{"b":1,"a":2,"b":3}')
SELECT x, y FROM ROWS FROM (generate_series(1,2), jsonb_array_elements('["a","b","c"]')) AS q(x, y)
SELECT * FROM ROWS FROM (generate_series(1,2), now()) AS q(x, y) LIMIT 0
SELECT * FROM ROWS FROM (jsonb_each('{"a":1,"b":2}'), generate_series(5,7)) WITH ORDINALITY
SELECT id, r.* FROM t, ROWS FROM (generate_series(1, t.id), unnest(t.a)) WITH ORDINALITY r(x, y, o) ORDER BY id, o
SELECT regexp_matches('foobar', '(o)(b)?'), regexp_matches('x', 'y')
SELECT * FROM regexp_matches('a1b22', '([a-z])(\d+)', 'g') AS m
SELECT m[1], m[2] FROM regexp_matches('a1b22', '([a-z])(\d+)', 'g') AS m
SELECT regexp_split_to_table('a,b;c', '[,;]'), regexp_split_to_table('aXbxc', 'x', 'i')
SELECT id, i2 FROM t ORDER BY i2 FETCH FIRST 3 ROWS WITH TIES
SELECT id FROM t ORDER BY v FETCH FIRST (1+1) ROWS WITH TIES
SELECT id FROM t FETCH FIRST 2 ROWS WITH TIES
SELECT * FROM (SELECT id FROM t ORDER BY v FETCH FIRST 1 ROW WITH TIES) q ORDER BY 1
SELECT DISTINCT lower(v) FROM t ORDER BY lower(v)
SELECT DISTINCT v AS x FROM t ORDER BY x
SELECT DISTINCT v FROM t ORDER BY 1 DESC NULLS LAST
SELECT DISTINCT v, n FROM t ORDER BY n, v
SELECT DISTINCT id % 2 AS k, v FROM t ORDER BY id % 2, v
SELECT DISTINCT x.v FROM t x ORDER BY v
SELECT DISTINCT v FROM t ORDER BY t.v
SELECT DISTINCT ON (b, v) b, v, id FROM t ORDER BY v, b, id
SELECT DISTINCT ON (1) v, id FROM t ORDER BY 1, 2
SELECT DISTINCT ON (v) id FROM t ORDER BY v DESC, id
SELECT DISTINCT ON (lower(v)) lower(v), id FROM t ORDER BY lower(v), id
SELECT DISTINCT count(*) FROM t GROUP BY v ORDER BY count(*)
SELECT DISTINCT t.* FROM (SELECT 1 a UNION ALL SELECT 1) t ORDER BY a
SELECT DISTINCT ARRAY[v] FROM t ORDER BY ARRAY[v]
SELECT DISTINCT (SELECT 1) FROM t ORDER BY (SELECT 1)
SELECT DISTINCT CASE WHEN b THEN 1 ELSE 2 END FROM t ORDER BY CASE WHEN b THEN 1 ELSE 2 END
SELECT DISTINCT j FROM t ORDER BY j
SELECT DISTINCT a FROM t ORDER BY a
SELECT DISTINCT 'x' FROM t ORDER BY 'x'
SELECT (q).a + 1, (q).* FROM (SELECT 1 a, 2 b) q
SELECT ROW(q.*, 3), count(q.*) FROM (SELECT 1 a, 2 b) q GROUP BY q.a, q.b
SELECT ('{"a":{"b":[10,20]}}'::jsonb)['a']['b'][1], j['k'] FROM t WHERE id < 3
SELECT j -> 'k', j ->> 'k', j #> '{o,x}', j #>> '{l,1}', j -> 0 FROM t ORDER BY id
SELECT (1,2) = (SELECT 1,2), (1,NULL) = (SELECT 1,2), (1,2) < (SELECT 1,3), (1,2) <> (SELECT 1,2)
SELECT (1,2) = (SELECT 1)
SELECT (1,2) = (SELECT id, i2 FROM t)
SELECT min(v), max(s), min(c), max(a), min(iv), max(ts) FROM t
SELECT min(j) FROM t
SELECT quote_literal(42), quote_nullable(1.50), quote_literal('x'::char(3)), quote_nullable(NULL::int), quote_literal(now()) IS NOT NULL
SELECT array_to_string(ARRAY[true,NULL,false], ','), array_to_string(ARRAY[1.50,2], '|'), array_to_string(ARRAY[interval '1 day'], ','), array_to_string(ARRAY['a',NULL], ',', 'n'), array_to_string('{}'::int[], ','), array_to_string(NULL::int[], ',')
SELECT array_to_string(a, ','), array_to_string(ARRAY[ts], ','), array_to_string(ARRAY[d, d], ';', '-') FROM t ORDER BY id
SELECT extract(timezone from tz), extract(timezone_hour from tz), extract(timezone_minute from tz) FROM t WHERE id = 1
SELECT current_time IS NOT NULL, pg_typeof(current_time), current_time(0) IS NOT NULL, localtime(0) IS NOT NULL, current_timestamp(2) IS NOT NULL, localtimestamp(0) IS NOT NULL
SELECT timetz '10:00:00.55+02'::timetz(1), time '23:59:59.99'::time(0), '10:00:00.55'::time(1)
SELECT E'\\x41'::bytea || '\x42', '\x41' || '\x42'::bytea, 'a' || 'b'::text, 'a'::bytea || 'b'
SELECT generate_series(1.5, 4), generate_series(1::numeric, 2)
SELECT * FROM generate_series(3, 1, -0.5) g
SELECT generate_series(1, 2, 0.0)
SELECT parse_ident('foo.bar'), parse_ident('"A b".c'), parse_ident(' a . b ')
SELECT parse_ident('foo..bar')
SELECT pg_size_bytes('1.5kB'), pg_size_bytes(' 2 GB '), pg_size_bytes('1TB'), pg_size_bytes('1e3'), pg_size_bytes('5 bytes')
WITH a AS (SELECT 1 x), b AS (SELECT * FROM a UNION ALL SELECT 2) SELECT sum(x) FROM b
WITH RECURSIVE t2(n) AS (VALUES (1) UNION ALL SELECT n+1 FROM t2 WHERE n < 3) SELECT * FROM t2 ORDER BY n DESC
WITH RECURSIVE tree AS (SELECT id, ARRAY[id] path FROM t WHERE id = 1 UNION ALL SELECT t.id, path || t.id FROM t, tree WHERE t.id = tree.id + 1) SELECT * FROM tree ORDER BY id
WITH RECURSIVE a AS (SELECT 1 n), b AS (SELECT n FROM a UNION ALL SELECT n+1 FROM b WHERE n < 2) SELECT * FROM b ORDER BY 1
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT * FROM r LIMIT 3
WITH RECURSIVE r AS (SELECT 1 AS n, 'a'::text AS s UNION ALL SELECT n+1, s || 'b' FROM r WHERE n < 3) SELECT * FROM r ORDER BY 1
WITH w AS (SELECT 1 AS x) SELECT (SELECT x FROM w), EXISTS (SELECT 1 FROM w WHERE x = 2)
SELECT * FROM (WITH w AS (SELECT 1 AS x) SELECT * FROM w) q
SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 1 ORDER BY 1
SELECT 1 UNION SELECT 2 EXCEPT SELECT 1
SELECT 1 UNION ALL (SELECT 2 INTERSECT SELECT 2) ORDER BY 1
(SELECT 1) UNION (SELECT 1.0)
SELECT 1::int2 UNION SELECT 2::int8 ORDER BY 1
SELECT 'a'::char(3) UNION SELECT 'b'::text ORDER BY 1
SELECT date '2024-01-01' UNION SELECT timestamp '2024-01-02' ORDER BY 1
SELECT NULL UNION ALL SELECT 1 ORDER BY 1
SELECT 1 AS a UNION SELECT 2 AS b ORDER BY a
SELECT 1 AS a UNION SELECT 2 AS b ORDER BY b
SELECT id FROM t UNION ALL SELECT i2 FROM t ORDER BY id DESC NULLS LAST LIMIT 3
SELECT ARRAY[1] UNION SELECT ARRAY[2] ORDER BY 1
SELECT 1 WHERE false
SELECT * FROM t WHERE false
SELECT count(*), 1 FROM t WHERE false
SELECT 'x' FROM t WHERE NULL
SELECT 1 FROM t LIMIT 0
SELECT id FROM t WHERE v = 'red' AND id > 0 OR NOT b ORDER BY id
SELECT id FROM t WHERE v IS DISTINCT FROM 'red' ORDER BY id
SELECT id FROM t WHERE b IS NOT TRUE ORDER BY id
SELECT id FROM t WHERE s LIKE '%a%' ORDER BY id
SELECT id FROM t WHERE s LIKE 'cher!%%' ESCAPE '!' ORDER BY id
SELECT id FROM t WHERE s ~ '^[A-Z]' ORDER BY id
SELECT id FROM t WHERE a @> ARRAY[1] ORDER BY id
SELECT id FROM t WHERE j ? 'k' ORDER BY id
SELECT id FROM t WHERE j @> '{"k":1}' ORDER BY id
SELECT id FROM t WHERE iv > '1 hour' ORDER BY id
SELECT id FROM t WHERE d BETWEEN '2024-01-01' AND '2024-12-31' ORDER BY id
SELECT id FROM t WHERE ts::date = '2024-02-29' ORDER BY id
SELECT id FROM t WHERE extract(year from ts) = 2024 ORDER BY id
SELECT id FROM t WHERE n::int = 2
SELECT id FROM t WHERE n = 2.250
SELECT id FROM t WHERE i8 IN (100, 200::bigint, '-300') ORDER BY id
SELECT id FROM t WHERE id::text = '1'
SELECT id FROM t WHERE tz = '2024-01-31 10:00+00'
SELECT id FROM t WHERE c = 'x' ORDER BY id
SELECT id FROM t ORDER BY c, id
SELECT id FROM t ORDER BY n DESC NULLS LAST, f8
SELECT id FROM t ORDER BY j, id
SELECT id FROM t ORDER BY iv, id
SELECT id FROM t ORDER BY a, id
SELECT id FROM t ORDER BY b DESC, id DESC
SELECT id FROM t ORDER BY (SELECT -id)
SELECT id FROM t ORDER BY CASE WHEN b THEN 1 ELSE 0 END, id
SELECT id, v AS id2 FROM t ORDER BY id2, 1
SELECT v FROM t ORDER BY length(v), v
SELECT upper(v) AS v FROM t ORDER BY v
SELECT -id AS id FROM t ORDER BY -id
SELECT '08002b010203'::macaddr, '08:00:2b:01:02:03'::macaddr
SELECT '08002b0102030405'::macaddr8
SELECT '$1,000.5'::money
SELECT '[1,5]'::int4range, 'empty'::int4range, '(1,5)'::int4range, '[1,1)'::int4range
SELECT '[2024-01-01,2024-01-31]'::daterange
SELECT '[2024-01-01 10:00,2024-01-31)'::tsrange
SELECT '[5,1)'::int4range
SELECT 'x'::int4range
SELECT '10.1.2.3/8'::cidr
SELECT '0/0'::pg_lsn, '00/1'::pg_lsn
SELECT interval '1' year, interval '1 year 2 months 3 days 04:05:06.789' year, interval '-27 months' year to month, interval '3 days 04:05:06.789' day, interval '3 days 04:05:06.789' day to hour
SELECT interval '3 days -04:05:06.789' hour, interval '3 days 04:05:06.789' day to minute, interval '3 days 04:05:06.789' hour to minute, interval '3 days 04:05:06.789' minute, interval '04:05:06.789654' minute to second
SELECT interval(2) '04:05:06.785', interval '04:05:06.789654' second(3), interval '04:05:06.789654' day to second(0), interval(0) '-04:05:06.5', interval '5' second, interval '7' day to hour, interval '7' day to minute, interval '7' year to month, interval '1.5' minute
SELECT iv::interval year, iv::interval(0), (iv * 1.37)::interval hour, iv::interval FROM t ORDER BY id
SELECT CASE WHEN id = 1 THEN iv::interval day ELSE iv::interval day END FROM t ORDER BY id
SELECT coalesce(n, '1.555'), coalesce(v, 'abcdefghijklmnop'), CASE WHEN id = 1 THEN v ELSE 'abcdefghijklmnop' END, coalesce(c, 'abcdefghijk') FROM t ORDER BY id
SELECT v::varchar, c::bpchar, n::numeric, ts::timestamp(0)::timestamp, v::text::varchar(3) FROM t ORDER BY id
SELECT n FROM t UNION SELECT NULL ORDER BY 1
SELECT v FROM t UNION SELECT 'abcdefghijklmnop' ORDER BY 1
SELECT B'101', X'1F', B'', '101'::bit(5), '10111'::bit(3), B'101'::varbit(2), 5::bit(4), (-1)::bit(8), 44::bit(10), '1110'::bit(4)::int, B'1'::bit, 5::bit
SELECT ('x' || md5(v))::bit(64)::bigint FROM t ORDER BY id
SELECT B'1100' & B'1010', B'1100' | B'1010', B'1100' # B'1010', ~ B'1100', B'10001' << 3, B'10001' >> 2, B'10001' << -1, B'101' || B'11', length(B'101'), bit_length(B'10'), octet_length(B'101010101'), get_bit(B'101', 1), set_bit(B'101', 1, 1), substring(B'110011' from 2 for 3), position(B'01' in B'110011'), bit_count(B'10111')
SELECT B'11' & B'1'
SELECT get_bit(B'11', 5)
SELECT B'10' = B'100', B'10' < B'100', B'10' < B'011', B'11'::varbit = B'11', max(x::text) FROM (VALUES (B'1')) v(x)
SELECT x FROM (VALUES (B'1'), (B'10'), (B'011'), (B'')) v(x) ORDER BY x
SELECT '12'::bit(3)
SELECT B'11111111111111111111111111111111'::int, B'1111111111111111111111111111111'::int, B'1'::bigint
SELECT B'111111111111111111111111111111111'::int
SELECT hashtext(v), hashtext(''), hashtext('hello world, this is long'), hashtextextended(v, 7), hashint4(id), hashint8(i8), hashint8(-5), hashint2(i2::int2), hashbpchar(c), hashname('abc') FROM t ORDER BY id
SELECT '192.168.001.005'::inet, '10/8'::inet, '10.1'::cidr, '192.168.1'::cidr, '224'::cidr, '::1.2.3.4'::inet, '::ffff:1.2.3.4/100'::inet, '10.1.2.3/8'::inet, '2001:db8::/32'::cidr
SELECT '10.1'::inet
SELECT '10.1.2.3/8'::cidr
SELECT host('10.1.2.3/8'::inet), text('10.1.2.3'::inet), abbrev('10.1.2.0/24'::cidr), abbrev('10.1.0.0/16'::cidr), abbrev('10.1.2.3/8'::inet), network('10.1.2.3/8'::inet), netmask('10.1.2.3/20'::inet), hostmask('10.1.2.3/20'::inet), broadcast('10.1.2.3/20'::inet), masklen('10.1.2.3/20'::inet), family('::1'::inet), set_masklen('10.1.2.3/20'::inet, 8), set_masklen('10.1.2.0/24'::cidr, 8), inet_same_family('::1', '10.1.1.1'), inet_merge('192.168.1.5/24', '192.168.2.5/24')
SELECT inet '192.168.1.5' << inet '192.168.1/24', inet '192.168.1/24' <<= inet '192.168.1/24', inet '192.168.1/24' >> '192.168.1.5', cidr '10/8' >>= cidr '10/8', inet '192.168.1/24' && inet '192.168.1.80/28', ~ inet '192.168.1.6', inet '192.168.1.6' & '0.0.0.255', inet '192.168.1.6' | inet '0.0.0.255', inet '192.168.1.6' + 25, 200 + inet '10.0.0.1', inet '192.168.1.43' - 36, inet '192.168.1.43' - inet '192.168.1.19'
SELECT inet '192.168.1.43' - inet '::1'
SELECT inet '255.255.255.255' + 1
SELECT x FROM (VALUES (inet '10.0.0.1'), ('10/8'), ('::1'), ('9.1.1.1'), ('10.0.0.0/16'), ('10.0.0.0')) v(x) ORDER BY x DESC
SELECT min(x), max(x), count(DISTINCT x) FROM (VALUES (inet '10.0.0.1'), ('10.0.0.1/32'), ('::1'), ('9.1.1.1')) v(x)
SELECT DISTINCT x, count(*) FROM (VALUES (inet '10.0.0.1'), ('10.0.0.1/32'), ('::1'), ('9.1.1.1')) v(x) GROUP BY x ORDER BY x
SELECT inet '10.1.2.3/8' = cidr '10.0.0.0/8', inet '10.0.0.0/8' = cidr '10.0.0.0/8', inet '10.0.0.1' < inet '10.0.0.2', cidr '10/8'::inet, inet '10.1.2.3/8'::cidr, (cidr '10.1.2.3')::inet, (cidr '10.1.2.3')::text, inet '10.1.2.3'::text
SELECT int4range(1, 5), int4range(1, 5, '[]'), int4range(NULL, 5), int4range(3, 3), numrange(1.0, 2.50, '(]'), daterange('2024-01-01', '2024-01-31', '[]'), tsrange('2024-01-01', 'infinity'), tstzrange('2024-01-01 00:00+02', NULL), int8range(1, NULL, '(]'), daterange(NULL, NULL)
SELECT int4range(5, 1)
SELECT int4range(1, 2, 'x')
SELECT int4range(1, 2, NULL)
SELECT int4range(1, 2147483647, '[]')
SELECT lower(int4range(1, 5)), upper(int4range(1, 5)), lower(numrange(1.50, 2)), upper(daterange('2024-01-01', NULL)), lower(tsrange('2024-01-01 10:00:00.5', '2024-02-01')), upper(tstzrange('2024-01-01', '2024-02-01 BC'::timestamptz + interval '9999 years')), isempty('empty'::int4range), lower_inc('[1,2]'::numrange), upper_inc('[1,2]'::numrange), lower_inf('(,2]'::numrange), upper_inf('(,)'::int4range)
SELECT int4range(1, 5) @> 3, int4range(1, 5) @> 5, 3 <@ int4range(1, 5), int4range(1, 5) @> int4range(2, 3), int4range(2, 3) <@ '[1,5)', int4range(1, 5) && int4range(4, 8), int4range(1, 5) << int4range(5, 8), int4range(7, 9) >> int4range(1, 5), int4range(1, 5) &< int4range(1, 9), int4range(3, 5) &> int4range(1, 9), int4range(1, 5) -|- int4range(5, 6), numrange(1, 2) -|- numrange(2, 3, '()')
SELECT int4range(1, 5) + int4range(4, 8), int4range(1, 5) * int4range(4, 8), int4range(1, 5) - int4range(4, 8), int4range(1, 5) * int4range(6, 8), range_merge(int4range(1, 2), int4range(5, 8)), numrange(1.0, 5.0) - numrange(3.0, 9)
SELECT int4range(1, 5) + int4range(6, 8)
SELECT int4range(1, 9) - int4range(3, 4)
SELECT x FROM (VALUES (int4range(1, 5)), ('empty'), ('(,3)'), ('[1,)'), ('[1,4)'), ('(,)')) v(x) ORDER BY x
SELECT x FROM (VALUES (numrange(1, 5)), ('empty'), ('(,3)'), ('(1,5)'), ('[1,5]'), ('[-2.5,4)'), ('[-10,0]')) v(x) ORDER BY x DESC
SELECT numrange(1.0, 2) = numrange(1, 2.00), numrange(1, 2) <> numrange(1, 2, '[]'), int4range(1, 3) < int4range(1, 4), count(DISTINCT x) FROM (VALUES (numrange(1.0, 2)), (numrange(1, 2.0))) v(x)
SELECT range_agg(x), range_intersect_agg(x) FROM (VALUES (int4range(1, 5)), (int4range(4, 9)), (int4range(20, 30)), (NULL)) v(x)
SELECT range_agg(x) FROM (VALUES (int4range(1, 5))) v(x) WHERE false
SELECT int4multirange(int4range(1, 5), int4range(3, 9)), '{[1,3), [5,9), (,0)}'::int4multirange, nummultirange(), datemultirange(daterange('2024-01-01', '2024-02-01')), '{}'::tsmultirange, multirange(int4range(1, 2)), int4range(1, 2)::int4multirange
SELECT '{[1,3),[5,9)}'::int4multirange + '{[3,5)}', '{[1,9)}'::int4multirange - '{[3,5)}', '{[1,9)}'::int4multirange * '{[3,5),[7,20)}', '{[1,9)}'::int4multirange @> 5, '{[1,9)}'::int4multirange @> int4range(2, 3), int4range(2, 3) <@ '{[1,9)}'::int4multirange, '{[1,2),[5,6)}'::int4multirange && int4range(3, 5), lower('{[1,2),[5,6)}'::int4multirange), upper('{[1,2),[5,6)}'::int4multirange), range_merge('{[1,2),[5,6)}'::int4multirange)
SELECT unnest('{[1,2),[5,6)}'::int4multirange), isempty('{}'::int4multirange)
SELECT '{[1,2'::int4multirange
SELECT '[1,2'::int4range
SELECT '[1;2)'::int4range
SELECT '[a,2)'::int4range
SELECT '[5,2)'::int4range
SELECT '["2024-01-01","2024-02-01")'::tstzrange, '[2024-01-01,2024-02-01]'::daterange, '(,NaN)'::numrange, '[0044-03-15 BC,infinity]'::daterange, '["a\"b",c)'::text, tstzrange(tz, tz + interval '1 day') FROM t ORDER BY id
SELECT int4range(id, id + 3) @> 4, daterange(d, d + 10) @> date '2024-02-05', tsrange(ts, NULL) && tsrange('2024-01-01', '2024-02-15'), numrange(n, nn) FROM t WHERE id <> 3 AND id <> 2 ORDER BY id
SELECT id FROM t WHERE int4range(2, 4) @> id ORDER BY int4range(id, 10) DESC
SELECT to_json(int4range(1, 2)), jsonb_build_object('a', inet '10.0.0.1', 'b', B'10'), array_agg(int4range(id, id + 1) ORDER BY id), (ARRAY[int4range(1,2)])[1] FROM t
SELECT int4range(1,2)::text, '[1,2)'::text::int4range, v::text::inet FROM t WHERE id = 99
SELECT '$1.50'::money < '$10.00'::money, x FROM (VALUES ('$1.50'::money), ('-$10'::money), ('$9'::money)) v(x) ORDER BY x
SELECT '0/A'::pg_lsn < '1/0'::pg_lsn, '0/AB'::pg_lsn > '0/B'::pg_lsn, x FROM (VALUES ('0/AB'::pg_lsn), ('0/B')) v(x) ORDER BY x
SELECT greatest(inet '10.0.0.1', '9.0.0.1'), least(int4range(1,2), int4range(1,1)), CASE WHEN true THEN B'1' ELSE B'10' END, coalesce(NULL, inet '1.2.3.4')
SELECT inet '10.0.0.1' IN ('10.0.0.1/32', '10.0.0.2'), numrange(1,2) = ANY (ARRAY[numrange(1.0,2)]), int4range(1,2) BETWEEN 'empty' AND '(,)'
SELECT int4range(1,3) @> NULL, NULL::int4range && int4range(1,2), lower(NULL::int4range)
SELECT '10.0.0.1'::inet << '10/8', '[1,2)'::int4range @> '1'
SELECT int4range(1,2) || 'x', int4range(1,2) = numrange(1,2)
SELECT int4range(1,2) = numrange(1,2)
SELECT concat(inet '10.0.0.1'), format('%s', inet '10.0.0.1'), ROW(inet '10.0.0.1', B'1')::text, ARRAY[inet '10.0.0.1']::text, inet '10.0.0.1' || 'x', array_to_string(ARRAY[inet '10.0.0.1'], ','), quote_literal(inet '10.0.0.1')
SELECT count(DISTINCT iv), count(DISTINCT j), count(DISTINCT c), count(DISTINCT nn), count(DISTINCT x) FROM t, (VALUES (interval '1 mon'), ('30 days')) v(x)
SELECT count(DISTINCT x) FROM (VALUES (jsonb '1.0'), ('1')) v(x)
SELECT sum(DISTINCT nn), avg(DISTINCT nn), sum(DISTINCT x), avg(DISTINCT x), count(DISTINCT x) FROM t, (VALUES (1.0::numeric), (1.0), (2.5), (NULL)) v(x)
SELECT sum(DISTINCT x) FROM (VALUES ('NaN'::numeric), (1)) v(x)
SELECT sum(DISTINCT nn) FROM t WHERE false
SELECT COALESCE(COALESCE(CAST((SUM(DISTINCT (CAST(FLOOR(COALESCE(t.n, 0) * (1000000 * 1.0)) AS DECIMAL(65,0))) + ('x' || MD5(t.id::varchar))::bit(64)::bigint::DECIMAL(65) * 18446744073709551616 + ('x' || SUBSTR(MD5(t.id::varchar), 17))::bit(64)::bigint::DECIMAL(65)) - SUM(DISTINCT ('x' || MD5(t.id::varchar))::bit(64)::bigint::DECIMAL(65) * 18446744073709551616 + ('x' || SUBSTR(MD5(t.id::varchar), 17))::bit(64)::bigint::DECIMAL(65))) AS DOUBLE PRECISION) / CAST((1000000 * 1.0) AS DOUBLE PRECISION), 0), 0) AS total FROM t, t t2
SELECT v, sum(DISTINCT nn) FROM t GROUP BY v ORDER BY v
SELECT id FROM t ORDER BY id USING >, v USING <
SELECT id FROM t ORDER BY i2 USING >, id
SELECT id FROM t ORDER BY id USING OPERATOR(pg_catalog.>)
SELECT id FROM t ORDER BY id USING =
SELECT array_agg(id ORDER BY id USING >) FROM t
SELECT concat(VARIADIC ARRAY[1,2,3]), concat_ws(',', VARIADIC ARRAY['a', NULL, 'b']), format('%s-%s', VARIADIC ARRAY['x', 'y']), num_nulls(VARIADIC ARRAY[1, NULL]), num_nonnulls(VARIADIC a), concat(VARIADIC a), concat_ws('-', VARIADIC a), json_build_array(VARIADIC ARRAY[1, 2.5]), jsonb_build_object(VARIADIC ARRAY['a', '1']) FROM t ORDER BY id
SELECT jsonb_extract_path(j, VARIADIC ARRAY['o', 'x']), jsonb_extract_path_text(j, VARIADIC string_to_array('o,x', ',')) FROM t ORDER BY id
SELECT concat(VARIADIC NULL::text[]), concat_ws(NULL, VARIADIC ARRAY[1]), concat(VARIADIC '{}'::int[])
SELECT lower(VARIADIC ARRAY['a'])
SELECT rank(20) WITHIN GROUP (ORDER BY i2), dense_rank(20) WITHIN GROUP (ORDER BY i2), percent_rank(20) WITHIN GROUP (ORDER BY i2), cume_dist(20) WITHIN GROUP (ORDER BY i2) FROM t
SELECT rank(20) WITHIN GROUP (ORDER BY i2 DESC), dense_rank(NULL) WITHIN GROUP (ORDER BY i2 DESC), rank(NULL) WITHIN GROUP (ORDER BY i2), cume_dist(1.5) WITHIN GROUP (ORDER BY nn), rank('red') WITHIN GROUP (ORDER BY v NULLS FIRST) FROM t
SELECT rank('red', 2) WITHIN GROUP (ORDER BY v, id DESC), dense_rank('red', 2) WITHIN GROUP (ORDER BY v, id) FROM t
SELECT rank(1) WITHIN GROUP (ORDER BY id), percent_rank(1) WITHIN GROUP (ORDER BY id), cume_dist(1) WITHIN GROUP (ORDER BY id) FROM t WHERE false
SELECT v, rank(2) WITHIN GROUP (ORDER BY id) FILTER (WHERE b) FROM t GROUP BY v ORDER BY v
SELECT rank(1, 2) WITHIN GROUP (ORDER BY id) FROM t
SELECT v, b, count(*) FROM t GROUP BY DISTINCT ROLLUP (v, b), ROLLUP (v) ORDER BY 1, 2, 3
SELECT v, b, id, count(*), grouping(v, b, id) FROM t GROUP BY DISTINCT CUBE (v, b), GROUPING SETS ((id), ()) ORDER BY 1, 2, 3, 4, 5
SELECT v, count(*) FROM t GROUP BY DISTINCT v ORDER BY v
SELECT nn, v, count(*) FROM t GROUP BY DISTINCT GROUPING SETS ((nn, v), (v, nn), (nn), ()) ORDER BY 1, 2, 3
SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100), t t2 TABLESAMPLE SYSTEM (0)
SELECT count(*) FROM t x TABLESAMPLE SYSTEM (100) WHERE x.id > 2
SELECT count(*) FROM t TABLESAMPLE BERNOULLI (101)
SELECT count(*) FROM t TABLESAMPLE BERNOULLI (-1)
SELECT count(*) FROM t TABLESAMPLE foo (1)
SELECT normalize(U&'a\0308'), normalize('ä', NFD) = U&'a\0308', normalize('ﬁ', NFKC), U&'a\0308' IS NORMALIZED, 'ä' IS NFC NORMALIZED, 'ä' IS NOT NFD NORMALIZED
SELECT to_ascii('x')
SELECT date 'J2451187', date '2024.015', date '2024-015', timestamp 'J2451187 10:00', timestamp 'J2451187.25', timestamptz '2024.015 10:00+02', date '0099.123', date 'j0'
SELECT date '2024.367'
SELECT jsonb_path_query('{"a": [1, 2, {"b": 3}], "c": "x"}', '$.a[*]')
SELECT jsonb_path_query_array('{"a": [1, 2, {"b": 3}], "c": "x"}', '$.a.b'), jsonb_path_query_first('{"a": [1,2]}', '$.a[1]'), jsonb_path_exists('{"a": 1}', '$.b'), jsonb_path_match('{"a": 1}', '$.a == 1'), '{"a": 1}'::jsonb @? '$.a ? (@ > 0)', '{"a": 1}'::jsonb @@ '$.a > 1'
SELECT jsonb_path_query('[1, 2, 3, 4, "x", null, true]', '$[*] ? (@ > 1 && @ < 4)')
SELECT jsonb_path_query('[1, 2, 3, 4, "x", null, true]', '$[1 to last]')
SELECT jsonb_path_query('[1, 2, 3, 4]', '$[last, 0, 1 to 2]')
SELECT jsonb_path_query('{"a": {"b": [1, {"c": "d"}]}}', 'strict $.a.b[1].c')
SELECT jsonb_path_query('{"a": 1}', 'strict $.b')
SELECT jsonb_path_query('{"a": 1}', 'strict $.b', '{}', true)
SELECT jsonb_path_query('{"a": 1}', 'strict $.a.b')
SELECT jsonb_path_query('[1]', 'strict $[3]')
SELECT jsonb_path_query('{"a": 1}', 'strict $[*]')
SELECT jsonb_path_query('{"a": 1}', 'strict $[0]')
SELECT jsonb_path_query('5', 'strict $.*')
SELECT jsonb_path_query_array('{"a": 1, "b": [2, 3]}', '$.*'), jsonb_path_query_array('5', '$[0]'), jsonb_path_query_array('5', '$[*]'), jsonb_path_query_array('[[1,2],[3]]', '$[*][*]'), jsonb_path_query_array('[{"a":1},{"a":2}]', '$.a'), jsonb_path_query_array('[[{"a":1}]]', '$.a')
SELECT jsonb_path_query_array('[1, "a", null, true, [1], {"a": 1}]', '$[*].type()'), jsonb_path_query_array('[[1, 2], 3]', '$[*].size()'), jsonb_path_query_array('[1.5, -2.5]', '$.abs()'), jsonb_path_query_array('[1.5, -2.5]', '$.floor()'), jsonb_path_query_array('[1.5, -2.5]', '$.ceiling()'), jsonb_path_query_array('["1.5", 2]', '$.double()')
SELECT jsonb_path_query('"a"', '$.abs()')
SELECT jsonb_path_query('"a"', '$.double()')
SELECT jsonb_path_query_array('{"a": 5, "b": 2}', '$.a + $.b * 2'), jsonb_path_query_array('{"a": 5, "b": 2}', '($.a - $.b) / 2'), jsonb_path_query_array('{"a": 5, "b": 2}', '$.a % $.b'), jsonb_path_query_array('[1,2]', '-$[*]'), jsonb_path_query_array('{"a": 5}', '-$.a + 1.50')
SELECT jsonb_path_query('{"a": "x"}', '$.a + 1')
SELECT jsonb_path_query('{"a": 1}', '$.a / 0')
SELECT jsonb_path_query('{"a": "x"}', '-$.a')
SELECT jsonb_path_query('[1,2,3]', '$[*] ? (@ >= $min)', '{"min": 2}')
SELECT jsonb_path_query('[1,2,3]', '$[*] ? (@ >= $min)')
SELECT jsonb_path_query('[1,2,3]', '$', '[]')
SELECT jsonb_path_query('[{"a": "abc", "b": 1}, {"a": "xyz"}, {"b": 2}]', '$[*] ? (@.a starts with "ab")')
SELECT jsonb_path_query('[{"a": "abc", "b": 1}, {"a": "xyz"}, {"b": 2}]', '$[*] ? (exists(@.b) && !(@.b == 2))')
SELECT jsonb_path_query('[{"a": "abc", "b": 1}, {"a": "xyz"}, {"b": 2}]', '$[*] ? ((@.a > 1) is unknown)')
SELECT jsonb_path_query_array('[1, "1", null, true]', '$[*] ? (@ == null)'), jsonb_path_query_array('[1, "1", null, true]', '$[*] ? (@ != null)'), jsonb_path_query_array('[1, "1", null, true]', '$[*] ? (@ <> 1)'), jsonb_path_query_array('[1, "1", null, true]', '$[*] ? (@ == true || @ == "1")')
SELECT jsonb_path_query('1', '$ > 0'), jsonb_path_query('"a"', '$ > 0'), jsonb_path_match('"a"', '$ > 0'), jsonb_path_query('[1,2]', '$[*] > 1')
SELECT jsonb_path_match('[1,2]', '$[*]')
SELECT jsonb_path_match('[1,2]', '$[*]', '{}', true), '[1,2]'::jsonb @@ '$[*]', '{"a":1}'::jsonb @? 'strict $.b'
SELECT '{}'::jsonb @? '$.'
SELECT '{}'::jsonb @? ''
SELECT '{}'::jsonb @? '@.a'
SELECT '{}'::jsonb @? 'last'
SELECT '{}'::jsonb @? '$ ? (@.a)'
SELECT jsonb_path_query('{"a b": {"$c": 1}, "é": 2}', '$."a b"."$c"'), jsonb_path_query('{"é": 2}', '$.é'), jsonb_path_query('{"a": 1}', ' lax /* c */ $ . a ')
SELECT id, jsonb_path_query(j, '$.l[*]') FROM t ORDER BY id, 2
SELECT id FROM t WHERE j @? '$.o.x' OR j @@ '$.k == "v"' ORDER BY id
SELECT id, jsonb_path_query_first(j, '$.k'), jsonb_path_exists(j, '$.*'), jsonb_path_query_array(j, '$.*') FROM t ORDER BY id
SELECT jsonb_path_query_array('[1.10, 1e2, 0.001]', '$[*] + 0'), jsonb_path_query_array('{"b": 1, "aa": 2, "a": "\u0041\n\"<"}', '$'), jsonb_path_query_array('[]', '$[*]'), jsonb_path_query_array('[]', '$.a')
SELECT x FROM jsonb_path_query('[3,1,2]', '$[*]') x ORDER BY x
SELECT jsonb_path_exists('{"a":[1,"x"]}', '$.a[*] ? (@ * 2 > 1)'), jsonb_path_exists('[1, "x"]', '$[*].abs()'), jsonb_path_exists('["x", 1]', 'lax $[*] ? (@.abs() > 0)')
SELECT jsonb_path_exists('["x", 1]', '$[*].abs()')
SELECT jsonb_path_query_array('{"a": [{"v": 1}, {"v": 2}]}', '$.a ? (@.v > 1)'), jsonb_path_query_array('{"a": [{"v": 1}, {"v": 2}]}', 'strict $.a ? (@.v > 1)'), jsonb_path_query_array('{"a": [1,2,3]}', '$.a ? (@ > 1)'), jsonb_path_query_array('{"a": [1,2,3]}', '$ ? (@.a > 2)')
SELECT jsonb_path_query('{"a":1}', NULL), jsonb_path_exists(NULL, '$')
SELECT '$.a'::jsonpath IS NULL
SELECT count(*) FILTER (WHERE s || '@' LIKE '%e@') FROM t
SELECT sum(id) FILTER (WHERE s <> '$1' AND v <> '@f('), string_agg(v, '$2@' ORDER BY v || '$1@(', id) FROM t
SELECT id, count(*) OVER (PARTITION BY v || '@$1' ORDER BY id), sum(nn) FILTER (WHERE v <> '@x') OVER (ORDER BY id) FROM t ORDER BY id
SELECT array_agg(DISTINCT v || '@' ORDER BY v || '@') FROM t
SELECT '{"a":0.00}'::json->>'a'
SELECT '{"a":0.00}'::json->'a'
SELECT '{"a":1E2,"b":-0,"c":1.0e5,"d":1.50}'::json->>'a', '{"a":1E2,"b":-0}'::json->>'b','{"c":1.0e5}'::json->'c'
SELECT '{"a":1,"a":2}'::json->>'a', '{"a":1,"a":2}'::json->'a', '{"a":1,"a":2}'::json
SELECT '{ "b" : [1,  2 , {"x" :1}], "a":"x\u0041" }'::json->'b', '{ "b" : [1,  2 ], "a":"x\u0041" }'::json->'a', '{ "b" : [1,  2 ], "a":"x\u0041" }'::json->>'a'
SELECT '{ "b" : [1,  2 , {"x" :1}]}'::json#>'{b,2}', '{ "b" : [1,  2 , {"x" :1}]}'::json#>'{}', '{ "b" : [1,  2 , {"x" :1}]}'::json#>>'{}'
SELECT '[1.0, 2.50 ,  {"a" : 1}]'::json->1, '[1.0, 2.50 ,  {"a" : 1}]'::json->2, '[1.0, 2.50 ,  {"a" : 1}]'::json->-1, '[1.0, 2.50 ,  {"a" : 1}]'::json->>-2
SELECT '0.00'::jsonb, '1.0e5'::jsonb, '-0'::jsonb, '1E2'::jsonb, '-0.0'::jsonb
SELECT * FROM json_each('{"a" : 1.00, "b":[1 , 2], "a" : null, "c":"x\ny"}')
SELECT * FROM json_each_text('{"a" : 1.00, "b":[1 , 2], "a" : null, "c":"x\ny"}')
SELECT * FROM json_array_elements('[1.00, 1E2 , [1 , 2], {"b" : 1, "a":0.0}]')
SELECT * FROM json_array_elements_text('[1.00, 1E2 , [1 , 2], {"b" : 1, "a":0.0}]')
SELECT * FROM json_object_keys('{"a" : 1.00, "b":[1 , 2], "a" : null, "c":"x\ny"}')
SELECT json_strip_nulls('{"a" : 1.00, "b":[1 , 2, null], "a" : null, "c":{"x":null}}')
SELECT * FROM json_to_recordset('[{"a":0.00,"b":[1 , 2]},{"a":1E2,"b":{"x" : 1.0}}]') AS x(a text, b json)
SELECT * FROM json_to_record('{"a":0.00,"b":[1 , 2]}') AS x(a numeric, b json)
SELECT * FROM json_to_record('{"a":1,"a":2}') AS x(a int)
SELECT * FROM json_to_record('{"a":1.50,"b":1e2}') AS x(a text, b text)
SELECT * FROM jsonb_to_record('{"a":1.50,"b":1e2}') AS x(a text, b jsonb)
SELECT json_extract_path('{"a":{"b":0.00}}','a','b'), json_extract_path_text('{"a":{"b" :  [0.00]}}','a','b')
SELECT to_json('{"a" :  0.00}'::json), json_build_array('{"a" :  0.00}'::json), json_build_object('x','{"a" :  0.00}'::json), row_to_json(row('{"a" :  0.00}'::json))
SELECT json_agg(x) FROM (VALUES ('{"a" :  0.00}'::json)) v(x)
SELECT array_to_json(array['{"a" :  0.00}'::json]), to_jsonb('{"a" :  0.00}'::json), '{"b" :  0.00,"a":1}'::json::jsonb
SELECT json_typeof(' 1 '), json_array_length('[1 , 2,3]'), json_typeof(' {}')
SELECT ' 1 '::json, ' "a" '::json, ' "a" '::json->>0, ' 5 '::json#>>'{}', ' "a" '::json#>'{}'
SELECT ('{"a":"\u0000"}'::json)->'a', '{"a":"\u0000"}'::json
SELECT ('{"a":"\u0000"}'::json)->>'a'
SELECT '{"a":"\ud83d\ude00"}'::json->>'a', '{"a":"\ud83d\ude00"}'::json->'a'
SELECT '{"a":"\ud83d"}'::json
SELECT '{"a":"\ud83d"}'::json->>'a'
SELECT '::/0'::inet - 1
SELECT '::'::inet - 1
SELECT '0.0.0.0'::inet - 1
SELECT '255.255.255.255'::inet + 1
SELECT '255.255.255.255'::inet + 0
SELECT 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'::inet + 1
SELECT '::1'::inet - '::'::inet
SELECT 'ffff::'::inet - '::'::inet
SELECT '::'::inet - 'ffff::'::inet
SELECT '1.2.3.4'::inet - '::1'::inet
SELECT 1 + '255.255.255.255'::inet
SELECT '8000::'::inet + 9223372036854775807
SELECT '0.0.0.5/24'::inet - 9223372036854775807
SELECT '0.0.0.5/24'::inet - (-9223372036854775808)
SELECT '0.0.0.5/24'::inet + (-5)
SELECT '::5/64'::inet + (-5), '::5/64'::inet - (-9223372036854775808)
SELECT '::5/64'::inet + (-6)
SELECT ~'1.2.3.4/8'::inet, '1.2.3.4/8'::inet & '255.0.0.0'::inet, '1.2.3.4'::inet | '::1'::inet
SELECT justify_interval('178000000 years 12 months'::interval)
SELECT justify_hours('2147483647 days 24 hours'::interval)
SELECT justify_days('178956970 years 7 months 30 days'::interval)
SELECT justify_interval('2147483647 days 24 hours'::interval)
SELECT justify_interval('-2147483648 days -24 hours'::interval)
SELECT justify_hours('-2147483648 days -24 hours'::interval)
SELECT justify_days('-178956970 years -8 months -30 days'::interval)
SELECT justify_interval('2147483647 days'::interval)
SELECT justify_interval('178956970 years 7 months 2147483647 days'::interval)
SELECT concat_ws(',', VARIADIC '{}'), concat(VARIADIC '{}'), concat_ws(',', VARIADIC '{a,b}'), concat_ws(',', VARIADIC NULL::text[])
SELECT concat_ws(NULL, VARIADIC '{a}'), format('%s %s', VARIADIC '{a,b}')
SELECT concat_ws(',', VARIADIC '{a,NULL,b}'::text[]), concat_ws(',', VARIADIC array_agg(i)) FROM t
SELECT sum(x) FROM (VALUES ('-0'::float8)) v(x)
SELECT sum(x), avg(x) FROM (VALUES ('-0'::float8),('-0')) v(x)
SELECT sum(x) OVER () FROM (VALUES ('-0'::float8),('-0')) v(x)
SELECT sum(x) FROM (VALUES ('-0'::float4)) v(x)
SELECT avg(x) FROM (VALUES ('-0'::float4)) v(x)
SELECT j->>'a', j->'b' FROM (VALUES ('{"a":1.50,"b":{ "c" : 1}}'::json), ('[1]'), ('null'), ('"x"'), (NULL)) v(j)
SELECT '{"a":{"b":1},"a":2}'::json#>'{a,b}', '{"a":2,"a":{"b":1}}'::json#>'{a,b}', '{"a":{"b":1},"a":{"c":2}}'::json#>'{a,b}'
SELECT '{"a":[1,{"b" : null}]}'::json#>>'{a,1,b}', '{"a":[1,{"b" : null}]}'::json#>'{a,-1,b}', '{"a":[1,{"b" : null}]}'::json#>'{a,x}', '{"a":[1,2]}'::json#>'{a,NULL}', '{"a":[1,2]}'::json#>'{a,7}'
SELECT ' "x\u0041" '::json#>>'{}', ' null '::json#>>'{}', ' [1] '::json#>'{}', ' null'::json#>'{}'
SELECT '{"a" : {"b" : 1}}'::json#>ARRAY['a','b'], json_extract_path('{"a" : {"b" : "q\"r"}}',VARIADIC ARRAY['a','b']), json_extract_path_text('{"a" : {"b" : "q\"r"}}',VARIADIC '{a,b}'::text[])
SELECT json_extract_path('{"f2":["a",null]}','f2','1'), json_extract_path_text('{"f2":["a",null]}','f2','1'), json_extract_path_text('{"f2":["a",null]}','f2','0')
SELECT '{"a\"b":1,"é":2}'::json->'a"b', '{"a\"b":1,"é":2}'::json->'é', '{"":5}'::json->''
SELECT '[]'::json->0, '[ ]'::json->-1, '{}'::json->'a', '[1,2]'::json->-3, '[1,2]'::json->5, '5'::json->0, '[1,[2 , 3]]'::json->1->0
SELECT '{"x":3, "a":"\u0000"}'::json->>'x'
SELECT '[1,"\u0000"]'::json->0
SELECT json_array_length('[1,"\u0000"]'), json_typeof('"\u0000"'), '["\ud800"]'::json
SELECT json_array_elements('["\ud800", 1.0]')
SELECT json_array_elements_text('["\ud800", 1.0]')
SELECT '"\ud800"'::json::jsonb
SELECT json_array_length('{}')
SELECT json_array_length('5')
SELECT json_strip_nulls('{"a" : 1.00, "b":[1 , 2, null], "a" : null, "c":{"x":null}}'), json_strip_nulls('null'), json_strip_nulls(' [ {"a":null}, "\u00e9/" ]')
SELECT j->>'k', j->'o'->>'x' FROM t
SELECT sum(x) FILTER (WHERE x < 0) FROM (VALUES (1::float8)) v(x)
SELECT sum(x) FROM (VALUES ('-0'::float8), (NULL)) v(x)
SELECT sum(x) OVER (ORDER BY o), sum(x) OVER (ORDER BY o ROWS 1 PRECEDING) FROM (VALUES ('-0'::float8,1), (NULL,2), ('-0',3), (0,4), (1.5,5),(-1.5,6)) v(x,o)
SELECT '-2147483648 days'::interval, '-178956970 years -8 mons'::interval
SELECT to_json(1.50), to_jsonb(1.50), json_build_object('a',1.50), '1.50'::json::jsonb, '{"a":1.10}'::jsonb->'a', jsonb_build_array(0.00)
SELECT * FROM json_each('{"a":"\ud800"}')
SELECT row_to_json(t) FROM t
SELECT string_agg(x, y) FROM (VALUES ('a','b'),('c','d')) v(x,y)
SELECT string_agg(x, coalesce(y,',') ORDER BY x) FROM (VALUES ('a',NULL),('c','d')) v(x,y)
SELECT string_agg(x, y ORDER BY x DESC) FROM (VALUES ('a',NULL),('c','d'),(NULL,'z')) v(x,y)
SELECT x, string_agg(x, y) OVER (ORDER BY x) FROM (VALUES ('a','b'),('c','d'),(NULL,'k')) v(x,y)
SELECT string_agg(DISTINCT x, y) FROM (VALUES ('c','d'),('a','b'),('c','d'),('c',NULL),(NULL,'x')) v(x,y)
SELECT string_agg(x, y) FILTER (WHERE x > 'a') FROM (VALUES ('a','b'),('c','d'),('e','f')) v(x,y)
SELECT string_agg(x, y) FROM (VALUES (NULL,'b')) v(x,y)
SELECT string_agg(x, y) FROM (VALUES ('a','b')) v(x,y) WHERE false
SELECT string_agg(x, x) FROM (VALUES ('a'),('')) v(x)
SELECT b, string_agg(v, s ORDER BY id) FROM t GROUP BY b ORDER BY b
SELECT b, string_agg(DISTINCT v, ',') FROM t GROUP BY b ORDER BY b
SELECT 'foobar' ~ 'o(?=b)', 'foobar' ~ '(?<!o)b', 'foobar' !~ '(?<!o)b', 'FOObar' ~* 'o(?=B)', 'foo bar' ~ '\mbar\M', 'foobar' ~ '\ybar'
SELECT 'abab' ~ '^(ab)\1$', 'abba' ~ '^(ab)\1$', 'to be be' ~* '\m(\w+) \1\M'
SELECT regexp_match('foobarbequebaz', '(b.*?r)(b.*)'), regexp_match('abcd', '(a|ab)(c|bcd)(d*)'), regexp_match('XY1234Z', 'Y*?([0-9]{1,3})'), regexp_match('XY1234Z', '(?:Y*?)([0-9]+?)')
SELECT regexp_matches('abc', '', 'g')
SELECT regexp_matches('ab c', '\m', 'g'), regexp_matches('ab c', '()\M', 'g')
SELECT regexp_replace('hello world', '\m(\w)(\w*)', '\2\1ay', 'g'), regexp_replace('aXbX', '(?<=a)X', '-'), regexp_replace('abcabc', '(b)(?=c)', '<\1>', 'g')
SELECT regexp_replace('a b c', '\y', '|', 'g'), regexp_replace('abc', '^|$', '-', 'g'), regexp_replace('foo', '(?=o)', '_', 'g')
SELECT regexp_split_to_array('the quick  brown', '\s+(?=\w)'), regexp_split_to_array('aXbxc', '(?i)x'), regexp_split_to_array('abc', '(?=b)'), regexp_split_to_array('one two', '\M')
SELECT * FROM regexp_split_to_table('a1b2c3', '(?<=\d)') AS x
SELECT regexp_count('ababab', '(ab)(?!$)'), regexp_count('a b c', '\m'), regexp_count('aaa', '(?=a)', 2), regexp_count('xaxa', '^x|a', 2)
SELECT regexp_instr('foo bar', '\mb'), regexp_instr('abcabc', '(b)(c)', 1, 2, 0, '', 2), regexp_instr('abc', 'b', 1, 1, 0, '', 1), regexp_instr('abcd', '(a|ab)(c|bcd)', 1, 1, 1, 'i', 2)
SELECT regexp_substr('abcabc', '(b)(c)', 1, 2, '', 2), regexp_substr('foobar', 'o(?=b)'), regexp_like('foobar', 'o\y'), regexp_like('Foo', '(?-i)foo')
SELECT regexp_like('Foo', '^fOO$', 'i'), regexp_like('x', 'x', 'z')
SELECT 'a' ~ '(?z)a'
SELECT 'a' ~ 'a{2,1}'
SELECT 'a' ~ '\2'
SELECT 'a' ~ '(a)(?=\1)'
SELECT 'a' ~ '[b-a]'
SELECT 'a' ~ '[[:foo:]]'
SELECT 'a' ~ '*a'
SELECT substring('foobar' from 'o(.)b'), substring('foobar' from '(?=o)b'), substring('foobar' from 'o*?b')
SELECT substring('abcdefg' similar 'a#"(b_d)#"%' escape '#'), substring('abcdefg' from '#"%#"efg' for '#'), substring('abc' similar 'a#"#"#"c' escape '#')
SELECT substring('abcdefg' similar '%#"b_d#"%' escape '#'), substring('Thomas' similar '%#"o_a#"_' escape '#')
SELECT 'abc' SIMILAR TO 'a(b|c)*', 'abc' SIMILAR TO v, v SIMILAR TO v || '%', v NOT SIMILAR TO 'a_%' FROM t
SELECT 'a%' SIMILAR TO 'a#%' ESCAPE '#', 'ab' SIMILAR TO 'ab' ESCAPE '', 'ab' SIMILAR TO NULL, 'a\d' SIMILAR TO 'a\d' ESCAPE '#', 'a1' SIMILAR TO 'a\d'
SELECT 'x' SIMILAR TO 'x' ESCAPE 'ab'
SELECT v FROM t WHERE v ~ '(.)\1' ORDER BY id
SELECT v, regexp_match(v, '([a-z])\1') FROM t ORDER BY id
SELECT 'कि' ~ '^\w+$', '²' ~ '\w', 'é' ~ '[[:alpha:]]', 'É' ~ '[[:lower:]]', 'É' ~* '[[:lower:]]', E'\u3000' ~ '\s', E'\u00a0' ~ '\s', '٣' ~ '\d', '٣' ~ '[[:alpha:]]'
SELECT 'a.b' ~ '***=a.b', 'axb' ~ '***=a.b', 'A.B' ~* '***=a.b', 'a b' ~ '(?x)a b', 'ab' ~ '(?x)a b # c'
SELECT regexp_replace('aaa', 'a', 'b', 1, 2), regexp_replace('abcabc', '(?<=c)a', 'X', 2), regexp_replace('abc', 'b*', 'X', 1, 0, 'i')
SELECT string_to_array(regexp_replace(s, '\m(.)', '<\1>', 'g'), '<') FROM t ORDER BY id
SELECT regexp_match('aaa', '(a*)*'), regexp_match('babb', '(b?.+)+'), regexp_match('ab', '(a)|(b)'), regexp_match('', '()')
SELECT 'ab' ~ 'a(?#comment)b', 'a}' ~ 'a}', 'a{' ~ 'a{', 'a{x' ~ 'a{x', 'a]' ~ 'a]'
SELECT regexp_match('abc', 'a.c', 'e'), regexp_match('abc', '(?e)a.c')
SELECT to_ascii('12')
SELECT '{{1,2},{3,4}}'::int[], '{{1, 02},{ 3,NULL}}'::int[], '[0:1]={1,2}'::int[], '[1:2]={1,2}'::int[], '{{a,"b c"},{"",NULL}}'::text[], '[-1:0][2:3]={{1,2},{3,4}}'::int[], '{{}}'::int[], '{}'::int[][]
SELECT '{{1,2},{3}}'::int[]
SELECT '{{1,2},3}'::int[]
SELECT '{{x}}'::int[]
SELECT '[1:3]={1,2}'::int[]
SELECT '{{1.50,2},{3,NaN}}'::numeric[], '{{t,false}}'::bool[], '{{2024-1-1},{infinity}}'::date[], '{{"1 day"}}'::interval[], '{{"{\"a\":1}"}}'::jsonb[], '{{1.5,2}}'::float8[], '{{abc}}'::varchar[], '{{\\x01}}'::bytea[]
SELECT ARRAY[[1,2],[3,4]], ARRAY[[1,2],[3,4]]::bigint[], ARRAY[['a','b'],['c',NULL]], ARRAY[[[1],[2]],[[3],[4]]], ARRAY[ARRAY[1,2],ARRAY[3,4]]
SELECT ARRAY[[1,2],[3]]
SELECT ARRAY[[1],[2.5]]
SELECT ARRAY[[]::int[],[]]
SELECT ARRAY[[1.5,2],[3,4.25]]::numeric(5,2)[], ARRAY[['1','2']]::int[], ARRAY[[1,2]]::text[]
SELECT ARRAY[a,a] FROM t ORDER BY id
SELECT ARRAY[a,ARRAY[1,2,3]] FROM t WHERE id = 1
SELECT ARRAY[a,ARRAY[1,2]] FROM t WHERE id = 1
SELECT (ARRAY[[1,2],[3,4]])[1][2], (ARRAY[[1,2],[3,4]])[2][2], (ARRAY[[1,2],[3,4]])[1], (ARRAY[[1,2],[3,4]])[3][1], (ARRAY[[1,2],[3,4]])[1][NULL], (ARRAY[1,2])[1][1]
SELECT ('[0:1]={5,6}'::int[])[0], ('[0:1]={5,6}'::int[])[1], ('[0:1]={5,6}'::int[])[2], (ARRAY[['x','y']])[1][2], (ARRAY[[1.50,2]])[1][1]
SELECT (ARRAY[[1,2],[3,4]])[1:1], (ARRAY[[1,2],[3,4]])[1:2][2:2], (ARRAY[[1,2],[3,4]])[:1][:], (ARRAY[[1,2],[3,4]])[1:2][1], (ARRAY[[1,2],[3,4]])[5:6], (ARRAY[1,2,3])[1:2][1:1], ('[0:2]={1,2,3}'::int[])[0:1], (ARRAY[[1,2]])[1:NULL], (ARRAY[[1,2],[3,4]])[2][1:2]
SELECT array_dims('{{1,2},{3,4}}'::int[]), array_ndims('{{1,2},{3,4}}'::int[]), array_length('{{1,2,5},{3,4,5}}'::int[],1), array_length('{{1,2,5},{3,4,5}}'::int[],2), array_length('{{1,2}}'::int[],3), array_upper('[0:1]={1,2}'::int[],1), array_lower('[0:1]={1,2}'::int[],1), cardinality('{{1,2},{3,4}}'::int[]), array_dims('[0:1]={1,2}'::int[])
SELECT unnest('{{1,2},{3,4}}'::int[])
SELECT * FROM unnest('{{1,2},{3,4}}'::int[]) WITH ORDINALITY AS u(x,o)
SELECT * FROM unnest('{{1,2},{3,4}}'::int[], ARRAY['a','b']) AS u(x,y)
SELECT generate_subscripts('[3:5]={1,2,3}'::int[],1), array_to_string('{{1,2},{3,NULL}}'::int[], ','), array_to_string(ARRAY[['a',NULL]], ',', '-')
SELECT array_agg(a ORDER BY id) FROM t WHERE id = 1
SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]),(ARRAY[3,4])) v(x)
SELECT array_agg(x) FROM (VALUES (ARRAY[[1,2]]),(ARRAY[[3,4]])) v(x)
SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]),(ARRAY[3])) v(x)
SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]),(NULL)) v(x)
SELECT array_agg(x) FROM (VALUES ('{}'::int[])) v(x)
SELECT array_agg(x) FROM (VALUES (ARRAY[1,2])) v(x) WHERE false
SELECT array_cat(ARRAY[[1,2]],ARRAY[[3,4]]), array_cat(ARRAY[1,2],ARRAY[[3,4]]), ARRAY[[1,2]] || ARRAY[3,4], ARRAY[[1,2]] || ARRAY[[3,4],[5,6]], ARRAY[1,2] || '{{3,4}}'::int[], ARRAY[[1,2]] || NULL, NULL || ARRAY[[1,2]]
SELECT ARRAY[[1,2]] || ARRAY[3]
SELECT ARRAY[[1,2]] || 3
SELECT '[0:1]={1,2}'::int[] || 3, 3 || '[0:1]={1,2}'::int[], array_append('[0:1]={1,2}'::int[], 7), array_prepend(7, '[0:1]={1,2}'::int[])
SELECT ARRAY[[1,2],[3,4]] = ARRAY[[1,2],[3,4]], ARRAY[[1,2],[3,4]] = ARRAY[1,2,3,4], '[0:1]={1,2}'::int[] = '{1,2}'::int[], ARRAY[[1,2],[3,4]] < ARRAY[[1,2],[3,5]], ARRAY[[1,2]] < ARRAY[1,2], ARRAY[1,2] < ARRAY[[1,2]], ARRAY[[1,2]] <> ARRAY[[1],[2]], ARRAY[[1,2]] IS DISTINCT FROM NULL, ARRAY[[1,2]] > ARRAY[[1],[2]]
SELECT 3 = ANY(ARRAY[[1,2],[3,4]]), 9 = ANY('{{1,2},{3,4}}'::int[]), 3 <> ALL(ARRAY[[1,2],[3,4]]), 5 > ALL('{{1,2},{3,4}}'), ARRAY[[1,2],[3,4]] @> ARRAY[4,1], ARRAY[2] <@ ARRAY[[1,2]], ARRAY[[1,2]] && ARRAY[[2,9]], ARRAY[[1.0,2]] @> ARRAY[2.00]
SELECT x FROM (VALUES (ARRAY[[1,2]]),(ARRAY[[0,2]]),('{}'),(NULL),(ARRAY[[1,2]]),(ARRAY[[1],[2]])) v(x) ORDER BY x
SELECT x, count(*) FROM (VALUES (ARRAY[[1,2]]),(ARRAY[[0,2]]),(NULL),(ARRAY[[1,2]])) v(x) GROUP BY x ORDER BY x
SELECT DISTINCT x FROM (VALUES (ARRAY[[1,2]]),(ARRAY[[1,2]])) v(x)
SELECT x FROM (VALUES (ARRAY[1,2]),('{{1,2}}')) v(x) ORDER BY x
SELECT ARRAY[[1,2]] UNION SELECT ARRAY[1,2] ORDER BY 1
SELECT CASE WHEN id = 1 THEN a ELSE '{{1}}'::int[] END, coalesce(a, '{{1}}') FROM t ORDER BY id
SELECT to_json(ARRAY[[1,2],[3,4]]), to_jsonb(ARRAY[['a',NULL]]), array_to_json(ARRAY[[1.50],[2]]), json_build_object('k', ARRAY[[true],[false]]), to_json('[0:1]={1,2}'::int[])
SELECT ARRAY[[1,2],[3,4]]::text, ARRAY[['a b','c']]::text, '{{1,2}}'::int[]::text[]::text, ARRAY[['1','2']]::text[]::int[], ARRAY[[1.5]]::int[]
SELECT trim_array(ARRAY[[1,2],[3,4]],1), trim_array('[0:2]={1,2,3}'::int[],1)
SELECT ARRAY[[1,2]] IS NULL, ARRAY[[1,2]] IS NOT NULL, pg_typeof(ARRAY[[1,2]]), ('{{1,2}}'::int[][])::text
SELECT count(*) FROM t WHERE a = '{{1}}'
SELECT max(x), min(x) FROM (VALUES (ARRAY[[1,2]]),(ARRAY[[0,2]])) v(x)
WITH w AS (SELECT ARRAY[[1,2],[3,4]] AS m) SELECT m[1][2], m[2:2], array_length(m, 1) FROM w
SELECT array_agg(ARRAY[id, i] ORDER BY id) FROM t WHERE id < 4
SELECT (array_agg(ARRAY[id, i] ORDER BY id))[2][1] FROM t WHERE id < 4
SELECT array_position(ARRAY[[1,2]], 1)
SELECT row(ARRAY[[1,2]]), json_agg(x) FROM (VALUES (ARRAY[[1,2]])) v(x)
