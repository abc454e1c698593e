package setting_test

import (
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/setting"
)

// A client sets anything to anything: what is accepted is shown in a form that is accepted
// again, as itself.
func FuzzSet(f *testing.F) {
	for _, s := range setting.All() {
		f.Add(s.Name, "1")
	}
	f.Add("datestyle", "iso, dmy")
	f.Add("timezone", "Europe/Berlin")
	f.Add("statement_timeout", "2 min")
	f.Fuzz(func(t *testing.T, name, value string) {
		v, err := setting.NewValues(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Set(name, value, false); err != nil {
			if _, ok := pgerr.As(err); !ok {
				t.Errorf("not a statement error: %v", err)
			}
			return
		}
		shown, ok := v.Get(name)
		if !ok {
			t.Fatalf("%q was set and cannot be shown", name)
		}
		if err := v.Set(name, shown, false); err != nil {
			t.Fatalf("%s = %q is shown as %q, which is refused: %v", name, value, shown, err)
		}
		if again, _ := v.Get(name); again != shown {
			t.Errorf("%s = %q is shown as %q, and that as %q", name, value, shown, again)
		}
	})
}
