package main

import (
	"context"
	"os"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgfunc"
)

// runEngineWorker is the query engine's process, started by the server.
func runEngineWorker(ctx context.Context, _ []string) error {
	cfg, err := duckdb.ReadWorkerConfig(os.Stdin)
	if err != nil {
		return err
	}
	cfg.Ready, cfg.Functions = os.Stdout, pgfunc.Functions()
	return duckdb.ServeWorker(ctx, cfg, rowEncoder)
}

// rowEncoder makes the encoder of a query's rows out of the plan's description.
func rowEncoder(o duckdb.Output, types []vector.Type) (duckdb.RowEncoder, error) {
	spec := encode.Spec{
		Kind: encode.Kind(o.Kind),
		Copy: encode.CopyOptions{
			Delimiter: o.Copy.Delimiter, Quote: o.Copy.Quote, Escape: o.Copy.Escape,
			Null: o.Copy.Null, Header: o.Copy.Header, ForceQuote: o.Copy.ForceQuote,
		},
		Format: encode.Format{
			TimeZone: o.Format.TimeZone, DateStyle: o.Format.DateStyle, IntervalStyle: o.Format.IntervalStyle,
			ByteaOutput: o.Format.ByteaOutput, ExtraFloatDigits: o.Format.ExtraFloatDigits,
		},
	}
	for _, c := range o.Columns {
		spec.Columns = append(spec.Columns, encode.Column{Name: c.Name, TypeOID: c.TypeOID, TypMod: c.TypMod, Format: c.Format, Record: c.Record})
	}
	encoder, err := encode.New(spec, types)
	if err != nil {
		return nil, planner.FromWorker(err)
	}
	return workerEncoder{encoder}, nil
}

// workerEncoder is an encoder whose errors reach the server whole.
type workerEncoder struct{ *encode.Encoder }

// Chunk implements duckdb.RowEncoder.
func (w workerEncoder) Chunk(dst []byte, c *vector.Chunk) ([]byte, error) {
	dst, err := w.Encoder.Chunk(dst, c)
	return dst, planner.FromWorker(err)
}
