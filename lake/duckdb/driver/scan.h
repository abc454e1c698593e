// skippr_scan(id), Arrow batches as a DuckDB table function, and skippr_stranger(id,
// key), whether a set lacks a key; in C so that no row and no chunk crosses into Go.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The ABI-stable part of duckdb.h that the scan uses (C API v1.2 and later).
typedef uint64_t idx_t;
typedef struct _sk_handle *duckdb_connection;
typedef struct _sk_handle *duckdb_table_function;
typedef struct _sk_handle *duckdb_scalar_function;
typedef struct _sk_handle *duckdb_bind_info;
typedef struct _sk_handle *duckdb_init_info;
typedef struct _sk_handle *duckdb_function_info;
typedef struct _sk_handle *duckdb_data_chunk;
typedef struct _sk_handle *duckdb_vector;
typedef struct _sk_handle *duckdb_logical_type;
typedef struct _sk_handle *duckdb_value;

// How the bytes of a column become a vector.
enum sk_kind {
	SK_FIXED = 0,   // width bytes a value, same on both sides
	SK_BOOL = 1,    // bits to bytes
	SK_BYTES = 2,   // int32 offsets to duckdb_string_t
	SK_BYTES64 = 3, // int64 offsets to duckdb_string_t
	SK_DECIMAL = 4, // 16 bytes to width bytes
	SK_UUID = 5,    // 16 big-endian bytes to a hugeint with the top bit flipped
	SK_LIST = 6,    // int32 offsets into child
	SK_NULL = 7,    // every value is null
};

// sk_type is a column's type; child is set for a list.
struct sk_type {
	int kind;
	int width;
	int logical; // DUCKDB_TYPE_*
	uint8_t precision, scale;
	struct sk_type *child;
};

// sk_array is one Arrow array; its memory belongs to the owner of the block.
struct sk_array {
	const uint8_t *validity; // bitmap, NULL when no value is null
	const uint8_t *data;     // values, or offsets
	const uint8_t *bytes;    // of strings
	int64_t offset;
	struct sk_array *child;
};

// sk_piece is a run of rows of one record: rows[0..n) when rows is set, else
// start..start+n.
struct sk_piece {
	struct sk_array *columns;
	const int32_t *rows;
	int64_t start, n;
};

struct sk_source {
	int64_t column_count;
	char **names;
	struct sk_type *types;
	int64_t piece_count;
	struct sk_piece *pieces;
	int64_t row_count;
};

// sk_keys is a set of integers. If width is not 0, bits has a bit for each of the
// width integers from least on. Else bits, by a hash, says of most strangers that they
// are none of the set, and slots holds its members by open addressing, SK_NO_KEY in
// those that are free.
struct sk_keys {
	int64_t least;
	uint64_t width;
	uint64_t *bits;
	int64_t *slots;
	int bit_shift, slot_shift; // 64 less the logarithms of their sizes
	bool has_no_key;           // SK_NO_KEY itself is a member
};

#define SK_NO_KEY INT64_MIN

// sk_keys_make makes a set of n keys, NULL when memory is out; sk_keys_free frees it.
struct sk_keys *sk_keys_make(const int64_t *keys, int64_t n);
void sk_keys_free(struct sk_keys *set);

enum sk_object { SK_SOURCE = 1, SK_KEYS = 2 };

// sk_register registers the functions in the connection's database; 0 is success.
int sk_register(duckdb_connection connection);
int sk_register_keys(duckdb_connection connection);
int sk_register_floats(duckdb_connection connection);
// sk_publish gives an object an id that the functions take; 0 when memory is out. The
// object must live until sk_withdraw(id) and the end of all queries that bound it.
uint64_t sk_publish(enum sk_object kind, void *object);
void sk_withdraw(uint64_t id);
void *sk_find(enum sk_object kind, uint64_t id);

// SK_PARAMS_MAX is how many arguments a function in Go may take.
#define SK_PARAMS_MAX 8

// sk_call is a chunk of rows for a function in Go. A validity is a bitmap, NULL when no
// value is null.
struct sk_call {
	duckdb_function_info info;
	duckdb_vector out;
	int64_t rows;
	void *data[SK_PARAMS_MAX];
	uint64_t *validity[SK_PARAMS_MAX];
	void *result;
	uint64_t *result_validity;
};

// sk_register_function registers the function in Go with number at: types are those of
// its parameters, then of its result; 0 is success.
int sk_register_function(duckdb_connection connection, const char *name, const int *types, int params, int nulls,
                         uintptr_t at);
// sk_put_texts sets the valid ones of n strings, which end at ends in bytes.
void sk_put_texts(duckdb_vector out, const char *bytes, const int64_t *ends, const uint64_t *validity, int64_t n);
void sk_function_failed(duckdb_function_info info, const char *message);
