package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/wal/env"
)

// metrics is what /metrics shows: read from the parts when it is asked for.
type metrics struct {
	registry   *prometheus.Registry
	server     *pgwire.Server
	supervisor *ingest.Supervisor
	catalog    *catalog.Catalog
	pool       *duckdb.Pool
	clock      env.Clock
	// leads says whether this node does; nil: the log is on disk.
	leads func() bool
}

var (
	pipelineLabel = []string{"pipeline"}
	tableLabels   = []string{"pipeline", "table"}
	opLabels      = []string{"pipeline", "op"}
)

// The metrics: name, help, labels.
var (
	descSessions      = prometheus.NewDesc("skippr_sessions", "Client sessions now.", nil, nil)
	descConnections   = prometheus.NewDesc("skippr_connections_total", "Client connections accepted.", nil, nil)
	descRejected      = prometheus.NewDesc("skippr_connections_rejected_total", "Client connections that did not become a session.", nil, nil)
	descQueries       = prometheus.NewDesc("skippr_queries_total", "Statements executed.", nil, nil)
	descQueryRows     = prometheus.NewDesc("skippr_query_rows_total", "Rows sent to clients.", nil, nil)
	descQueryBytes    = prometheus.NewDesc("skippr_query_bytes_total", "Bytes sent to clients.", nil, nil)
	descErrors        = prometheus.NewDesc("skippr_errors_total", "Errors sent to clients, by SQLSTATE class.", []string{"class"}, nil)
	descEngineQueries = prometheus.NewDesc("skippr_engine_queries_total", "Plans run by the engine.", nil, nil)
	descEngineFailed  = prometheus.NewDesc("skippr_engine_failures_total", "Plans that ended in an error.", nil, nil)
	descEngineActive  = prometheus.NewDesc("skippr_engine_active", "Plans that run now.", nil, nil)
	descEngineWaiting = prometheus.NewDesc("skippr_engine_waiting", "Plans that wait for their turn.", nil, nil)
	descEngineDeaths  = prometheus.NewDesc("skippr_engine_restarts_total", "Times the engine's worker was started again.", nil, nil)
	descChanges       = prometheus.NewDesc("skippr_changes_total", "Changes taken in from the stream.", opLabels, nil)
	descCopied        = prometheus.NewDesc("skippr_copied_rows_total", "Rows taken in by initial copies.", pipelineLabel, nil)
	descLogBytes      = prometheus.NewDesc("skippr_log_bytes_total", "Bytes of changes written to the log.", pipelineLabel, nil)
	descLogFull       = prometheus.NewDesc("skippr_log_full", "1 while the log has no room and the source waits.", pipelineLabel, nil)
	descLogCommits    = prometheus.NewDesc("skippr_log_commits_total", "Durable writes of the log since it was opened.", pipelineLabel, nil)
	descLogEpoch      = prometheus.NewDesc("skippr_log_epoch", "Epoch of the writer of a log on an object store.", pipelineLabel, nil)
	descLeader        = prometheus.NewDesc("skippr_leader", "1 while this node leads, 0 while it stands by (log on an object store).", nil, nil)
	descSourceErrors  = prometheus.NewDesc("skippr_source_errors_total", "Sessions with the source that ended in an error.", pipelineLabel, nil)
	descSourceLag     = prometheus.NewDesc("skippr_source_lag_bytes", "Bytes from the acknowledged position to the source's newest.", pipelineLabel, nil)
	descSourceLagTime = prometheus.NewDesc("skippr_source_lag_seconds", "Age of the oldest committed change that is not durable here.", pipelineLabel, nil)
	descRetained      = prometheus.NewDesc("skippr_source_retained_bytes", "Bytes of log that the source keeps for us.", pipelineLabel, nil)
	descUp            = prometheus.NewDesc("skippr_pipeline_running", "1 while the pipeline copies or streams.", pipelineLabel, nil)
	descStopped       = prometheus.NewDesc("skippr_tables_stopped", "Tables that cannot go on.", pipelineLabel, nil)
	descLiveRows      = prometheus.NewDesc("skippr_live_rows", "Changes in the log that are not in the lake.", tableLabels, nil)
	descLiveBytes     = prometheus.NewDesc("skippr_live_bytes", "Bytes in the log that are not in the lake.", tableLabels, nil)
	descLiveAge       = prometheus.NewDesc("skippr_live_age_seconds", "Age of the oldest change that is not in the lake.", tableLabels, nil)
	descLakeRows      = prometheus.NewDesc("skippr_lake_rows", "Rows in the lake.", tableLabels, nil)
	descLakeFiles     = prometheus.NewDesc("skippr_lake_files", "Data files in the lake.", tableLabels, nil)
)

// newMetrics registers the metrics; the parts are set before the first scrape.
func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Describe implements prometheus.Collector: the metrics are described by collecting.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if m.leads != nil {
		gauge(descLeader, flag01(m.leads()))
	}
	if m.server != nil {
		s := m.server.Stats()
		gauge(descSessions, float64(s.Sessions))
		count(descConnections, s.Connections)
		count(descRejected, s.Rejected)
		count(descQueries, s.Queries)
		count(descQueryRows, s.Rows)
		count(descQueryBytes, s.Bytes)
		for class, n := range s.Errors {
			count(descErrors, n, class)
		}
	}
	if m.pool != nil {
		s := m.pool.Stats()
		count(descEngineQueries, s.Queries)
		count(descEngineFailed, s.Failures)
		gauge(descEngineActive, float64(s.Active))
		gauge(descEngineWaiting, float64(s.Waiting))
		count(descEngineDeaths, s.Restarts)
	}
	if m.catalog != nil && m.supervisor != nil {
		m.collectPipelines(count, gauge)
	}
}

func (m *metrics) collectPipelines(
	count func(*prometheus.Desc, int64, ...string), gauge func(*prometheus.Desc, float64, ...string),
) {
	snap := m.catalog.Snapshot()
	defer snap.Close()
	for _, p := range snap.Pipelines() {
		if st, ok := m.supervisor.Status(p.Name); ok {
			count(descChanges, st.Metrics.Inserts, p.Name, "insert")
			count(descChanges, st.Metrics.Updates, p.Name, "update")
			count(descChanges, st.Metrics.Deletes, p.Name, "delete")
			count(descCopied, st.Metrics.CopiedRows, p.Name)
			count(descLogBytes, st.Metrics.LogBytes, p.Name)
			count(descLogCommits, int64(st.LogCommits), p.Name) // fits
			if st.LogEpoch != 0 {
				gauge(descLogEpoch, float64(st.LogEpoch), p.Name)
			}
			count(descSourceErrors, st.Metrics.SourceErrors, p.Name)
			gauge(descSourceLag, float64(st.LagBytes), p.Name)
			gauge(descSourceLagTime, st.LagSeconds, p.Name)
			gauge(descRetained, float64(st.RetainedBytes), p.Name)
			gauge(descLogFull, flag01(st.Throttled), p.Name)
			running := st.State == string(catalog.PipelineRunning) || st.State == string(catalog.PipelineBackfill)
			gauge(descUp, flag01(running), p.Name)
		}
		stopped := 0
		for _, t := range snap.Tables(p.ID) {
			if t.State == catalog.TableStopped {
				stopped++
			}
			m.collectTable(snap, p.Name, t, gauge)
		}
		gauge(descStopped, float64(stopped), p.Name)
	}
}

func flag01(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

func (m *metrics) collectTable(snap *catalog.Snapshot, pipeline string, t *catalog.Table, gauge func(*prometheus.Desc, float64, ...string)) {
	live, err := snap.LiveSlices(t.ID)
	if err != nil {
		return // the next scrape tries again; the catalog logs what is wrong with it
	}
	name := t.Schema + "." + t.Name
	var rows, bytes int64
	now := m.clock.Now()
	oldest := now
	for _, s := range live {
		rows += int64(s.Rows)
		bytes += int64(s.Length)
		if s.PublishedAt.Before(oldest) {
			oldest = s.PublishedAt
		}
	}
	gauge(descLiveRows, float64(rows), pipeline, name)
	gauge(descLiveBytes, float64(bytes), pipeline, name)
	gauge(descLiveAge, max(0, now.Sub(oldest)).Seconds(), pipeline, name)
	lake := snap.LakeState(t.ID)
	gauge(descLakeRows, float64(lake.Rows), pipeline, name)
	gauge(descLakeFiles, float64(lake.Files), pipeline, name)
}

// scrapeTimeout bounds how long a scrape may take.
const scrapeTimeout = 10 * time.Second
