package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/skipprd/skipprd/wal/objstore"
)

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, rng objstore.Range) (objstore.Object, error) {
	if err := refuse(ctx, objstore.ValidateKey(key), rng.Validate()); err != nil {
		return objstore.Object{}, fmt.Errorf("get: %w", err)
	}
	r := request{verb: "get", key: key}
	in := &s3.GetObjectInput{Bucket: &s.cfg.Bucket, Key: &key}
	var options []func(*s3.Options)
	if rng.Whole() {
		// The header without the SDK's own check: its error cannot be told from others,
		// and it ends with the body, whose length we check as well.
		options = append(options, s3.WithAPIOptions(smithyhttp.AddHeaderValue("X-Amz-Checksum-Mode", "ENABLED")))
	} else {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", rng.Start, rng.End-1))
	}
	ctx, done := r.begin(ctx)
	defer done()
	r.wait(s.cfg, 0)
	out, err := s.client.GetObject(ctx, in, options...)
	if err != nil {
		return objstore.Object{}, r.fail(ctx, err)
	}
	defer func() { _ = out.Body.Close() }() // what matters was read, or has failed
	object := objstore.Object{Version: objstore.Version(aws.ToString(out.ETag)), Size: aws.ToInt64(out.ContentLength)}
	length := object.Size
	if !rng.Whole() {
		if length, object.Size, err = parseContentRange(aws.ToString(out.ContentRange), rng); err != nil {
			return objstore.Object{}, fmt.Errorf("get %s: %w", key, err)
		}
	}
	if out.ContentLength == nil || length != *out.ContentLength || length > objstore.ObjectBytesMax {
		return objstore.Object{}, fmt.Errorf("get %s: the answer has %d bytes, want %d, at most %d", key, aws.ToInt64(out.ContentLength), length, objstore.ObjectBytesMax)
	}
	r.wait(s.cfg, length)
	object.Data = make([]byte, length)
	if _, err := io.ReadFull(out.Body, object.Data); err != nil {
		return objstore.Object{}, r.fail(ctx, fmt.Errorf("read body: %w", err))
	}
	if want := aws.ToString(out.ChecksumCRC32C); rng.Whole() && want != "" && want != checksum(object.Data) {
		return objstore.Object{}, fmt.Errorf("get %s: %w: CRC32C is %s, stored as %s", key, objstore.ErrDamaged, checksum(object.Data), want)
	}
	return object, nil
}

var errContentRange = errors.New("the store did not answer the range that was asked for")

// parseContentRange reads "bytes 0-9/100" and gives the length and the object's size.
func parseContentRange(s string, want objstore.Range) (length, size int64, err error) {
	var first, last int64
	if n, _ := fmt.Sscanf(s, "bytes %d-%d/%d", &first, &last, &size); n != 3 ||
		first != want.Start || size <= first || last != min(want.End, size)-1 {
		return 0, 0, fmt.Errorf("%w: %.80q", errContentRange, s)
	}
	return last - first + 1, size, nil
}
