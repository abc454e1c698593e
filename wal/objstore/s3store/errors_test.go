package s3store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/s3store"
)

// scripted is a server that gives one answer to all, and a client of it.
func scripted(t *testing.T, answer http.HandlerFunc) (*s3store.Store, *atomic.Int64) {
	t.Helper()
	return scriptedWithin(t, time.Minute, answer)
}

// scriptedWithin is scripted with a limit for each request.
func scriptedWithin(t *testing.T, limit time.Duration, answer http.HandlerFunc) (*s3store.Store, *atomic.Int64) {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // or else the client fails to send it
		answer(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	// What the environment says of retries must not matter.
	t.Setenv("AWS_MAX_ATTEMPTS", "5")
	t.Setenv("AWS_RETRY_MODE", "adaptive")
	s, err := s3store.New(t.Context(), s3store.Config{
		Bucket: "b", Region: "r", Endpoint: server.URL, PathStyle: true, AccessKeyID: "a", SecretAccessKey: "s",
		RequestTimeout: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, &requests
}

// says answers with a status and S3's error document.
func says(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		if code != "" {
			_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>m</Message></Error>`, code)
		}
	}
}

// cuts ends the connection without an answer.
func cuts(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// hangs answers when the client has gone.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// errSetup stands for an error that is none of the sentinels.
var errSetup = errors.New("an error of the setup")

var sentinels = []error{
	objstore.ErrNotFound, objstore.ErrPrecondition, objstore.ErrConflict, objstore.ErrUnavailable, objstore.ErrUnknown,
	objstore.ErrRange, objstore.ErrDamaged, objstore.ErrKey,
}

// kind is the sentinel that err wraps, and there must be one at most.
func kind(t *testing.T, err error) error {
	t.Helper()
	var found error
	for _, s := range sentinels {
		if errors.Is(err, s) {
			if found != nil {
				t.Errorf("%v is of two kinds", err)
			}
			found = s
		}
	}
	if found == nil && err != nil {
		return errSetup
	}
	return found
}

func TestErrors(t *testing.T) {
	refused, unknown := objstore.ErrUnavailable, objstore.ErrUnknown
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		put    error // and delete
		get    error // and list
	}{
		{"slow down", says(503, "SlowDown"), refused, refused},
		{"too many requests", says(429, ""), refused, refused},
		{"body came late", says(400, "RequestTimeout"), refused, refused},
		{"body came damaged", says(400, "BadDigest"), refused, refused},
		{"signed body came damaged", says(400, "XAmzContentSHA256Mismatch"), refused, refused},
		{"service unavailable", says(503, "ServiceUnavailable"), unknown, refused},
		{"something in front", says(502, ""), unknown, refused},
		{"gateway timeout", says(504, ""), unknown, refused},
		{"internal error", says(500, "InternalError"), unknown, refused},
		{"cut", cuts, unknown, refused},
		{"hangs", hangs, unknown, refused},
		{"denied", says(403, "AccessDenied"), errSetup, errSetup},
		{"denied, no code", says(403, ""), errSetup, errSetup},
		{"bad signature", says(403, "SignatureDoesNotMatch"), errSetup, errSetup},
		{"no bucket", says(404, "NoSuchBucket"), errSetup, errSetup},
		{"no user", says(404, "NoSuchUser"), errSetup, errSetup},
		{"malformed", says(400, "InvalidArgument"), errSetup, errSetup},
		{"redirect", says(301, "PermanentRedirect"), errSetup, errSetup},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := time.Minute
			if c.name == "hangs" {
				limit = 300 * time.Millisecond
			}
			s, requests := scriptedWithin(t, limit, c.answer)
			_, errPut := s.Put(t.Context(), "k", []byte("body"), objstore.IfAbsent())
			_, errGet := s.Get(t.Context(), "k", objstore.Range{})
			_, errList := s.List(t.Context(), "p", "", 10)
			for _, got := range []struct {
				op        string
				err, want error
			}{
				{"put", errPut, c.put},
				{"delete", s.Delete(t.Context(), []string{"k", "l"}), c.put},
				{"get", errGet, c.get},
				{"list", errList, c.get},
			} {
				if kind(t, got.err) != got.want {
					t.Errorf("%s: %v, want %v", got.op, got.err, got.want)
				}
			}
			// A request may be given up before a slow server has looked at it.
			if n := requests.Load(); n > 4 || n < 4 && c.name != "hangs" {
				t.Errorf("4 calls made %d requests", n)
			}
		})
	}
}

func TestPutErrors(t *testing.T) {
	for _, c := range []struct {
		answer http.HandlerFunc
		cond   objstore.Condition
		want   error
	}{
		{says(412, "PreconditionFailed"), objstore.IfAbsent(), objstore.ErrPrecondition},
		{says(412, ""), objstore.IfAbsent(), objstore.ErrPrecondition},
		{says(412, "PreconditionFailed"), objstore.IfMatch(`"v"`), objstore.ErrPrecondition},
		{says(404, "NoSuchKey"), objstore.IfMatch(`"v"`), objstore.ErrPrecondition},
		{says(404, "NoSuchKey"), objstore.IfAbsent(), errSetup},
		{says(409, "ConditionalRequestConflict"), objstore.IfAbsent(), objstore.ErrConflict},
		{says(409, ""), objstore.IfMatch(`"v"`), objstore.ErrConflict},
		{says(409, "ObjectParentIsFile"), objstore.IfAbsent(), objstore.ErrKey},
		{says(409, "ExistingObjectIsDirectory"), objstore.IfAbsent(), objstore.ErrUnknown},
		{says(501, "NotImplemented"), objstore.IfAbsent(), errSetup},
		{says(200, ""), objstore.IfAbsent(), objstore.ErrUnknown}, // no version
	} {
		s, requests := scripted(t, c.answer)
		if _, err := s.Put(t.Context(), "k", []byte("body"), c.cond); kind(t, err) != c.want {
			t.Errorf("put %s: %v, want %v", c.cond, err, c.want)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("put %s: %d requests", c.cond, n)
		}
	}
}

// A store that refuses a large body by its headers is heard, and the body is not sent.
func TestEarlyRefusal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "100-continue" {
			t.Error("the client does not wait with the body")
		}
		says(412, "PreconditionFailed")(w, r)
	}))
	defer server.Close()
	s, err := s3store.New(t.Context(), s3store.Config{Bucket: "b", Region: "r", Endpoint: server.URL, PathStyle: true, AccessKeyID: "a", SecretAccessKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "k", make([]byte, 16<<20), objstore.IfAbsent()); kind(t, err) != objstore.ErrPrecondition {
		t.Errorf("put: %v", err)
	}
}

// The conditions and the checksum go out as S3 wants them.
func TestPutRequest(t *testing.T) {
	var seen http.Header
	s, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.Header().Set("ETag", `"e"`)
	})
	for _, c := range []struct {
		cond                 objstore.Condition
		ifMatch, ifNoneMatch string
	}{
		{objstore.Condition{}, "", ""},
		{objstore.IfAbsent(), "", "*"},
		{objstore.IfMatch(`"v1"`), `"v1"`, ""},
	} {
		v, err := s.Put(t.Context(), "k", []byte("123456789"), c.cond)
		if err != nil || v != `"e"` {
			t.Fatalf("put: %q, %v", v, err)
		}
		for name, want := range map[string]string{
			"If-Match": c.ifMatch, "If-None-Match": c.ifNoneMatch, "Content-Length": "9", "Content-Encoding": "",
			"X-Amz-Checksum-Crc32c": "4waSgw==",                                                         // the check value of CRC-32C
			"X-Amz-Content-Sha256":  "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225", // of the body
		} {
			if got := seen.Get(name); got != want {
				t.Errorf("put %s: %s is %q, want %q", c.cond, name, got, want)
			}
		}
	}
}

func TestGetAnswers(t *testing.T) {
	answer := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"e"`)
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // a longer Content-Length cuts the connection
		}
	}
	part := objstore.Range{Start: 2, End: 4}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		rng    objstore.Range
		want   error
	}{
		{"whole", answer(200, "123456789", "x-amz-checksum-crc32c", "4waSgw=="), objstore.Range{}, nil},
		{"whole without checksum", answer(200, "123456789"), objstore.Range{}, nil},
		{"flipped", answer(200, "123456788", "x-amz-checksum-crc32c", "4waSgw=="), objstore.Range{}, objstore.ErrDamaged},
		{"cut short", answer(200, "1234", "Content-Length", "9"), objstore.Range{}, objstore.ErrUnavailable},
		{"too large", answer(200, "1234", "Content-Length", "1073741825"), objstore.Range{}, errSetup},
		{"missing", says(404, "NoSuchKey"), objstore.Range{}, objstore.ErrNotFound},
		{"part", answer(206, "34", "Content-Range", "bytes 2-3/9"), part, nil},
		{"part with the checksum of the whole", answer(206, "34", "Content-Range", "bytes 2-3/9", "x-amz-checksum-crc32c", "4waSgw=="), part, nil},
		{"end", answer(206, "3", "Content-Range", "bytes 2-2/3"), part, nil},
		{"beyond the end", says(416, "InvalidRange"), part, objstore.ErrRange},
		{"beyond the end, no code", says(416, ""), part, objstore.ErrRange},
		{"range ignored", answer(200, "123456789"), part, errSetup},
		{"another range", answer(206, "23", "Content-Range", "bytes 1-2/9"), part, errSetup},
		{"short range", answer(206, "3", "Content-Range", "bytes 2-2/9"), part, errSetup},
		{"range that lies", answer(206, "3456", "Content-Range", "bytes 2-3/9"), part, errSetup},
		{"negative", answer(206, "34", "Content-Range", "bytes 2-3/-9"), part, errSetup},
		{"no size", answer(206, "34", "Content-Range", "bytes 2-3/*"), part, errSetup},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := scripted(t, c.answer)
			o, err := s.Get(t.Context(), "k", c.rng)
			if kind(t, err) != c.want {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && (o.Version != `"e"` || len(o.Data) == 0 || !strings.Contains("123456789", string(o.Data))) {
				t.Errorf("got %+v", o)
			}
		})
	}
}

// A read whose bytes stop coming ends in time.
func TestStalledBody(t *testing.T) {
	s, _ := scriptedWithin(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "9")
		_, _ = io.WriteString(w, "1234")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if _, err := s.Get(t.Context(), "k", objstore.Range{}); kind(t, err) != objstore.ErrUnavailable {
		t.Errorf("get: %v", err)
	}
}

func TestDeleteAnswers(t *testing.T) {
	failed := func(pairs ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `<DeleteResult>`)
			for i := 0; i < len(pairs); i += 2 {
				_, _ = fmt.Fprintf(w, `<Error><Key>%s</Key><Code>%s</Code><Message>m</Message></Error>`, pairs[i], pairs[i+1])
			}
			_, _ = io.WriteString(w, `</DeleteResult>`)
		}
	}
	for _, c := range []struct {
		answer http.HandlerFunc
		want   map[string]error
	}{
		{failed(), nil},
		{failed("a", "NoSuchKey"), nil},
		{failed("a", "SlowDown", "c", "InternalError"), map[string]error{"a": objstore.ErrUnavailable, "c": objstore.ErrUnknown}},
		{failed("b", "AccessDenied"), map[string]error{"b": errSetup}},
	} {
		s, _ := scripted(t, c.answer)
		err := s.Delete(t.Context(), []string{"a", "b", "c", "a"})
		got := map[string]error{}
		var failed *objstore.DeleteError
		if errors.As(err, &failed) {
			for _, f := range failed.Failed {
				got[f.Key] = kind(t, f.Err)
			}
		}
		if (err == nil) != (len(c.want) == 0) || fmt.Sprint(got) != fmt.Sprint(c.want) && len(c.want) > 0 {
			t.Errorf("got %v (%v), want %v", got, err, c.want)
		}
	}
	s, _ := scripted(t, failed("else", "AccessDenied"))
	if err := s.Delete(t.Context(), []string{"a"}); kind(t, err) != objstore.ErrUnknown {
		t.Errorf("an error of a key that was not asked for: %v", err)
	}
}

// A page may be empty, or hold keys that are not ours: List goes on to one that has
// something to say, as its caller could not.
func TestListAnswers(t *testing.T) {
	pages := map[string]string{
		"":   `<IsTruncated>true</IsTruncated><NextContinuationToken>t1</NextContinuationToken>`,
		"t1": `<IsTruncated>true</IsTruncated><NextContinuationToken>t2</NextContinuationToken><Contents><Key>p/</Key></Contents><Contents><Key>p/a b</Key></Contents>`,
		"t2": `<IsTruncated>true</IsTruncated><NextContinuationToken>t3</NextContinuationToken><Contents><Key>p/c</Key><Size>3</Size><ETag>"e"</ETag></Contents>`,
	}
	s, requests := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `<ListBucketResult>%s</ListBucketResult>`, pages[r.URL.Query().Get("continuation-token")])
	})
	page, err := s.List(t.Context(), "p/", "", 5)
	if err != nil || !page.More || len(page.Objects) != 1 || page.Objects[0] != (objstore.Info{Key: "p/c", Size: 3, Version: `"e"`}) {
		t.Errorf("got %+v, %v", page, err)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	s, _ = scripted(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>`)
	})
	if _, err := s.List(t.Context(), "p/", "", 5); kind(t, err) != objstore.ErrUnavailable {
		t.Errorf("a page that leads nowhere: %v", err)
	}
	s, requests = scripted(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>`)
	})
	if _, err := s.List(t.Context(), "p/", "", 5); kind(t, err) != objstore.ErrUnavailable || requests.Load() != 1000 {
		t.Errorf("pages without end: %d requests, %v", requests.Load(), err)
	}
}

// Nobody listens: no request was sent, so nothing can have happened.
func TestNobodyListens(t *testing.T) {
	server := httptest.NewServer(nil)
	endpoint := server.URL
	server.Close()
	s, err := s3store.New(t.Context(), s3store.Config{Bucket: "b", Region: "r", Endpoint: endpoint, PathStyle: true, AccessKeyID: "a", SecretAccessKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	_, errPut := s.Put(t.Context(), "k", []byte("x"), objstore.IfAbsent())
	_, errGet := s.Get(t.Context(), "k", objstore.Range{})
	for op, err := range map[string]error{"put": errPut, "get": errGet, "delete": s.Delete(t.Context(), []string{"k"})} {
		if kind(t, err) != objstore.ErrUnavailable {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// A caller that leaves in the middle learns why, and that a write may have happened.
func TestCallerLeaves(t *testing.T) {
	left := errors.New("the caller left")
	var leave context.CancelCauseFunc
	s, _ := scripted(t, func(_ http.ResponseWriter, r *http.Request) {
		leave(left)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	leave = cancel
	if _, err := s.Put(ctx, "k", []byte("x"), objstore.IfAbsent()); kind(t, err) != objstore.ErrUnknown || !errors.Is(err, left) {
		t.Errorf("put: %v", err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	leave = cancel
	if _, err := s.Get(ctx, "k", objstore.Range{}); kind(t, err) != errSetup || !errors.Is(err, left) {
		t.Errorf("get: %v", err)
	}
}
