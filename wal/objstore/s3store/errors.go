package s3store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/skipprd/skipprd/wal/objstore"
)

// codes says what the store's error codes mean. nil is an error of the setup, which no
// retry heals. What is not here is judged by its HTTP status.
//
// A write is known to have had no effect only where the store says that it refused the
// request as such. A 500 or a bare 503 may come from something in front of the store,
// after the store has done its work.
var codes = map[string]error{
	"NoSuchKey":                  objstore.ErrNotFound,
	"NotFound":                   objstore.ErrNotFound,
	"PreconditionFailed":         objstore.ErrPrecondition,
	"ConditionalRequestConflict": objstore.ErrConflict,
	"OperationAborted":           objstore.ErrConflict,
	"InvalidRange":               objstore.ErrRange,
	// Stores that keep objects as files: a part of the key is an object.
	"ObjectParentIsFile": objstore.ErrKey,
	// versitygw says so whenever it cannot publish an object, also where a directory
	// was removed meanwhile since its last object was deleted.
	"ExistingObjectIsDirectory": objstore.ErrUnknown,

	"SlowDown":             objstore.ErrUnavailable,
	"SlowDownRead":         objstore.ErrUnavailable,
	"SlowDownWrite":        objstore.ErrUnavailable,
	"TooManyRequests":      objstore.ErrUnavailable,
	"Throttling":           objstore.ErrUnavailable,
	"ThrottlingException":  objstore.ErrUnavailable,
	"RequestLimitExceeded": objstore.ErrUnavailable,
	// The store did not get the whole request, or not as it was sent.
	"RequestTimeout":              objstore.ErrUnavailable,
	"IncompleteBody":              objstore.ErrUnavailable,
	"BadDigest":                   objstore.ErrUnavailable,
	"InvalidDigest":               objstore.ErrUnavailable,
	"XAmzContentSHA256Mismatch":   objstore.ErrUnavailable,
	"XAmzContentChecksumMismatch": objstore.ErrUnavailable,

	"NotImplemented":        nil,
	"NoSuchBucket":          nil,
	"AccessDenied":          nil,
	"SignatureDoesNotMatch": nil,
	"InvalidAccessKeyId":    nil,
	"ExpiredToken":          nil,
	"RequestTimeTooSkewed":  nil,
	"PermanentRedirect":     nil,
}

// statuses says what an HTTP status means whose code is not in codes.
var statuses = map[int]error{
	http.StatusConflict:                     objstore.ErrConflict,
	http.StatusPreconditionFailed:           objstore.ErrPrecondition,
	http.StatusRequestedRangeNotSatisfiable: objstore.ErrRange,
	http.StatusTooManyRequests:              objstore.ErrUnavailable,
	http.StatusRequestTimeout:               objstore.ErrUnavailable,
}

// classify gives the sentinel for an error of the SDK, or nil for one of the setup.
func (r *request) classify(err error) error {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil && response.HTTPStatusCode() >= 300 {
		kind := r.answered(response.HTTPStatusCode(), err)
		if kind == objstore.ErrNotFound && r.write { // If-Match without an object
			if r.cond.Version() != "" {
				return objstore.ErrPrecondition
			}
			return nil
		}
		return kind
	}
	return r.unanswered(err)
}

// answered judges an answer that says no.
func (r *request) answered(status int, err error) error {
	var api smithy.APIError
	if errors.As(err, &api) {
		if kind, known := codes[api.ErrorCode()]; known {
			return kind
		}
	}
	if kind, known := statuses[status]; known {
		return kind
	}
	if status >= 500 {
		return r.unclear()
	}
	return nil
}

// unanswered judges a request that brought no answer, or none that can be read.
func (r *request) unanswered(err error) error {
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &certificate) || errors.As(err, &authority):
		return nil
	case r.sent.Load():
		if !r.write && r.caller.Err() != nil {
			return nil // the caller left; its cause says so
		}
		return r.unclear()
	case r.caller.Err() != nil:
		return nil
	default:
		return objstore.ErrUnavailable // it never left
	}
}

// unclear is the error of a request that the store may have served.
func (r *request) unclear() error {
	if r.write {
		return objstore.ErrUnknown
	}
	return objstore.ErrUnavailable
}

// deleteError judges the error of one key of a Delete; nil if the key is gone.
func deleteError(code, message string) error {
	kind, known := codes[code]
	switch {
	case kind == objstore.ErrNotFound:
		return nil
	case !known:
		return fmt.Errorf("%w: %s: %s", objstore.ErrUnknown, code, message)
	case kind == nil:
		return fmt.Errorf("%s: %s", code, message)
	default:
		return fmt.Errorf("%w: %s: %s", kind, code, message)
	}
}
