package s3store_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skipprd/skipprd/sqltests/s3test"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/s3store"
	"github.com/skipprd/skipprd/wal/objstore/storetest"
)

// open makes a client of a bucket of the server, at another endpoint if there is one.
func open(t *testing.T, s *s3test.Server, bucket string, change func(*s3store.Config)) *s3store.Store {
	t.Helper()
	cfg := s3store.Config{
		Bucket: bucket, Region: s3test.Region, Endpoint: s.Endpoint, PathStyle: true,
		AccessKeyID: s3test.AccessKeyID, SecretAccessKey: s3test.SecretAccessKey,
	}
	if change != nil {
		change(&cfg)
	}
	store, err := s3store.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// The suite against a real server, as in the clear and through TLS: the SDK frames and
// signs bodies differently over the two.
func TestServer(t *testing.T) {
	server := s3test.Start(t)
	t.Run("http", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) objstore.Store { return open(t, server, server.CreateBucket(t), nil) })
	})
	proxy, framed := tlsProxy(t, server.Endpoint)
	t.Run("https", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) objstore.Store { return open(t, server, server.CreateBucket(t), proxy) })
		if n := framed.Load(); n != 0 {
			t.Errorf("%d bodies were framed", n)
		}
	})
}

// tlsProxy puts TLS before a server and counts requests whose body is framed.
func tlsProxy(t *testing.T, endpoint string) (func(*s3store.Config), *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var framed atomic.Int64
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // what fails, the client reports
	forward.ErrorLog = quiet
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
			framed.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	proxy.Config.ErrorLog = quiet
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	return func(cfg *s3store.Config) {
		cfg.Endpoint = proxy.URL
		cfg.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	}, &framed
}

func TestSelfTest(t *testing.T) {
	server := s3test.Start(t)
	s := open(t, server, server.CreateBucket(t), nil)
	for i := range 2 {
		if err := objstore.SelfTest(t.Context(), s, fmt.Sprintf("p/self-test-%d", i)); err != nil {
			t.Error(err)
		}
	}
	if page, err := s.List(t.Context(), "", "", 10); err != nil || len(page.Objects) != 0 {
		t.Errorf("left: %v, %v", page, err)
	}
}

// Errors of the setup are not retryable: they need a human.
func TestSetupErrors(t *testing.T) {
	server := s3test.Start(t)
	bucket := server.CreateBucket(t)
	proxy, _ := tlsProxy(t, server.Endpoint)
	for name, change := range map[string]func(*s3store.Config){
		"no bucket":    func(c *s3store.Config) { c.Bucket = "never-made" },
		"wrong secret": func(c *s3store.Config) { c.SecretAccessKey = "guess" },
		"unknown key":  func(c *s3store.Config) { c.AccessKeyID = "guess" },
		"not trusted": func(c *s3store.Config) {
			proxy(c)
			c.CABundle = nil
		},
	} {
		s := open(t, server, bucket, change)
		_, errPut := s.Put(t.Context(), "k", []byte("x"), objstore.IfMatch("v"))
		_, errGet := s.Get(t.Context(), "k", objstore.Range{})
		_, errList := s.List(t.Context(), "", "", 1)
		for op, err := range map[string]error{"put": errPut, "get": errGet, "list": errList, "delete": s.Delete(t.Context(), []string{"k"})} {
			if err == nil || objstore.IsRetryable(err) || errors.Is(err, objstore.ErrNotFound) || errors.Is(err, objstore.ErrPrecondition) {
				t.Errorf("%s: %s: %v", name, op, err)
			}
		}
	}
}

// TestKill kills the server (kill -9) again and again under a writer of numbered
// objects, each put if absent: somewhere in a put, or after it, so that the answer is
// lost. What the writer was told is stored is there afterwards; what it does not know it
// finds out as the contract says.
func TestKill(t *testing.T) {
	k := newKiller(t)
	w := &writer{store: open(t, k.server, k.server.CreateBucket(t), func(c *s3store.Config) { c.Endpoint = k.endpoint })}
	kills := 8
	if testing.Short() {
		kills = 2
	}
	for n := range kills {
		for range 3 {
			if !w.put(t) {
				t.Fatalf("object %d: the server fails although it lives", w.stored)
			}
		}
		k.arm([]int32{killsDuring, killsAfter}[n%2])
		for w.put(t) {
		}
		<-k.killed
		k.server.Restart(t)
		happened := w.happened
		w.settle(t)
		if n%2 == 1 && w.happened != happened+1 {
			t.Errorf("kill %d: the put whose answer was lost is not there", n)
		}
	}
	for n := range w.stored {
		o, err := w.store.Get(t.Context(), w.key(n), objstore.Range{})
		if err != nil || !bytes.Equal(o.Data, w.body(n)) {
			t.Errorf("object %d: %d bytes, %v", n, len(o.Data), err)
		}
	}
	t.Logf("%d objects, %d kills, %d outcomes unknown, of which %d had happened", w.stored, kills, w.unknown, w.happened)
}

// killer is a way to a server that kills it on the next request.
type killer struct {
	server   *s3test.Server
	endpoint string
	mode     atomic.Int32
	killed   chan struct{}
}

const (
	killsDuring int32 = iota + 1
	killsAfter
)

func newKiller(t *testing.T) *killer {
	t.Helper()
	k := &killer{server: s3test.Start(t)}
	target, err := url.Parse(k.server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mode := k.mode.Swap(0)
		if mode == killsDuring {
			go k.kill()
		}
		forward := httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host // it is signed
			},
			ModifyResponse: func(*http.Response) error {
				if mode == killsAfter {
					k.kill()
					return errors.New("the answer is lost")
				}
				return nil
			},
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	k.endpoint = proxy.URL
	return k
}

func (k *killer) arm(mode int32) {
	k.killed = make(chan struct{})
	k.mode.Store(mode)
}

func (k *killer) kill() {
	k.server.Kill()
	close(k.killed)
}

// writer puts objects one by one.
type writer struct {
	store             objstore.Store
	stored            int
	unknown, happened int
}

func (w *writer) key(n int) string { return fmt.Sprintf("n/%d", n) }

func (w *writer) body(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d", n), 200_000) }

// put puts the next object and says whether it is stored for sure.
func (w *writer) put(t *testing.T) bool {
	t.Helper()
	_, err := w.store.Put(t.Context(), w.key(w.stored), w.body(w.stored), objstore.IfAbsent())
	switch {
	case err == nil:
		w.stored++
	case errors.Is(err, objstore.ErrUnknown):
		w.unknown++
	case !errors.Is(err, objstore.ErrUnavailable):
		t.Fatalf("object %d: %v", w.stored, err)
	}
	return err == nil
}

// settle finds out whether the object whose put failed is there, and puts it if not.
func (w *writer) settle(t *testing.T) {
	t.Helper()
	for range 10 {
		o, err := w.store.Get(t.Context(), w.key(w.stored), objstore.Range{})
		switch {
		case err == nil && !bytes.Equal(o.Data, w.body(w.stored)):
			t.Fatalf("object %d is half written: %d bytes", w.stored, len(o.Data))
		case err == nil:
			w.happened++
			w.stored++
			return
		case objstore.IsRetryable(err): // a connection of before
		case !errors.Is(err, objstore.ErrNotFound):
			t.Fatal(err)
		case w.put(t):
			return
		}
	}
	t.Fatalf("object %d cannot be settled", w.stored)
}
