package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/s3store"
)

const (
	onDisk   = "disk"
	s3Scheme = "s3://"
	leaseMin = time.Second
)

// objectLog says where a log on an object store is; see config.objectLog.
type objectLog struct {
	bucket, prefix string
	store          s3store.Config
	caFile         string
	linger, ttl    time.Duration
	host           string
}

// objectLog is the log's place on an object store, nil when it is on disk.
func (c *config) objectLog() *objectLog {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(c.get("log"), s3Scheme), "/")
	if !strings.HasPrefix(c.get("log"), s3Scheme) {
		return nil
	}
	o := &objectLog{
		bucket: bucket, prefix: strings.TrimSuffix(prefix, "/"), caFile: c.get("log-ca-file"),
		linger: c.duration("log-linger"), ttl: c.duration("log-lease"), host: c.get("node-name"),
		store: s3store.Config{
			Bucket: bucket, Region: c.get("log-region"), Endpoint: c.get("log-endpoint"), PathStyle: c.bool("log-path-style"),
			AccessKeyID: c.get("log-access-key-id"), SecretAccessKey: s3store.Secret(c.get("log-secret-access-key")),
			SessionToken: s3store.Secret(c.get("log-session-token")),
		},
	}
	if o.linger == 0 {
		o.linger = -1
	}
	if o.host == "" {
		o.host, _ = os.Hostname() // a name for people; none is as good
	}
	return o
}

// problems are all that is wrong with the settings of a log on an object store.
func (o *objectLog) problems(c *config) (all []error) {
	if err := objstore.ValidateKey(o.key("node/fence")); err != nil || o.prefix == "" {
		all = append(all, fmt.Errorf("log: %q needs a prefix of its own in the bucket, as in s3://bucket/skippr, of letters, digits and . _ - = /",
			c.get("log")))
	}
	if err := o.store.Validate(); err != nil {
		all = append(all, fmt.Errorf("log: %w", err))
	}
	if o.caFile != "" {
		if _, err := os.Stat(o.caFile); err != nil {
			all = append(all, fmt.Errorf("log-ca-file: %w", err))
		}
	}
	if o.ttl < leaseMin || o.linger > o.ttl/4 {
		all = append(all, fmt.Errorf("log-lease is at least %s and four times log-linger", leaseMin))
	}
	if c.get("secret-key") == "" {
		all = append(all, errors.New("secret-key is needed with a log on an object store: what it keeps is sealed with it, "+
			"and a key in the data directory is lost with that. Make one with: openssl rand -hex 32"))
	}
	return all
}

// key is that of an object below the prefix.
func (o *objectLog) key(name string) string { return o.prefix + "/" + name }

// location names the place for people and for the marks in directories.
func (o *objectLog) location() string {
	if o == nil {
		return onDisk
	}
	return s3Scheme + o.bucket + "/" + o.prefix
}

// storeWait is how long a store that does not answer is waited for at start.
const storeWait = time.Minute

// open makes the client and refuses a store that cannot keep a log safely.
func (o *objectLog) open(ctx context.Context, clock env.Clock, ids env.IDs, say func(string)) (objstore.Store, error) {
	cfg := o.store
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, fmt.Errorf("read log-ca-file: %w", err)
		}
		cfg.CABundle = pem
	}
	store, err := s3store.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for began := clock.Now(); ; {
		err := objstore.SelfTest(ctx, store, o.key(fmt.Sprintf("selftest/%x", ids.UUID())))
		switch {
		case err == nil:
			return store, nil
		case !objstore.IsRetryable(err) || clock.Since(began) > storeWait:
			return nil, fmt.Errorf("log in %s: %w", o.location(), err)
		}
		say("waiting for the object store: " + err.Error())
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// locationFile is in the data directory and in the lake's, and says where the log is that
// they belong to.
const locationFile = "log.location"

// claimDirectory makes sure that a directory belongs to the log at a location: what is in
// it would be deleted, or taken for something else, under another. used are patterns of
// what shows that the directory is in use although it has no mark, which means disk.
func claimDirectory(dir, location string, used ...string) error {
	mark := filepath.Join(dir, locationFile)
	text, err := os.ReadFile(mark)
	have := strings.TrimSpace(string(text))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if location == onDisk {
			return nil
		}
		for _, pattern := range used {
			found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
			if err != nil {
				return err
			}
			if len(found) > 0 {
				have = onDisk
			}
		}
		if have == "" {
			return writeMark(mark, location)
		}
	case err != nil:
		return fmt.Errorf("read %s: %w", mark, err)
	}
	if have != location {
		return fmt.Errorf("%s belongs to a log at %s, not at %s: nothing was changed. Start with --log %s, or with another directory",
			dir, have, location, have)
	}
	return nil
}

// writeMark makes a small file, whole and durable.
func writeMark(path, text string) error {
	if err := wal.ReplaceFile(wal.DiskFS(), path, []byte(text+"\n")); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	return nil
}
