-- The macros that rewritten statements use. A statement ends with a semicolon at a line's end.
CREATE OR REPLACE MACRO skippr_int_text(x, t) AS 
  CASE WHEN x IS NULL OR regexp_full_match(trim(x), '[+-]?[0-9]+') THEN trim(x) 
  ELSE error('22P02: invalid input syntax for type ' || t || ': "' || x || '"') END;
CREATE OR REPLACE MACRO skippr_exact_moment(x) AS regexp_replace(x, '^([0-9-]+)(.*) BC$', '\1 (BC)\2');
CREATE OR REPLACE MACRO skippr_text_bool(x) AS CASE WHEN x IS NULL THEN NULL 
  WHEN lower(trim(x)) IN ('t','tr','tru','true','y','ye','yes','on','1') THEN true 
  WHEN lower(trim(x)) IN ('f','fa','fal','fals','false','n','no','of','off','0') THEN false 
  ELSE CAST(error('22P02: invalid input syntax for type boolean: "' || x || '"') AS BOOLEAN) END;
-- The engine writes 1.0, 1000000000000000.0 and 1e+20; PostgreSQL 1, 1e+15 and 1e+20, and of a real 1e+06.
CREATE OR REPLACE MACRO skippr_float_exponent(t) AS regexp_extract(t, '^-?[0-9]') 
  || rtrim(regexp_replace('.' || regexp_replace(t, '^-?[0-9]|\.', '', 'g'), '0+$', ''), '.') 
  || 'e+' || lpad(CAST(length(regexp_extract(t, '^-?([0-9]+)', 1)) - 1 AS VARCHAR), 2, '0');
CREATE OR REPLACE MACRO skippr_float_text(x) AS CASE WHEN isnan(x) THEN 'NaN' 
  WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END 
  WHEN abs(x) >= (CASE typeof(x) WHEN 'FLOAT' THEN 1e6 ELSE 1e15 END) AND NOT contains(CAST(x AS VARCHAR), 'e') 
  THEN skippr_float_exponent(regexp_replace(CAST(x AS VARCHAR), '\.0$', '')) 
  ELSE regexp_replace(CAST(x AS VARCHAR), '\.0$', '') END;
-- The engine writes .5 of a decimal without whole digits, and (BC) in the middle of a time.
CREATE OR REPLACE MACRO skippr_decimal_text(x) AS regexp_replace(CAST(x AS VARCHAR), '^(-?)\.', '\10.');
CREATE OR REPLACE MACRO skippr_era_text(t) AS regexp_replace(t, '^([0-9-]+) \(BC\)(.*)$', '\1\2 BC');
CREATE OR REPLACE MACRO skippr_inet_text(x) AS 
  CASE WHEN contains(x, '/') THEN x WHEN contains(x, ':') THEN x || '/128' ELSE x || '/32' END;
CREATE OR REPLACE MACRO skippr_interval_text(x) AS replace(replace(CAST(x AS VARCHAR), ' months', ' mons'), ' month', ' mon');
CREATE OR REPLACE MACRO skippr_array_item(x) AS CASE WHEN x IS NULL THEN 'NULL' 
  WHEN x = '' OR upper(x) = 'NULL' OR regexp_matches(x, '[{}",\\\s]') 
  THEN '"' || replace(replace(x, '\', '\\'), '"', '\"') || '"' ELSE x END;
CREATE OR REPLACE MACRO skippr_text_array(x) AS CASE WHEN x IS NULL THEN NULL ELSE 
  '{' || array_to_string(list_transform(x, lambda v: skippr_array_item(v)), ',') || '}' END;
CREATE OR REPLACE MACRO skippr_nonzero(x) AS CASE WHEN x = 0 THEN error('division by zero') ELSE x END;
CREATE OR REPLACE MACRO skippr_step(x) AS CASE WHEN x = 0 THEN error('22023: step size cannot equal zero') ELSE x END;
CREATE OR REPLACE MACRO skippr_strings(x) AS CAST(x AS VARCHAR[]);
CREATE OR REPLACE MACRO skippr_json_typeof(x) AS CASE json_type(x) WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' 
  WHEN 'VARCHAR' THEN 'string' WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' WHEN NULL THEN NULL ELSE 'number' END;
-- The engine writes JSON without spaces; jsonb's text has one after each comma and
-- colon that is not inside a string.
CREATE OR REPLACE MACRO skippr_jsonb_text(x) AS 
  rtrim(regexp_replace(x, '((?:"(?:[^"\\]|\\.)*"|[^",:])+)([,:]|$)', '\1\2 ', 'g'), ' ');
CREATE OR REPLACE MACRO skippr_jsonb_value(x, p) AS CASE WHEN json_type(x, p) IN ('OBJECT', 'ARRAY') 
  THEN skippr_jsonb_text(json_extract_string(x, p)) ELSE json_extract_string(x, p) END;
-- PostgreSQL stays with a unit up to 10240 of it, and rounds to the next.
CREATE OR REPLACE MACRO skippr_size(x) AS CASE WHEN abs(x) < 10240 THEN x || ' bytes' 
  WHEN abs(x) < 10485248 THEN CAST(round(x / 1024.0) AS BIGINT) || ' kB' 
  WHEN abs(x) < 10736893952 THEN CAST(round(x / 1048576.0) AS BIGINT) || ' MB' 
  WHEN abs(x) < 10994579406848 THEN CAST(round(x / 1073741824.0) AS BIGINT) || ' GB' 
  ELSE CAST(round(x / 1099511627776.0) AS BIGINT) || ' TB' END;
CREATE OR REPLACE MACRO skippr_initcap(x) AS array_to_string(list_transform(
  regexp_extract_all(x, '[\p{L}\p{N}]+|[^\p{L}\p{N}]+'), lambda w: upper(left(w, 1)) || lower(substring(w, 2))), '');
CREATE OR REPLACE MACRO skippr_substr(s, p, n) AS CASE WHEN n < 0 THEN 
  error('22011: negative substring length not allowed') WHEN p < 1 THEN left(s, greatest(p + n - 1, 0)) 
  ELSE substring(s, p, n) END;
CREATE OR REPLACE MACRO skippr_months(x) AS date_part('year', x) * 12 + date_part('month', x);
CREATE OR REPLACE MACRO skippr_micros(x) AS (date_part('hour', x) * 60 + date_part('minute', x)) * 60000000 + date_part('microseconds', x);
