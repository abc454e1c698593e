package env

// The attribute keys of log lines. A key means the same on every line.
const (
	KeyPipeline   = "pipeline"
	KeyTable      = "table"
	KeySeq        = "seq"
	KeyEpoch      = "epoch"
	KeyLSN        = "lsn"
	KeySnapshot   = "snapshot"
	KeyCompaction = "compaction"
	KeyRows       = "rows"
	KeyBytes      = "bytes"
	KeyCount      = "count"
	KeyElapsed    = "elapsed"
	KeyError      = "error"
	KeyReason     = "reason"
	KeyPath       = "path"
	KeySlot       = "slot"
	KeyPosition   = "position"
	KeyAttempt    = "attempt"
)
