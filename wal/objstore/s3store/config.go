package s3store

import (
	"errors"
	"log/slog"
	"net/url"
	"time"
)

// Config says where the objects are and how to reach them.
type Config struct {
	// Bucket holds the objects. It must exist.
	Bucket string
	// Region of the bucket. Empty takes that of the environment or of the shared
	// configuration file; stores other than AWS usually take any.
	Region string
	// Endpoint is the store's URL, for stores other than AWS. Empty is AWS.
	Endpoint string
	// PathStyle puts the bucket into the path instead of the host name. Most stores
	// other than AWS need it.
	PathStyle bool
	// AccessKeyID and SecretAccessKey, with SessionToken if there is one, are used if
	// AccessKeyID is set. Else the usual chain is: environment, files, machine role.
	AccessKeyID     string
	SecretAccessKey Secret
	SessionToken    Secret
	// CABundle holds PEM certificates that are trusted instead of the system's.
	CABundle []byte
	// ConnectTimeout bounds making a connection, TLS included. Default 5 s.
	ConnectTimeout time.Duration
	// RequestTimeout bounds the wait for the answer to a request, and for its bytes,
	// besides the time that ThroughputMin grants for them. Default 10 s.
	RequestTimeout time.Duration
	// ThroughputMin is the slowest transfer, in bytes a second, that is waited for.
	// Default 1 MiB/s.
	ThroughputMin int64
}

const (
	connectTimeoutDefault = 5 * time.Second
	requestTimeoutDefault = 10 * time.Second
	throughputMinDefault  = 1 << 20
	connectionsMax        = 64 // kept open; requests beyond it wait
)

func (c Config) withDefaults() Config {
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeoutDefault
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = requestTimeoutDefault
	}
	if c.ThroughputMin == 0 {
		c.ThroughputMin = throughputMinDefault
	}
	return c
}

// Validate says all that is wrong with c.
func (c Config) Validate() error {
	var errs []error
	if c.Bucket == "" {
		errs = append(errs, errors.New("bucket is not set"))
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			errs = append(errs, errors.New("endpoint is not a URL as https://host:port"))
		}
	}
	if (c.AccessKeyID == "") != (c.SecretAccessKey == "") {
		errs = append(errs, errors.New("access key id and secret access key go together"))
	}
	if c.AccessKeyID == "" && c.SessionToken != "" {
		errs = append(errs, errors.New("session token needs an access key id"))
	}
	if c.ConnectTimeout < 0 || c.RequestTimeout < 0 || c.ThroughputMin < 0 {
		errs = append(errs, errors.New("timeouts and throughput must be positive"))
	}
	return errors.Join(errs...)
}

// Secret is a string that does not show itself.
type Secret string

const redacted = "[redacted]"

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret.
func (Secret) GoString() string { return redacted }

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
