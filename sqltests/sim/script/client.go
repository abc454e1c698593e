package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Verb is what a client of tables of our own does. The values are part of the compact form.
type Verb uint8

// The verbs.
const (
	Copy    Verb = iota // COPY FROM STDIN begins
	CopyCSV             // the same, of csv
	Rows                // a frame with rows
	Half                // a frame that ends in the middle of what is to be sent
	Empty               // a frame without data
	Bad                 // a frame with a row that cannot be read
	Done                // the end of the data
	Fail                // the client gives the COPY up
	Vanish              // it is gone, without a word
	Insert
	Update
	Delete
	Truncate
	Begin
	CommitBlock
	Rollback
	Savepoint
	Back // to the savepoint
	Create
	Drop
	Leave   // it ends the connection
	Connect // it connects to the host that leads
	Cancel  // it cancels its statement, by another connection
	Grant   // a role may read the table, and with Revoke it may not
	Revoke
	AddColumn
	DropColumn
	Unique // an index has the values of a column be so
	NotUnique
	SetValue    // of a sequence
	Restart     // TRUNCATE … RESTART IDENTITY
	RestartWith // ALTER TABLE … RESTART WITH
	Rekey       // gives the first row the key of the last
	Immediate   // SET CONSTRAINTS ALL IMMEDIATE, and Deferred
	Deferred
	Foreign // rows must refer to ones that are there, or need not
	NotForeign
	Lock    // SELECT … FOR UPDATE
	Refresh // of a materialized view, and the same with CONCURRENTLY
	RefreshConcurrently

	verbEnd
)

// verbsOfOne is how many verbs there are to an operation.
const verbsOfOne = 32

// Clients, and the tables that they change.
var (
	clientWords   = []string{"one", "two", "three"}
	ownTableWords = []string{"ints", "texts", "log", "extra", "numbered", "parent", "child", "grand"}
	ownShapeWords = []string{"plain", "null", "odd", "long"}
)

// Clients are the names of the clients.
func Clients() []string { return clientWords }

// OwnTables are the tables that clients change.
func OwnTables() []string { return ownTableWords }

const takesRows = takesNumber + 1

var verbs = [verbEnd]struct {
	word  string
	takes takes
}{
	Copy: {"copy", takesTable}, CopyCSV: {"copy_csv", takesTable}, Rows: {"rows", takesRows}, Half: {"half", takesRows},
	Empty: {"empty", takesNothing}, Bad: {"bad", takesNothing}, Done: {"done", takesNothing}, Fail: {"fail", takesNothing},
	Vanish: {"vanish", takesNothing}, Insert: {"insert", takesRows}, Update: {"update", takesRows}, Delete: {"delete", takesRows},
	Truncate: {"truncate", takesTable}, Begin: {"begin", takesNothing}, CommitBlock: {"commit", takesNothing},
	Rollback: {"rollback", takesNothing}, Savepoint: {"savepoint", takesNothing}, Back: {"back", takesNothing},
	Create: {"create", takesNothing}, Drop: {"drop", takesNothing}, Leave: {"leave", takesNothing}, Connect: {"connect", takesNothing},
	Cancel: {"cancel", takesNothing}, Grant: {"grant", takesTable}, Revoke: {"revoke", takesTable},
	AddColumn: {"add_column", takesTable}, DropColumn: {"drop_column", takesTable}, Unique: {"unique", takesTable},
	NotUnique: {"not_unique", takesTable}, SetValue: {"setval", takesRows}, Restart: {"restart", takesNothing},
	RestartWith: {"restart_with", takesRows}, Rekey: {"rekey", takesRows}, Immediate: {"immediate", takesNothing},
	Deferred: {"deferred", takesNothing}, Foreign: {"foreign", takesNothing}, NotForeign: {"not_foreign", takesNothing},
	Lock: {"lock", takesRows}, Refresh: {"refresh", takesNothing}, RefreshConcurrently: {"refresh_concurrently", takesNothing},
}

// ClientStep is what a client does.
type ClientStep struct {
	Client      int
	Verb        Verb
	Table       string
	First, Last int
	Shape       string
}

// Client is what a client does. A code that no verb has means that it connects.
func (r Record) Client() ClientStep {
	s := ClientStep{
		Client: int(r.Arg>>6) % len(clientWords), Verb: Verb(r.Arg & 0x1f), First: int(r.Rand & 0x3f), Last: int(r.Rand >> 6 & 0x3f),
		Table: ownTableWords[(int(r.Rand>>12&3)+int(r.Arg>>5&1)*4)%len(ownTableWords)], Shape: ownShapeWords[r.Rand>>14],
	}
	if r.Op == ClientMore {
		s.Verb += verbsOfOne
	}
	if s.Verb >= verbEnd {
		s.Verb = Connect
	}
	s.Last = max(s.First, s.Last)
	return s
}

// clientText is its text; false for what no text says.
func (r Record) clientText() (string, bool) {
	s := r.Client()
	text := clientWords[s.Client] + " " + verbs[s.Verb].word
	switch verbs[s.Verb].takes {
	case takesTable:
		text += " " + s.Table
	case takesRows:
		text += fmt.Sprintf(" %s %d", s.Table, s.First)
		if s.Last != s.First {
			text += fmt.Sprintf("-%d", s.Last)
		}
		if s.Shape != ownShapeWords[0] {
			text += " " + s.Shape
		}
	}
	back, err := parseClient(strings.Fields(text))
	return text, err == nil && back.Op == r.Op && back.Arg == r.Arg && back.Rand == r.Rand
}

// parseClient reads CLIENT VERB [TABLE [FIRST[-LAST]] [SHAPE]].
func parseClient(words []string) (Record, error) {
	r := Record{Op: Client}
	if len(words) < 2 || len(words) > 5 {
		return r, fmt.Errorf("want client CLIENT VERB [TABLE [ROW[-ROW]] [SHAPE]], not %q", words)
	}
	client, err := code(clientWords, words[0])
	if err != nil {
		return r, err
	}
	verb := slices.IndexFunc(verbs[:], func(v struct {
		word  string
		takes takes
	},
	) bool {
		return v.word == words[1]
	})
	if verb < 0 {
		return r, fmt.Errorf("unknown verb %q", words[1])
	}
	if verb >= verbsOfOne {
		r.Op = ClientMore
	}
	r.Arg = client<<6 | uint8(verb%verbsOfOne)
	most := map[takes]int{takesNothing: 2, takesTable: 3, takesRows: 5}[verbs[verb].takes]
	if len(words) > most || len(words) == 2 && most > 2 {
		return r, fmt.Errorf("%s takes other words than %q", words[1], words[2:])
	}
	return r, r.clientRows(words[2:])
}

// clientRows takes in TABLE [FIRST[-LAST]] [SHAPE].
func (r *Record) clientRows(words []string) error {
	if len(words) == 0 {
		return nil
	}
	table, err := code(ownTableWords, words[0])
	if err != nil {
		return err
	}
	r.Rand = uint16(table&3) << 12
	r.Arg |= table >> 2 << 5
	if len(words) == 1 {
		return nil
	}
	from, to, ranged := strings.Cut(words[1], "-")
	first, err := strconv.ParseUint(from, 10, 6)
	if err != nil {
		return err
	}
	last := first
	if ranged {
		if last, err = strconv.ParseUint(to, 10, 6); err != nil {
			return err
		}
	}
	r.Rand |= uint16(first | last<<6)
	if len(words) == 3 {
		shape, err := code(ownShapeWords, words[2])
		r.Rand |= uint16(shape) << 14
		return err
	}
	return nil
}
