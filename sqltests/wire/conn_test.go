package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// wire is a connection that speaks messages, and writes down every byte that comes back
// but for what servers differ in by nature.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	// others are letters for process ids.
	others map[uint32]string
	key    *pgproto3.BackendKeyData
}

func dial(t *testing.T, s target) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(limit))
	return &wire{conn: conn, in: bufio.NewReader(conn)}
}

func encoded(t *testing.T, ms ...pgproto3.FrontendMessage) []byte {
	t.Helper()
	var b []byte
	for _, m := range ms {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// send writes; a server that has closed already has said so.
func (w *wire) send(b []byte) { _, _ = w.conn.Write(b) }

// read writes down what comes until ready ReadyForQuery, a message of the kind until, or
// the end.
func (w *wire) read(t *testing.T, ready int, until string) string {
	t.Helper()
	var out strings.Builder
	for ready > 0 {
		var head [5]byte
		_, err := io.ReadFull(w.in, head[:])
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.String() + "closed\n"
		}
		if err != nil {
			t.Fatalf("after %s: %v", out.String(), err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(w.in, body); err != nil {
			t.Fatal(err)
		}
		out.WriteString(w.told(head[0], body))
		if head[0] == 'Z' {
			ready--
		}
		if strings.IndexByte(until, head[0]) >= 0 {
			break
		}
	}
	return out.String()
}

// message reads one message.
func (w *wire) message() (string, error) {
	var head [5]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return "", err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(w.in, body); err != nil {
		return "", err
	}
	return w.told(head[0], body), nil
}

// told is a message as text, its body byte for byte but for what differs by nature.
func (w *wire) told(kind byte, body []byte) string {
	switch kind {
	case 'K':
		w.key = new(pgproto3.BackendKeyData)
		if err := w.key.Decode(body); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("K %d bytes\n", len(body))
	case 'S':
		if bytes.HasPrefix(body, []byte("server_version\x00")) {
			body = []byte("server_version")
		}
	case 'A':
		name := w.others[binary.BigEndian.Uint32(body)]
		body = append([]byte(name), body[4:]...)
	case 'T':
		body = withoutTables(body)
	case 'E', 'N':
		var kept [][]byte
		for _, f := range bytes.Split(body, []byte{0}) {
			if len(f) == 0 || strings.IndexByte("FLR", f[0]) < 0 { // where in the source code
				kept = append(kept, f)
			}
		}
		body = lockedDatabase.ReplaceAll(bytes.Join(kept, []byte{0}), []byte("advisory lock [db,"))
		body = lockedTable.ReplaceAll(body, []byte("on relation of database db"))
		for pid, name := range w.others {
			body = bytes.ReplaceAll(body, fmt.Appendf(nil, "rocess %d", pid), []byte("rocess "+name))
		}
	}
	return fmt.Sprintf("%c %q\n", kind, body)
}

// withoutColumns leaves RowDescriptions out, before which or behind which a statement may be
// interrupted.
func withoutColumns(out string) string {
	var kept strings.Builder
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "T ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

var (
	lockedDatabase = regexp.MustCompile(`advisory lock \[\d+,`)
	lockedTable    = regexp.MustCompile(`on relation \d+ of database \d+`)
)

// withoutTables blanks the tables' OIDs of a RowDescription.
func withoutTables(body []byte) []byte {
	out := bytes.Clone(body)
	at := 2
	for range binary.BigEndian.Uint16(out) {
		at += bytes.IndexByte(out[at:], 0) + 1
		if binary.BigEndian.Uint32(out[at:]) != 0 {
			copy(out[at:], "oid.")
		}
		at += 18
	}
	return out
}

func startUp(version uint32, kv ...string) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), version)
	for _, s := range kv {
		b = append(append(b, s...), 0)
	}
	b = append(b, 0)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

const (
	protocol30 = 3 << 16
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
)

// request is one of the packets that come before a start-up packet.
func request(code uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, code) }

// one reads a byte, the answer to a request for encryption.
func (w *wire) one(t *testing.T) string {
	t.Helper()
	b := make([]byte, 1)
	if _, err := io.ReadFull(w.in, b); err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// login is a connection past its first ReadyForQuery, and what came before it.
func login(t *testing.T, s target, version uint32, kv ...string) (*wire, string) {
	t.Helper()
	w := dial(t, s)
	w.send(startUp(version, append([]string{"user", "postgres", "database", database}, kv...)...))
	return w, w.read(t, 1, "E")
}

func raw(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

func parse(name, sql string, types ...uint32) pgproto3.FrontendMessage {
	return &pgproto3.Parse{Name: name, Query: sql, ParameterOIDs: types}
}

func bind(portal, statement string, values ...string) *pgproto3.Bind {
	b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: statement}
	for _, v := range values {
		b.Parameters = append(b.Parameters, []byte(v))
	}
	return b
}

func describe(kind byte, name string) pgproto3.FrontendMessage {
	return &pgproto3.Describe{ObjectType: kind, Name: name}
}

func execute(portal string, rows uint32) pgproto3.FrontendMessage {
	return &pgproto3.Execute{Portal: portal, MaxRows: rows}
}

func closing(kind byte, name string) pgproto3.FrontendMessage {
	return &pgproto3.Close{ObjectType: kind, Name: name}
}

func data(s string) pgproto3.FrontendMessage { return &pgproto3.CopyData{Data: []byte(s)} }

func query(sql string) pgproto3.FrontendMessage { return &pgproto3.Query{String: sql} }

var (
	sync  = &pgproto3.Sync{}
	flush = &pgproto3.Flush{}
	done  = &pgproto3.CopyDone{}
)
