package copyin

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// The names of a header are no values: who converts the fields before an error must be told
// of the header, not of a name that is no integer.
func TestHeaderMismatchGivesNoFields(t *testing.T) {
	for _, f := range []Format{Text, CSV} {
		data := map[Format]string{Text: "a\tx\n1\t2\n", CSV: "a,x\n1,2\n"}[f]
		d, err := New(strings.NewReader(data), Config{
			Table: "t", Options: Options{Format: f, Header: HeaderMatch}, Columns: []Column{{Name: "a"}, {Name: "b"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		fields, err := d.Next()
		e, ok := pgerr.As(err)
		if !ok || e.Code != "22P04" || !strings.Contains(e.Message, `got "x", expected "b"`) {
			t.Errorf("error %v", err)
		}
		if len(fields) != 0 {
			t.Errorf("%d fields with it", len(fields))
		}
	}
}
