package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// freshCorner is what comes of a connection of its own.
type freshCorner struct {
	name string
	run  func(t *testing.T, s target) string
}

// fresh are corners that have a connection of their own.
var fresh = []freshCorner{
	{"no TLS", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(request(codeSSL))
		out := w.one(t)
		w.send(startUp(protocol30, "user", "postgres", "database", database))
		return out + w.read(t, 1, "")
	}},
	{"TLS twice", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(request(codeSSL))
		out := w.one(t)
		w.send(request(codeSSL))
		return out + w.read(t, 1, "")
	}},
	{"a newer minor version", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30+9, "_pq_.some", "1")
		return out
	}},
	{"another major version", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(startUp(2<<16, "user", "postgres", "database", database))
		out, err := io.ReadAll(w.conn)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%q\n", out)
	}},
	{"no such database", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(startUp(protocol30, "user", "postgres", "database", "nosuch"))
		return w.read(t, 1, "")
	}},
	{"no user", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(startUp(protocol30, "database", database))
		return w.read(t, 1, "")
	}},
	{"an unknown setting", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30, "nosuch_setting", "1")
		return out
	}},
	{"settings", func(t *testing.T, s target) string {
		w, out := login(t, s, protocol30, "application_name", "wire", "client_encoding", "'utf-8'", "DateStyle", "ISO", "TimeZone", "Europe/Vienna",
			"extra_float_digits", "2", "options", "-c statement_timeout=90000 -csearch_path=shop")
		w.send(encoded(t, query("SHOW statement_timeout; SHOW search_path; SHOW extra_float_digits; SELECT 0.1::float4")))
		return out + w.read(t, 1, "")
	}},
	{"cancel", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(encoded(t, query("BEGIN"), query("SELECT pg_sleep(600)")))
		out := w.read(t, 1, "")
		for answered := false; !answered; { // a cancel that comes before the query hits nothing
			c := dial(t, s)
			c.send(encoded(t, &pgproto3.CancelRequest{ProcessID: w.key.ProcessID, SecretKey: w.key.SecretKey}))
			if end := c.read(t, 1, ""); end != "closed\n" {
				return end
			}
			_ = w.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			_, err := w.in.Peek(1)
			answered = err == nil
		}
		_ = w.conn.SetReadDeadline(time.Now().Add(limit))
		return out + withoutColumns(w.read(t, 1, ""))
	}},
	{"an unknown message", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(raw('y', "what"))
		return w.read(t, 1, "")
	}},
	{"a length that cannot be", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send([]byte{'Q', 0, 0, 0, 2})
		return w.read(t, 1, "")
	}},
	{"a text without its end", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(raw('Q', "SELECT 1"))
		return w.read(t, 1, "")
	}},
	{"a message cut short", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(append(raw('P', "s\x00SELECT 1\x00\x00"), encoded(t, sync)...))
		return w.read(t, 1, "")
	}},
	{"not UTF-8", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(encoded(t, query("SELECT '\xff'"), query("SELECT 1")))
		return w.read(t, 2, "")
	}},
	{"terminate", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(encoded(t, &pgproto3.Terminate{}))
		return w.read(t, 1, "")
	}},
	{"bytes behind a request for TLS", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(append(request(codeSSL), startUp(protocol30, "user", "postgres", "database", database)...))
		return w.one(t) + w.read(t, 1, "")
	}},
	{"no options", func(t *testing.T, s target) string {
		w := dial(t, s)
		b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, protocol30)
		w.send(b)
		return w.read(t, 1, "")
	}},
	{"start-up without its end", func(t *testing.T, s target) string {
		w := dial(t, s)
		b := startUp(protocol30, "user", "postgres")
		w.send(append(binary.BigEndian.AppendUint32(nil, uint32(len(b)-1)), b[4:len(b)-1]...))
		return w.read(t, 1, "")
	}},
	{"start-up with rubbish behind", func(t *testing.T, s target) string {
		w := dial(t, s)
		b := append(startUp(protocol30, "user", "postgres"), "more\x00"...)
		binary.BigEndian.PutUint32(b, uint32(len(b)))
		w.send(b)
		return w.read(t, 1, "")
	}},
	{"start-up that is too long", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(binary.BigEndian.AppendUint32([]byte{0, 0, 0x40, 0}, protocol30))
		return w.read(t, 1, "")
	}},
	{"no such user", func(t *testing.T, s target) string {
		w := dial(t, s)
		w.send(startUp(protocol30, "user", "nosuch", "database", database))
		return w.read(t, 1, "")
	}},
	{"a bad value of a setting", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30, "DateStyle", "nosuch")
		return out
	}},
	{"a bad option", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30, "options", "-c nosuch")
		return out
	}},
	{"protocol 3.2", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30+2)
		return out
	}},
	{"protocol 3.1", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30+1)
		return out
	}},
	{"options of the protocol", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30, "_pq_.one", "1", "_pq_.two", "2")
		return out
	}},
	{"a wrong key", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		c := dial(t, s)
		c.send(encoded(t, &pgproto3.CancelRequest{ProcessID: w.key.ProcessID, SecretKey: []byte{1, 2, 3, 4}}))
		out := c.read(t, 1, "")
		w.send(encoded(t, query("SELECT 1")))
		return out + w.read(t, 1, "")
	}},
	{"cancel of the idle", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		c := dial(t, s)
		c.send(encoded(t, &pgproto3.CancelRequest{ProcessID: w.key.ProcessID, SecretKey: w.key.SecretKey}))
		out := c.read(t, 1, "")
		w.send(encoded(t, query("SELECT 1")))
		return out + w.read(t, 1, "")
	}},
	{"a zero byte in a query", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(append(raw('Q', "SELECT 1\x00SELECT 2\x00"), encoded(t, query("SELECT 3"))...))
		return w.read(t, 2, "")
	}},
	{"rubbish behind a message", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(append(raw('P', "\x00SELECT 1\x00\x00\x00more"), encoded(t, sync)...))
		out := w.read(t, 1, "")
		w.send(append(raw('B', "\x00\x00\x00\x00\x00\x00\x00\x00x"), encoded(t, sync)...))
		out += w.read(t, 1, "")
		w.send(append(raw('D', "S\x00x"), encoded(t, sync)...))
		out += w.read(t, 1, "")
		w.send(append(raw('E', "\x00\x00\x00\x00\x00x"), encoded(t, sync)...))
		out += w.read(t, 1, "")
		w.send(append(raw('C', "P\x00x"), encoded(t, sync)...))
		out += w.read(t, 1, "")
		w.send(encoded(t, query("SELECT 1")))
		return out + w.read(t, 1, "")
	}},
	{"kinds that are none", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(append(raw('D', "x\x00"), encoded(t, sync)...))
		out := w.read(t, 1, "")
		w.send(append(raw('C', "x\x00"), encoded(t, sync)...))
		return out + w.read(t, 1, "")
	}},
	{"sync with a body", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(append(raw('S', "more"), encoded(t, query("SELECT 1"))...))
		return w.read(t, 2, "")
	}},
	{"flush with a body", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(append(raw('H', "more"), encoded(t, sync, query("SELECT 1"))...))
		return w.read(t, 2, "")
	}},
	{"a message that is too long", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send([]byte{'Q', 0x7f, 0xff, 0xff, 0xff})
		return w.read(t, 1, "")
	}},
	{"a short message that is too long", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send([]byte{'S', 0, 0x10, 0, 0})
		return w.read(t, 1, "")
	}},
	{"query in a copy", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(encoded(t, query("COPY loads FROM STDIN"), query("SELECT 1")))
		return w.read(t, 1, "")
	}},
	{"client gone in a copy", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(encoded(t, query("COPY loads FROM STDIN"), data("7\ta\t1\n")))
		out := w.read(t, 1, "G")
		_ = w.conn.Close()
		w, _ = login(t, s, protocol30)
		w.send(encoded(t, query("SELECT * FROM loads")))
		return out + w.read(t, 1, "")
	}},
	{"terminated by another", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		other, _ := login(t, s, protocol30)
		other.send(encoded(t, query(fmt.Sprintf("SELECT pg_terminate_backend(%d)", w.key.ProcessID))))
		return other.read(t, 1, "") + w.read(t, 1, "")
	}},
	{"idle for too long", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30, "idle_session_timeout", "1")
		return w.read(t, 1, "")
	}},
	{"idle in a transaction for too long", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30, "idle_in_transaction_session_timeout", "1")
		w.send(encoded(t, query("BEGIN")))
		return w.read(t, 1, "") + w.read(t, 1, "")
	}},
	{"a statement that takes too long", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(encoded(t, query("SET statement_timeout = 300; SELECT pg_sleep(600)"))) // which undoes the SET, too
		out := withoutColumns(w.read(t, 1, ""))
		w.send(encoded(t, query("SELECT 1")))
		return out + w.read(t, 1, "")
	}},
}
