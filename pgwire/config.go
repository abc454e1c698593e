package pgwire

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/skipprd/skipprd/pgwire/hba"
	"github.com/skipprd/skipprd/wal/env"
)

// AuthMethod says how clients of a kind of address prove who they are.
type AuthMethod uint8

// The methods. Zero means the default of the field.
const (
	// AuthTrust believes the client's user name.
	AuthTrust AuthMethod = iota + 1
	// AuthSCRAM asks for the password by SCRAM-SHA-256, and offers -PLUS over TLS.
	AuthSCRAM
	// AuthReject turns the client away.
	AuthReject
)

// Config is what a user tunes.
type Config struct {
	// AuthLoopback applies to loopback addresses and Unix sockets, default AuthTrust;
	// AuthRemote to all others, default AuthSCRAM.
	AuthLoopback, AuthRemote AuthMethod
	// Rules, asked for each client, are those of a pg_hba.conf file; without, or when it
	// returns nil, AuthLoopback and AuthRemote hold.
	Rules func() *hba.Rules
	// TLS enables TLS when not nil. Certificates[0] is what channel binding refers to.
	TLS *tls.Config
	// RequireTLS turns away clients that stay in plaintext.
	RequireTLS bool
	// ConnectionsMax bounds sessions; more get 53300. Default 500.
	ConnectionsMax int
	// ReservedMax is how many of them only superusers may have. Default 0.
	ReservedMax int
	// MessageBytesMax bounds a message after authentication, COPY data excepted, which
	// streams. Default 64 MiB. Before authentication the bound is 16 KiB.
	MessageBytesMax int
	// StartupTimeout bounds TLS, start-up and authentication together. Default 30 s.
	StartupTimeout time.Duration
	// IdleTimeout ends sessions that idle outside a transaction, IdleTxTimeout inside
	// one. Zero: never.
	IdleTimeout, IdleTxTimeout time.Duration
	// PeerCheckInterval is how often running statements look whether their client is
	// still there. Default 500 ms.
	PeerCheckInterval time.Duration
}

// Deps are a server's collaborators.
type Deps struct {
	Engine Engine
	Clock  env.Clock
	IDs    env.IDs
	Log    *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.AuthLoopback == 0 {
		c.AuthLoopback = AuthTrust
	}
	if c.AuthRemote == 0 {
		c.AuthRemote = AuthSCRAM
	}
	if c.ConnectionsMax == 0 {
		c.ConnectionsMax = 500
	}
	if c.MessageBytesMax == 0 {
		c.MessageBytesMax = 64 << 20
	}
	if c.StartupTimeout == 0 {
		c.StartupTimeout = 30 * time.Second
	}
	if c.PeerCheckInterval == 0 {
		c.PeerCheckInterval = 500 * time.Millisecond
	}
	return c
}

// Validate reports all problems of the settings.
func (c Config) Validate() error {
	var errs []error
	if c.RequireTLS && c.TLS == nil {
		errs = append(errs, errors.New("TLS is required but not configured"))
	}
	if c.TLS != nil && len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil {
		errs = append(errs, errors.New("TLS has no certificate"))
	}
	if c.ConnectionsMax < 0 || c.MessageBytesMax < 0 || c.StartupTimeout < 0 || c.IdleTimeout < 0 || c.IdleTxTimeout < 0 {
		errs = append(errs, errors.New("limits must not be negative"))
	}
	if c.AuthLoopback > AuthReject || c.AuthRemote > AuthReject {
		errs = append(errs, errors.New("unknown authentication method"))
	}
	return errors.Join(errs...)
}
