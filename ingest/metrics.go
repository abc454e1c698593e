package ingest

// Metrics are counters of one pipeline since the server started. A copy; the fields
// are sums, never reset.
type Metrics struct {
	Groups       int64 // groups appended from the stream
	Transactions int64
	Inserts      int64
	Updates      int64
	Deletes      int64
	Truncates    int64
	StreamRows   int64
	CopiedRows   int64 // rows of initial copies
	CopiedChunks int64
	LogBytes     int64 // bytes of slices in the log
	TableStops   int64
	SourceErrors int64 // sessions that ended with an error
	Throttles    int64 // times that a full log stopped the source
}

// TableMetrics are counters of one table since the server started.
type TableMetrics struct {
	Inserts, Updates, Deletes, Truncates int64
	CopiedRows, LogBytes                 int64
}
