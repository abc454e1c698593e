// Package waits tells what a statement waits for, for pg_stat_activity. It changes nothing of
// what is waited for.
package waits

import "context"

// Event is what is waited for, as pg_stat_activity shows it. The zero Event is no wait.
type Event struct{ Type, Name string }

// The events. Those that PostgreSQL has too have its names.
var (
	// ClientRead and ClientWrite are waits for the client.
	ClientRead  = Event{"Client", "ClientRead"}
	ClientWrite = Event{"Client", "ClientWrite"}
	// Advisory and Relation are waits for locks.
	Advisory = Event{"Lock", "advisory"}
	Relation = Event{"Lock", "relation"}
	// Sleep is pg_sleep.
	Sleep = Event{"Timeout", "PgSleep"}
	// Commit is a wait until what was changed is durable.
	Commit = Event{"IO", "WALSync"}
	// EngineSlot is a wait for a place among the queries that run, EngineMemory one for the
	// query engine's whole memory, after other queries had too much of it.
	EngineSlot   = Event{"Extension", "EngineSlot"}
	EngineMemory = Event{"Extension", "EngineMemory"}
	// EngineStart is a wait for an engine that starts.
	EngineStart = Event{"Extension", "EngineStart"}
	// ReadPosition is a wait for skippr.read_position.
	ReadPosition = Event{"Extension", "ReadPosition"}
)

// Observer is told what a statement waits for. It must not block.
type Observer interface{ Waiting(e Event) }

type key struct{}

// With makes a context whose waits o is told of.
func With(ctx context.Context, o Observer) context.Context { return context.WithValue(ctx, key{}, o) }

// On tells the context's observer, if it has one, that a wait begins. done ends it.
func On(ctx context.Context, e Event) (done func()) {
	o, ok := ctx.Value(key{}).(Observer)
	if !ok {
		return func() {}
	}
	o.Waiting(e)
	return func() { o.Waiting(Event{}) }
}
