package hba

import (
	"net/netip"
	"slices"
	"strings"
)

// Method says how a client proves who it is.
type Method string

// The methods.
const (
	Trust    Method = "trust"
	Reject   Method = "reject"
	SCRAM    Method = "scram-sha-256"
	Password Method = "password" // in clear text, over TLS only
	Cert     Method = "cert"
)

// Connection is a way to connect.
type Connection string

// The types of rules.
const (
	Local     Connection = "local" // Unix sockets
	Host      Connection = "host"
	HostSSL   Connection = "hostssl"
	HostNoSSL Connection = "hostnossl"
)

// Rule is one line.
type Rule struct {
	Line       int
	Connection Connection
	// Databases and Users are names, or keywords when they were not quoted.
	Databases, Users []Name
	// Address is what the rule is for: a keyword (all, samehost, samenet), or Prefix.
	Keyword string
	Prefix  netip.Prefix
	Method  Method
	// Map names the map that translates names of certificates, "" for none.
	Map string
	// ClientCert says that a certificate is asked for beside the method: "verify-ca", or
	// "verify-full", by which it must be the user's.
	ClientCert string
	Text       string
}

// Name is a name of a database or role in a rule.
type Name struct {
	Text string
	// Quoted takes keywords and signs their meaning.
	Quoted bool
}

// Rules are a file's. Immutable.
type Rules struct {
	Rules []Rule
	Maps  *Maps
}

// Client is who connects.
type Client struct {
	// Local says that it came by a Unix socket, or within the process; then Address is none.
	Local          bool
	Address        netip.Addr
	TLS            bool
	Database, User string
	// MemberOf are the roles that the user is a member of, itself among them.
	MemberOf []string
	// Own are the server's networks, for samehost and samenet.
	Own func() []netip.Prefix
}

// Find returns the rule that decides, nil for none.
func (r *Rules) Find(c Client) *Rule {
	for i := range r.Rules {
		if r.Rules[i].matches(c) {
			return &r.Rules[i]
		}
	}
	return nil
}

func (r *Rule) matches(c Client) bool {
	switch r.Connection {
	case Local:
		if !c.Local {
			return false
		}
	case HostSSL:
		if c.Local || !c.TLS {
			return false
		}
	case HostNoSSL:
		if c.Local || c.TLS {
			return false
		}
	default:
		if c.Local {
			return false
		}
	}
	if r.Connection != Local && !r.from(c) {
		return false
	}
	return slices.ContainsFunc(r.Databases, func(n Name) bool { return n.database(c) }) &&
		slices.ContainsFunc(r.Users, func(n Name) bool { return n.user(c) })
}

// from says whether the client's address is one of the rule's.
func (r *Rule) from(c Client) bool {
	address := c.Address.Unmap().WithZone("")
	switch r.Keyword {
	case "all":
		return true
	case "samehost", "samenet":
		if c.Own == nil {
			return false
		}
		return slices.ContainsFunc(c.Own(), func(p netip.Prefix) bool {
			return p.Addr() == address || r.Keyword == "samenet" && p.Masked().Contains(address)
		})
	}
	return r.Prefix.Contains(address)
}

func (n Name) database(c Client) bool {
	if n.Quoted {
		return n.Text == c.Database
	}
	switch n.Text {
	case "all":
		return true
	case "sameuser":
		return c.User == c.Database
	case "samerole", "samegroup":
		return slices.Contains(c.MemberOf, c.Database)
	case "replication":
		return false
	}
	return n.Text == c.Database
}

func (n Name) user(c Client) bool {
	if n.Quoted {
		return n.Text == c.User
	}
	if n.Text == "all" {
		return true
	}
	if group, ok := strings.CutPrefix(n.Text, "+"); ok {
		return slices.Contains(c.MemberOf, group)
	}
	return n.Text == c.User
}
