package ddl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// reservedSchemas cannot hold tables of a pipeline.
var reservedSchemas = []string{"pg_catalog", "information_schema", "skippr", "pg_toast", "pg_temp"}

// createPipeline connects to the source first, so that a wrong address or password is
// an error of the statement, then records the pipeline, then starts it. If we die in
// between, the recorded pipeline is started at the next start of the server.
func (x *Executor) createPipeline(ctx context.Context, s *CreatePipeline, session Session) error {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	if _, err := snap.Pipeline(s.Name); err == nil {
		switch {
		case s.IfNotExists:
			return noticeSkip(session, "pipeline \"%s\" already exists", s.Name)
		case !s.OrReplace:
			return duplicate("pipeline", s.Name)
		}
	}
	p, c, err := x.buildPipeline(snap, s, session)
	if err != nil {
		return err
	}
	tables, err := x.Controller.Discover(ctx, c, p.Selection)
	if err != nil {
		return err
	}
	if err := x.tellTables(snap, p, tables, s, session); err != nil {
		return err
	}
	err = x.recordPipeline(ctx, s, p, c, session)
	if errors.Is(err, errMadeMeanwhile) && s.IfNotExists {
		return noticeSkip(session, "pipeline \"%s\" already exists", s.Name)
	}
	if err != nil || !p.Enabled {
		return err
	}
	startCtx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := x.begin(startCtx, p.Name, session); err != nil {
		return x.undoCreate(ctx, p, err)
	}
	return nil
}

// replacedMost is how often OR REPLACE drops a pipeline that others make again at the same
// time, each after a look at the source.
const replacedMost = 5

// recordPipeline writes the rows of a new pipeline, in the place of one that it replaces:
// also of one that another session has made since the statement began.
func (x *Executor) recordPipeline(ctx context.Context, s *CreatePipeline, p *catalog.Pipeline, c *catalog.Connection, session Session) error {
	for tried := 1; ; tried++ {
		if s.OrReplace {
			if err := x.dropForReplace(ctx, s.Name, session); err != nil {
				return err
			}
		}
		err := x.Catalog.Update(ctx, func(t *catalog.Txn) error { return x.insertPipeline(t, p, c) })
		if !errors.Is(err, errMadeMeanwhile) || !s.OrReplace || tried == replacedMost {
			return err
		}
	}
}

// errMadeMeanwhile says that a pipeline has the name of one that is being made.
var errMadeMeanwhile = errors.New("pipeline was made meanwhile")

// insertPipeline writes the rows of a new pipeline, checking again under the
// transaction what was checked before it.
func (x *Executor) insertPipeline(t *catalog.Txn, p *catalog.Pipeline, c *catalog.Connection) error {
	if _, err := t.Pipeline(p.Name); err == nil {
		return duplicate("pipeline", p.Name).WithCause(errMadeMeanwhile)
	}
	if c.Implicit {
		if _, err := t.Connection(c.Name); err == nil {
			return duplicate("connection", c.Name).
				WithHint("CREATE PIPELINE … FROM %s uses it.", quote.NameIfNeeded(c.Name))
		}
		if err := t.CreateConnection(c); err != nil {
			return err
		}
		if r, err := t.Role(p.Owner); err == nil {
			if err := t.Own(right.Object{Class: right.Connection, Name: c.Name}, r.OID); err != nil {
				return err
			}
		}
	}
	if err := t.CreatePipeline(p); err != nil {
		return err
	}
	return t.AddEvent(catalog.Event{At: x.Clock.Now(), Level: "info", Pipeline: p.Name, Kind: "pipeline created"})
}

// undoCreate drops a pipeline whose start failed at the source and returns the
// failure. One that another session has put in its place stays.
func (x *Executor) undoCreate(ctx context.Context, p *catalog.Pipeline, cause error) error {
	ctx = context.WithoutCancel(ctx)
	snap := x.Catalog.Snapshot()
	now, err := snap.Pipeline(p.Name)
	snap.Close()
	if err != nil || now.ID != p.ID {
		return cause
	}
	if _, err := x.Controller.Drop(ctx, p.Name, false); err != nil {
		return errors.Join(cause, fmt.Errorf("drop pipeline %s after a failed start: %w", quote.Name(p.Name), err))
	}
	return cause
}

// buildPipeline validates s and makes the catalog rows of it.
func (x *Executor) buildPipeline(snap *catalog.Snapshot, s *CreatePipeline, session Session) (*catalog.Pipeline, *catalog.Connection, error) {
	if s.Lake != "" {
		return nil, nil, pgerr.New(codes.FeatureNotSupported, "INTO is not supported by this version").
			WithDetail("Tables are kept in the embedded warehouse under the data directory.")
	}
	p := &catalog.Pipeline{
		Name: s.Name, Selection: s.Selection, TargetSchema: s.Schema, Options: map[string]string{},
		State: catalog.PipelineDisabled, CreatedAt: x.Clock.Now(), Owner: session.User(), Enabled: true,
	}
	if p.TargetSchema == "" {
		p.TargetSchema = s.Name
	}
	for _, r := range reservedSchemas {
		if p.TargetSchema == r || strings.HasPrefix(p.TargetSchema, "pg_") {
			return nil, nil, pgerr.New(codes.ReservedName, "unacceptable schema name \"%s\"", p.TargetSchema).
				WithDetail("The prefix \"pg_\" and the names of system schemas are reserved.").
				WithHint("SCHEMA name chooses where the tables land.")
		}
	}
	for _, o := range s.Options {
		v, err := checkOption(pipelineDocs, o, "pipeline")
		if err != nil {
			return nil, nil, err
		}
		switch o.Name {
		case "start":
			p.Enabled = v == "true"
			continue
		case "dry_run":
			continue
		}
		p.Options[o.Name] = v
	}
	p.Selection.OutOfRangeText = p.Options["out_of_range"] == "text"
	c, err := x.pipelineConnection(snap, s)
	if err != nil {
		return nil, nil, err
	}
	p.Connection = c.Name
	return p, c, nil
}

func (x *Executor) pipelineConnection(snap *catalog.Snapshot, s *CreatePipeline) (*catalog.Connection, error) {
	if s.Inline != nil {
		c, err := x.buildConnection(snap, s.Name, *s.Inline)
		if err == nil {
			c.Implicit = true
		}
		return c, err
	}
	c, err := snap.Connection(s.Connection)
	if errors.Is(err, catalog.ErrConnectionNotFound) {
		return nil, notFound("connection", s.Connection).
			WithHint("CREATE CONNECTION %s TO POSTGRES (…); makes it, or write FROM POSTGRES 'postgres://…'.", quote.NameIfNeeded(s.Connection))
	}
	return c, err
}

// tellTables sends a WARNING for each table that will not be taken in and a NOTICE for
// each part of one. It fails when the statement names such a table.
func (x *Executor) tellTables(snap *catalog.Snapshot, p *catalog.Pipeline, tables []Discovered, s *CreatePipeline, session Session) error {
	seen := map[string]bool{}
	taken := takenNames(snap, s)
	for _, d := range tables {
		name := d.Schema + "." + d.Table
		if seen[name] {
			continue
		}
		seen[name] = true
		problem := tableProblem(p, d, name, taken)
		if problem == nil {
			for _, n := range d.Notes {
				if err := session.Notice(pgerr.Notice("%s", n)); err != nil {
					return err
				}
			}
			continue
		}
		if len(s.Selection.Tables) > 0 {
			return problem
		}
		w := pgerr.Notice("table \"%s\" is left out: %s", name, problem.Cause)
		w.Severity, w.Code, w.Hint = "WARNING", codes.Warning, problem.Hint
		if err := session.Notice(w); err != nil {
			return err
		}
	}
	if len(tables) == 0 {
		return session.Notice(pgerr.Notice("the source has no table that the pipeline names yet"))
	}
	return nil
}

// tableProblem says why a table cannot be taken in; its Cause is the reason alone. It
// notes the name that the table gets.
func tableProblem(p *catalog.Pipeline, d Discovered, name string, taken map[string]bool) *pgerr.Error {
	target := strings.ReplaceAll(p.TargetSchema, "%s", d.Schema) + "." + d.Table
	var e *pgerr.Error
	switch {
	case d.Missing:
		e = pgerr.New(codes.UndefinedTable, "table \"%s\" does not exist at the source", name).WithHint("%s", d.Hint)
	case d.Unsupported != "":
		e = pgerr.New(codes.FeatureNotSupported, "table \"%s\" cannot be taken in", name).
			WithDetail("%s.", capital(d.Unsupported)).WithHint("%s", d.Hint)
	case taken[target]:
		d.Unsupported = fmt.Sprintf("table \"%s\" exists already", target)
		e = pgerr.New(codes.DuplicateRelation, "table \"%s\" already exists", target).
			WithDetail("Table %s of the source would have this name.", name).
			WithHint("SCHEMA '%s_%%s' makes a schema for each schema of the source.", p.Name)
	default:
		taken[target] = true
		return nil
	}
	e.Cause = errors.New(d.Unsupported)
	return e
}

// takenNames are the names of all tables, without those of a pipeline to replace.
func takenNames(snap *catalog.Snapshot, s *CreatePipeline) map[string]bool {
	taken := map[string]bool{}
	for _, p := range snap.Pipelines() {
		if s.OrReplace && p.Name == s.Name {
			continue
		}
		for _, t := range snap.Tables(p.ID) {
			taken[t.Schema+"."+t.Name] = true
		}
	}
	return taken
}

// alterPipeline runs ALTER PIPELINE and its short forms. A pipeline that somebody drops
// meanwhile does not exist.
func (x *Executor) alterPipeline(ctx context.Context, s *AlterPipeline, session Session) error {
	err := x.alter(ctx, s, session)
	if errors.Is(err, catalog.ErrPipelineNotFound) {
		return notFound("pipeline", s.Name)
	}
	return err
}

func (x *Executor) alter(ctx context.Context, s *AlterPipeline, session Session) error {
	snap := x.Catalog.Snapshot()
	p, err := snap.Pipeline(s.Name)
	snap.Close()
	if err != nil {
		return err
	}
	switch s.Action {
	case Enable, Resume:
		return x.start(ctx, p, s.Action, session)
	case Disable, Pause:
		return x.stop(ctx, p, s.Action, session)
	case Reset:
		return x.Controller.Reset(ctx, p.Name)
	case Compact:
		return x.Controller.Compact(ctx, p.Name)
	case Refresh, AddTable:
		return x.addTables(ctx, s, session)
	case SetOptions, ResetOptions:
		return x.setOptions(ctx, p, s, session)
	case Rename:
		return x.rename(ctx, p, s.NewName, session)
	}
	if s.Action == DropTable {
		if err := x.unread(p.Name, s.Tables); err != nil {
			return err
		}
	}
	for _, t := range s.Tables {
		var err error
		switch s.Action {
		case DropTable:
			err = x.Controller.DropTable(ctx, p.Name, t)
		case ResyncTable:
			err = x.Controller.ResyncTable(ctx, p.Name, t)
		case ResumeTable:
			if err = x.noticeRunning(p, t, session); err == nil {
				err = x.Controller.ResumeTable(ctx, p.Name, t)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noticeRunning says of a table that is to be resumed that it has not stopped.
func (x *Executor) noticeRunning(p *catalog.Pipeline, want catalog.SelectedTable, session Session) error {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	t, err := catalog.NamedTable(snap.Tables(p.ID), want)
	if err != nil || t.State == catalog.TableStopped {
		return nil // or who resumes it says what is wrong
	}
	return session.Notice(pgerr.Notice("table \"%s\" is not stopped, skipping", t.Schema+"."+t.Name))
}

// mutate applies f to a copy of the pipeline's row.
func (x *Executor) mutate(ctx context.Context, name string, f func(*catalog.Pipeline) error) error {
	return x.Catalog.Update(ctx, func(t *catalog.Txn) error {
		old, err := t.Pipeline(name)
		if err != nil {
			return notFound("pipeline", name)
		}
		p := old.Clone()
		if p.Options == nil {
			p.Options = map[string]string{}
		}
		if err := f(p); err != nil {
			return err
		}
		return t.PutPipeline(p)
	})
}

// begin starts a pipeline. One that starts later by itself is no error: session is told.
func (x *Executor) begin(ctx context.Context, name string, session Session) error {
	err := x.Controller.Start(ctx, name)
	if waits := (*Waiting)(nil); errors.As(err, &waits) {
		return session.Notice(pgerr.Notice("pipeline \"%s\" starts later by itself: %s", name, waits.Reason))
	}
	return err
}

func (x *Executor) start(ctx context.Context, p *catalog.Pipeline, a Action, session Session) error {
	if a == Resume && !p.Enabled {
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "pipeline \"%s\" is disabled", p.Name).
			WithHint("%s", p.Exact("ALTER PIPELINE … ENABLE; starts it."))
	}
	err := x.mutate(ctx, p.Name, func(p *catalog.Pipeline) error {
		p.Enabled, p.Paused = true, false
		return nil
	})
	if err != nil {
		return err
	}
	return x.begin(ctx, p.Name, session)
}

func (x *Executor) stop(ctx context.Context, p *catalog.Pipeline, a Action, session Session) error {
	if a == Pause && !p.Enabled {
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "pipeline \"%s\" is disabled", p.Name).
			WithDetail("Nothing is read for it until it is enabled.")
	}
	status, running := x.Controller.Status(p.Name)
	if err := x.rest(ctx, p.Name, a, session); err != nil {
		return err
	}
	if running && status.SlotState != "" {
		return session.Notice(pgerr.Notice("the source keeps its log for pipeline \"%s\" until it goes on; %d MB are kept now%s",
			p.Name, status.RetainedBytes>>20, pace(status)))
	}
	return nil
}

// pace is how fast what the source keeps will grow while nothing is read, and when it
// will lose the pipeline's place then, as far as that is known.
func pace(s PipelineStatus) string {
	perSecond := s.WrittenBytesPerSecond
	if perSecond < 1 {
		return ""
	}
	text := fmt.Sprintf(", and it writes %.1f MB a minute", perSecond*60/(1<<20))
	if s.Limited {
		left := time.Duration(min(float64(max(0, s.SafeBytes))/perSecond, 1e9) * float64(time.Second))
		text += fmt.Sprintf(": in about %s it may drop what the pipeline needs (max_slot_wal_keep_size)", left.Round(time.Second))
	}
	return text
}

// rest ends the work of a pipeline: a is Pause or Disable.
func (x *Executor) rest(ctx context.Context, name string, a Action, session Session) error {
	err := x.mutate(ctx, name, func(p *catalog.Pipeline) error {
		p.Enabled, p.Paused = a == Pause, a == Pause
		p.State, p.Reason = catalog.PipelinePaused, "paused by the user"
		if a == Disable {
			p.State, p.Reason = catalog.PipelineDisabled, ""
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := x.Controller.Stop(ctx, name); err != nil {
		return err
	}
	return x.goOn(ctx, name, session)
}

// goOn starts a pipeline again that another statement has resumed while this one stopped it:
// the catalog has the last word, and nobody else would start it.
func (x *Executor) goOn(ctx context.Context, name string, session Session) error {
	snap := x.Catalog.Snapshot()
	p, err := snap.Pipeline(name)
	snap.Close()
	if err != nil || !p.Enabled || p.Paused {
		return nil // at rest, or gone
	}
	return x.begin(ctx, name, session)
}

func (x *Executor) addTables(ctx context.Context, s *AlterPipeline, session Session) error {
	added, err := x.Controller.AddTables(ctx, s.Name, s.Tables)
	if err != nil {
		return err
	}
	if len(added) == 0 {
		return session.Notice(pgerr.Notice("pipeline \"%s\" has all these tables already", s.Name))
	}
	return nil
}

func (x *Executor) setOptions(ctx context.Context, p *catalog.Pipeline, s *AlterPipeline, session Session) error {
	values := map[string]string{}
	for _, o := range s.Options {
		if changeOf(o.Name) == atCreation {
			return pgerr.New(codes.ObjectNotInPrerequisiteState, "option \"%s\" cannot be changed after CREATE PIPELINE", o.Name).
				WithPosition(o.Pos)
		}
		if s.Action == ResetOptions {
			if err := knownOption(pipelineDocs, o, "pipeline"); err != nil {
				return err
			}
			continue
		}
		v, err := checkOption(pipelineDocs, o, "pipeline")
		if err != nil {
			return err
		}
		values[o.Name] = v
	}
	asText := p.Selection.OutOfRangeText
	err := x.mutate(ctx, p.Name, func(p *catalog.Pipeline) error {
		for _, o := range s.Options {
			delete(p.Options, o.Name)
		}
		maps.Copy(p.Options, values)
		p.Selection.OutOfRangeText = p.Options["out_of_range"] == "text"
		asText = p.Selection.OutOfRangeText != asText
		return nil
	})
	if err == nil && asText {
		err = x.tellAsText(p, session)
	}
	live := !slices.ContainsFunc(s.Options, func(o Option) bool { return changeOf(o.Name) != whileRunning })
	if err != nil || live || !p.Enabled || p.Paused {
		return err
	}
	if err := x.Controller.Stop(ctx, p.Name); err != nil {
		return err
	}
	return x.begin(ctx, p.Name, session)
}

// tellAsText tells that the types of columns are those of their table's last copy, when
// another option says otherwise: which tables that is of, and what copies them anew.
func (x *Executor) tellAsText(p *catalog.Pipeline, session Session) error {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	var tables []string
	for _, t := range snap.Tables(p.ID) {
		if slices.ContainsFunc(t.Current.Fields, func(f schema.Field) bool {
			return slices.Contains([]uint32{schema.OIDDate, schema.OIDTimestamp, schema.OIDTimestampTZ}, f.OID) ||
				f.OID == schema.OIDNumeric && f.TypMod >= 0 // others are exact text in any case
		}) {
			tables = append(tables, quotedTable(t))
		}
	}
	if len(tables) == 0 {
		return nil
	}
	n := pgerr.Notice("columns of pipeline %s become exact text, or cease to be, with the next copy of their table", quote.Name(p.Name))
	n.Hint = p.Exact("ALTER PIPELINE … RESYNC TABLE " + strings.Join(tables, ", ") + "; copies anew what has such columns.")
	return session.Notice(n)
}

// quotedTable is a table's name here, for statements of hints.
func quotedTable(t *catalog.Table) string {
	return quote.NameIfNeeded(t.Schema) + "." + quote.NameIfNeeded(t.Name)
}

func (x *Executor) rename(ctx context.Context, p *catalog.Pipeline, to string, session Session) error {
	if err := x.Controller.Stop(ctx, p.Name); err != nil {
		return err
	}
	err := x.Catalog.Update(ctx, func(t *catalog.Txn) error {
		if _, err := t.Pipeline(to); err == nil {
			return duplicate("pipeline", to)
		}
		old, err := t.Pipeline(p.Name)
		if err != nil {
			return notFound("pipeline", p.Name)
		}
		renamed := old.Clone()
		renamed.Name = to
		return t.PutPipeline(renamed)
	})
	name := to
	if err != nil {
		name = p.Name
	}
	if p.Enabled && !p.Paused {
		err = errors.Join(err, x.begin(ctx, name, session))
	}
	return err
}
