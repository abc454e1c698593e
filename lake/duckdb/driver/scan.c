#include "scan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern duckdb_table_function duckdb_create_table_function(void);
extern void duckdb_destroy_table_function(duckdb_table_function *);
extern void duckdb_table_function_set_name(duckdb_table_function, const char *);
extern void duckdb_table_function_add_parameter(duckdb_table_function, duckdb_logical_type);
extern void duckdb_table_function_set_bind(duckdb_table_function, void (*)(duckdb_bind_info));
extern void duckdb_table_function_set_init(duckdb_table_function, void (*)(duckdb_init_info));
extern void duckdb_table_function_set_local_init(duckdb_table_function, void (*)(duckdb_init_info));
extern void duckdb_table_function_set_function(duckdb_table_function,
                                               void (*)(duckdb_function_info, duckdb_data_chunk));
extern void duckdb_table_function_supports_projection_pushdown(duckdb_table_function, bool);
extern int duckdb_register_table_function(duckdb_connection, duckdb_table_function);
extern duckdb_logical_type duckdb_create_logical_type(int);
extern duckdb_logical_type duckdb_create_decimal_type(uint8_t, uint8_t);
extern duckdb_logical_type duckdb_create_list_type(duckdb_logical_type);
extern void duckdb_destroy_logical_type(duckdb_logical_type *);
extern duckdb_value duckdb_bind_get_parameter(duckdb_bind_info, idx_t);
extern uint64_t duckdb_get_uint64(duckdb_value);
extern void duckdb_destroy_value(duckdb_value *);
extern void duckdb_bind_add_result_column(duckdb_bind_info, const char *, duckdb_logical_type);
extern void duckdb_bind_set_bind_data(duckdb_bind_info, void *, void (*)(void *));
extern void duckdb_bind_set_cardinality(duckdb_bind_info, idx_t, bool);
extern void duckdb_bind_set_error(duckdb_bind_info, const char *);
extern void *duckdb_init_get_bind_data(duckdb_init_info);
extern idx_t duckdb_init_get_column_count(duckdb_init_info);
extern idx_t duckdb_init_get_column_index(duckdb_init_info, idx_t);
extern void duckdb_init_set_init_data(duckdb_init_info, void *, void (*)(void *));
extern void duckdb_init_set_max_threads(duckdb_init_info, idx_t);
extern void duckdb_init_set_error(duckdb_init_info, const char *);
extern void *duckdb_function_get_init_data(duckdb_function_info);
extern void *duckdb_function_get_local_init_data(duckdb_function_info);
extern void duckdb_function_set_error(duckdb_function_info, const char *);
extern duckdb_vector duckdb_data_chunk_get_vector(duckdb_data_chunk, idx_t);
extern void duckdb_data_chunk_set_size(duckdb_data_chunk, idx_t);
extern void *duckdb_vector_get_data(duckdb_vector);
extern uint64_t *duckdb_vector_get_validity(duckdb_vector);
extern void duckdb_vector_ensure_validity_writable(duckdb_vector);
extern duckdb_vector duckdb_list_vector_get_child(duckdb_vector);
extern int duckdb_list_vector_set_size(duckdb_vector, idx_t);
extern int duckdb_list_vector_reserve(duckdb_vector, idx_t);

#define VECTOR_ROWS 2048
#define TYPE_UBIGINT 9
#define TYPE_DECIMAL 19
#define TYPE_LIST 24

// The registry: a small open table from id to object. Ids are never used twice, so a
// stale or made-up id finds nothing, and each is of one kind.
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { uint64_t id; enum sk_object kind; void *object; } *registry;
static size_t registry_size;
static uint64_t registry_last;

uint64_t sk_publish(enum sk_object kind, void *object) {
	pthread_mutex_lock(&registry_mutex);
	size_t at = 0;
	while (at < registry_size && registry[at].id != 0) at++;
	if (at == registry_size) {
		size_t size = registry_size ? registry_size * 2 : 64;
		void *grown = realloc(registry, size * sizeof *registry);
		if (!grown) {
			pthread_mutex_unlock(&registry_mutex);
			return 0;
		}
		registry = grown;
		memset(registry + registry_size, 0, (size - registry_size) * sizeof *registry);
		registry_size = size;
	}
	uint64_t id = ++registry_last;
	registry[at].id = id;
	registry[at].kind = kind;
	registry[at].object = object;
	pthread_mutex_unlock(&registry_mutex);
	return id;
}

void sk_withdraw(uint64_t id) {
	pthread_mutex_lock(&registry_mutex);
	for (size_t i = 0; i < registry_size; i++) {
		if (registry[i].id == id) registry[i].id = 0;
	}
	pthread_mutex_unlock(&registry_mutex);
}

void *sk_find(enum sk_object kind, uint64_t id) {
	void *found = NULL;
	pthread_mutex_lock(&registry_mutex);
	for (size_t i = 0; id != 0 && i < registry_size; i++) {
		if (registry[i].id == id && registry[i].kind == kind) found = registry[i].object;
	}
	pthread_mutex_unlock(&registry_mutex);
	return found;
}

static duckdb_logical_type logical_type(const struct sk_type *t) {
	if (t->logical == TYPE_DECIMAL) return duckdb_create_decimal_type(t->precision, t->scale);
	if (t->logical != TYPE_LIST) return duckdb_create_logical_type(t->logical);
	duckdb_logical_type child = logical_type(t->child);
	duckdb_logical_type list = duckdb_create_list_type(child);
	duckdb_destroy_logical_type(&child);
	return list;
}

static void scan_bind(duckdb_bind_info info) {
	duckdb_value v = duckdb_bind_get_parameter(info, 0);
	uint64_t id = duckdb_get_uint64(v);
	duckdb_destroy_value(&v);
	struct sk_source *s = sk_find(SK_SOURCE, id);
	if (!s) {
		duckdb_bind_set_error(info, "skippr_scan: no such source");
		return;
	}
	for (int64_t i = 0; i < s->column_count; i++) {
		duckdb_logical_type t = logical_type(&s->types[i]);
		duckdb_bind_add_result_column(info, s->names[i], t);
		duckdb_destroy_logical_type(&t);
	}
	duckdb_bind_set_cardinality(info, s->row_count, true);
	duckdb_bind_set_bind_data(info, s, NULL);
}

// global_state is shared by the threads of one scan; next is the next piece to hand
// out.
struct global_state {
	struct sk_source *source;
	idx_t column_count;
	int64_t *columns; // projected columns, -1 for the row id
	atomic_llong next;
};

// local_state is a thread's place: its piece, and the rows of it already emitted.
struct local_state {
	int64_t piece, done;
};

static void free_global(void *p) {
	struct global_state *g = p;
	free(g->columns);
	free(g);
}

static void scan_init(duckdb_init_info info) {
	struct sk_source *s = duckdb_init_get_bind_data(info);
	struct global_state *g = calloc(1, sizeof *g);
	idx_t n = duckdb_init_get_column_count(info);
	int64_t *columns = calloc(n + 1, sizeof *columns);
	if (!g || !columns) {
		free(g);
		free(columns);
		duckdb_init_set_error(info, "skippr_scan: out of memory");
		return;
	}
	g->source = s;
	g->column_count = n;
	g->columns = columns;
	for (idx_t i = 0; i < n; i++) {
		idx_t c = duckdb_init_get_column_index(info, i);
		columns[i] = c >= (idx_t)s->column_count ? -1 : (int64_t)c;
	}
	duckdb_init_set_init_data(info, g, free_global);
	duckdb_init_set_max_threads(info, s->piece_count > 0 ? s->piece_count : 1);
}

static void scan_local_init(duckdb_init_info info) {
	struct local_state *l = calloc(1, sizeof *l);
	if (!l) {
		duckdb_init_set_error(info, "skippr_scan: out of memory");
		return;
	}
	l->piece = -1;
	duckdb_init_set_init_data(info, l, free);
}

// picked is a set of rows of an array: rows[i] for i < n, or start + i.
struct picked {
	const int64_t *rows;
	int64_t start, n;
};

static inline int64_t row_at(const struct picked *p, int64_t i) {
	return p->rows ? p->rows[i] : p->start + i;
}

static inline bool bit_at(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

static void set_null(uint64_t *mask, int64_t i) { mask[i >> 6] &= ~(UINT64_C(1) << (i & 63)); }

static void fill_validity(duckdb_vector v, const struct sk_array *a, const struct picked *p) {
	if (!a->validity || p->n == 0) return;
	duckdb_vector_ensure_validity_writable(v);
	uint64_t *mask = duckdb_vector_get_validity(v);
	int64_t first = p->start + a->offset;
	if (!p->rows && (first & 7) == 0) {
		memcpy(mask, a->validity + first / 8, (p->n + 7) / 8);
		return;
	}
	for (int64_t i = 0; i < p->n; i++) {
		if (!bit_at(a->validity, row_at(p, i) + a->offset)) set_null(mask, i);
	}
}

#define GATHER(T)                                                                              \
	for (int64_t i = 0; i < p->n; i++) {                                                   \
		memcpy(dst + i * sizeof(T), base + p->rows[i] * (int64_t)sizeof(T), sizeof(T)); \
	}

static void fill_fixed(uint8_t *dst, int width, const struct sk_array *a, const struct picked *p) {
	const uint8_t *base = a->data + a->offset * width;
	if (!p->rows) {
		memcpy(dst, base + p->start * width, p->n * width);
		return;
	}
	switch (width) {
	case 1: GATHER(uint8_t) break;
	case 2: GATHER(uint16_t) break;
	case 4: GATHER(uint32_t) break;
	case 8: GATHER(uint64_t) break;
	default:
		for (int64_t i = 0; i < p->n; i++) memcpy(dst + i * width, base + p->rows[i] * width, width);
	}
}

// fill_string writes a duckdb_string_t; long strings stay where they are.
static inline void fill_string(uint8_t *dst, const uint8_t *from, uint32_t length) {
	memcpy(dst, &length, 4);
	if (length <= 12) {
		memset(dst + 4, 0, 12);
		if (length) memcpy(dst + 4, from, length);
		return;
	}
	memcpy(dst + 4, from, 4);
	memcpy(dst + 8, &from, sizeof from);
}

static void fill_bytes(uint8_t *dst, const struct sk_array *a, const struct picked *p) {
	const int32_t *offsets = (const int32_t *)a->data + a->offset;
	for (int64_t i = 0; i < p->n; i++) {
		int64_t r = row_at(p, i);
		fill_string(dst + i * 16, a->bytes + offsets[r], offsets[r + 1] - offsets[r]);
	}
}

static void fill_bytes64(uint8_t *dst, const struct sk_array *a, const struct picked *p) {
	const int64_t *offsets = (const int64_t *)a->data + a->offset;
	for (int64_t i = 0; i < p->n; i++) {
		int64_t r = row_at(p, i);
		fill_string(dst + i * 16, a->bytes + offsets[r], (uint32_t)(offsets[r + 1] - offsets[r]));
	}
}

static void fill_uuid(uint8_t *dst, const struct sk_array *a, const struct picked *p) {
	const uint8_t *base = a->data + a->offset * 16;
	for (int64_t i = 0; i < p->n; i++) {
		uint64_t high, low;
		memcpy(&high, base + row_at(p, i) * 16, 8);
		memcpy(&low, base + row_at(p, i) * 16 + 8, 8);
		high = __builtin_bswap64(high) ^ (UINT64_C(1) << 63);
		low = __builtin_bswap64(low);
		memcpy(dst + i * 16, &low, 8);
		memcpy(dst + i * 16 + 8, &high, 8);
	}
}

static bool fill(duckdb_vector v, const struct sk_type *t, const struct sk_array *a, const struct picked *p);

// fill_list emits the chosen lists one after the other, so that the child vector has
// only their elements.
static bool fill_list(duckdb_vector v, const struct sk_type *t, const struct sk_array *a, const struct picked *p) {
	const int32_t *offsets = (const int32_t *)a->data + a->offset;
	uint64_t *entries = duckdb_vector_get_data(v);
	int64_t total = 0;
	for (int64_t i = 0; i < p->n; i++) {
		int64_t r = row_at(p, i);
		bool valid = !a->validity || bit_at(a->validity, r + a->offset);
		int64_t length = valid ? offsets[r + 1] - offsets[r] : 0;
		entries[2 * i] = total;
		entries[2 * i + 1] = length;
		total += length;
	}
	int64_t *rows = malloc((total + 1) * sizeof *rows);
	if (!rows || duckdb_list_vector_reserve(v, total) != 0 || duckdb_list_vector_set_size(v, total) != 0) {
		free(rows);
		return false;
	}
	for (int64_t i = 0, at = 0; i < p->n; i++) {
		for (uint64_t k = 0; k < entries[2 * i + 1]; k++) rows[at++] = offsets[row_at(p, i)] + (int64_t)k;
	}
	struct picked child = {rows, 0, total};
	bool ok = fill(duckdb_list_vector_get_child(v), t->child, a->child, &child);
	free(rows);
	return ok;
}

static bool fill(duckdb_vector v, const struct sk_type *t, const struct sk_array *a, const struct picked *p) {
	uint8_t *dst = duckdb_vector_get_data(v);
	if (t->kind == SK_NULL) {
		duckdb_vector_ensure_validity_writable(v);
		uint64_t *mask = duckdb_vector_get_validity(v);
		for (int64_t i = 0; i < p->n; i++) set_null(mask, i);
		return true;
	}
	if (p->n == 0) return true;
	fill_validity(v, a, p);
	switch (t->kind) {
	case SK_FIXED: fill_fixed(dst, t->width, a, p); break;
	case SK_BOOL:
		for (int64_t i = 0; i < p->n; i++) dst[i] = bit_at(a->data, row_at(p, i) + a->offset);
		break;
	case SK_BYTES: fill_bytes(dst, a, p); break;
	case SK_BYTES64: fill_bytes64(dst, a, p); break;
	case SK_DECIMAL:
		for (int64_t i = 0; i < p->n; i++) {
			memcpy(dst + i * t->width, a->data + (row_at(p, i) + a->offset) * 16, t->width);
		}
		break;
	case SK_UUID: fill_uuid(dst, a, p); break;
	case SK_LIST: return fill_list(v, t, a, p);
	}
	return true;
}

static void scan_next(duckdb_function_info info, duckdb_data_chunk out) {
	struct global_state *g = duckdb_function_get_init_data(info);
	struct local_state *l = duckdb_function_get_local_init_data(info);
	struct sk_source *s = g->source;
	while (l->piece < 0 || l->done >= s->pieces[l->piece].n) {
		l->piece = atomic_fetch_add(&g->next, 1);
		l->done = 0;
		if (l->piece >= s->piece_count) {
			l->piece = -1;
			duckdb_data_chunk_set_size(out, 0);
			return;
		}
	}
	struct sk_piece *piece = &s->pieces[l->piece];
	struct picked p = {NULL, piece->start + l->done, piece->n - l->done};
	if (p.n > VECTOR_ROWS) p.n = VECTOR_ROWS;
	int64_t rows[VECTOR_ROWS];
	if (piece->rows) {
		for (int64_t i = 0; i < p.n; i++) rows[i] = piece->rows[l->done + i];
		p.rows = rows;
	}
	for (idx_t i = 0; i < g->column_count; i++) {
		int64_t c = g->columns[i];
		if (c < 0) continue;
		if (!fill(duckdb_data_chunk_get_vector(out, i), &s->types[c], &piece->columns[c], &p)) {
			duckdb_function_set_error(info, "skippr_scan: out of memory");
			return;
		}
	}
	l->done += p.n;
	duckdb_data_chunk_set_size(out, p.n);
}

int sk_register(duckdb_connection connection) {
	duckdb_table_function f = duckdb_create_table_function();
	duckdb_table_function_set_name(f, "skippr_scan");
	duckdb_logical_type t = duckdb_create_logical_type(TYPE_UBIGINT);
	duckdb_table_function_add_parameter(f, t);
	duckdb_destroy_logical_type(&t);
	duckdb_table_function_set_bind(f, scan_bind);
	duckdb_table_function_set_init(f, scan_init);
	duckdb_table_function_set_local_init(f, scan_local_init);
	duckdb_table_function_set_function(f, scan_next);
	duckdb_table_function_supports_projection_pushdown(f, true);
	int state = duckdb_register_table_function(connection, f);
	duckdb_destroy_table_function(&f);
	if (state == 0) state = sk_register_keys(connection);
	return state != 0 ? state : sk_register_floats(connection);
}
