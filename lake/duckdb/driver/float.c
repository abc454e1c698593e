// Arithmetic of doubles whose overflow, underflow and division by zero are errors, with
// the SQLSTATE of PostgreSQL; the engine's own gives infinities and zeros.
#include "scan.h"

#include <math.h>

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
extern uint64_t *duckdb_vector_get_validity(duckdb_vector);
extern void duckdb_vector_ensure_validity_writable(duckdb_vector);

#define TYPE_FLOAT 10
#define TYPE_DOUBLE 11

static const char overflow[] = "22003: value out of range: overflow";
static const char underflow[] = "22003: value out of range: underflow";
static const char by_zero[] = "22012: division by zero";

// CHECKED makes the function of a chunk: expression computes r of a and b, and problem
// says what is wrong with it, or NULL.
#define CHECKED(name, type, expression, problem)                                                   \
	static void name(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {         \
		idx_t n = duckdb_data_chunk_get_size(in);                                                  \
		duckdb_vector x = duckdb_data_chunk_get_vector(in, 0), y = duckdb_data_chunk_get_vector(in, 1); \
		const type *xs = duckdb_vector_get_data(x), *ys = duckdb_vector_get_data(y);               \
		type *result = duckdb_vector_get_data(out);                                                \
		const uint64_t *xv = duckdb_vector_get_validity(x), *yv = duckdb_vector_get_validity(y);   \
		uint64_t *valid = NULL;                                                                    \
		if (xv || yv) {                                                                            \
			duckdb_vector_ensure_validity_writable(out);                                           \
			valid = duckdb_vector_get_validity(out);                                               \
		}                                                                                          \
		for (idx_t i = 0; i < n; i++) {                                                            \
			if ((xv && !(xv[i >> 6] >> (i & 63) & 1)) || (yv && !(yv[i >> 6] >> (i & 63) & 1))) {  \
				valid[i >> 6] &= ~(UINT64_C(1) << (i & 63));                                       \
				continue;                                                                          \
			}                                                                                      \
			type a = xs[i], b = ys[i], r = expression;                                             \
			result[i] = r;                                                                         \
			const char *wrong = problem;                                                           \
			if (wrong) {                                                                           \
				duckdb_scalar_function_set_error(info, wrong);                                     \
				return;                                                                            \
			}                                                                                      \
		}                                                                                          \
	}

#define SUM_PROBLEM (isinf(r) && !isinf(a) && !isinf(b) ? overflow : NULL)
#define PRODUCT_PROBLEM \
	(isinf(r) && !isinf(a) && !isinf(b) ? overflow : r == 0 && a != 0 && b != 0 ? underflow : NULL)
#define QUOTIENT_PROBLEM                                       \
	(b == 0 && !isnan(a)               ? by_zero               \
	 : isinf(r) && !isinf(a)           ? overflow              \
	 : r == 0 && a != 0 && !isinf(b)   ? underflow             \
	                                   : NULL)

CHECKED(add_double, double, a + b, SUM_PROBLEM)
CHECKED(sub_double, double, a - b, SUM_PROBLEM)
CHECKED(mul_double, double, a * b, PRODUCT_PROBLEM)
CHECKED(div_double, double, a / b, QUOTIENT_PROBLEM)
CHECKED(add_float, float, a + b, SUM_PROBLEM)
CHECKED(sub_float, float, a - b, SUM_PROBLEM)
CHECKED(mul_float, float, a * b, PRODUCT_PROBLEM)
CHECKED(div_float, float, a / b, QUOTIENT_PROBLEM)

int sk_register_floats(duckdb_connection connection) {
	static const struct {
		const char *name;
		int type;
		void (*rows)(duckdb_function_info, duckdb_data_chunk, duckdb_vector);
	} list[] = {
	    {"skippr_f8_add", TYPE_DOUBLE, add_double}, {"skippr_f8_sub", TYPE_DOUBLE, sub_double},
	    {"skippr_f8_mul", TYPE_DOUBLE, mul_double}, {"skippr_f8_div", TYPE_DOUBLE, div_double},
	    {"skippr_f4_add", TYPE_FLOAT, add_float},   {"skippr_f4_sub", TYPE_FLOAT, sub_float},
	    {"skippr_f4_mul", TYPE_FLOAT, mul_float},   {"skippr_f4_div", TYPE_FLOAT, div_float},
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		duckdb_scalar_function f = duckdb_create_scalar_function();
		duckdb_scalar_function_set_name(f, list[i].name);
		duckdb_logical_type t = duckdb_create_logical_type(list[i].type);
		duckdb_scalar_function_add_parameter(f, t);
		duckdb_scalar_function_add_parameter(f, t);
		duckdb_scalar_function_set_return_type(f, t);
		duckdb_destroy_logical_type(&t);
		duckdb_scalar_function_set_function(f, list[i].rows);
		int state = duckdb_register_scalar_function(connection, f);
		duckdb_destroy_scalar_function(&f);
		if (state != 0) return state;
	}
	return 0;
}
