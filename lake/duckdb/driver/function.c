#include "scan.h"

#include "_cgo_export.h"

extern duckdb_scalar_function duckdb_create_scalar_function(void);
extern void duckdb_destroy_scalar_function(duckdb_scalar_function *);
extern void duckdb_scalar_function_set_name(duckdb_scalar_function, const char *);
extern void duckdb_scalar_function_add_parameter(duckdb_scalar_function, duckdb_logical_type);
extern void duckdb_scalar_function_set_return_type(duckdb_scalar_function, duckdb_logical_type);
extern void duckdb_scalar_function_set_special_handling(duckdb_scalar_function);
extern void duckdb_scalar_function_set_extra_info(duckdb_scalar_function, void *, void (*)(void *));
extern void duckdb_scalar_function_set_function(duckdb_scalar_function,
                                                void (*)(duckdb_function_info, duckdb_data_chunk, duckdb_vector));
extern void duckdb_scalar_function_set_error(duckdb_function_info, const char *);
extern void *duckdb_scalar_function_get_extra_info(duckdb_function_info);
extern int duckdb_register_scalar_function(duckdb_connection, duckdb_scalar_function);
extern duckdb_logical_type duckdb_create_logical_type(int);
extern void duckdb_destroy_logical_type(duckdb_logical_type *);
extern duckdb_vector duckdb_data_chunk_get_vector(duckdb_data_chunk, idx_t);
extern idx_t duckdb_data_chunk_get_size(duckdb_data_chunk);
extern void *duckdb_vector_get_data(duckdb_vector);
extern uint64_t *duckdb_vector_get_validity(duckdb_vector);
extern void duckdb_vector_ensure_validity_writable(duckdb_vector);
extern void duckdb_vector_assign_string_element_len(duckdb_vector, idx_t, const char *, idx_t);

// go_rows hands a chunk to Go: where its columns are, and what takes the results.
static void go_rows(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	uintptr_t at = (uintptr_t)duckdb_scalar_function_get_extra_info(info);
	struct sk_call call = {.info = info, .out = out, .rows = (int64_t)duckdb_data_chunk_get_size(in)};
	if (call.rows == 0) return;
	int columns = skFunctionParams(at);
	for (int i = 0; i < columns; i++) {
		duckdb_vector v = duckdb_data_chunk_get_vector(in, (idx_t)i);
		call.data[i] = duckdb_vector_get_data(v);
		call.validity[i] = duckdb_vector_get_validity(v);
	}
	duckdb_vector_ensure_validity_writable(out);
	call.result = duckdb_vector_get_data(out);
	call.result_validity = duckdb_vector_get_validity(out);
	skCallFunction(at, &call);
}

void sk_put_texts(duckdb_vector out, const char *bytes, const int64_t *ends, const uint64_t *validity, int64_t n) {
	int64_t start = 0;
	for (int64_t i = 0; i < n; i++) {
		if (validity[i >> 6] >> (i & 63) & 1) {
			duckdb_vector_assign_string_element_len(out, (idx_t)i, bytes + start, (idx_t)(ends[i] - start));
		}
		start = ends[i];
	}
}

void sk_function_failed(duckdb_function_info info, const char *message) { duckdb_scalar_function_set_error(info, message); }

int sk_register_function(duckdb_connection connection, const char *name, const int *types, int params, int nulls,
                         uintptr_t at) {
	duckdb_scalar_function f = duckdb_create_scalar_function();
	duckdb_scalar_function_set_name(f, name);
	for (int i = 0; i <= params; i++) {
		duckdb_logical_type t = duckdb_create_logical_type(types[i]);
		if (i < params) {
			duckdb_scalar_function_add_parameter(f, t);
		} else {
			duckdb_scalar_function_set_return_type(f, t);
		}
		duckdb_destroy_logical_type(&t);
	}
	if (nulls) duckdb_scalar_function_set_special_handling(f);
	duckdb_scalar_function_set_extra_info(f, (void *)at, NULL);
	duckdb_scalar_function_set_function(f, go_rows);
	int state = duckdb_register_scalar_function(connection, f);
	duckdb_destroy_scalar_function(&f);
	return state;
}
