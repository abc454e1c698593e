package pgsql

import (
	"strings"
	"sync"
)

// signature is one overload of a function.
type signature struct {
	kind     byte // f scalar, a aggregate, w window, s set-returning
	name     string
	args     []uint32
	variadic bool
	result   uint32 // OIDAnyElement, OIDAnyArray: from the arguments
	// engine is the template: $1… are the arguments, $* all of them with commas; in an
	// aggregate, @f(…) marks the engine's aggregate call.
	engine string
}

// builtins lists what statements may call, one overload a line:
//
//	kind name(types) result : template
//
// "any" takes everything as it is; "text" arguments are the engine's VARCHAR; a
// numeric argument is an engine DECIMAL of the argument's own scale.
const builtins = `
f length(text) int4 : CAST(length($1) AS INTEGER)
f length(bytea) int4 : CAST(octet_length($1) AS INTEGER)
f char_length(text) int4 : CAST(length($1) AS INTEGER)
f character_length(text) int4 : CAST(length($1) AS INTEGER)
f octet_length(text) int4 : CAST(strlen($1) AS INTEGER)
f octet_length(bytea) int4 : CAST(octet_length($1) AS INTEGER)
f bit_length(text) int4 : CAST(strlen($1) * 8 AS INTEGER)
f lower(text) text : lower($1)
f upper(text) text : upper($1)
f initcap(text) text : skippr_initcap($1)
f btrim(text) text : trim($1, ' ')
f btrim(text,text) text : trim($1, $2)
f ltrim(text) text : ltrim($1, ' ')
f ltrim(text,text) text : ltrim($1, $2)
f rtrim(text) text : rtrim($1, ' ')
f rtrim(text,text) text : rtrim($1, $2)
f substring(text,int4) text : substring($1, greatest($2, 1))
f substring(text,int4,int4) text : skippr_substr($1, $2, $3)
f substr(text,int4) text : substring($1, greatest($2, 1))
f substr(text,int4,int4) text : skippr_substr($1, $2, $3)
f left(text,int4) text : left($1, $2)
f right(text,int4) text : right($1, $2)
f position(text,text) int4 : CAST(strpos($1, $2) AS INTEGER)
f strpos(text,text) int4 : CAST(strpos($1, $2) AS INTEGER)
f replace(text,text,text) text : CASE WHEN $2 = '' THEN $1 ELSE replace($1, $2, $3) END
f translate(text,text,text) text : translate($1, $2, $3)
f reverse(text) text : reverse($1)
f repeat(text,int4) text : repeat($1, greatest($2, 0))
f lpad(text,int4) text : lpad($1, greatest($2, 0), ' ')
f lpad(text,int4,text) text : lpad($1, greatest($2, 0), $3)
f rpad(text,int4) text : rpad($1, greatest($2, 0), ' ')
f rpad(text,int4,text) text : rpad($1, greatest($2, 0), $3)
f split_part(text,text,int4) text : CASE WHEN $3 = 0 THEN error('22023: field position must not be zero') ELSE split_part($1, $2, $3) END
f starts_with(text,text) bool : starts_with($1, $2)
f ascii(text) int4 : CAST(ascii($1) AS INTEGER)
f chr(int4) text : chr($1)
f md5(text) text : md5($1)
f md5(bytea) text : md5($1)
f sha256(bytea) bytea : unhex(sha256($1))
f to_hex(int4) text : lower(to_hex($1))
f to_hex(int8) text : lower(to_hex($1))
f quote_ident(text) text : CASE WHEN regexp_full_match($1, '[a-z_][a-z0-9_$]*') THEN $1 ELSE '"' || replace($1, '"', '""') || '"' END
f quote_literal(text) text : '''' || replace($1, '''', '''''') || ''''
f quote_nullable(text) text : coalesce('''' || replace($1, '''', '''''') || '''', 'NULL')
f regexp_replace(text,text,text) text : regexp_replace($1, $2, $3, 's')
f regexp_replace(text,text,text,text) text : regexp_replace($1, $2, $3, 's' || $4)
f regexp_like(text,text) bool : regexp_matches($1, $2, 's')
f regexp_like(text,text,text) bool : regexp_matches($1, $2, 's' || $3)
f regexp_count(text,text) int4 : CAST(len(regexp_extract_all($1, $2)) AS INTEGER)
f regexp_split_to_array(text,text) _text : regexp_split_to_array($1, $2)
f regexp_substr(text,text) text : nullif(regexp_extract($1, $2), '')
f encode(bytea,text) text : CASE lower($2) WHEN 'hex' THEN lower(hex($1)) WHEN 'base64' THEN base64($1) ELSE error('22023: unrecognized encoding: "' || $2 || '"') END
f decode(text,text) bytea : CASE lower($2) WHEN 'hex' THEN unhex($1) WHEN 'base64' THEN from_base64($1) ELSE CAST(error('22023: unrecognized encoding: "' || $2 || '"') AS BLOB) END
f convert_from(bytea,name) text : decode($1)
f convert_to(text,name) bytea : encode($1)
f string_to_array(text,text) _text : CASE WHEN $1 = '' THEN [] ELSE string_split($1, $2) END
f string_to_array(text,text,text) _text : list_transform(string_split($1, $2), lambda x: nullif(x, $3))
f to_ascii(text) text : strip_accents($1)
f abs(int2) int2 : abs($1)
f abs(int4) int4 : abs($1)
f abs(int8) int8 : abs($1)
f abs(numeric) numeric : abs($1)
f abs(float4) float4 : abs($1)
f abs(float8) float8 : abs($1)
f sign(numeric) numeric : CAST(sign($1) AS DECIMAL(1,0))
f sign(float8) float8 : CAST(sign($1) AS DOUBLE)
f ceil(numeric) numeric : ceil($1)
f ceil(float8) float8 : ceil($1)
f ceiling(numeric) numeric : ceil($1)
f ceiling(float8) float8 : ceil($1)
f floor(numeric) numeric : floor($1)
f floor(float8) float8 : floor($1)
f round(numeric) numeric : round($1, 0)
f round(numeric,int4) numeric : round($1, $2)
f round(float8) float8 : round_even($1, 0)
f trunc(numeric) numeric : trunc($1)
f trunc(numeric,int4) numeric : trunc($1, $2)
f trunc(float8) float8 : trunc($1)
f mod(int2,int2) int2 : ($1 % skippr_nonzero($2))
f mod(int4,int4) int4 : ($1 % skippr_nonzero($2))
f mod(int8,int8) int8 : ($1 % skippr_nonzero($2))
f mod(numeric,numeric) numeric : ($1 % skippr_nonzero($2))
f div(numeric,numeric) numeric : trunc($1 / skippr_nonzero($2))
f gcd(int4,int4) int4 : CAST(gcd($1, $2) AS INTEGER)
f gcd(int8,int8) int8 : CAST(gcd($1, $2) AS BIGINT)
f lcm(int4,int4) int4 : CAST(lcm($1, $2) AS INTEGER)
f lcm(int8,int8) int8 : CAST(lcm($1, $2) AS BIGINT)
f power(float8,float8) float8 : power($1, $2)
f pow(float8,float8) float8 : power($1, $2)
f sqrt(float8) float8 : sqrt($1)
f cbrt(float8) float8 : cbrt($1)
f exp(float8) float8 : exp($1)
f ln(float8) float8 : ln($1)
f log(float8) float8 : log10($1)
f log10(float8) float8 : log10($1)
f pi() float8 : pi()
f degrees(float8) float8 : degrees($1)
f radians(float8) float8 : radians($1)
f sin(float8) float8 : sin($1)
f cos(float8) float8 : cos($1)
f tan(float8) float8 : tan($1)
f cot(float8) float8 : cot($1)
f asin(float8) float8 : asin($1)
f acos(float8) float8 : acos($1)
f atan(float8) float8 : atan($1)
f atan2(float8,float8) float8 : atan2($1, $2)
f sinh(float8) float8 : sinh($1)
f cosh(float8) float8 : cosh($1)
f tanh(float8) float8 : tanh($1)
f random() float8 : random()
f gen_random_uuid() uuid : gen_random_uuid()
f now() timestamptz : CAST({now} AS TIMESTAMPTZ)
f transaction_timestamp() timestamptz : CAST({now} AS TIMESTAMPTZ)
f statement_timestamp() timestamptz : CAST({now} AS TIMESTAMPTZ)
f clock_timestamp() timestamptz : now()
f age(timestamp,timestamp) interval : age($1, $2)
f age(timestamptz,timestamptz) interval : age($1, $2)
f age(timestamp) interval : age(CAST(CAST(CAST({now} AS TIMESTAMPTZ) AS DATE) AS TIMESTAMP), $1)
f age(timestamptz) interval : age(CAST(CAST(CAST({now} AS TIMESTAMPTZ) AS DATE) AS TIMESTAMPTZ), $1)
f date_trunc(text,timestamp) timestamp : date_trunc($1, $2)
f date_trunc(text,timestamptz) timestamptz : date_trunc($1, $2)
f date_trunc(text,timestamptz,text) timestamptz : timezone($3, date_trunc($1, timezone($3, $2)))
f date_trunc(text,interval) interval : date_trunc($1, $2)
f make_date(int4,int4,int4) date : make_date($1, $2, $3)
f make_time(int4,int4,float8) time : make_time($1, $2, $3)
f make_timestamp(int4,int4,int4,int4,int4,float8) timestamp : make_timestamp($1, $2, $3, $4, $5, $6)
f to_timestamp(float8) timestamptz : to_timestamp($1)
f timezone(text,timestamp) timestamptz : timezone($1, $2)
f timezone(text,timestamptz) timestamp : timezone($1, $2)
f isfinite(date) bool : isfinite($1)
f isfinite(timestamp) bool : isfinite($1)
f isfinite(timestamptz) bool : isfinite($1)
f date(timestamp) date : CAST($1 AS DATE)
f date(timestamptz) date : CAST($1 AS DATE)
f justify_days(interval) interval : to_months(CAST(datepart('month', $1) + 12 * datepart('year', $1) AS INTEGER) + CAST(datepart('day', $1) // 30 AS INTEGER)) + to_days(CAST(datepart('day', $1) % 30 AS INTEGER)) + to_microseconds(epoch_us($1 - date_trunc('day', $1)))
f array_length(anyarray,int4) int4 : CASE WHEN $2 = 1 AND len($1) > 0 THEN CAST(len($1) AS INTEGER) END
f cardinality(anyarray) int4 : CAST(len($1) AS INTEGER)
f array_lower(anyarray,int4) int4 : CASE WHEN $2 = 1 AND len($1) > 0 THEN 1 END
f array_upper(anyarray,int4) int4 : CASE WHEN $2 = 1 AND len($1) > 0 THEN CAST(len($1) AS INTEGER) END
f array_ndims(anyarray) int4 : CASE WHEN len($1) > 0 THEN 1 END
f array_append(anyarray,anyelement) anyarray : list_append(coalesce($1, []), $2)
f array_prepend(anyelement,anyarray) anyarray : list_prepend($1, coalesce($2, []))
f array_cat(anyarray,anyarray) anyarray : list_concat($1, $2)
f array_position(anyarray,anyelement) int4 : CAST(nullif(list_position($1, $2), 0) AS INTEGER)
f array_remove(anyarray,anyelement) anyarray : list_filter($1, lambda x: x IS DISTINCT FROM $2)
f array_to_string(anyarray,text) text : array_to_string(list_filter(skippr_strings($1), lambda x: x IS NOT NULL), $2)
f array_to_string(anyarray,text,text) text : array_to_string(list_transform(skippr_strings($1), lambda x: coalesce(x, $3)), $2)
f json_array_length(json) int4 : CAST(json_array_length($1) AS INTEGER)
f jsonb_array_length(jsonb) int4 : CAST(json_array_length($1) AS INTEGER)
f json_typeof(json) text : skippr_json_typeof($1)
f jsonb_typeof(jsonb) text : skippr_json_typeof($1)
f version() text : {fact:version_text}
f current_database() name : {fact:database}
f pg_backend_pid() int4 : CAST({fact:pid} AS INTEGER)
f getdatabaseencoding() name : 'UTF8'
f pg_size_pretty(int8) text : skippr_size($1)
f pg_size_pretty(numeric) text : skippr_size(CAST($1 AS BIGINT))
f hashtext(text) int4 : CAST(hash($1) % 2147483648 AS INTEGER)
a count() int8 : @count(*)
a count(any) int8 : @count($1)
a sum(int2) int8 : CAST(@sum($1) AS BIGINT)
a sum(int4) int8 : CAST(@sum($1) AS BIGINT)
a sum(int8) numeric : CAST(@sum($1) AS DECIMAL(38,0))
a sum(numeric) numeric : @sum($1)
a sum(float4) float4 : CAST(@sum($1) AS FLOAT)
a sum(float8) float8 : @sum($1)
a sum(interval) interval : @sum($1)
a avg(int2) numeric : skippr_average(@sum($1), @count($1))
a avg(int4) numeric : skippr_average(@sum($1), @count($1))
a avg(int8) numeric : skippr_average(@sum($1), @count($1))
a avg(numeric) numeric : quotient
a avg(float4) float8 : @avg(CAST($1 AS DOUBLE))
a avg(float8) float8 : @avg($1)
a avg(interval) interval : @avg($1)
a min(anyelement) anyelement : @min($1)
a max(anyelement) anyelement : @max($1)
a bool_and(bool) bool : @bool_and($1)
a bool_or(bool) bool : @bool_or($1)
a every(bool) bool : @bool_and($1)
a bit_and(int4) int4 : @bit_and($1)
a bit_and(int8) int8 : @bit_and($1)
a bit_or(int4) int4 : @bit_or($1)
a bit_or(int8) int8 : @bit_or($1)
a bit_xor(int4) int4 : @bit_xor($1)
a bit_xor(int8) int8 : @bit_xor($1)
a string_agg(text,text) text : @string_agg($1, $2)
a array_agg(anyelement) anyarray : @list($1)
a any_value(anyelement) anyelement : @any_value($1)
a stddev(float8) float8 : @stddev_samp($1)
a stddev_samp(float8) float8 : @stddev_samp($1)
a stddev_pop(float8) float8 : @stddev_pop($1)
a variance(float8) float8 : @var_samp($1)
a var_samp(float8) float8 : @var_samp($1)
a var_pop(float8) float8 : @var_pop($1)
a corr(float8,float8) float8 : @corr($1, $2)
a covar_pop(float8,float8) float8 : @covar_pop($1, $2)
a covar_samp(float8,float8) float8 : @covar_samp($1, $2)
a regr_slope(float8,float8) float8 : @regr_slope($1, $2)
a regr_intercept(float8,float8) float8 : @regr_intercept($1, $2)
a regr_r2(float8,float8) float8 : @regr_r2($1, $2)
a regr_count(float8,float8) int8 : CAST(@regr_count($1, $2) AS BIGINT)
w row_number() int8 : @row_number()
w rank() int8 : @rank()
w dense_rank() int8 : @dense_rank()
w percent_rank() float8 : @percent_rank()
w cume_dist() float8 : @cume_dist()
w ntile(int4) int4 : CAST(@ntile($1) AS INTEGER)
w lag(anyelement) anyelement : @lag($1)
w lag(anyelement,int4) anyelement : @lag($1, $2)
w lag(anyelement,int4,anyelement) anyelement : @lag($1, $2, $3)
w lead(anyelement) anyelement : @lead($1)
w lead(anyelement,int4) anyelement : @lead($1, $2)
w lead(anyelement,int4,anyelement) anyelement : @lead($1, $2, $3)
w first_value(anyelement) anyelement : @first_value($1)
w last_value(anyelement) anyelement : @last_value($1)
w nth_value(anyelement,int4) anyelement : @nth_value($1, $2)
s generate_series(int4,int4) int4 : unnest(CAST(generate_series($1, $2) AS INTEGER[]))
s generate_series(int4,int4,int4) int4 : unnest(CAST(generate_series($1, $2, skippr_step($3)) AS INTEGER[]))
s generate_series(int8,int8) int8 : unnest(generate_series($1, $2))
s generate_series(int8,int8,int8) int8 : unnest(generate_series($1, $2, skippr_step($3)))
s generate_series(timestamp,timestamp,interval) timestamp : unnest(generate_series($1, $2, $3))
s generate_series(timestamptz,timestamptz,interval) timestamptz : unnest(generate_series($1, $2, $3))
s unnest(anyarray) anyelement : unnest($1)
s generate_subscripts(anyarray,int4) int4 : unnest(CAST(generate_series(1, len($1)) AS INTEGER[]))
s regexp_split_to_table(text,text) text : unnest(regexp_split_to_array($1, $2))
s string_to_table(text,text) text : unnest(string_split($1, $2))
s json_array_elements(json) json : unnest(CAST(json_extract($1, '$[*]') AS VARCHAR[]))
s jsonb_array_elements(jsonb) jsonb : unnest(CAST(json_extract($1, '$[*]') AS VARCHAR[]))
s json_array_elements_text(json) text : unnest(json_extract_string($1, '$[*]'))
s jsonb_array_elements_text(jsonb) text : unnest(json_extract_string($1, '$[*]'))
s json_object_keys(json) text : unnest(json_keys($1))
s jsonb_object_keys(jsonb) text : unnest(json_keys($1))
`

var builtinIndex = sync.OnceValue(func() map[string][]*signature {
	out := map[string][]*signature{}
	for line := range strings.Lines(strings.TrimSpace(builtins)) {
		head, engine, _ := strings.Cut(strings.TrimSpace(line), " : ")
		f := strings.Fields(head)
		name, args, _ := strings.Cut(strings.TrimSuffix(f[1], ")"), "(")
		sig := &signature{kind: f[0][0], name: name, engine: engine, result: mustType(f[2])}
		for _, t := range strings.Split(args, ",") {
			if t != "" {
				sig.args = append(sig.args, mustType(t))
			}
		}
		out[name] = append(out[name], sig)
	}
	return out
})

// mustType finds a type of the list of builtins; a test checks every line.
func mustType(name string) uint32 {
	oid, _ := TypeNamed(name)
	return oid
}
