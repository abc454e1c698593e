-- The macros that rewritten statements use. A statement ends with a semicolon at a line's end.
CREATE OR REPLACE MACRO skippr_exact_moment(x) AS regexp_replace(x, '^([0-9-]+)(.*) BC$', '\1 (BC)\2');
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
CREATE OR REPLACE MACRO skippr_array_item(x) AS CASE WHEN x IS NULL THEN 'NULL' 
  WHEN x = '' OR upper(x) = 'NULL' OR regexp_matches(x, '[{}",\\\s]') 
  THEN '"' || replace(replace(x, '\', '\\'), '"', '\"') || '"' ELSE x END;
CREATE OR REPLACE MACRO skippr_text_array(x) AS CASE WHEN x IS NULL THEN NULL ELSE 
  '{' || array_to_string(list_transform(x, lambda v: skippr_array_item(v)), ',') || '}' END;
CREATE OR REPLACE MACRO skippr_nonzero(x) AS CASE WHEN x = 0 THEN error('division by zero') ELSE x END;
CREATE OR REPLACE MACRO skippr_step(x) AS CASE WHEN x = 0 THEN error('22023: step size cannot equal zero') ELSE x END;
-- Texts with the separators before all but the first.
CREATE OR REPLACE MACRO skippr_joined(l) AS CASE WHEN len(l) > 0 THEN array_to_string(list_transform(l, lambda x, i: 
  CASE WHEN i = 1 THEN struct_extract(x, 'v') ELSE coalesce(struct_extract(x, 's'), '') || struct_extract(x, 'v') END), '') END;
CREATE OR REPLACE MACRO skippr_join(l, s) AS CASE WHEN l IS NOT NULL THEN coalesce(array_to_string(list_transform(list_filter(l, lambda x: x IS NOT NULL),
  lambda x, i: CASE WHEN i = 1 THEN x ELSE s || x END), ''), '') END;
CREATE OR REPLACE MACRO skippr_separated(l) AS skippr_joined(list_filter(l, lambda x: struct_extract(x, 'v') IS NOT NULL));
-- A sum begins with its first value, the engine's with 0: of nothing but -0 it is -0.
CREATE OR REPLACE MACRO skippr_sum_float(total, signs) AS CASE WHEN signs AND total = 0 THEN -total ELSE total END;
CREATE OR REPLACE MACRO skippr_strings(x) AS CAST(x AS VARCHAR[]);
-- PostgreSQL stays with a unit up to 10240 of it, and rounds to the next.
CREATE OR REPLACE MACRO skippr_size(x) AS CASE WHEN abs(x) < 10240 THEN x || ' bytes' 
  WHEN abs(x) < 10485248 THEN CAST(round(x / 1024.0) AS BIGINT) || ' kB' 
  WHEN abs(x) < 10736893952 THEN CAST(round(x / 1048576.0) AS BIGINT) || ' MB' 
  WHEN abs(x) < 10994579406848 THEN CAST(round(x / 1073741824.0) AS BIGINT) || ' GB' 
  ELSE CAST(round(x / 1099511627776.0) AS BIGINT) || ' TB' END;
CREATE OR REPLACE MACRO skippr_substr(s, p, n) AS CASE WHEN n < 0 THEN 
  error('22011: negative substring length not allowed') WHEN p < 1 THEN left(s, greatest(p + n - 1, 0)) 
  ELSE substring(s, p, n) END;
CREATE OR REPLACE MACRO skippr_months(x) AS date_part('year', x) * 12 + date_part('month', x);
-- There is no year 0 in PostgreSQL. What is infinite has no year that the engine can hold.
CREATE OR REPLACE MACRO skippr_year(x) AS CASE WHEN isinf(x) THEN error('0A000: the year of an infinite value is not supported') 
  WHEN date_part('year', x) <= 0 THEN date_part('year', x) - 1 ELSE date_part('year', x) END;
-- What overflows or vanishes is an error.
CREATE OR REPLACE MACRO skippr_exp(x) AS CASE WHEN x > 709.782712893384 AND NOT isinf(x) AND NOT isnan(x) 
  THEN error('22003: value out of range: overflow') WHEN x < -745.1332191019411 AND NOT isinf(x) 
  THEN error('22003: value out of range: underflow') ELSE exp(x) END;
CREATE OR REPLACE MACRO skippr_power(a, b) AS CASE WHEN a = 0 AND b < 0 
  THEN error('2201F: zero raised to a negative power is undefined') WHEN a < 0 AND b <> floor(b) AND NOT isnan(b) 
  THEN error('2201F: a negative number raised to a non-integer power yields a complex result') 
  WHEN isinf(power(a, b)) AND NOT isinf(a) AND NOT isinf(b) THEN error('22003: value out of range: overflow') 
  WHEN power(a, b) = 0 AND a <> 0 AND NOT isinf(a) AND NOT isinf(b) THEN error('22003: value out of range: underflow') ELSE power(a, b) END;
CREATE OR REPLACE MACRO skippr_mod(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('division by zero') WHEN b = -1 THEN a - a ELSE a % b END;
-- No array contains a null.
CREATE OR REPLACE MACRO skippr_contains(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL 
  THEN list_has_all(a, b) AND list_count(b) = len(b) END;
-- Percentiles of a sorted list.
CREATE OR REPLACE MACRO skippr_fraction(p) AS CASE WHEN p < 0 OR p > 1 OR isnan(p) 
  THEN error('22003: percentile value ' || CAST(p AS VARCHAR) || ' is not between 0 and 1') ELSE p END;
CREATE OR REPLACE MACRO skippr_disc(l, p) AS list_extract(l, greatest(1, CAST(ceil(skippr_fraction(p) * len(l)) AS BIGINT)));
CREATE OR REPLACE MACRO skippr_low(l, p) AS CAST(floor(skippr_fraction(p) * (len(l) - 1)) AS BIGINT) + 1;
CREATE OR REPLACE MACRO skippr_high(l, p) AS CAST(ceil(skippr_fraction(p) * (len(l) - 1)) AS BIGINT) + 1;
CREATE OR REPLACE MACRO skippr_between(l, p) AS p * (len(l) - 1) - floor(p * (len(l) - 1));
CREATE OR REPLACE MACRO skippr_cont(l, p) AS CASE WHEN skippr_low(l, p) = skippr_high(l, p) THEN list_extract(l, skippr_low(l, p)) 
  ELSE list_extract(l, skippr_low(l, p)) + skippr_between(l, p) * (list_extract(l, skippr_high(l, p)) - list_extract(l, skippr_low(l, p))) END;
CREATE OR REPLACE MACRO skippr_cont_interval(l, p) AS CASE WHEN skippr_low(l, p) = skippr_high(l, p) THEN list_extract(l, skippr_low(l, p)) 
  ELSE skippr_iv_add(list_extract(l, skippr_low(l, p)), skippr_iv_mul(skippr_iv_sub(list_extract(l, skippr_high(l, p)), 
  list_extract(l, skippr_low(l, p))), skippr_between(l, p))) END;
CREATE OR REPLACE MACRO skippr_timetz_round(x, p) AS CAST(CAST(skippr_t_round(CAST(x AS TIME), p) AS VARCHAR) 
  || regexp_extract(CAST(x AS VARCHAR), '[+-][0-9:]+$') AS TIMETZ);
-- Of a list of values v in the order of their keys k: the first of each run of equal keys.
CREATE OR REPLACE MACRO skippr_uniq(l) AS CASE WHEN l IS NOT NULL THEN list_transform(list_filter(list_zip(l, list_prepend(NULL, l)), 
  lambda z: z[1] IS NOT NULL AND (z[2] IS NULL OR struct_extract(z[1], 'k') IS DISTINCT FROM struct_extract(z[2], 'k'))), 
  lambda z: struct_extract(z[1], 'v')) END;
-- Sines and their kin of degrees, exact where PostgreSQL's are.
CREATE OR REPLACE MACRO skippr_rad(x) AS x * CAST('0.0174532925199432957692' AS DOUBLE);
CREATE OR REPLACE MACRO skippr_sind_low(x) AS (sin(skippr_rad(x)) / sin(skippr_rad(CAST(30 AS DOUBLE)))) / CAST(2 AS DOUBLE);
CREATE OR REPLACE MACRO skippr_cosd_low(x) AS CAST(1 AS DOUBLE) - 
  ((CAST(1 AS DOUBLE) - cos(skippr_rad(x))) / (CAST(1 AS DOUBLE) - cos(skippr_rad(CAST(60 AS DOUBLE))))) / CAST(2 AS DOUBLE);
CREATE OR REPLACE MACRO skippr_sind_q(x) AS CASE WHEN x <= 30 THEN skippr_sind_low(x) ELSE skippr_cosd_low(CAST(90 AS DOUBLE) - x) END;
CREATE OR REPLACE MACRO skippr_cosd_q(x) AS CASE WHEN x <= 60 THEN skippr_cosd_low(x) ELSE skippr_sind_low(CAST(90 AS DOUBLE) - x) END;
CREATE OR REPLACE MACRO skippr_half(x) AS CASE WHEN x > 180 THEN CAST(360 AS DOUBLE) - x ELSE x END;
CREATE OR REPLACE MACRO skippr_quarter(x) AS CASE WHEN x > 90 THEN CAST(180 AS DOUBLE) - x ELSE x END;
CREATE OR REPLACE MACRO skippr_sign_if(c, x) AS CASE WHEN c THEN -x ELSE x END;
CREATE OR REPLACE MACRO skippr_turn(x) AS abs(x % CAST(360 AS DOUBLE));
CREATE OR REPLACE MACRO skippr_sind(x) AS CASE WHEN isnan(x) THEN x WHEN isinf(x) THEN error('22003: input is out of range') 
  ELSE skippr_sign_if((x < 0) <> (skippr_turn(x) > 180), skippr_sind_q(skippr_quarter(skippr_half(skippr_turn(x))))) END;
CREATE OR REPLACE MACRO skippr_cosd(x) AS CASE WHEN isnan(x) THEN x WHEN isinf(x) THEN error('22003: input is out of range') 
  ELSE skippr_sign_if(skippr_half(skippr_turn(x)) > 90, skippr_cosd_q(skippr_quarter(skippr_half(skippr_turn(x))))) END;
CREATE OR REPLACE MACRO skippr_tand_sign(x) AS ((x < 0) <> (skippr_turn(x) > 180)) <> (skippr_half(skippr_turn(x)) > 90);
CREATE OR REPLACE MACRO skippr_ratio(a, b) AS CASE WHEN b = 0 THEN CASE WHEN a = 0 THEN CAST('NaN' AS DOUBLE) 
  ELSE CAST('Infinity' AS DOUBLE) END ELSE a / b END;
CREATE OR REPLACE MACRO skippr_no_sign(x) AS CASE WHEN x = 0 THEN CAST(0 AS DOUBLE) ELSE x END;
CREATE OR REPLACE MACRO skippr_tand_q(x) AS skippr_ratio(skippr_sind_q(x), skippr_cosd_q(x)) / 
  (skippr_sind_q(CAST(45 AS DOUBLE)) / skippr_cosd_q(CAST(45 AS DOUBLE)));
CREATE OR REPLACE MACRO skippr_cotd_q(x) AS skippr_ratio(skippr_cosd_q(x), skippr_sind_q(x)) / 
  (skippr_cosd_q(CAST(45 AS DOUBLE)) / skippr_sind_q(CAST(45 AS DOUBLE)));
CREATE OR REPLACE MACRO skippr_tand(x) AS CASE WHEN isnan(x) THEN x WHEN isinf(x) THEN error('22003: input is out of range') 
  ELSE skippr_no_sign(skippr_sign_if(skippr_tand_sign(x), skippr_tand_q(skippr_quarter(skippr_half(skippr_turn(x)))))) END;
CREATE OR REPLACE MACRO skippr_cotd(x) AS CASE WHEN isnan(x) THEN x WHEN isinf(x) THEN error('22003: input is out of range') 
  ELSE skippr_no_sign(skippr_sign_if(skippr_tand_sign(x), skippr_cotd_q(skippr_quarter(skippr_half(skippr_turn(x)))))) END;
CREATE OR REPLACE MACRO skippr_asind_q(x) AS CASE WHEN x <= 0.5 THEN (asin(x) / asin(CAST(0.5 AS DOUBLE))) * CAST(30 AS DOUBLE) 
  ELSE CAST(90 AS DOUBLE) - (acos(x) / acos(CAST(0.5 AS DOUBLE))) * CAST(60 AS DOUBLE) END;
CREATE OR REPLACE MACRO skippr_acosd_q(x) AS CASE WHEN x <= 0.5 THEN CAST(90 AS DOUBLE) - (asin(x) / asin(CAST(0.5 AS DOUBLE))) * CAST(30 AS DOUBLE) 
  ELSE (acos(x) / acos(CAST(0.5 AS DOUBLE))) * CAST(60 AS DOUBLE) END;
CREATE OR REPLACE MACRO skippr_asind(x) AS CASE WHEN isnan(x) THEN x WHEN abs(x) > 1 THEN error('22003: input is out of range') 
  WHEN x >= 0 THEN skippr_asind_q(x) ELSE -skippr_asind_q(-x) END;
CREATE OR REPLACE MACRO skippr_acosd(x) AS CASE WHEN isnan(x) THEN x WHEN abs(x) > 1 THEN error('22003: input is out of range') 
  WHEN x >= 0 THEN skippr_acosd_q(x) ELSE CAST(90 AS DOUBLE) + skippr_asind_q(-x) END;
