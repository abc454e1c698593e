package slt

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Dialect is the program whose reading of a file counts where they differ: how a record
// ends, how values are written, how rows are laid out, what follows "ok".
type Dialect uint8

// The dialects. Auto looks at the file.
const (
	Auto Dialect = iota
	SQLite
	DuckDB
	Cockroach
	Rust // sqllogictest-rs
)

// ParseDialect reads a dialect's name: auto, sqlite, duckdb, cockroach, risingwave.
func ParseDialect(name string) (Dialect, error) {
	switch name {
	case "auto", "":
		return Auto, nil
	case "sqlite":
		return SQLite, nil
	case "duckdb":
		return DuckDB, nil
	case "cockroach", "cockroachdb":
		return Cockroach, nil
	case "risingwave", "rs", "sqllogictest-rs":
		return Rust, nil
	}
	return Auto, fmt.Errorf("unknown dialect %q: auto, sqlite, duckdb, cockroach and risingwave are known", name)
}

// String is the name that ParseDialect reads.
func (d Dialect) String() string {
	return [...]string{"auto", "sqlite", "duckdb", "cockroach", "risingwave"}[d]
}

// headLines is how far detect looks for a CockroachDB header.
const headLines = 40

// detect finds out a file's dialect from its name and its words.
func detect(path string, lines []string) Dialect {
	for _, l := range lines[:min(len(lines), headLines)] {
		if strings.HasPrefix(l, "# LogicTest:") {
			return Cockroach
		}
	}
	switch filepath.Ext(path) {
	case ".test_slow", ".test_coverage":
		return DuckDB
	case ".test":
		if hasDuckWords(lines) {
			return DuckDB
		}
		return SQLite
	case "":
		return Cockroach
	}
	return Rust
}

// hasDuckWords tells DuckDB's .test files from sqlite's, which have few words.
func hasDuckWords(lines []string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, "# name:") || strings.HasPrefix(l, "# group:") {
			return true
		}
		word, rest, _ := strings.Cut(l, " ")
		switch word {
		case "require", "require-env", "test-env", "load", "restart", "reconnect", "mode", "loop", "foreach",
			"concurrentloop", "concurrentforeach", "unzip", "tags":
			return true
		case "statement":
			if strings.HasPrefix(rest, "maybe") {
				return true
			}
		}
	}
	return false
}

// blank tells that a line ends a record. Two dialects cut trailing white space first.
func (d Dialect) blank(line string) bool {
	if d == SQLite || d == Cockroach {
		return strings.TrimSpace(line) == ""
	}
	return line == ""
}
