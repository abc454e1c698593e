// Package notify carries the notifications of NOTIFY from transactions that commit to the
// sessions that LISTEN. A Hub is the server's; a Listener is a session's. Nothing here is
// kept: who does not listen at the commit never hears of it.
package notify

import (
	"slices"
	"sync"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Limits, PostgreSQL's but for the last.
const (
	channelBytesMax = 63
	payloadBytesMax = 7999
	// queueBytesMax bounds what waits for one session. A transaction that would pass it on
	// fails at its commit, as in PostgreSQL when its queue is full.
	queueBytesMax = 8 << 20
)

// Notification is one message.
type Notification struct {
	Channel, Payload string
	// PID is the session that sent it.
	PID uint32
}

func (n Notification) bytes() int { return len(n.Channel) + len(n.Payload) + 64 }

// Check refuses channels and payloads that PostgreSQL refuses.
func Check(channel, payload string) error {
	switch {
	case channel == "":
		return pgerr.New(codes.InvalidParameterValue, "channel name cannot be empty")
	case len(channel) > channelBytesMax:
		return pgerr.New(codes.InvalidParameterValue, "channel name too long")
	case len(payload) > payloadBytesMax:
		return pgerr.New(codes.InvalidParameterValue, "payload string too long")
	}
	return nil
}

// Hub knows who listens to what. Safe for concurrent use.
type Hub struct {
	mu        sync.Mutex
	listeners map[*Listener]struct{}
}

// New makes a hub.
func New() *Hub { return &Hub{listeners: map[*Listener]struct{}{}} }

// Listener is a session's side. Its methods are safe for concurrent use.
type Listener struct {
	hub  *Hub
	wake func()
	// What follows is the hub's mutex's.
	channels map[string]bool
	order    []string
	queue    []Notification
	bytes    int
}

// Listener makes a session's side. wake is called, without a lock held, when there is
// something to take.
func (h *Hub) Listener(wake func()) *Listener {
	return &Listener{hub: h, wake: wake, channels: map[string]bool{}}
}

// Listen adds a channel.
func (l *Listener) Listen(channel string) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if !l.channels[channel] {
		l.channels[channel] = true
		l.order = append(l.order, channel)
	}
	l.hub.listeners[l] = struct{}{}
}

// Unlisten removes a channel, "" all of them, with what has come of it.
func (l *Listener) Unlisten(channel string) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if channel == "" {
		clear(l.channels)
		l.order = nil
		l.queue = nil
	} else {
		delete(l.channels, channel)
		l.queue = slices.DeleteFunc(l.queue, func(n Notification) bool { return n.Channel == channel })
		l.order = slices.DeleteFunc(l.order, func(c string) bool { return c == channel })
	}
	l.bytes = 0
	for _, n := range l.queue {
		l.bytes += n.bytes()
	}
	if len(l.channels) == 0 {
		delete(l.hub.listeners, l)
	}
}

// Channels are those that it listens to, in the order in which it began.
func (l *Listener) Channels() []string {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return slices.Clone(l.order)
}

// Take returns what has come, which is the caller's from then on.
func (l *Listener) Take() []Notification {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	out := l.queue
	l.queue, l.bytes = nil, 0
	return out
}

// Room is an error while a session that would hear of notifications has as many waiting as
// it may.
func (h *Hub) Room(notifications []Notification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if l.bytes < queueBytesMax {
			continue
		}
		if slices.ContainsFunc(notifications, func(n Notification) bool { return l.channels[n.Channel] }) {
			return pgerr.New(codes.ProgramLimitExceeded, "too many notifications in the NOTIFY queue").
				WithDetail("A session that listens does not read them, or stays in a transaction.")
		}
	}
	return nil
}

// Send hands notifications of one transaction to all who listen, in order, at once.
func (h *Hub) Send(notifications []Notification) {
	for _, l := range h.put(notifications) {
		l.wake()
	}
}

func (h *Hub) put(notifications []Notification) (woken []*Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		before := len(l.queue)
		for _, n := range notifications {
			if l.channels[n.Channel] {
				l.queue = append(l.queue, n)
				l.bytes += n.bytes()
			}
		}
		if len(l.queue) > before {
			woken = append(woken, l)
		}
	}
	return woken
}
