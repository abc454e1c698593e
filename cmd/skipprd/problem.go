package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres"
	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
)

// problems are the sentinels of sources and pipelines that a user can act on. The first
// row that matches counts: what is more specific comes first.
var problems = []struct {
	is      error
	kind    ddl.ProblemKind
	message string // "": the error's own
	hint    string
}{
	{
		postgres.ErrSlotLost, ddl.WrongState, "replication slot is lost",
		"ALTER PIPELINE … RESET; makes a new one and copies the tables anew.",
	},
	{
		postgres.ErrDiverged, ddl.WrongState, "the source has another history than the pipeline",
		"ALTER CONNECTION … SET (…); leads it back to the server it had; ALTER PIPELINE … RESET; begins anew on this one.",
	},
	{
		ingest.ErrLost, ddl.WrongState, "changes of the source are missing for good",
		"ALTER PIPELINE … RESET; copies the tables anew.",
	},
	{
		postgres.ErrSlotInUse, ddl.Busy, "replication slot is in use",
		"End its reader at the source with pg_terminate_backend, or give the pipeline its own slot_name.",
	},
	{
		postgres.ErrOtherServer, ddl.WrongState, "connection leads to another server",
		"ALTER CONNECTION … SET (…); leads it back to where the pipeline began; " +
			"ALTER PIPELINE … RESET; begins anew on this server.",
	},
	{
		postgres.ErrNotSetUp, ddl.WrongState, "source is not set up yet",
		"ALTER PIPELINE … ENABLE; starts it, also when it is paused.",
	},
	{
		compact.ErrNoCopy, ddl.WrongState, "a table differs from the source's, and has stopped",
		"ALTER PIPELINE … RESYNC TABLE …; copies it anew.",
	},
	{
		catalog.ErrRebuilding, ddl.WrongState, "pipeline could not be rebuilt after the loss of the catalog",
		"skippr.events says why. Bring its log back and start the server again, or DROP PIPELINE and create it anew.",
	},
	{
		ingest.ErrSourceUnavailable, ddl.Unreachable, "could not use the source",
		"VALIDATE CONNECTION … says what is missing.",
	},
	{ingest.ErrBadSource, ddl.NotPrepared, "connection cannot be used", ""},
	{ingest.ErrUnknownTable, ddl.NoSuchTable, "", "DISCOVER PIPELINE …; says which tables there are."},
	{
		ingest.ErrTableStopped, ddl.WrongState, "",
		"ALTER PIPELINE … RESUME TABLE …; lets it go on; skippr.tables says why it stopped.",
	},
	{ingest.ErrNotRunning, ddl.WrongState, "", "ALTER PIPELINE … ENABLE; starts it, also when it is paused."},
}

// problemOf says which domain errors are for the user to mend, and what mends them.
// Errors of the query engine, which compaction uses, are what queries say of them.
func problemOf(err error) error {
	if err == nil {
		return nil
	}
	var table *ingest.TableError
	var large *ingest.TransactionError
	var setup *postgres.SetupError
	var bad *ingest.BadSourceError
	var secret *catalog.SecretError
	var several *catalog.AmbiguousError
	switch {
	case errors.As(err, &secret):
		return &ddl.Problem{
			Kind: ddl.NotPrepared, Message: secret.Message(), Detail: sentence(errors.New(secret.Reason)), Cause: err,
			Hint: "It is looked up where the server runs. ALTER SECRET " + quote.NameIfNeeded(secret.Name) + " AS '…'; changes it.",
		}
	case errors.As(err, &bad):
		return &ddl.Problem{Kind: ddl.NotPrepared, Message: bad.Message(), Detail: sentence(bad.Cause), Cause: err}
	case errors.As(err, &table):
		message := strings.Replace(err.Error(), table.Error(), table.Reason, 1)
		return &ddl.Problem{Kind: ddl.NotSupported, Message: message, Hint: table.Hint, Cause: err}
	case errors.As(err, &large):
		return &ddl.Problem{
			Kind: ddl.WrongState, Message: "a transaction of the source is larger than the log", Detail: sentence(large),
			Hint: "Raise wal-quota-bytes, or free space on the disk; then ALTER PIPELINE … ENABLE reads it again.", Cause: err,
		}
	case errors.As(err, &setup):
		return &ddl.Problem{
			Kind: ddl.NotPrepared, Message: "the source is not ready for replication", Detail: fixes(setup),
			Hint: "Mend this at the source, then run the statement again. VALIDATE CONNECTION … looks again.", Cause: err,
		}
	case errors.As(err, &several):
		return &ddl.Problem{
			Kind: ddl.Ambiguous, Message: fmt.Sprintf("table name %s is ambiguous", quote.Name(several.Name)),
			Hint: "Name it with its schema: " + strings.Join(several.Tables, " or ") + ".", Cause: err,
		}
	case errors.Is(err, catalog.ErrTableNotFound):
		return missingTable(err)
	}
	if e, ok := outage.Explain(err); ok {
		return &ddl.Problem{Kind: ddl.Unreachable, Message: e.Message, Detail: sentence(errors.New(e.Detail)), Hint: e.Hint, Cause: err}
	}
	for _, p := range problems {
		if !errors.Is(err, p.is) {
			continue
		}
		out := &ddl.Problem{Kind: p.kind, Message: p.message, Detail: sentence(err), Hint: p.hint, Cause: err}
		switch said := (*ingest.SourceError)(nil); {
		case p.message == "":
			out.Message, out.Detail = err.Error(), ""
		case p.is == ingest.ErrSourceUnavailable && errors.As(err, &said):
			out.Detail = sentence(errors.New(said.Message))
		}
		return out
	}
	if e := planner.EngineError(err); e != nil {
		return e
	}
	return err
}

// problemIn is problemOf for a statement about one pipeline: hints have its name, so that
// their statements can be run as they stand.
func problemIn(pipeline string, err error) error {
	err = problemOf(err)
	var p *ddl.Problem
	if !errors.As(err, &p) {
		return err
	}
	named := *p
	named.Hint = (&catalog.Pipeline{Name: pipeline}).Exact(p.Hint)
	return &named
}

// missingTable says of a table whether the source or the pipeline has not got it.
func missingTable(err error) error {
	message, found := strings.CutSuffix(err.Error(), ": "+catalog.ErrTableNotFound.Error())
	if found && !strings.Contains(message, "does not exist") {
		message += " is not part of the pipeline"
	}
	return &ddl.Problem{
		Kind: ddl.NoSuchTable, Message: message, Hint: "DISCOVER PIPELINE …; says which tables there are.", Cause: err,
	}
}

// fixes lists what is in the way at a source, one a line, with what helps.
func fixes(e *postgres.SetupError) string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.What
		if p.Fix != "" {
			lines[i] += ": " + p.Fix
		}
	}
	return strings.Join(lines, "\n")
}

// sentence makes an error's text a detail sentence.
func sentence(err error) string {
	s := err.Error()
	if s == "" {
		return s
	}
	if last := s[len(s)-1]; last != '.' && last != ';' {
		s += "."
	}
	return string(append([]byte{}, upper(s[0]))) + s[1:]
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
