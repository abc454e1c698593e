package ddl

import (
	"time"

	"github.com/skipprd/skipprd/catalog"
)

// Statement is a parsed statement of ours.
type Statement interface {
	// Tag is the command tag of a success without rows.
	Tag() string
	// Transactional reports whether it may run inside a transaction block.
	Transactional() bool
}

// CreateSecret is CREATE SECRET, and ALTER SECRET with Alter set.
type CreateSecret struct {
	Name                   string
	Value                  string
	OrReplace, IfNotExists bool
	Alter                  bool
}

// Drop is DROP SECRET, DROP CONNECTION and DROP PIPELINE.
type Drop struct {
	Object   string // SECRET, CONNECTION, PIPELINE
	Name     string
	IfExists bool
	KeepData bool
	Cascade  bool `json:",omitempty"`
}

// Option is one NAME value pair. Pos points at its name.
type Option struct {
	Name   string // upper case for connections, lower case for pipelines
	Value  string
	Secret string // NAME SECRET x
	Pos    int32
}

// ConnectionSpec is KIND ['url'] [(options)].
type ConnectionSpec struct {
	Kind    string // lower case
	URL     string
	Options []Option
	Pos     int32
}

// CreateConnection is CREATE CONNECTION.
type CreateConnection struct {
	Name                   string
	Spec                   ConnectionSpec
	OrReplace, IfNotExists bool
}

// AlterConnection is ALTER CONNECTION … SET (…).
type AlterConnection struct {
	Name    string
	Options []Option
}

// ValidateConnection is VALIDATE CONNECTION.
type ValidateConnection struct{ Name string }

// CreatePipeline is CREATE PIPELINE. Exactly one of Connection and Inline is set.
type CreatePipeline struct {
	Name                   string
	Connection             string
	Inline                 *ConnectionSpec
	Lake                   string
	Schema                 string
	Selection              catalog.TableSelection
	Options                []Option
	OrReplace, IfNotExists bool
}

// Action is what ALTER PIPELINE does to a pipeline or its tables.
type Action string

// The actions.
const (
	Enable       Action = "ENABLE"
	Disable      Action = "DISABLE"
	Pause        Action = "PAUSE"
	Resume       Action = "RESUME"
	Reset        Action = "RESET"
	Compact      Action = "COMPACT"
	AddTable     Action = "ADD TABLE"
	DropTable    Action = "DROP TABLE"
	ResyncTable  Action = "RESYNC TABLE"
	ResumeTable  Action = "RESUME TABLE"
	SetOptions   Action = "SET"
	ResetOptions Action = "RESET OPTIONS"
	Rename       Action = "RENAME"
	Refresh      Action = "REFRESH"
)

// AlterPipeline is ALTER PIPELINE and its short forms.
type AlterPipeline struct {
	Name    string
	Action  Action
	Tables  []catalog.SelectedTable
	Options []Option
	NewName string
	// Short is set for the short form (ENABLE PIPELINE p), whose tag it is.
	Short string
}

// Discover is DISCOVER PIPELINE and DISCOVER CONNECTION.
type Discover struct {
	Object string // PIPELINE or CONNECTION
	Name   string
}

// Sync is SYNC PIPELINE.
type Sync struct {
	Name string
	// For bounds the run; zero: until caught up.
	For time.Duration
}

// Show is the SHOW forms of ours.
type Show struct {
	What  string // PIPELINES, PIPELINE, STATS, CONNECTIONS, SECRETS, DOCS
	Name  string
	Table string
}

// Tag implements Statement.
func (s *CreateSecret) Tag() string {
	if s.Alter {
		return "ALTER SECRET"
	}
	return "CREATE SECRET"
}

// Tag implements Statement.
func (s *Drop) Tag() string { return "DROP " + s.Object }

// Tag implements Statement.
func (*CreateConnection) Tag() string { return "CREATE CONNECTION" }

// Tag implements Statement.
func (*AlterConnection) Tag() string { return "ALTER CONNECTION" }

// Tag implements Statement.
func (*ValidateConnection) Tag() string { return "VALIDATE CONNECTION" }

// Tag implements Statement.
func (*CreatePipeline) Tag() string { return "CREATE PIPELINE" }

// Tag implements Statement.
func (s *AlterPipeline) Tag() string {
	if s.Short != "" {
		return s.Short
	}
	return "ALTER PIPELINE"
}

// Tag implements Statement.
func (*Discover) Tag() string { return "DISCOVER" }

// Tag implements Statement.
func (*Sync) Tag() string { return "SYNC" }

// Tag implements Statement.
func (*Show) Tag() string { return "SHOW" }

// Transactional implements Statement.
func (*CreateSecret) Transactional() bool { return false }

// Transactional implements Statement.
func (*Drop) Transactional() bool { return false }

// Transactional implements Statement.
func (*CreateConnection) Transactional() bool { return false }

// Transactional implements Statement.
func (*AlterConnection) Transactional() bool { return false }

// Transactional implements Statement.
func (*ValidateConnection) Transactional() bool { return true }

// Transactional implements Statement.
func (*CreatePipeline) Transactional() bool { return false }

// Transactional implements Statement.
func (*AlterPipeline) Transactional() bool { return false }

// Transactional implements Statement.
func (*Discover) Transactional() bool { return true }

// Transactional implements Statement.
func (*Sync) Transactional() bool { return false }

// Transactional implements Statement.
func (*Show) Transactional() bool { return true }
