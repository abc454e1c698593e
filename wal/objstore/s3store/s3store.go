// Package s3store is an object store that speaks S3.
//
// One method of objstore.Store is one request, twice never: the SDK's retries are off,
// since a retried conditional write answers with the outcome of the wrong attempt.
//
// Integrity: each write carries the body's SHA-256 (in its signature) and CRC32C (kept
// with the object), both checked by the store before it takes the object; reads of a
// whole object are checked against that CRC32C here. Both go in headers, so that no
// body is framed (aws-chunked), which stores other than AWS get wrong.
package s3store

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/skipprd/skipprd/wal/objstore"
)

// Store implements objstore.Store on a bucket. Safe for concurrent use.
type Store struct {
	client *s3.Client
	http   *awshttp.BuildableClient
	cfg    Config
}

var _ objstore.Store = (*Store)(nil)

// New makes a client. It reads the environment and shared configuration files for what
// cfg leaves open, but sends nothing: objstore.SelfTest says whether the store answers
// and may be used.
func New(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	cfg = cfg.withDefaults()
	client := httpClient(cfg)
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if cfg.Region != "" {
		options = append(options, config.WithRegion(cfg.Region))
	}
	if cfg.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(
			cfg.AccessKeyID, string(cfg.SecretAccessKey), string(cfg.SessionToken))))
	}
	if len(cfg.CABundle) > 0 {
		options = append(options, config.WithCustomCABundle(bytes.NewReader(cfg.CABundle)))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("object store: load configuration: %w", err)
	}
	if loaded.Region == "" {
		return nil, fmt.Errorf("object store: region of bucket %s is not set", cfg.Bucket)
	}
	s := &Store{cfg: cfg, http: client}
	if c, ok := loaded.HTTPClient.(*awshttp.BuildableClient); ok { // the copy with the certificates
		s.http = c
	}
	s.client = s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.UsePathStyle = cfg.PathStyle
		o.RetryMaxAttempts = 1
		o.DisableLogOutputChecksumValidationSkipped = true
		o.APIOptions = append(o.APIOptions, speakHTTP11)
		if cfg.Endpoint != "" {
			o.BaseEndpoint = &cfg.Endpoint
		}
	})
	return s, nil
}

// speakHTTP11 names the protocol in requests, which the SDK leaves open. Without it
// net/http sends the SDK's "Expect: 100-continue" but does not wait, so a store that
// refuses a large body by its condition cuts the connection in the middle of it, and
// the refusal is lost.
func speakHTTP11(stack *middleware.Stack) error {
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("SpeakHTTP11", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if r, ok := in.Request.(*smithyhttp.Request); ok {
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
		}
		return next.HandleFinalize(ctx, in)
	}), middleware.Before)
}

func httpClient(cfg Config) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = cfg.ConnectTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = cfg.ConnectTimeout
			t.MaxConnsPerHost = connectionsMax
			t.MaxIdleConnsPerHost = connectionsMax
		})
}

// Close ends idle connections. Requests under way go on.
func (s *Store) Close() {
	s.http.GetTransport().CloseIdleConnections()
}

// Put implements objstore.Store.
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Version, error) {
	r := request{verb: "put", key: key, write: true, cond: cond}
	if err := refuse(ctx, objstore.ValidatePut(key, body)); err != nil {
		return "", fmt.Errorf("put: %w", err)
	}
	in := &s3.PutObjectInput{
		Bucket: &s.cfg.Bucket, Key: &key, Body: bytes.NewReader(body),
		ChecksumCRC32C: aws.String(checksum(body)),
	}
	if cond.Absent() {
		in.IfNoneMatch = aws.String("*")
	} else if v := cond.Version(); v != "" {
		in.IfMatch = aws.String(string(v))
	}
	ctx, done := r.begin(ctx)
	defer done()
	r.wait(s.cfg, int64(len(body)))
	out, err := s.client.PutObject(ctx, in)
	if err != nil {
		return "", r.fail(ctx, err)
	}
	if aws.ToString(out.ETag) == "" {
		return "", fmt.Errorf("put %s: %w: the store gave no version", key, objstore.ErrUnknown)
	}
	return objstore.Version(*out.ETag), nil
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	if err := refuse(ctx, objstore.ValidateDelete(keys)); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if len(keys) == 0 {
		return nil
	}
	r := request{verb: "delete", key: keys[0], write: true}
	asked := make(map[string]bool, len(keys))
	in := &s3.DeleteObjectsInput{Bucket: &s.cfg.Bucket, Delete: &types.Delete{Quiet: aws.Bool(true)}}
	for _, key := range keys {
		if !asked[key] {
			asked[key] = true
			in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: aws.String(key)})
		}
	}
	ctx, done := r.begin(ctx)
	defer done()
	r.wait(s.cfg, 0)
	out, err := s.client.DeleteObjects(ctx, in)
	if err != nil {
		return r.fail(ctx, err)
	}
	failed := &objstore.DeleteError{}
	for _, e := range out.Errors {
		err := deleteError(aws.ToString(e.Code), aws.ToString(e.Message))
		if key := aws.ToString(e.Key); err != nil && asked[key] {
			failed.Failed = append(failed.Failed, objstore.KeyError{Key: key, Err: fmt.Errorf("delete %s: %w", key, err)})
		} else if err != nil {
			return fmt.Errorf("delete %d keys: %w: %w", len(keys), objstore.ErrUnknown, err) // of no key we know
		}
	}
	if len(failed.Failed) > 0 {
		return failed
	}
	return nil
}

// emptyPagesMax bounds how many pages without a key of ours are read for one that has.
const emptyPagesMax = 1000

// List implements objstore.Store. It leaves out keys that the contract does not allow:
// they are not ours.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (objstore.Page, error) {
	if err := refuse(ctx, objstore.ValidateList(prefix, after, limit)); err != nil {
		return objstore.Page{}, fmt.Errorf("list: %w", err)
	}
	r := request{verb: "list", key: prefix}
	ctx, done := r.begin(ctx)
	defer done()
	in := &s3.ListObjectsV2Input{Bucket: &s.cfg.Bucket, MaxKeys: aws.Int32(int32(limit))}
	if prefix != "" {
		in.Prefix = &prefix
	}
	if after != "" {
		in.StartAfter = &after
	}
	for range emptyPagesMax {
		r.wait(s.cfg, 0)
		out, err := s.client.ListObjectsV2(ctx, in)
		if err != nil {
			return objstore.Page{}, r.fail(ctx, err)
		}
		page := objstore.Page{More: aws.ToBool(out.IsTruncated)}
		for _, o := range out.Contents {
			if key := aws.ToString(o.Key); objstore.ValidateKey(key) == nil {
				page.Objects = append(page.Objects, objstore.Info{Key: key, Size: aws.ToInt64(o.Size), Version: objstore.Version(aws.ToString(o.ETag))})
			}
		}
		if len(page.Objects) > 0 || !page.More {
			return page, nil
		}
		if aws.ToString(out.NextContinuationToken) == "" {
			return objstore.Page{}, fmt.Errorf("list %s: %w: an empty page that says there is more, but not where", prefix, objstore.ErrUnavailable)
		}
		in.ContinuationToken = out.NextContinuationToken
	}
	return objstore.Page{}, fmt.Errorf("list %s: %w: %d pages without a key of ours", prefix, objstore.ErrUnavailable, emptyPagesMax)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is a body's CRC32C as S3 writes it.
func checksum(body []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, castagnoli)))
}

// refuse is why a request is not sent.
func refuse(ctx context.Context, errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
