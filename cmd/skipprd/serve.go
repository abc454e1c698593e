package main

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/env"
)

func runServe(ctx context.Context, args []string) error {
	c := newConfig()
	fs := newFlags("serve", "[flags]", `
Runs the server: Postgres clients on --listen, metrics and health on --http.
Everything is kept under --data-dir. A setting comes from its flag, its environment
variable (in brackets), the settings file, or its default; "skipprd config" shows which.`)
	c.flags(fs)
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if err := c.resolve(os.LookupEnv); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	log := newLogger(c)
	for {
		n, err := open(ctx, c, log)
		if err == nil {
			err = n.run(ctx)
		}
		if !errors.Is(err, wal.ErrFenced) || ctx.Err() != nil {
			return err
		}
		// Another node leads. What this one knows counts no more: it begins anew, standing by.
		log.Warn("node was taken over, stands by", env.KeyError, err)
	}
}

// newLogger logs to standard error.
func newLogger(c *config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.get("log-level"))) // checked with the settings
	opts := &slog.HandlerOptions{Level: level}
	if c.get("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}

// secretKey returns the key that seals secrets: the setting's, or the one in the data
// directory, made at the first start.
func secretKey(c *config, ids env.IDs) ([]byte, error) {
	text := c.get("secret-key")
	path := filepath.Join(c.get("data-dir"), "secret.key")
	if text == "" {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			key := make([]byte, 32)
			ids.Read(key)
			return key, writeKey(path, key)
		}
		if err != nil {
			return nil, fmt.Errorf("read secret key: %w", err)
		}
		text = strings.TrimSpace(string(b))
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != 32 {
		return nil, errors.New("secret key: 64 hex digits are needed")
	}
	return key, nil
}

// writeKey makes the key durable before anything is sealed with it.
func writeKey(path string, key []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write secret key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write secret key: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// password is the password of role postgres, "" when none is set.
func password(c *config) (string, error) {
	if path := c.get("password-file"); path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read password file: %w", err)
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	return c.get("password"), nil
}

// isLoopback says whether only this machine reaches addr.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// wireConfig decides authentication and TLS. Rules say all; without, off loopback a password and TLS are
// needed unless the user says otherwise in so many words.
func wireConfig(ctx context.Context, c *config, cat *catalog.Catalog, rules *rules) (pgwire.Config, error) {
	cfg := pgwire.Config{
		ConnectionsMax: c.int("max-connections"), ReservedMax: c.reserved(),
		StartupTimeout: time.Minute, // as authentication_timeout says
	}
	pw, err := password(c)
	if err != nil {
		return cfg, err
	}
	if pw != "" {
		if err := setPassword(ctx, cat, pw); err != nil {
			return cfg, err
		}
	}
	if cert, key := c.get("tls-cert"), c.get("tls-key"); cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return cfg, fmt.Errorf("load TLS certificate: %w", err)
		}
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if rules != nil {
		cfg.Rules = rules.now.Load
		return cfg, tlsForRules(c, &cfg)
	}
	if isLoopback(c.get("listen")) {
		return cfg, trustClients(c, cfg.TLS)
	}
	if c.bool("insecure") {
		cfg.AuthRemote = pgwire.AuthTrust
		return cfg, trustClients(c, cfg.TLS)
	}
	if !hasPassword(cat) {
		return cfg, errors.New("clients from other hosts need a password: set POSTGRES_PASSWORD or --password-file, or say --insecure")
	}
	if err := tlsForRules(c, &cfg); err != nil {
		return cfg, err
	}
	cfg.RequireTLS = true
	return cfg, nil
}

// tlsForRules gives the server TLS, with a certificate of our own if there is no other, so that
// rules may ask for it.
func tlsForRules(c *config, cfg *pgwire.Config) error {
	if cfg.TLS == nil {
		cert, err := selfSigned(c)
		if err != nil {
			return err
		}
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}
	return trustClients(c, cfg.TLS)
}

func hasPassword(cat *catalog.Catalog) bool {
	snap := cat.Snapshot()
	defer snap.Close()
	r, err := snap.Role("postgres")
	return err == nil && r.Verifier != ""
}

func setPassword(ctx context.Context, cat *catalog.Catalog, pw string) error {
	verifier := cat.NewSCRAMVerifier(pw)
	return cat.Update(ctx, func(t *catalog.Txn) error {
		r, err := t.Role("postgres")
		if err != nil {
			return err
		}
		changed := *r
		changed.Verifier = verifier
		return t.PutRole(&changed)
	})
}

// selfSigned keeps a certificate of our own in the data directory.
func selfSigned(c *config) (tls.Certificate, error) {
	certPath, keyPath := filepath.Join(c.get("data-dir"), "server.crt"), filepath.Join(c.get("data-dir"), "server.key")
	if pair, err := tls.LoadX509KeyPair(certPath, keyPath); err == nil {
		return pair, nil
	}
	host, _ := os.Hostname()
	clock, ids := env.System()
	certPEM, keyPEM, err := pgwire.SelfSigned(clock, ids, []string{host, "localhost"})
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := errors.Join(os.WriteFile(keyPath, keyPEM, 0o600), os.WriteFile(certPath, certPEM, 0o644)); err != nil { // a certificate is public
		return tls.Certificate{}, fmt.Errorf("write certificate: %w", err)
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}
