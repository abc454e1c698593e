package pgwire_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire"
)

// rawClient speaks messages. Its transcript is one word or two per message.
type rawClient struct {
	t    testing.TB
	conn net.Conn
	f    *pgproto3.Frontend
	pid  uint32
	key  []byte
}

func dialRaw(t testing.TB, addr string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(3 * time.Minute))
	return &rawClient{t: t, conn: conn, f: newFrontend(conn)}
}

// login starts up with user postgres and reads until ReadyForQuery.
func login(t testing.TB, addr string) *rawClient {
	t.Helper()
	return loginTo(t, addr, "lake")
}

func loginTo(t testing.TB, addr, database string) *rawClient {
	t.Helper()
	c := dialRaw(t, addr)
	c.start(database)
	return c
}

func (c *rawClient) start(database string) {
	c.t.Helper()
	c.send(&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "postgres", "database": database}})
	if got := c.until("Z"); !strings.HasSuffix(got, "Z:I") {
		c.t.Fatalf("login: %s", got)
	}
}

func newFrontend(conn net.Conn) *pgproto3.Frontend { return pgproto3.NewFrontend(conn, conn) }

func (c *rawClient) send(ms ...pgproto3.FrontendMessage) {
	c.t.Helper()
	for _, m := range ms {
		c.f.Send(m)
	}
	if err := c.f.Flush(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) raw(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// until reads messages up to one of a type and renders them; an EOF ends too.
func (c *rawClient) until(kinds string) string {
	c.t.Helper()
	var out []string
	for {
		m, err := c.f.Receive()
		if err != nil {
			if err == io.ErrUnexpectedEOF || err == io.EOF || strings.Contains(err.Error(), "reset") {
				return strings.Join(append(out, "EOF"), " ")
			}
			c.t.Fatalf("after %v: %v", out, err)
		}
		kind, text := c.render(m)
		if text != "" {
			out = append(out, text)
		}
		if strings.IndexByte(kinds, kind) >= 0 {
			return strings.Join(out, " ")
		}
	}
}

func (c *rawClient) render(m pgproto3.BackendMessage) (byte, string) {
	switch m := m.(type) {
	case *pgproto3.ParameterStatus:
		if m.Name == "mine" {
			return 'S', "S:" + m.Value
		}
		return 'S', ""
	case *pgproto3.BackendKeyData:
		c.pid, c.key = m.ProcessID, append([]byte{}, m.SecretKey...)
		return 'K', fmt.Sprintf("K%d", len(m.SecretKey))
	case *pgproto3.AuthenticationOk:
		return 'R', "R"
	case *pgproto3.ReadyForQuery:
		return 'Z', "Z:" + string(m.TxStatus)
	case *pgproto3.ErrorResponse:
		return 'E', m.Severity[:1] + ":" + m.Code
	case *pgproto3.NoticeResponse:
		return 'N', "N:" + m.Message
	case *pgproto3.RowDescription:
		s := "T"
		for _, f := range m.Fields {
			s += fmt.Sprintf(":%s/%d/%d", f.Name, f.TypeModifier, f.Format)
		}
		return 'T', s
	case *pgproto3.DataRow:
		var values []string
		for _, v := range m.Values {
			if v == nil {
				values = append(values, "NULL")
				continue
			}
			values = append(values, string(v))
		}
		return 'D', "D[" + strings.Join(values, ",") + "]"
	case *pgproto3.CommandComplete:
		return 'C', "C:" + strings.ReplaceAll(string(m.CommandTag), " ", "_")
	case *pgproto3.ParameterDescription:
		return 't', fmt.Sprintf("t%v", m.ParameterOIDs)
	case *pgproto3.CopyData:
		return 'd', "d"
	case *pgproto3.NegotiateProtocolVersion:
		return 'v', fmt.Sprintf("v:%d.%d%v", m.NewestMinorProtocol>>16, m.NewestMinorProtocol&0xffff, m.UnrecognizedOptions)
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3.")
	return name[0], name
}

func query(s string) *pgproto3.Query { return &pgproto3.Query{String: s} }

// simpleScript goes in order over one session.
var simpleScript = []struct{ name, sql, want string }{
	{"one", "select 1", "T:?column?/-1/0 D[1] C:SELECT_1 Z:I"},
	{"typmod", "rows 1", "T:n/-1/0:t/14/0 D[0,row 0] C:SELECT_1 Z:I"},
	{"several", "select 1; begin; select 2", "T:?column?/-1/0 D[1] C:SELECT_1 C:BEGIN T:?column?/-1/0 D[2] C:SELECT_1 Z:T"},
	{"error aborts block", "select 1; fail; select 2", "T:?column?/-1/0 D[1] C:SELECT_1 E:22012 Z:E"},
	{"refused while aborted", "select 1", "E:25P02 Z:E"},
	{"unknown table while aborted", "missing", "E:25P02 Z:E"},
	{"rollback", "rollback", "C:ROLLBACK Z:I"},
	{"empty", "", "EmptyQueryResponse Z:I"},
	{"semicolons", " ; ;", "EmptyQueryResponse Z:I"},
	{"comment", "-- nothing", "EmptyQueryResponse Z:I"},
	{"syntax error before anything runs", "select 1; syntax", "E:42601 Z:I"},
	{"internal", "oops", "E:XX000 Z:I"},
	{"timeout", "timeout", "E:57014 Z:I"},
	{"parameter", "select $1", "E:42P02 Z:I"},
	{"set", "set mine yours", "C:SET S:yours Z:I"},
	{"notice", "notice", "N:something to know C:NOTICE Z:I"},
	{"copy out", "copyout", "CopyOutResponse d d CopyDone C:COPY_2 Z:I"},
}

func TestSimpleProtocol(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{})
	runSimpleScript(t, login(t, addr), func(sql string) string { return sql })
}

func runSimpleScript(t *testing.T, c *rawClient, translate func(string) string) {
	for _, test := range simpleScript {
		sql := translate(test.sql)
		if sql == toyOnly {
			continue
		}
		c.send(query(sql))
		if got := c.until("Z"); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
}

type messages = []pgproto3.FrontendMessage

// step is a step of a script: messages and the answer up to ReadyForQuery. A step
// without messages reads on.
type step struct {
	name string
	send messages
	want string
}

func parse(name, sql string) *pgproto3.Parse { return &pgproto3.Parse{Name: name, Query: sql} }

func bind(portal, statement string, values ...string) *pgproto3.Bind {
	b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: statement}
	for _, v := range values {
		b.Parameters = append(b.Parameters, []byte(v))
	}
	return b
}

func execute(portal string, n uint32) *pgproto3.Execute {
	return &pgproto3.Execute{Portal: portal, MaxRows: n}
}

func describe(kind byte, name string) *pgproto3.Describe {
	return &pgproto3.Describe{ObjectType: kind, Name: name}
}

var (
	syncMessage = &pgproto3.Sync{}
	flush       = &pgproto3.Flush{}
)

// extendedScript goes in order over one session.
var extendedScript = []step{
	{
		"unnamed",
		messages{parse("", "select $1 $2"), bind("", "", "a", "b"), describe('P', ""), execute("", 0), syncMessage},
		"ParseComplete BindComplete T:p/-1/0:p/-1/0 D[a,b] C:SELECT_1 Z:I",
	},
	{"describe statement", messages{parse("s1", "select $1"), describe('S', "s1"), syncMessage}, "ParseComplete t[25] T:p/-1/0 Z:I"},
	{"duplicate statement", messages{parse("s1", "select 2"), syncMessage}, "E:42P05 Z:I"},
	{"skip until sync", messages{parse("s1", "select 2"), bind("", "s1", "x"), execute("", 0), query("select 1"), syncMessage}, "E:42P05 Z:I"},
	{"unknown statement", messages{bind("", "nope"), syncMessage}, "E:26000 Z:I"},
	{"describe unknown", messages{describe('S', "nope"), syncMessage}, "E:26000 Z:I"},
	{"unknown portal", messages{execute("nope", 0), syncMessage}, "E:34000 Z:I"},
	{"describe unknown portal", messages{describe('P', "nope"), syncMessage}, "E:34000 Z:I"},
	{"close statement", messages{&pgproto3.Close{ObjectType: 'S', Name: "s1"}, bind("", "s1", "x"), syncMessage}, "CloseComplete E:26000 Z:I"},
	{"close unknown", messages{&pgproto3.Close{ObjectType: 'P', Name: "nope"}, syncMessage}, "CloseComplete Z:I"},
	{"wrong parameter count", messages{parse("", "select $1"), bind("", ""), syncMessage}, "ParseComplete E:08P01 Z:I"},
	{"bad format", messages{parse("", "select $1"), &pgproto3.Bind{ParameterFormatCodes: []int16{7}, Parameters: [][]byte{nil}}, syncMessage}, "ParseComplete E:22023 Z:I"},
	{
		"null parameter",
		messages{parse("", "select $1"), &pgproto3.Bind{Parameters: [][]byte{nil}}, execute("", 0), syncMessage},
		"ParseComplete BindComplete D[NULL] C:SELECT_1 Z:I",
	},
	{
		"empty",
		messages{parse("", ";"), bind("", ""), describe('P', ""), execute("", 0), syncMessage},
		"ParseComplete BindComplete NoData EmptyQueryResponse Z:I",
	},
	{"no rows", messages{parse("", "begin"), bind("", ""), describe('P', ""), execute("", 0), syncMessage}, "ParseComplete BindComplete NoData C:BEGIN Z:T"},
	{
		"limit",
		messages{parse("", "rows 5"), bind("p", ""), execute("p", 2), syncMessage},
		"ParseComplete BindComplete D[0,row 0] D[1,row 1] PortalSuspended Z:T",
	},
	{
		"continue after sync",
		messages{execute("p", 2), execute("p", 0), syncMessage},
		"D[2,row 2] D[3,row 3] PortalSuspended D[4,row 4] C:SELECT_1 Z:T",
	},
	{"after the end", messages{execute("p", 0), syncMessage}, "C:SELECT_0 Z:T"},
	{"duplicate portal", messages{bind("p", ""), syncMessage}, "E:42P03 Z:E"},
	{"aborted", messages{parse("", "rows 1"), syncMessage}, "E:25P02 Z:E"},
	{
		"rollback drops portals",
		messages{parse("", "rollback"), bind("", ""), execute("", 0), syncMessage, execute("p", 0), syncMessage},
		"ParseComplete BindComplete C:ROLLBACK Z:I",
	},
	{"", nil, "E:34000 Z:I"},
	{
		"portal gone outside a transaction",
		messages{parse("", "rows 5"), bind("q", ""), execute("q", 1), syncMessage, execute("q", 1), syncMessage},
		"ParseComplete BindComplete D[0,row 0] PortalSuspended Z:I",
	},
	{"", nil, "E:34000 Z:I"},
	{
		"binary result",
		messages{parse("", "rows 1"), &pgproto3.Bind{ResultFormatCodes: []int16{1, 0}}, describe('P', ""), execute("", 0), syncMessage},
		"ParseComplete BindComplete T:n/-1/1:t/14/0 D[\x00\x00\x00\x00,row 0] C:SELECT_1 Z:I",
	},
	{"simple drops unnamed", messages{parse("", "select $1"), syncMessage, query("select 1"), bind("", "", "x"), syncMessage}, "ParseComplete Z:I"},
	{"", nil, "T:?column?/-1/0 D[1] C:SELECT_1 Z:I"},
	{"", nil, "E:26000 Z:I"},
	{"error in execute", messages{parse("", "fail"), bind("", ""), execute("", 0), execute("", 0), syncMessage}, "ParseComplete BindComplete E:22012 Z:I"},
}

func TestExtendedProtocol(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{})
	runExtendedScript(t, login(t, addr), func(sql string) string { return sql })
}

func runExtendedScript(t *testing.T, c *rawClient, translate func(string) string) {
	for _, test := range extendedScript {
		var send messages
		for _, m := range test.send {
			switch m := m.(type) {
			case *pgproto3.Parse:
				send = append(send, &pgproto3.Parse{Name: m.Name, Query: translate(m.Query)})
			case *pgproto3.Query:
				send = append(send, query(translate(m.String)))
			default:
				send = append(send, m)
			}
		}
		c.send(send...)
		if got := c.until("Z"); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
	c.send(parse("", translate("select $1")), flush)
	if got := c.until("P"); got != "ParseComplete" {
		t.Errorf("flush: %s", got)
	}
	c.send(bind("", "nope"))
	if got := c.until("E"); got != "E:26000" {
		t.Errorf("errors are flushed: %s", got)
	}
}

func TestCopyIn(t *testing.T) {
	toy := newToy()
	_, addr := startServer(t, toy, pgwire.Config{})
	c := login(t, addr)
	data := func(s string) *pgproto3.CopyData { return &pgproto3.CopyData{Data: []byte(s)} }
	for _, test := range []struct {
		name, sql string
		send      []pgproto3.FrontendMessage
		want      string
	}{
		{"whole", "copyin", []pgproto3.FrontendMessage{data("1\ta\n2"), data("\tb\n"), &pgproto3.CopyDone{}}, "CopyInResponse C:COPY_2 Z:I"},
		{"sync inside", "copyin", []pgproto3.FrontendMessage{data("1\n"), &pgproto3.Sync{}, &pgproto3.CopyDone{}}, "CopyInResponse C:COPY_1 Z:I"},
		{"fail", "copyin", []pgproto3.FrontendMessage{data("1\n"), &pgproto3.CopyFail{Message: "no"}}, "CopyInResponse E:57014 Z:I"},
		{
			"server refuses", "copyin refuse",
			[]pgproto3.FrontendMessage{data(strings.Repeat("x", 100000)), data("y"), &pgproto3.CopyDone{}, query("select 1")},
			"CopyInResponse E:22P04 Z:I",
		},
		{"alive after it", "select 2", nil, "T:?column?/-1/0 D[1] C:SELECT_1 Z:I"},
	} {
		c.send(append([]pgproto3.FrontendMessage{query(test.sql)}, test.send...)...)
		if got := c.until("Z"); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
	if want := []string{"1\ta\n2\tb\n", "1\n"}; fmt.Sprint(toy.copied) != fmt.Sprint(want) {
		t.Errorf("copied %q", toy.copied)
	}
}

// A client that dies in the middle of COPY must not look like one that is done.
func TestCopyInLostClient(t *testing.T) {
	toy := newToy()
	_, addr := startServer(t, toy, pgwire.Config{})
	c := login(t, addr)
	c.send(query("copyin"), &pgproto3.CopyData{Data: []byte("1\n")})
	<-toy.running // of "copyin"
	_ = c.conn.Close()
	if err := <-toy.canceled; err == nil || strings.HasSuffix(err.Error(), ": EOF") {
		t.Errorf("copy ended with %v", err)
	}
	if len(toy.copied) != 0 {
		t.Error("a partial copy was taken for a whole one")
	}
}

func TestMalformedMessages(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{MessageBytesMax: 1 << 20})
	message := func(kind byte, n uint32, body string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, n), body...)
	}
	end, long := message('X', 4, ""), strings.Repeat("x", 1<<20+1)
	for _, test := range []struct {
		name string
		send []byte
		want string
	}{
		{"unknown type", message('!', 4, ""), "F:08P01 EOF"},
		{"short length", message('Q', 3, ""), "F:08P01 EOF"},
		{"huge length", message('Q', 1<<30+5, ""), "F:08P01 EOF"},
		{"query beyond the limit", append(message('Q', 1<<20+5, long), end...), "E:54000 Z:I EOF"},
		{"bind beyond the limit", slices.Concat(message('B', 1<<20+5, long), message('B', 1<<20+5, long), message('S', 4, ""), end), "E:54000 Z:I EOF"},
		{"negative length", message('Q', 1<<31, ""), "F:08P01 EOF"},
		{"query without end", append(message('Q', 5, "x"), end...), "E:08P01 Z:I EOF"},
		{
			"parameter of length -2",
			slices.Concat(message('P', 4+1+1+2, "\x00\x00\x00\x00"), message('B', 4+1+1+2+2+4+2, "\x00\x00\x00\x00\x00\x01\xff\xff\xff\xfe\x00\x00"), end),
			"ParseComplete E:08P01 EOF",
		},
		{"sync with a body", append(message('S', 5, "x"), end...), "E:08P01 Z:I EOF"},
		{"describe of nothing", append(message('D', 6, "Xx"), end...), "E:08P01 EOF"},
		{"sync that is too long", message('S', 20000, ""), "F:08P01 EOF"},
		{"panic in the engine", message('Q', 4+6, "panic\x00"), "F:XX000 EOF"},
		{"function call without a body", append(message('F', 4, ""), end...), "E:08P01 Z:I EOF"},
		{"bad UTF-8", append(message('Q', 4+3, "\xff\xfe\x00"), end...), "E:22021 Z:I EOF"},
	} {
		c := login(t, addr)
		c.raw(test.send)
		if got := c.until(""); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
	login(t, addr) // the server lives
}
