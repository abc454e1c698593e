package syscat

// Some functions of PostgreSQL make the rows of a view of its own; here the view makes
// those of the function. They are found by their name with parentheses, and shown
// nowhere.

// viewFunctions are the functions without arguments that give a view's rows.
var viewFunctions = map[string]string{
	"pg_available_extensions": "pg_available_extensions", "pg_config": "pg_config", "pg_cursor": "pg_cursors",
	"pg_get_backend_memory_contexts": "pg_backend_memory_contexts", "pg_hba_file_rules": "pg_hba_file_rules",
	"pg_ident_file_mappings": "pg_ident_file_mappings", "pg_lock_status": "pg_locks",
	"pg_prepared_statement": "pg_prepared_statements", "pg_show_all_file_settings": "pg_file_settings",
	"pg_show_all_settings": "pg_settings", "pg_timezone_abbrevs": "pg_timezone_abbrevs", "pg_timezone_names": "pg_timezone_names",
}

// functionShapes are the shapes of functions without arguments, by key.
func functionShapes(shapes map[string]*shape) map[string]*shape {
	out := map[string]*shape{}
	add := func(name string, s shape) {
		s.Schema, s.Name, s.OID, s.kind = "pg_catalog", name+"()", 0, "f"
		out[s.Schema+"."+s.Name] = &s
	}
	for name, view := range viewFunctions {
		add(name, *shapes["pg_catalog."+view])
	}
	keywords := shape{own: true}
	keywords.Columns = cols("word", oidText, "catcode", uint32(18), "barelabel", oidBool, "catdesc", oidText, "baredesc", oidText)
	add("pg_get_keywords", keywords)
	definitions := shape{own: true}
	definitions.Columns = cols("view", oidOID, "definition", oidText, "pretty", oidText)
	add("view_definitions", definitions)
	indexes := shape{own: true}
	indexes.Columns = cols("index", oidOID, "definition", oidText, "short", oidText)
	add("index_definitions", indexes)
	tokens := shape{own: true}
	tokens.Columns = cols("tokid", oidInt4, "alias", oidText, "description", oidText)
	add("ts_token_type", tokens)
	versions := *shapes["pg_catalog.pg_available_extension_versions"]
	versions.Columns = append(versions.Columns[:2:2], versions.Columns[3:]...) // without "installed"
	add("pg_available_extension_versions", versions)
	return out
}
