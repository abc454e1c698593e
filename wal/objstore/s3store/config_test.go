package s3store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore/s3store"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  s3store.Config
		says string
	}{
		{s3store.Config{Bucket: "b"}, ""},
		{s3store.Config{Bucket: "b", Endpoint: "http://127.0.0.1:9000", AccessKeyID: "a", SecretAccessKey: "s", SessionToken: "t"}, ""},
		{s3store.Config{}, "bucket"},
		{s3store.Config{Bucket: "b", Endpoint: "localhost:9000"}, "endpoint"},
		{s3store.Config{Bucket: "b", Endpoint: "ftp://h"}, "endpoint"},
		{s3store.Config{Bucket: "b", Endpoint: "https://user:pass@h"}, "endpoint"},
		{s3store.Config{Bucket: "b", AccessKeyID: "a"}, "go together"},
		{s3store.Config{Bucket: "b", SecretAccessKey: "a"}, "go together"},
		{s3store.Config{Bucket: "b", SessionToken: "t"}, "session token"},
		{s3store.Config{Bucket: "b", RequestTimeout: -1}, "positive"},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.says)
		}
	}
}

func TestNewErrors(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	for says, cfg := range map[string]s3store.Config{
		"bucket": {}, "region": {Bucket: "b"}, "configuration": {Bucket: "b", Region: "r", CABundle: []byte("no certificate")},
	} {
		if _, err := s3store.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// What prints a configuration does not print its secrets.
func TestSecrets(t *testing.T) {
	cfg := s3store.Config{Bucket: "b", SecretAccessKey: "hush", SessionToken: "hush"}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{fmt.Sprint(cfg), fmt.Sprintf("%+v %#v %s", cfg, cfg, cfg.SecretAccessKey), string(text), cfg.SessionToken.LogValue().String()} {
		if strings.Contains(out, "hush") || !strings.Contains(out, "redacted") {
			t.Error(out)
		}
	}
}
