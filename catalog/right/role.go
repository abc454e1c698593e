package right

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Object ids of roles that are always there.
const (
	Public            uint32 = 0 // every role; no role itself
	Bootstrap         uint32 = 10
	Monitor           uint32 = 3373
	ReadAllSettings   uint32 = 3374
	ReadAllStats      uint32 = 3375
	StatScanTables    uint32 = 3377
	SignalBackend     uint32 = 4200
	Checkpoint        uint32 = 4544
	ReadServerFiles   uint32 = 4569
	WriteServerFiles  uint32 = 4570
	RunServerPrograms uint32 = 4571
	DatabaseOwner     uint32 = 6171
	ReadAllData       uint32 = 6181
	WriteAllData      uint32 = 6182
)

// Role is a database role.
type Role struct {
	OID       uint32
	Name      string
	Superuser bool
	CanLogin  bool
	// Verifier is the SCRAM-SHA-256 verifier of the password, "" for none. It is never shown.
	Verifier string
	// NoInherit: it has the privileges of the roles it is a member of only after SET ROLE.
	NoInherit   bool `json:",omitempty"`
	CreateRole  bool `json:",omitempty"`
	CreateDB    bool `json:",omitempty"`
	Replication bool `json:",omitempty"`
	BypassRLS   bool `json:",omitempty"`
	// Limited says that it has at most ConnectionLimit sessions at once.
	Limited         bool  `json:",omitempty"`
	ConnectionLimit int32 `json:",omitempty"`
	// ValidUntil ends the password's validity; zero: it does not end.
	ValidUntil time.Time `json:",omitzero"`
	// MemberOf are the roles it was granted, by their ids.
	MemberOf []Membership `json:",omitempty"`
	// Settings are values with which its sessions begin, by name.
	Settings map[string]string `json:",omitempty"`
	// Local are those of its sessions in the database, before Settings.
	Local map[string]string `json:",omitempty"`
	// Comment is what COMMENT ON says of it.
	Comment string `json:",omitempty"`
	// Builtin says that it is one of PostgreSQL's predefined roles, which are not stored.
	Builtin bool `json:"-"`
}

// Membership is that a role was granted to another one.
type Membership struct {
	Role, Grantor uint32
	// Admin says that the member may grant it to others.
	Admin bool `json:",omitempty"`
}

// Clone is a copy that shares nothing changeable.
func (r *Role) Clone() *Role {
	c := *r
	c.MemberOf, c.Settings, c.Local = slices.Clone(r.MemberOf), maps.Clone(r.Settings), maps.Clone(r.Local)
	return &c
}

// predefined are the roles that PostgreSQL has from the start.
func predefined() []*Role {
	names := map[uint32]string{
		DatabaseOwner: "pg_database_owner", ReadAllData: "pg_read_all_data", WriteAllData: "pg_write_all_data", Monitor: "pg_monitor",
		ReadAllSettings: "pg_read_all_settings", ReadAllStats: "pg_read_all_stats", StatScanTables: "pg_stat_scan_tables",
		ReadServerFiles: "pg_read_server_files", WriteServerFiles: "pg_write_server_files",
		RunServerPrograms: "pg_execute_server_program", SignalBackend: "pg_signal_backend", Checkpoint: "pg_checkpoint",
	}
	out := make([]*Role, 0, len(names))
	for _, oid := range slices.Sorted(maps.Keys(names)) {
		r := &Role{OID: oid, Name: names[oid], Builtin: true}
		if oid == Monitor {
			for _, of := range []uint32{ReadAllSettings, ReadAllStats, StatScanTables} {
				r.MemberOf = append(r.MemberOf, Membership{Role: of, Grantor: Bootstrap})
			}
		}
		out = append(out, r)
	}
	return out
}

// ValidVerifier says whether text is a SCRAM-SHA-256 verifier in PostgreSQL's form:
// SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func ValidVerifier(text string) bool {
	rest, ok := strings.CutPrefix(text, "SCRAM-SHA-256$")
	if !ok || len(text) > verifierBytesMax {
		return false
	}
	head, keys, ok := strings.Cut(rest, "$")
	count, salt, ok2 := strings.Cut(head, ":")
	stored, server, ok3 := strings.Cut(keys, ":")
	n, err := strconv.Atoi(count)
	if !ok || !ok2 || !ok3 || err != nil || n < 1 {
		return false
	}
	if b, err := base64.StdEncoding.DecodeString(salt); err != nil || len(b) == 0 {
		return false
	}
	for _, key := range []string{stored, server} {
		if b, err := base64.StdEncoding.DecodeString(key); err != nil || len(b) != sha256.Size {
			return false
		}
	}
	return true
}

const verifierBytesMax = 1024
