package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The words of directed operations. A word's place in its list is its code in records, so
// lists only grow at their ends.
var (
	activityWords = []string{
		"any", "owner", "commits", "background", "compactor", "reclaimer", "session", "query", "statement", "supervisor",
		"bodies", "lease", "takeover", "client",
	}
	// placeWords name what an activity is about to do, or has just done: those that end in
	// -ed are after an effect, before its reply.
	placeWords = []string{
		"anywhere", "before_body", "after_body", "after_marker", "after_publish", "before_ack", "before_seal",
		"after_seal_marker", "before_lake_commit", "after_lake_commit", "after_mark", "before_reclaim",
		"between_marker_and_body_delete", "before_update", "after_update",
		"read", "write", "sync", "synced", "names", "named", "open", "lake_open", "lake_read", "find", "write_files",
		"write_deletes", "lake_commit", "lake_committed", "maintain", "drop_lake", "publish", "rest", "executed", "append",
		"connect", "discover", "setup", "slot_created", "start_stream", "stream", "stream_part", "backfill", "plan_copy",
		"read_chunk", "teardown", "torn_down", "object", "marker_put", "body_put", "fence", "checkpoint",
		"marker_was_put", "body_was_put", "fence_was_put", "checkpoint_was_put", "get", "list", "delete", "describe", "receive", "reply", "run", "deliver",
		"hold", "define",
	}
	changeWords = []string{
		"insert", "update", "delete", "move", "truncate", "add_column", "drop_column", "rename_column", "widen_column",
		"retype_column",
	}
	shapeWords = []string{"plain", "null", "odd", "long", "least", "most", "empty", "same", "kept", "refused", "computes_refused"}
	tableWords = []string{"ints", "texts", "log"}
	hostWords  = []string{"a", "b", "c", "leader", "standby", "paused"}
	endWords   = []string{"whole", "parts", "abort"}
)

// Action is what a Do does. The values are part of the compact form.
type Action uint8

// The actions.
const (
	Nothing Action = iota
	AskQuery
	AskHeld
	AskTwice
	CompactTable
	SealSegment
	ResetPipeline
	ResyncTable
	DropTable
	AddTable
	ResumeTable
	PausePipeline
	ResumePipeline
	SyncPipeline
	TakeHold
	MoveHold
	ReleaseHold
	KillHost
	CutPower
	PauseHost
	GoOnHost
	ClockAhead
	ClockBack
	FillDisk
	FreeDisk
	IdleSource
	DropSlot
	TakeOver
	LoseCatalog
	RetryLetters

	actionEnd
)

// takes says what an action's parameter is.
type takes uint8

const (
	takesNothing takes = iota
	takesTable
	takesHost
	takesNumber
)

var actions = [actionEnd]struct {
	word  string
	takes takes
}{
	Nothing: {"nothing", takesNothing}, AskQuery: {"query", takesHost}, AskHeld: {"query_held", takesHost},
	AskTwice: {"query_twice", takesHost}, CompactTable: {"compact", takesTable}, SealSegment: {"seal", takesHost},
	ResetPipeline: {"reset", takesNothing}, ResyncTable: {"resync", takesTable}, DropTable: {"drop_table", takesTable},
	AddTable: {"add_table", takesTable}, ResumeTable: {"resume_table", takesTable},
	PausePipeline: {"pause", takesNothing}, ResumePipeline: {"resume", takesNothing}, SyncPipeline: {"sync", takesNothing},
	TakeHold: {"hold", takesHost}, MoveHold: {"move_hold", takesHost}, ReleaseHold: {"release_hold", takesHost},
	KillHost: {"kill", takesHost}, CutPower: {"cut_power", takesHost}, PauseHost: {"pause_host", takesHost},
	GoOnHost: {"go_on_host", takesHost}, ClockAhead: {"clock_ahead", takesNumber}, ClockBack: {"clock_back", takesNumber},
	FillDisk: {"fill_disk", takesNumber}, FreeDisk: {"free_disk", takesNothing}, IdleSource: {"idle", takesNothing},
	DropSlot: {"drop_slot", takesNothing}, TakeOver: {"take_over", takesHost}, LoseCatalog: {"lose_catalog", takesHost},
	RetryLetters: {"retry", takesNothing},
}

// Activity is the word of a Stop's or a Go's activity.
func (r Record) Activity() string { return word(activityWords, int(r.Arg)) }

// Place is the word of the place that a Stop waits for.
func (r Record) Place() string { return word(placeWords, int(r.Rand)) }

// Action is what a Do does.
func (r Record) Action() Action {
	if r.Arg >= uint8(actionEnd) {
		return Nothing
	}
	return Action(r.Arg)
}

// Change is what the change of a transaction is: its word, its table's number, and the keys
// from first to last. A move goes from first to last.
func (r Record) Change() (kind, shape string, table, first, last int) {
	first, last = int(r.Rand&0x3f), int(r.Rand>>6&0x3f)
	if last < first && word(changeWords, int(r.Arg&0x1f)) != "move" {
		last = first
	}
	return word(changeWords, int(r.Arg&0x1f)), word(shapeWords, int(r.Rand>>12)), int(r.Arg >> 5), first, last
}

func word(words []string, code int) string {
	if code >= len(words) {
		return words[0]
	}
	return words[code]
}

// directed is the text of a directed operation's parameters; false for other operations, and
// for parameters that no word says.
func (r Record) directed() (string, bool) {
	switch r.Op {
	case Change:
		kind, shape, table, first, last := r.Change()
		if table >= len(tableWords) || int(r.Arg&0x1f) >= len(changeWords) || int(r.Rand>>12) >= len(shapeWords) {
			return "", false
		}
		text := fmt.Sprintf("%s %s %d", kind, tableWords[table], first)
		if last != first {
			text += fmt.Sprintf("-%d", last)
		}
		if shape != shapeWords[0] {
			text += " " + shape
		}
		back, err := parseChange(strings.Fields(text))
		return text, err == nil && back.Arg == r.Arg && back.Rand == r.Rand
	case Commit:
		return word(endWords, int(r.Arg)), int(r.Arg) < len(endWords) && r.Rand == 0
	case Stop:
		return r.Activity() + " at " + r.Place(), int(r.Arg) < len(activityWords) && int(r.Rand) < len(placeWords)
	case Go:
		return r.Activity(), int(r.Arg) < len(activityWords) && r.Rand == 0
	case Wait:
		return strconv.Itoa(int(r.Rand)), r.Arg == 0
	case Do:
		return r.doText()
	case Client, ClientMore:
		return r.clientText()
	}
	return "", false
}

func (r Record) doText() (string, bool) {
	if r.Arg >= uint8(actionEnd) {
		return "", false
	}
	a := actions[r.Arg]
	switch a.takes {
	case takesTable:
		return a.word + " " + word(tableWords, int(r.Rand)), int(r.Rand) < len(tableWords)
	case takesHost:
		return a.word + " " + word(hostWords, int(r.Rand)), int(r.Rand) < len(hostWords)
	case takesNumber:
		return fmt.Sprintf("%s %d", a.word, r.Rand), true
	}
	return a.word, r.Rand == 0
}

// parseDirected reads what directed wrote.
func parseDirected(op Op, words []string) (Record, error) {
	r := Record{Op: op}
	if len(words) == 0 {
		return r, fmt.Errorf("%v wants to know what", op)
	}
	var err error
	switch op {
	case Change:
		return parseChange(words)
	case Commit:
		r.Arg, err = code(endWords, words[0])
	case Stop:
		if len(words) != 3 || words[1] != "at" {
			return r, fmt.Errorf("want stop ACTIVITY at PLACE, not %q", words)
		}
		var place uint8
		if place, err = code(placeWords, words[2]); err == nil {
			r.Arg, err = code(activityWords, words[0])
		}
		r.Rand = uint16(place)
	case Go:
		r.Arg, err = code(activityWords, words[0])
	case Wait:
		var n uint64
		n, err = strconv.ParseUint(words[0], 10, 16)
		r.Rand = uint16(n)
	case Do:
		return parseDo(words)
	case Client, ClientMore:
		return parseClient(words)
	}
	return r, err
}

func parseDo(words []string) (Record, error) {
	r := Record{Op: Do}
	at := slices.IndexFunc(actions[:], func(a struct {
		word  string
		takes takes
	},
	) bool {
		return a.word == words[0]
	})
	if at < 0 {
		return r, fmt.Errorf("unknown action %q", words[0])
	}
	r.Arg = uint8(at)
	if len(words) == 1 {
		return r, nil
	}
	var n uint8
	var err error
	switch actions[at].takes {
	case takesTable:
		n, err = code(tableWords, words[1])
		r.Rand = uint16(n)
	case takesHost:
		n, err = code(hostWords, words[1])
		r.Rand = uint16(n)
	case takesNumber:
		var n uint64
		n, err = strconv.ParseUint(words[1], 10, 16)
		r.Rand = uint16(n)
	default:
		return r, fmt.Errorf("%s takes nothing, not %q", words[0], words[1])
	}
	return r, err
}

// parseChange reads KIND TABLE [FIRST[-LAST]] [SHAPE].
func parseChange(words []string) (Record, error) {
	r := Record{Op: Change}
	if len(words) < 2 || len(words) > 4 {
		return r, fmt.Errorf("want change KIND TABLE [KEY[-KEY]] [SHAPE], not %q", words)
	}
	kind, err := code(changeWords, words[0])
	if err != nil {
		return r, err
	}
	table, err := code(tableWords, words[1])
	if err != nil {
		return r, err
	}
	r.Arg = kind | table<<5
	if len(words) == 2 {
		return r, nil
	}
	from, to, ranged := strings.Cut(words[2], "-")
	first, err := strconv.ParseUint(from, 10, 6)
	if err != nil {
		return r, err
	}
	last := first
	if ranged {
		if last, err = strconv.ParseUint(to, 10, 6); err != nil {
			return r, err
		}
	}
	r.Rand = uint16(first | last<<6)
	if len(words) == 4 {
		shape, err := code(shapeWords, words[3])
		if err != nil {
			return r, err
		}
		r.Rand |= uint16(shape) << 12
	}
	return r, nil
}

func code(words []string, w string) (uint8, error) {
	i := slices.Index(words, w)
	if i < 0 {
		return 0, fmt.Errorf("unknown word %q", w)
	}
	return uint8(i), nil
}
