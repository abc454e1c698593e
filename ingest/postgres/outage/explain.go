package outage

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Explanation is a failed connection in words for the source's user.
type Explanation struct {
	Message string // a clause
	Detail  string // what the server or the network said
	Hint    string // a sentence that helps, "" if nothing is known
}

// Explain finds a failed connection in err; false when there is none in it.
func Explain(err error) (Explanation, bool) {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return explainConnect(connect), true
	}
	return Explanation{}, false
}

// explainConnect tells why no connection was made.
func explainConnect(e *pgconn.ConnectError) Explanation {
	first, _, _ := strings.Cut(e.Error(), "\n")
	out := Explanation{Message: "could not connect to the source", Detail: first}
	var pg *pgconn.PgError
	if errors.As(e, &pg) {
		out.Detail = pg.Severity + ": " + pg.Message
		out.Hint = connectHints[pg.Code]
		return out
	}
	cause := e.Unwrap()
	if cause == nil {
		return out
	}
	lines := strings.Split(strings.TrimSpace(cause.Error()), "\n")
	out.Detail = strings.TrimSpace(lines[len(lines)-1])
	if len(lines) == 1 { // of several addresses each has its line
		out.Detail = plain(cause, out.Detail)
	}
	switch {
	case strings.Contains(out.Detail, "refused TLS"):
		out.Hint = "The server has no TLS: SSLMODE 'prefer' or 'disable' goes without."
	case strings.Contains(out.Detail, "tls error"), strings.Contains(out.Detail, "certificate"):
		out.Hint = "Check SSLMODE and SSLROOTCERT of the connection."
	default:
		out.Hint = "Check HOST and PORT of the connection, and that the server runs there and accepts TCP/IP connections."
	}
	return out
}

// plain is text, which is what err says, without Go's words for a failed dial.
func plain(err error, text string) string {
	var dns *net.DNSError
	var dial *net.OpError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host name " + dns.Name + " is not known"
	case errors.As(err, &dial) && dial.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dial) && dial.Addr != nil:
		var why error = dial
		for errors.Unwrap(why) != nil {
			why = errors.Unwrap(why)
		}
		return dial.Addr.String() + ": " + why.Error()
	}
	return text
}

// connectHints say what helps when a server answers with an error.
var connectHints = map[string]string{
	"28P01": "Check USER and PASSWORD of the connection.",
	"28000": "Check USER, SSLMODE and SSLCERT of the connection, and pg_hba.conf of the source.",
	"3D000": "Check DATABASE of the connection.",
	"53300": "The source has too many connections.",
	"57P03": "The source starts up or shuts down: try again.",
}
