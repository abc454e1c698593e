package slt

import (
	"regexp"
	"time"
)

// Kind is what a record does.
type Kind uint8

// The kinds of records.
const (
	Statement   Kind = iota + 1
	Query            // with Types, Sort, Expected
	Control          // control sortmode | resultmode | substitution
	Let              // let NAME…, then a query
	Sleep            // sleep DURATION
	System           // system ok, then a shell command
	Halt             // stop reading
	Loop             // loop, foreach and their concurrent forms, with Body
	Include          // Body holds the records of the files
	Subtest          // a label for messages
	Threshold        // hash-threshold N
	User             // user NAME: whose sessions the following records use
	Await            // awaitstatement NAME: the end of a statement that runs meanwhile
	Mode             // mode skip | unskip
	Continue         // the next turn of the loop
	Reconnect        // new sessions
	Require          // require NAME: the file is skipped where it is not provided
	Env              // require-env, test-env
	Ignored          // tells the reader, or tunes what we have not
	Rest             // the rest of the file needs what this runner has not
	Unsupported      // this record needs it
)

// Want is what a statement must do.
type Want uint8

// What a statement must do: succeed, fail, either.
const (
	Succeed Want = iota
	Fail
	Either
)

// Condition is one skipif or onlyif before a record.
type Condition struct {
	Only bool // onlyif
	// Name is a label of the server, or the variable of a loop when Op is set.
	Name string
	// Op compares the variable: = <> < <= > >=. Empty: Name is a label.
	Op, Value string
	// Config marks "skipif config …": CockroachDB's clusters, of which we are none.
	Config bool
}

// ExpectedError is what an error must look like; the zero value matches every error.
type ExpectedError struct {
	Code  string         // SQLSTATE
	Regex *regexp.Regexp // on the head line, or after <REGEX>: in the block
	Not   bool           // <!REGEX>: Regex must not match
	Text  string         // the block after ----
	block span
}

// span is lines of a file, counted from 0, without the last.
type span struct{ from, to int }

// Record is one record of a file.
type Record struct {
	Kind  Kind
	File  string
	Line  int      // of its first word, from 1
	Head  string   // that line
	Words []string // of that line
	SQL   string   // or the shell command

	Conditions []Condition
	Connection string
	Repeat     int
	RetryCount int
	RetryDelay time.Duration

	// Statement.
	Want   Want
	Error  ExpectedError
	Count  int64          // -1: not checked
	Notice *regexp.Regexp // one of the notices
	Async  string         // runs meanwhile, under this name

	// Query.
	Types       string
	Sort        string // "": the file's
	SortColumns []int  // of partialsort, from 1
	ColNames    bool
	NoticeTrace bool
	Label       string
	Expected    []string
	Checked     bool // a ---- line was there
	block       span // of Expected

	// Duration of sleep.
	Duration time.Duration

	// Loop and Include.
	Body       []*Record
	Turns      [][][2]string // variables and their values, per turn
	Concurrent bool
}

// Script is a file as read.
type Script struct {
	File    string
	Dialect Dialect
	Records []*Record
}
