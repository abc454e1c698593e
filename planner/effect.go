package planner

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/skipprd/skipprd/planner/pgsql"
)

// act does what the calls of a statement do to the server, and returns the analysis
// with their results in place.
func (s *session) act(ctx context.Context, a *pgsql.Analysis) (*pgsql.Analysis, error) {
	if len(a.Effects) == 0 {
		return a, nil
	}
	out := *a
	for _, e := range a.Effects {
		done := false
		switch e.Kind {
		case pgsql.EffectSetConfig:
			if err := s.values.Set(e.Name, e.Value, e.Local); err != nil {
				return nil, err
			}
		case pgsql.EffectSleep:
			const longest = math.MaxInt32
			d := time.Duration(math.Min(math.Max(e.Seconds, 0), longest) * float64(time.Second))
			if err := s.engine.deps.Clock.Sleep(ctx, d); err != nil {
				return nil, err
			}
		case pgsql.EffectCancel, pgsql.EffectTerminate:
			done = s.engine.deps.Cancel != nil && s.engine.deps.Cancel(e.PID, e.Kind == pgsql.EffectTerminate)
		}
		if e.Mark != "" {
			word := "false"
			if done {
				word = "true"
			}
			out.SQL = strings.ReplaceAll(out.SQL, e.Mark, word)
		}
	}
	return &out, nil
}
