package iceberg

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
)

// keyInitial is the table property that says which columns have a value in files that are
// older than they are: Iceberg can say so itself only from format version 3 on. Engines
// that do not know it read null there until Maintain has rewritten those files.
const keyInitial = "skippr.initial-values"

// initialValue is a column in the property. Its encoding is durable.
type initialValue struct {
	ID      int32       `json:"id"`
	Name    string      `json:"name"` // for who reads the property
	Type    schema.Type `json:"type"`
	Initial string      `json:"initial"`
	// Since is the sequence number of the first commit whose files have the column.
	Since int64 `json:"since"`
}

func (v initialValue) field() schema.Field {
	return schema.Field{ID: v.ID, Name: v.Name, Type: v.Type, Initial: &v.Initial}
}

func initialValues(meta table.Metadata) ([]initialValue, error) {
	text, ok := meta.Properties()[keyInitial]
	if !ok {
		return nil, nil
	}
	var out []initialValue
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("table property %s: %w", keyInitial, err)
	}
	return out, nil
}

// nextInitial is the property under a schema that a commit brings in; changed says that
// it is another than now.
func nextInitial(meta table.Metadata, s *schema.Table) (text string, changed bool, err error) {
	have, err := initialValues(meta)
	if err != nil {
		return "", false, err
	}
	next := []initialValue{}
	for _, f := range s.Fields {
		if f.Initial == nil {
			continue
		}
		v := initialValue{
			ID: f.ID, Name: f.Name, Type: f.Type, Initial: *f.Initial, Since: meta.LastSequenceNumber() + 1,
		}
		if i := slices.IndexFunc(have, func(h initialValue) bool { return h.ID == f.ID }); i >= 0 {
			v.Since = have[i].Since
		}
		next = append(next, v)
	}
	if len(next) == 0 && len(have) == 0 {
		return "", false, nil
	}
	b, err := json.Marshal(next)
	if err != nil {
		return "", false, fmt.Errorf("table property %s: %w", keyInitial, err)
	}
	return string(b), string(b) != meta.Properties()[keyInitial], nil
}

// lacksInitial says which files are older than a column that has a value in them.
func lacksInitial(values []initialValue) func(lake.DataFile) bool {
	var since int64
	for _, v := range values {
		since = max(since, v.Since)
	}
	return func(f lake.DataFile) bool {
		number, _, _ := strings.Cut(path.Base(f.Path), "-") // see dataPath
		n, err := strconv.ParseInt(number, 10, 64)
		return err == nil && n < since
	}
}

// initialByID has the columns of the property by their field ids, as files have them.
func initialByID(values []initialValue) map[string]schema.Field {
	out := make(map[string]schema.Field, len(values))
	for _, v := range values {
		out[strconv.Itoa(int(v.ID))] = v.field()
	}
	return out
}
