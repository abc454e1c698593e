// Package querylog logs statements as log_statement, log_min_duration_statement and their like
// say. What is secret in a statement's text is left out, and values of parameters are never logged.
package querylog

import (
	"log/slog"
	"strings"
	"time"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/setting"
)

// Session logs what one session does. Used by one goroutine.
type Session struct {
	// Log has the session's attributes.
	Log    *slog.Logger
	Values *setting.Values
}

// textMax bounds a statement's text in the log.
const textMax = 64 << 10

func text(sql string) slog.Attr {
	if len(sql) > textMax {
		sql = strings.ToValidUTF8(sql[:textMax], "")
	}
	return slog.String("statement", ddl.Redact(sql))
}

// Opened is told that the session began, Closed that it ends after that time.
func (s Session) Opened() {
	if s.on("log_connections") {
		s.Log.Info("connection authorized")
	}
}

// Closed is told that the session ends, and how long it was.
func (s Session) Closed(after time.Duration) {
	if s.on("log_disconnections") {
		s.Log.Info("disconnection", "session_time", after)
	}
}

func (s Session) on(name string) bool { return s.Values.Value(name) == "on" }

// Began is told of a message with a statement before it is served; step says which message it
// is: statement, parse, bind or execute.
func (s Session) Began(step, sql string) {
	if level := s.Values.Value("log_statement"); level != "none" && (step == "statement" || step == "execute") && logged(level, sql) {
		s.Log.Info("statement began", "step", step, text(sql))
	}
}

// Ended is told how long serving it took.
func (s Session) Ended(step, sql string, took time.Duration) {
	shown := s.Values.Value("log_min_duration_statement")
	switch limit := setting.Duration(shown); {
	case shown != "-1" && took >= limit:
		s.Log.Info("statement ended", "step", step, "duration", took, text(sql))
	case s.on("log_duration"):
		s.Log.Info("statement ended", "step", step, "duration", took)
	}
}

// severities are the values of log_min_error_statement from which on errors are not logged.
var severities = map[string]bool{"log": true, "fatal": true, "panic": true}

// Failed is told of a statement's error.
func (s Session) Failed(step, sql string, e *pgerr.Error) {
	level := s.Values.Value("log_min_error_statement")
	if level == "panic" || severities[level] && e.Severity != "FATAL" {
		return
	}
	shown, message := text(sql), e.Message
	if shown.Value.String() != sql { // what is left out may be what the error is near
		message, _, _ = strings.Cut(message, " at or near ")
	}
	s.Log.Info("statement failed", "step", step, "sqlstate", string(e.Code), "message", message, shown)
}

// The words that begin the statements of log_statement = ddl, and those that mod has beside them.
var (
	ddlWords = []string{"create", "alter", "drop", "grant", "revoke", "comment", "import", "security", "reassign"}
	modWords = []string{"insert", "update", "delete", "truncate", "copy", "merge"}
)

// logged reports whether log_statement = level is for one of the statements of a text.
func logged(level, sql string) bool {
	if level == "all" {
		return true
	}
	for piece := range strings.SplitSeq(sql, ";") { // one in a quoted text makes for a line too many
		word := firstWord(piece)
		for _, w := range ddlWords {
			if w == word {
				return true
			}
		}
		for _, w := range modWords {
			if level == "mod" && (w == word || word == "with" && strings.Contains(strings.ToLower(piece), w)) {
				return true
			}
		}
	}
	return false
}

// firstWord is the first word of a statement, behind blanks, comments and what it is explained or
// prepared with, in lower case.
func firstWord(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f(")
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			_, sql, _ = strings.Cut(sql, "*/")
		default:
			end := strings.IndexFunc(sql, func(r rune) bool { return (r|0x20) < 'a' || (r|0x20) > 'z' })
			if end < 0 {
				end = len(sql)
			}
			return strings.ToLower(sql[:end])
		}
	}
}
