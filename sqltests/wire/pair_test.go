package wire

import (
	"strings"
	"testing"
)

// pairs are corners of two sessions: each step is said by one of them, and then both are
// heard. Process ids are told as the session's letter.
var pairs = []struct {
	name  string
	steps []step
}{
	{"notify", []step{
		{by: 'a', sql: "LISTEN one; LISTEN two; SELECT pg_listening_channels()"},
		{by: 'a', sql: "SELECT * FROM pg_listening_channels()"},
		{by: 'b', sql: "NOTIFY one", heard: 1},
		{by: 'b', sql: "NOTIFY two, 'with more'", heard: 1},
		{by: 'b', sql: "NOTIFY nobody; SELECT pg_notify('one', 'by a function'), 1", heard: 1},
		{by: 'b', sql: "BEGIN; NOTIFY one, 'x'; NOTIFY one, 'x'; NOTIFY two, 'x'; NOTIFY one, 'y'"},
		{by: 'b', sql: "SAVEPOINT s; NOTIFY one, 'z'; ROLLBACK TO s"},
		{by: 'b', sql: "COMMIT", heard: 3},
		{by: 'b', sql: "BEGIN; NOTIFY one, 'lost'; ROLLBACK"},
		{by: 'a', sql: "NOTIFY one, 'to myself'"},
		{by: 'a', sql: "BEGIN; LISTEN three; NOTIFY three, 'at once'; SELECT * FROM pg_listening_channels()"},
		{by: 'b', sql: "NOTIFY one, 'while in a transaction'"},
		{by: 'a', sql: "SELECT 1"},
		{by: 'a', sql: "COMMIT; SET application_name = 'a'"},
		{by: 'a', sql: "UNLISTEN one; SELECT * FROM pg_listening_channels()"},
		{by: 'a', sql: "SELECT * FROM pg_listening_channels()"},
		{by: 'b', sql: "NOTIFY one; NOTIFY two", heard: 1},
		{by: 'a', sql: "BEGIN; LISTEN four; ROLLBACK; BEGIN; UNLISTEN *; ROLLBACK; SELECT count(*) FROM pg_listening_channels()"},
		{by: 'a', sql: "DISCARD ALL"},
		{by: 'a', sql: "SELECT count(*) FROM pg_listening_channels()"},
		{by: 'b', sql: "NOTIFY two; SELECT pg_notify('two', NULL)"},
		{by: 'a', sql: "UNLISTEN *; UNLISTEN nothing"},
		{by: 'b', sql: "SELECT pg_notify('', 'x')"},
		{by: 'b', sql: "SELECT pg_notify(NULL, 'x')"},
		{by: 'b', sql: "SELECT pg_notify('" + strings.Repeat("n", 64) + "', 'x')"},
		{by: 'b', sql: "SELECT pg_notify('n', '" + strings.Repeat("n", 8000) + "')"},
		{by: 'b', sql: "NOTIFY n, '" + strings.Repeat("n", 8000) + "'"},
		{by: 'b', sql: "SELECT pg_notify('n'), 1"},
		{by: 'a', sql: "LISTEN \"Odd Name\""},
		{by: 'b', sql: "NOTIFY \"Odd Name\", 'é'; SELECT nosuch"},
		{by: 'b', sql: "NOTIFY \"Odd Name\", 'é'", heard: 1},
		{by: 'a', sql: "UNLISTEN *"},
	}},
	{"advisory locks", []step{
		{by: 'a', sql: "SELECT pg_advisory_lock(1), pg_try_advisory_lock(1), pg_try_advisory_lock_shared(1)"},
		{by: 'b', sql: "SELECT pg_try_advisory_lock(1); SELECT pg_try_advisory_lock_shared(1); SELECT pg_try_advisory_lock(0, 1)"},
		{by: 'b', sql: "SELECT locktype, classid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' ORDER BY 2, 3, 4, 5"},
		{by: 'a', sql: "SELECT pg_advisory_unlock(1); SELECT pg_advisory_unlock(1); SELECT pg_advisory_unlock_shared(1)"},
		{by: 'a', sql: "SELECT pg_advisory_unlock(1)"},
		{by: 'a', sql: "SELECT pg_advisory_unlock_shared(1)"},
		{by: 'b', sql: "SELECT pg_try_advisory_lock(1); SELECT pg_advisory_unlock_all(); SELECT pg_advisory_unlock(0, 1)"},
		{by: 'a', sql: "SELECT pg_advisory_lock_shared(-1), pg_advisory_lock_shared(-1, -1)"},
		{by: 'b', sql: "SELECT pg_try_advisory_lock_shared(-1), pg_try_advisory_xact_lock(-1), pg_try_advisory_xact_lock_shared(-1, -1), pg_try_advisory_xact_lock(2)"},
		{by: 'a', sql: "SELECT pg_try_advisory_lock(2)"},
		{by: 'b', sql: "SELECT classid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1, 2, 3, 4"},
		{by: 'b', sql: "BEGIN; SAVEPOINT s; SELECT pg_advisory_xact_lock(3); ROLLBACK TO s"},
		{by: 'a', sql: "SELECT pg_try_advisory_lock(3)"},
		{by: 'b', sql: "SELECT pg_advisory_xact_lock_shared(4); SELECT nosuch"},
		{by: 'a', sql: "SELECT pg_try_advisory_lock(4)"},
		{by: 'b', sql: "SET lock_timeout = 10"},
		{by: 'b', sql: "ROLLBACK; SET lock_timeout = 10; SELECT pg_advisory_lock(2)"},
		{by: 'b', sql: "RESET ALL; SELECT 5 AS a, pg_try_advisory_lock(5 + 1), pg_try_advisory_lock(9223372036854775807)"},
		{by: 'a', sql: "DISCARD ALL"},
		{by: 'b', sql: "SELECT pg_try_advisory_lock(2), pg_try_advisory_lock(3)"},
		{by: 'b', sql: "SELECT pg_advisory_unlock_all(); SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"},
		{by: 'b', sql: "SELECT pg_advisory_lock('x')"},
		{by: 'b', sql: "SELECT pg_advisory_lock(1, 2, 3)"},
		{by: 'b', sql: "SELECT pg_advisory_lock(NULL), pg_try_advisory_lock(NULL)"},
	}},
	{"an advisory lock that is waited for", []step{
		{by: 'a', sql: "BEGIN; SELECT pg_advisory_xact_lock(7)"},
		{by: 'b', sql: "SELECT pg_advisory_lock(7)", later: true},
		{by: 'a', sql: "COMMIT", heard: 4},
		{by: 'b', sql: "SELECT pg_advisory_unlock(7)"},
	}},
	{"two that wait for each other", []step{
		{by: 'a', sql: "BEGIN; SELECT pg_advisory_lock(8)"},
		{by: 'b', sql: "BEGIN; SELECT pg_advisory_lock(9)"},
		{by: 'b', sql: "SELECT pg_advisory_lock(8)", later: true},
		{by: 'a', sql: "SET LOCAL deadlock_timeout = '1ms'"},
		{by: 'a', sql: "SELECT pg_advisory_lock(9)"},
		{by: 'a', sql: "ROLLBACK; SELECT pg_advisory_unlock_all()", heard: 4},
		{by: 'b', sql: "ROLLBACK; SELECT pg_advisory_unlock_all()"},
	}},
	{"two that wait for each other with a table", []step{
		{by: 'a', sql: "BEGIN; LOCK TABLE public.loads IN EXCLUSIVE MODE"},
		{by: 'b', sql: "BEGIN; SELECT pg_advisory_xact_lock(8)"},
		{by: 'b', sql: "LOCK TABLE public.loads IN EXCLUSIVE MODE", later: true},
		{by: 'a', sql: "SET LOCAL deadlock_timeout = '1ms'"},
		{by: 'a', sql: "SELECT pg_advisory_xact_lock(8)"},
		{by: 'a', sql: "ROLLBACK", heard: 2},
		{by: 'b', sql: "ROLLBACK"},
	}},
}

// step is what one of two sessions says. Its answer is read at once, unless it comes later;
// then the other session is heard for some messages.
type step struct {
	by    byte
	sql   string
	later bool
	heard int
}

// runPair runs a corner of two sessions.
func runPair(t *testing.T, s target, steps []step) string {
	t.Helper()
	a, _ := login(t, s, protocol30)
	b, _ := login(t, s, protocol30)
	a.others = map[uint32]string{a.key.ProcessID: "a", b.key.ProcessID: "b"}
	b.others = a.others
	var out strings.Builder
	for _, st := range steps {
		by, other := a, b
		if st.by == 'b' {
			by, other = b, a
		}
		by.send(encoded(t, query(st.sql)))
		if st.later {
			awaitLock(t, s)
			continue
		}
		out.WriteString("-- " + string(st.by) + ": " + st.sql[:min(len(st.sql), 60)] + "\n" + by.read(t, 1, ""))
		for range st.heard {
			m, err := other.message()
			if err != nil {
				t.Fatalf("%s: heard nothing: %v\n%s", s.name, err, out.String())
			}
			out.WriteString("   the other: " + m)
		}
	}
	return out.String()
}

// awaitLock waits until somebody waits for a lock.
func awaitLock(t *testing.T, s target) {
	t.Helper()
	w, _ := login(t, s, protocol30)
	for {
		w.send(encoded(t, query("SELECT count(*) FROM pg_locks WHERE NOT granted")))
		if strings.Contains(w.read(t, 1, ""), `\x011`) {
			return
		}
	}
}
