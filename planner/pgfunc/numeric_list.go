package pgfunc

import (
	"encoding/json"
	"fmt"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// sumListFunctions add the numerics of a JSON array up, to a scale: those of sum(DISTINCT …).
func sumListFunctions() []scalar.Function {
	return []scalar.Function{{
		Name: "skippr_n_list_sum", Params: kinds(scalar.Text, scalar.Int32), Result: scalar.Text,
		Call: func(a []value) (value, error) {
			var list []*string
			if err := json.Unmarshal([]byte(a[0].Text), &list); err != nil {
				return value{}, fmt.Errorf("read the numbers of a sum: %w", err)
			}
			sum, some := numeric.FromInt(0), false
			for _, text := range list {
				if text == nil {
					continue
				}
				n, err := numeric.Parse(*text)
				if err != nil {
					return value{}, err
				}
				if sum, err = numeric.Add(sum, n); err != nil {
					return value{}, err
				}
				some = true
			}
			if !some {
				return scalar.Null, nil
			}
			return scalar.OfText(sum.Round(int(a[1].Int)).Text()), nil
		},
	}}
}
