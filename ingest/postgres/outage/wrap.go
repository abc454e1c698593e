package outage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest"
)

// Wrap marks err as the source's; verb is what could not be done, as in "list tables". The
// result is an *ingest.SourceError, unless there is one in err: what was said first stays.
func Wrap(verb string, err error) error {
	var said *ingest.SourceError
	if errors.As(err, &said) {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return &ingest.SourceError{Message: message(verb, err), Cause: fmt.Errorf("%s: %w", verb, err)}
}

// Say is what err says to the source's user: the message of an *ingest.SourceError in it,
// else its first line.
func Say(err error) string {
	var said *ingest.SourceError
	if errors.As(err, &said) {
		return said.Message
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// message is a clause without what only the log needs: addresses tried, Go's words for a
// broken connection.
func message(verb string, err error) string {
	if e, ok := Explain(err); ok {
		return e.Message + ": " + e.Detail
	}
	could := "could not " + verb + ": "
	var pg *pgconn.PgError
	var network net.Error
	switch {
	case errors.As(err, &pg) && strings.HasPrefix(pg.Code, "57P"):
		return "the source ended the session: " + pg.Message
	case errors.As(err, &pg):
		return could + pg.Message
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return could + "the source did not answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return could + "the connection to the source broke"
	}
	return could + err.Error()
}
