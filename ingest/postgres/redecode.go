package postgres

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
)

var _ ingest.Redecoder = (*Source)(nil)

// Redecode implements ingest.Redecoder, by the pipeline's rule of today.
func (s *Source) Redecode(t *schema.Table, row map[string]*string, columns []array.Builder) error {
	read := inputs(t)
	for i, f := range t.Fields {
		text := row[f.Name]
		if text == nil {
			columns[i].AppendNull()
			continue
		}
		decode, err := value.TextDecoder(f.Type)
		if err != nil {
			return fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		if !slices.Contains(t.Key, f.ID) && !read[f.AttNum] {
			decode = outofrange.Decoder(decode, f, s.cfg.rule)
		}
		if err := decode(columns[i], []byte(*text)); err != nil {
			err = columnError(f.Name, err)
			var why *ingest.TableError
			if errors.As(err, &why) {
				return &deadletter.RefusedError{Reason: why.Reason}
			}
			return err
		}
	}
	return nil
}
