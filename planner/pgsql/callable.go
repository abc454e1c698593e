package pgsql

import (
	"slices"
	"strings"
)

// specials are the functions of specialCall that PostgreSQL lists in pg_proc.
var specials = strings.Fields(`array_to_json concat concat_ws current_schema current_schemas current_setting date_part extract format json_agg quote_literal quote_nullable json_object_agg jsonb_object_agg json_populate_record jsonb_populate_record json_populate_recordset jsonb_populate_recordset json_extract_path json_extract_path_text jsonb_extract_path jsonb_extract_path_text
	json_build_array json_build_object jsonb_agg jsonb_build_array jsonb_build_object like_escape mode num_nonnulls num_nulls
	currval lastval nextval overlay percentile_cont percentile_disc pg_cancel_backend pg_listening_channels pg_reload_conf pg_sleep pg_terminate_backend pg_typeof row_to_json set_config setval
	similar_escape similar_to_escape to_char to_json to_jsonb to_regoperator to_regprocedure`)

// Callable reports whether statements may call a built-in function of this name.
// Functions that an Env adds are not counted.
func Callable(name string) bool {
	_, effect := effectCalls[name]
	return effect || len(builtinIndex()[name]) > 0 || slices.Contains(specials, name)
}
