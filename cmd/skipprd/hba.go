package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/skipprd/skipprd/pgwire/hba"
	"github.com/skipprd/skipprd/wal/env"
)

// rules are those of --hba-file and --ident-file, as last read without an error. Safe for
// concurrent use.
type rules struct {
	file, ident string
	now         atomic.Pointer[hba.Rules]
}

// openRules reads the files; nil when none is named.
func openRules(c *config) (*rules, error) {
	r := &rules{file: c.get("hba-file"), ident: c.get("ident-file")}
	if r.file == "" {
		return nil, nil
	}
	return r, r.reload()
}

// reload reads the files anew. After an error the rules are the old ones.
func (r *rules) reload() error {
	var maps *hba.Maps
	if r.ident != "" {
		text, err := os.ReadFile(r.ident)
		if err != nil {
			return fmt.Errorf("read ident-file: %w", err)
		}
		if maps, err = hba.ParseMaps(r.ident, string(text)); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		return fmt.Errorf("read hba-file: %w", err)
	}
	parsed, err := hba.Parse(r.file, string(text), maps)
	if err != nil {
		return err
	}
	r.now.Store(parsed)
	return nil
}

// ruleLines are the lines of both files as they are now, for pg_hba_file_rules.
func (n *node) ruleLines() (rules, maps []hba.Entry, err error) {
	for _, one := range []struct {
		name string
		to   *[]hba.Entry
		read func(string) []hba.Entry
	}{{"hba-file", &rules, hba.Entries}, {"ident-file", &maps, hba.MapEntries}} {
		path := n.cfg.get(one.name)
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", one.name, err)
		}
		*one.to = one.read(string(text))
	}
	return rules, maps, nil
}

// reload is pg_reload_conf() and SIGHUP.
func (n *node) reload() error {
	if n.rules == nil {
		return nil
	}
	if err := n.rules.reload(); err != nil {
		n.log.Error("authentication rules not reloaded, the old ones stay", env.KeyError, err)
		return err
	}
	n.log.Info("authentication rules reloaded", "file", n.rules.file)
	return nil
}

// reloads reloads at each SIGHUP until ctx ends.
func (n *node) reloads(ctx context.Context) error {
	hangups := make(chan os.Signal, 1) // one that waits stands for all that came meanwhile
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			_ = n.reload() // which has told it
		}
	}
}

// trustClients has certificates of clients checked, if they have any: those of the authorities
// in --tls-client-ca.
func trustClients(c *config, t *tls.Config) error {
	path := c.get("tls-client-ca")
	if path == "" || t == nil {
		return nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read tls-client-ca: %w", err)
	}
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !t.ClientCAs.AppendCertsFromPEM(pem) {
		return errors.New("tls-client-ca has no certificate")
	}
	return nil
}
