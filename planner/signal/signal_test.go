package signal

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/wal/env"
)

// backends are the sessions of a test; those that end do so when they are told, but for stuck.
type backends struct {
	users map[uint32]string
	stuck uint32
	sent  []uint32
}

func (b *backends) find(pid uint32) (Target, bool) {
	u, ok := b.users[pid]
	return Target{PID: pid, User: u}, ok
}

func (b *backends) send(pid uint32, terminate bool) bool {
	b.sent = append(b.sent, pid)
	if terminate && pid != b.stuck {
		delete(b.users, pid)
	}
	return true
}

func TestCalls(t *testing.T) {
	const stuck = 3
	for _, c := range []struct {
		name   string
		role   uint32
		call   Call
		done   bool
		notice string
		err    string
	}{
		{"cancel", right.Bootstrap, Call{PID: 1}, true, "", ""},
		{"terminate", right.Bootstrap, Call{PID: 1, Terminate: true}, true, "", ""},
		{"terminate and wait", right.Bootstrap, Call{PID: 1, Terminate: true, Wait: time.Minute}, true, "", ""},
		{"no such", right.Bootstrap, Call{PID: 99}, false, "PID 99 is not a PostgreSQL backend process", ""},
		{"negative", right.Bootstrap, Call{PID: -1}, false, "PID -1 is not a PostgreSQL backend process", ""},
		{"beyond", right.Bootstrap, Call{PID: 1<<32 + 1}, false, "PID 4294967297 is not a PostgreSQL backend process", ""},
		{
			"does not end", right.Bootstrap,
			Call{PID: stuck, Terminate: true, Wait: 250 * time.Millisecond},
			false,
			"backend with PID 3 did not terminate within 250 milliseconds", "",
		},
		{"bad wait", right.Bootstrap, Call{PID: 1, Terminate: true, Wait: -1}, false, "", `"timeout" must not be negative`},
		{"superuser's", 77, Call{PID: 1}, false, "", "must be a superuser to cancel superuser query"},
		{"superuser's", 77, Call{PID: 1, Terminate: true}, false, "", "must be a superuser to terminate superuser process"},
		{"another's", 77, Call{PID: 2}, false, "", "must be a member of the role whose query is being canceled or member of pg_signal_backend"},
	} {
		synctest.Test(t, func(t *testing.T) {
			clock, _ := env.System()
			b := &backends{users: map[uint32]string{1: "postgres", 2: "nobody", stuck: "postgres"}, stuck: stuck}
			s := Sender{Rights: right.New(map[string]*right.Role{"postgres": {Name: "postgres", OID: right.Bootstrap, Superuser: true}, "nobody": {Name: "nobody", OID: 66}, "guest": {Name: "guest", OID: 77}}, nil), Role: c.role, Find: b.find, Send: b.send, Clock: clock}
			done, notice, err := s.Do(context.Background(), c.call)
			switch {
			case done != c.done:
				t.Errorf("%s: %v", c.name, done)
			case (notice == nil) != (c.notice == "") || notice != nil && notice.Message != c.notice:
				t.Errorf("%s: notice %v", c.name, notice)
			case (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err):
				t.Errorf("%s: %v", c.name, err)
			case (err != nil || strings.HasPrefix(c.notice, "PID")) && len(b.sent) > 0:
				t.Errorf("%s: %v was signalled", c.name, b.sent)
			}
		})
	}
}
