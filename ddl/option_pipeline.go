package ddl

import "time"

// changeRule says when another value of an option counts.
type changeRule int

const (
	// inNewSession is of options for which a running pipeline begins a new session.
	inNewSession changeRule = iota
	// whileRunning is of options that are looked at while a pipeline runs.
	whileRunning
	// atCreation is of options that cannot be changed once a pipeline exists.
	atCreation
)

// String is how docs/postgres-source.md says it.
func (r changeRule) String() string {
	switch r {
	case whileRunning:
		return "at once"
	case atCreation:
		return "never"
	}
	return "in a new session"
}

// pipelineOption is an option of a pipeline, and when another value of it counts.
type pipelineOption struct {
	change changeRule
	OptionDoc
}

// pipelineOptions are all of WITH and of ALTER PIPELINE … SET. docs/postgres-source.md
// has them in a table, which a test compares.
var pipelineOptions = []pipelineOption{
	{atCreation, OptionDoc{"copy_data", "boolean", "true", "copy the rows that exist, not only the changes from now on", checkBool}},
	{atCreation, OptionDoc{"start", "boolean", "true", "enable the pipeline at once", checkBool}},
	{atCreation, OptionDoc{"dry_run", "boolean", "false", "change nothing, and return what would be made and what is in the way", checkBool}},
	{atCreation, OptionDoc{"slot_name", "name", "skippr_<pipeline>", "replication slot at the source", checkSlotName}},
	{atCreation, OptionDoc{"publication", "name", "skippr_<pipeline>", "publication at the source", checkName}},
	{inNewSession, OptionDoc{"backfill_parallel", "integer", "2", "connections that copy existing rows, 1 to 16", checkInt(1, 16)}},
	{whileRunning, OptionDoc{"backfill_rows_per_second", "integer", "0", "most rows that are copied in a second; 0 is unlimited", checkInt(0, 1<<40)}},
	{inNewSession, OptionDoc{"backfill_chunk_pages", "integer", "8192", "pages of a table that are copied at a time, the unit of a resumed copy", checkInt(1, 1<<31)}},
	{inNewSession, OptionDoc{"heartbeat_interval", "interval", "10 s", "how often, at most, a message is written into the source's log while only others write there; 0 is never", checkDuration(0, time.Hour)}},
	{inNewSession, OptionDoc{"failover", "boolean", "true", "have the source (17 or newer) carry the slot over to its standbys", checkBool}},
	{inNewSession, OptionDoc{"streaming", "boolean", "true", "have the source (14 or newer) send large transactions before they end; they wait on our disk for their commit", checkBool}},
	{inNewSession, OptionDoc{"spill_max_bytes", "integer", "68719476736", "most disk that such transactions may take together; beyond, the source keeps them until they end", checkInt(1<<20, 1<<50)}},
	{inNewSession, OptionDoc{"freshness", "interval", "0", "longest time changes are collected before they are made durable and visible; 0 is as soon as possible", checkDuration(0, time.Hour)}},
	{whileRunning, OptionDoc{"commit_interval", "interval", "1 min", "how often changes go from the log to the lake", checkDuration(100*time.Millisecond, 24*time.Hour)}},
	{whileRunning, OptionDoc{"commit_bytes", "integer", "67108864", "log bytes of a table that start a lake commit before commit_interval", checkInt(1, 1<<40)}},
	{atCreation, OptionDoc{"wal_storage", "enum", "disk", "where the log is kept", checkEnum("disk")}},
	{inNewSession, OptionDoc{"on_error", "enum", "dead_letter", "what a row that cannot be taken in becomes: a dead letter, or its table stops", checkEnum("dead_letter", "stop")}},
	{inNewSession, OptionDoc{"generated_columns", "enum", "compute", "columns that the source computes and does not send: have it compute them, or skip them; counts for tables that are added or copied anew", checkEnum("compute", "skip")}},
	{inNewSession, OptionDoc{"out_of_range", "enum", "dead_letter", "what a value becomes that the type here does not hold; text keeps such columns as exact text", checkEnum("dead_letter", "text", "null", "clamp")}},
	{inNewSession, OptionDoc{"max_dead_letters", "integer", "10000", "open dead letters of a table; with more it stops", checkInt(0, 1_000_000)}},
	{inNewSession, OptionDoc{"auto_refresh", "boolean", "true", "take tables in that come at the source and that FOR means", checkBool}},
	{whileRunning, OptionDoc{"on_recreate", "enum", "resync", "what becomes of a table that is dropped and made anew at the source: a copy of the new one, or it stops", checkEnum("resync", "stop")}},
	{whileRunning, OptionDoc{"on_partition", "enum", "resync", "what becomes of a table when partitions are attached with rows or detached: a new copy, or it keeps its rows", checkEnum("resync", "keep")}},
	{whileRunning, OptionDoc{"on_schema_change", "enum", "resync", "what becomes of a table whose columns or key are changed at the source so that the changes of rows alone do not say what older rows have: a new copy, or it stops", checkEnum("resync", "stop")}},
	{whileRunning, OptionDoc{"on_type_change", "enum", "resync", "what becomes of a table when a label of an enum or an attribute of a composite type in it is changed at the source: a new copy, or it stops", checkEnum("resync", "stop")}},
	{inNewSession, OptionDoc{"on_truncate", "enum", "apply", "what TRUNCATE at the source does", checkEnum("apply")}},
	{atCreation, OptionDoc{"format_version", "integer", "2", "Iceberg format version", checkEnum("2")}},
}

// pipelineDocs are the pipelineOptions without when they count.
var pipelineDocs = docsOf(pipelineOptions)

func docsOf(options []pipelineOption) []OptionDoc {
	out := make([]OptionDoc, len(options))
	for i, o := range options {
		out[i] = o.OptionDoc
	}
	return out
}

// changeOf is when another value of a pipeline's option counts.
func changeOf(name string) changeRule {
	for _, o := range pipelineOptions {
		if o.Name == name {
			return o.change
		}
	}
	return inNewSession
}
