#include "scan.h"

#include <stdlib.h>

extern duckdb_scalar_function duckdb_create_scalar_function(void);
extern void duckdb_destroy_scalar_function(duckdb_scalar_function *);
extern void duckdb_scalar_function_set_name(duckdb_scalar_function, const char *);
extern void duckdb_scalar_function_add_parameter(duckdb_scalar_function, duckdb_logical_type);
extern void duckdb_scalar_function_set_return_type(duckdb_scalar_function, duckdb_logical_type);
extern void duckdb_scalar_function_set_function(duckdb_scalar_function,
                                                void (*)(duckdb_function_info, duckdb_data_chunk, duckdb_vector));
extern void duckdb_scalar_function_set_error(duckdb_function_info, const char *);
extern int duckdb_register_scalar_function(duckdb_connection, duckdb_scalar_function);
extern duckdb_logical_type duckdb_create_logical_type(int);
extern void duckdb_destroy_logical_type(duckdb_logical_type *);
extern duckdb_vector duckdb_data_chunk_get_vector(duckdb_data_chunk, idx_t);
extern idx_t duckdb_data_chunk_get_size(duckdb_data_chunk);
extern void *duckdb_vector_get_data(duckdb_vector);

#define TYPE_BOOLEAN 1
#define TYPE_BIGINT 5
#define TYPE_UBIGINT 9

// BITS_PER_KEY makes one of 32 strangers look like a member at first.
#define BITS_PER_KEY 32
// DENSE_BITS_PER_KEY: up to this many, a bit for each key between the least and the
// greatest is cheaper than hashing.
#define DENSE_BITS_PER_KEY 512
#define BITS_LOG_MIN 6

static inline uint64_t mix(int64_t key) { return (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15); }

static inline uint8_t bit_of(const uint64_t *bits, uint64_t at) { return bits[at >> 6] >> (at & 63) & 1; }

static void set_bit(uint64_t *bits, uint64_t at) { bits[at >> 6] |= UINT64_C(1) << (at & 63); }

static bool holds(const struct sk_keys *s, int64_t key) {
	if (key == SK_NO_KEY) return s->has_no_key;
	uint64_t mask = (UINT64_C(1) << (64 - s->slot_shift)) - 1;
	for (uint64_t at = mix(key) >> s->slot_shift;; at = (at + 1) & mask) {
		if (s->slots[at] == key) return true;
		if (s->slots[at] == SK_NO_KEY) return false;
	}
}

static int log_of(uint64_t n, int least) {
	int log = least;
	while (log < 40 && (UINT64_C(1) << log) < n) log++;
	return log;
}

static bool make_dense(struct sk_keys *s, const int64_t *keys, int64_t n) {
	s->bits = calloc(s->width / 64 + 1, sizeof *s->bits);
	for (int64_t i = 0; s->bits && i < n; i++) set_bit(s->bits, (uint64_t)keys[i] - (uint64_t)s->least);
	return s->bits;
}

static bool make_hashed(struct sk_keys *s, const int64_t *keys, int64_t n) {
	int bits = log_of((uint64_t)n * BITS_PER_KEY, BITS_LOG_MIN), slots = log_of((uint64_t)n * 2 + 1, 1);
	s->bit_shift = 64 - bits;
	s->slot_shift = 64 - slots;
	s->bits = calloc(UINT64_C(1) << (bits - 6), sizeof *s->bits);
	s->slots = malloc((UINT64_C(1) << slots) * sizeof *s->slots);
	if (!s->bits || !s->slots) return false;
	uint64_t mask = (UINT64_C(1) << slots) - 1;
	for (uint64_t i = 0; i <= mask; i++) s->slots[i] = SK_NO_KEY;
	for (int64_t i = 0; i < n; i++) {
		uint64_t h = mix(keys[i]), at = h >> s->slot_shift;
		set_bit(s->bits, h >> s->bit_shift);
		if (keys[i] == SK_NO_KEY) {
			s->has_no_key = true;
			continue;
		}
		while (s->slots[at] != SK_NO_KEY && s->slots[at] != keys[i]) at = (at + 1) & mask;
		s->slots[at] = keys[i];
	}
	return true;
}

struct sk_keys *sk_keys_make(const int64_t *keys, int64_t n) {
	struct sk_keys *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	int64_t greatest = n > 0 ? keys[0] : 0;
	s->least = greatest;
	for (int64_t i = 0; i < n; i++) {
		if (keys[i] < s->least) s->least = keys[i];
		if (keys[i] > greatest) greatest = keys[i];
	}
	uint64_t last = (uint64_t)greatest - (uint64_t)s->least;
	s->width = last < (uint64_t)n * DENSE_BITS_PER_KEY ? last + 1 : 0;
	if (s->width ? make_dense(s, keys, n) : make_hashed(s, keys, n)) return s;
	sk_keys_free(s);
	return NULL;
}

void sk_keys_free(struct sk_keys *s) {
	if (!s) return;
	free(s->bits);
	free(s->slots);
	free(s);
}

static void strangers_dense(const struct sk_keys *s, const int64_t *keys, uint8_t *result, idx_t n) {
	for (idx_t i = 0; i < n; i++) {
		uint64_t at = (uint64_t)keys[i] - (uint64_t)s->least;
		uint8_t inside = at < s->width;
		result[i] = !(inside & bit_of(s->bits, inside ? at : 0));
	}
}

static void strangers_hashed(const struct sk_keys *s, const int64_t *keys, uint8_t *result, idx_t n) {
	idx_t candidates = 0;
	for (idx_t i = 0; i < n; i++) {
		uint8_t bit = bit_of(s->bits, mix(keys[i]) >> s->bit_shift);
		result[i] = !bit;
		candidates += bit;
	}
	for (idx_t i = 0; candidates > 0; i++) {
		if (result[i]) continue;
		candidates--;
		result[i] = !holds(s, keys[i]);
	}
}

// stranger_rows is skippr_stranger for a chunk. The id is the same in all rows, and
// keys are not null: the engine answers null for those itself.
static void stranger_rows(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	// The set last asked. An id is never used twice, and a set that a query names lives.
	static _Thread_local uint64_t last_id;
	static _Thread_local const struct sk_keys *last;
	idx_t n = duckdb_data_chunk_get_size(in);
	if (n == 0) return;
	uint64_t id = *(const uint64_t *)duckdb_vector_get_data(duckdb_data_chunk_get_vector(in, 0));
	if (id != last_id || !last) {
		last = sk_find(SK_KEYS, id);
		last_id = id;
	}
	if (!last) {
		duckdb_scalar_function_set_error(info, "skippr_stranger: no such set");
		return;
	}
	const int64_t *keys = duckdb_vector_get_data(duckdb_data_chunk_get_vector(in, 1));
	uint8_t *result = duckdb_vector_get_data(out);
	(last->width ? strangers_dense : strangers_hashed)(last, keys, result, n);
}

int sk_register_keys(duckdb_connection connection) {
	duckdb_scalar_function f = duckdb_create_scalar_function();
	duckdb_scalar_function_set_name(f, "skippr_stranger");
	int types[] = {TYPE_UBIGINT, TYPE_BIGINT, TYPE_BOOLEAN};
	for (int i = 0; i < 3; i++) {
		duckdb_logical_type t = duckdb_create_logical_type(types[i]);
		if (i < 2) {
			duckdb_scalar_function_add_parameter(f, t);
		} else {
			duckdb_scalar_function_set_return_type(f, t);
		}
		duckdb_destroy_logical_type(&t);
	}
	duckdb_scalar_function_set_function(f, stranger_rows);
	int state = duckdb_register_scalar_function(connection, f);
	duckdb_destroy_scalar_function(&f);
	return state;
}
