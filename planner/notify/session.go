package notify

import "slices"

// Session is what a session listens to and notifies of, of which its transaction makes a
// part only when it commits. Used by the session's goroutine, but for what its Listener says.
type Session struct {
	*Listener
	pid     uint32
	pending []action
	notes   []Notification
}

// action is a LISTEN, or an UNLISTEN of a channel or, with none, of all.
type action struct {
	channel string
	listen  bool
}

// Session makes the side of the session pid; wake is as for Listener.
func (h *Hub) Session(pid uint32, wake func()) *Session {
	return &Session{Listener: h.Listener(wake), pid: pid}
}

// Mark is a place in what a transaction has done.
type Mark struct{ pending, notes int }

// Mark is where the transaction is now.
func (s *Session) Mark() Mark { return Mark{len(s.pending), len(s.notes)} }

// RollbackTo undoes what came behind a mark.
func (s *Session) RollbackTo(m Mark) {
	s.pending, s.notes = s.pending[:m.pending], s.notes[:m.notes]
}

// OnCommit listens to a channel, or no more, when the transaction commits.
func (s *Session) OnCommit(channel string, listen bool) {
	s.pending = append(s.pending, action{channel, listen})
}

// Notify sends a notification when the transaction commits; of equal ones, one.
func (s *Session) Notify(channel, payload string) error {
	if err := Check(channel, payload); err != nil {
		return err
	}
	n := Notification{Channel: channel, Payload: payload, PID: s.pid}
	if !slices.Contains(s.notes, n) {
		s.notes = append(s.notes, n)
	}
	return nil
}

// Prepare is an error when what is pending cannot be sent.
func (s *Session) Prepare() error {
	if len(s.notes) == 0 {
		return nil
	}
	return s.hub.Room(s.notes)
}

// End ends the transaction: what it did happens, or not.
func (s *Session) End(commit bool) {
	pending, notes := s.pending, s.notes
	s.pending, s.notes = nil, nil
	if !commit {
		return
	}
	for _, a := range pending {
		if a.listen {
			s.Listen(a.channel)
		} else {
			s.Unlisten(a.channel)
		}
	}
	if len(notes) > 0 {
		s.hub.Send(notes)
	}
}

// Listens reports whether anything may come, or has.
func (s *Session) Listens() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.channels) > 0
}
