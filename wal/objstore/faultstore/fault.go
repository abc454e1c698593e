package faultstore

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/wal/objstore"
)

// Kind is what goes wrong with a request.
type Kind uint8

// The kinds. A kind that cannot befall the operation it is given for is None.
const (
	// None: the request is served.
	None Kind = iota
	// Refused: without effect, ErrUnavailable (503).
	Refused
	// Conflicted: a conditional Put is refused without effect, ErrConflict (409).
	Conflicted
	// LostRequest: without effect, but the caller cannot know: ErrUnknown of a write,
	// ErrUnavailable of a read.
	LostRequest
	// LostReply: the effect happens, its outcome is lost: ErrUnknown of a write,
	// ErrUnavailable of a read.
	LostReply
	// Late: as LostRequest, but the write stays under way until Deliver.
	Late
	// Duplicated: the write happens and is answered, and a copy of it stays under way
	// until Deliver.
	Duplicated
	// Repeated: the write happens twice and the second answer is returned. So a
	// conditional Put that succeeded says ErrPrecondition (412 after own success).
	Repeated
	// Partly: a Delete leaves the i-th key if bit i%64 of N is set, and says so
	// (ErrUnavailable).
	Partly
	// PartlyUnknown: as Partly, but those keys may be gone: they are, in fact.
	PartlyUnknown
	// ShortPage: a List returns at most N objects, at least one, and sets More if it
	// left any out.
	ShortPage
	// Torn: a Get returns the first N bytes of its answer, without saying so.
	Torn
	// Flipped: a Get returns its answer with bit N flipped (modulo its length).
	Flipped
	// Misdirected: a Get returns the bytes of the object Key, if there is one, as
	// those of the object that was asked for.
	Misdirected
	// Damaged: a Get notices that its answer is damaged, ErrDamaged.
	Damaged
	// Failed: without effect, Err. That of a machine which has died, for example.
	Failed
	// StaleVersion: a Get gives a version that no state has any more with its bytes.
	StaleVersion
	kindEnd
)

var kindNames = [kindEnd]string{
	"none", "refused", "conflicted", "lost request", "lost reply", "late", "duplicated", "repeated",
	"partly", "partly unknown", "short page", "torn", "flipped", "misdirected", "damaged", "failed",
	"stale version",
}

// String is the kind's name in traces.
func (k Kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Fault is what goes wrong with one request. The zero value is nothing.
type Fault struct {
	Kind Kind
	N    uint64 // of Partly, ShortPage, Torn, Flipped
	Key  string // of Misdirected
	Err  error  // of Failed, required; of After's LostReply, if not the usual one
}

// Verb is what a request does.
type Verb uint8

// The verbs, one for each method of objstore.Store.
const (
	Put Verb = iota
	Get
	Delete
	List
)

// String is the verb's name in traces.
func (v Verb) String() string { return [...]string{"put", "get", "delete", "list"}[v] }

// Op is a request. Nothing in it may be modified.
type Op struct {
	Verb  Verb
	Key   string             // of Put and Get; the prefix of List
	Body  []byte             // of Put
	Cond  objstore.Condition // of Put
	Range objstore.Range     // of Get
	Keys  []string           // of Delete
	After string             // of List
	Limit int                // of List
}

// Write says whether the request changes the store.
func (o Op) Write() bool { return o.Verb == Put || o.Verb == Delete }

// Applies says whether a kind can befall the request.
func (o Op) Applies(k Kind) bool {
	switch k {
	case None, Refused, LostRequest, LostReply, Failed:
		return true
	case Conflicted:
		return o.Verb == Put && o.Cond != objstore.Condition{}
	case Late, Duplicated, Repeated:
		return o.Write()
	case Partly, PartlyUnknown:
		return o.Verb == Delete && len(o.Keys) > 0
	case ShortPage:
		return o.Verb == List
	case Torn, Flipped, Misdirected, Damaged, StaleVersion:
		return o.Verb == Get
	default:
		return false
	}
}

// String is one line for traces, a function of the request alone.
func (o Op) String() string {
	switch o.Verb {
	case Put:
		return fmt.Sprintf("put %s %s, %d bytes", o.Key, o.Cond, len(o.Body))
	case Get:
		if o.Range.Whole() {
			return "get " + o.Key
		}
		return fmt.Sprintf("get %s [%d, %d)", o.Key, o.Range.Start, o.Range.End)
	case Delete:
		if len(o.Keys) == 1 {
			return "delete " + o.Keys[0]
		}
		return fmt.Sprintf("delete %d keys", len(o.Keys))
	default:
		return fmt.Sprintf("list %s after %q, %d", o.Key, o.After, o.Limit)
	}
}

var errInjected = errors.New("injected fault")
