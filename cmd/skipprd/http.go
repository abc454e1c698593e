package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/skipprd/skipprd/wal/env"
)

// health is what /healthz and /readyz answer. Safe for concurrent use.
type health struct {
	ready atomic.Bool
	// waits says what a server that is not ready waits for.
	waits atomic.Pointer[string]
	// check says why the server is not well; nil when it is.
	check atomic.Pointer[func() error]
}

// httpServer serves metrics and health until ctx ends.
func httpServer(ctx context.Context, addr string, h *health, m *metrics, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for http: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Timeout: scrapeTimeout}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.problem()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !h.ready.Load() {
			answer(w, h.starting())
			return
		}
		answer(w, h.problem())
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("http server ended", env.KeyError, err)
		}
	}()
	return func() { _ = srv.Close(); <-done }, nil // clients may be cut off
}

// wait notes what a server that is not ready waits for, and logs it when that is new.
func (h *health) wait(log *slog.Logger, text string) {
	if old := h.waits.Swap(&text); old == nil || *old != text {
		log.Info("server waits", env.KeyReason, text)
	}
}

func (h *health) starting() error {
	if text := h.waits.Load(); text != nil {
		return errors.New(*text)
	}
	return errors.New("starting")
}

func (h *health) problem() error {
	if f := h.check.Load(); f != nil {
		return (*f)()
	}
	return nil
}

func answer(w http.ResponseWriter, problem error) {
	w.Header().Set("Content-Type", "application/json")
	status := map[string]string{"status": "ok"}
	if problem != nil {
		status["status"] = problem.Error()
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// runHealthcheck asks a server on this machine whether it is ready.
func runHealthcheck(ctx context.Context, args []string) error {
	c := newConfig()
	fs := newFlags("healthcheck", "[flags]", "Exits 0 when the server on this machine is ready (GET /readyz).")
	c.flags(fs)
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if err := c.resolve(os.LookupEnv); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(c.get("http"))
	if err != nil {
		return fmt.Errorf("http address: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", port)+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", resp.Status)
	}
	return nil
}
