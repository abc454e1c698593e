package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// versionArchives is the first version that names the parts of a backup, which it sends
// as one stream.
const versionArchives = 15

// backupFile is a backup in a file that has no name any more.
func backupFile(dsn string) (*os.File, error) {
	f, err := os.CreateTemp("", "pgtest-backup-")
	if err != nil {
		return nil, fmt.Errorf("back up: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	err = errors.Join(os.Remove(f.Name()), backup(ctx, dsn, f))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// backup writes a copy of a running server's directory to w, as a tar archive with all
// that it needs to start. Not every server comes with pg_basebackup, whose work this is.
func backup(ctx context.Context, dsn string, w io.Writer) error {
	conn, err := pgconn.Connect(ctx, dsn+" replication=true")
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	text, _, _ := strings.Cut(conn.ParameterStatus("server_version"), ".")
	major, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("back up: version %q: %w", text, err)
	}
	sql, part := "BASE_BACKUP (LABEL 'pgtest', CHECKPOINT 'fast', WAL, WAIT false)", func(b []byte) []byte {
		if len(b) > 0 && b[0] == 'd' {
			return b[1:]
		}
		return nil // a part's name, or the manifest's beginning
	}
	if major < versionArchives {
		sql, part = "BASE_BACKUP LABEL 'pgtest' FAST WAL NOWAIT", func(b []byte) []byte { return b }
	}
	frontend := conn.Frontend()
	frontend.Send(&pgproto3.Query{String: sql})
	if err := frontend.Flush(); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return receive(frontend, part, w)
}

// receive writes what is sent of the archive until the server is ready again.
func receive(frontend *pgproto3.Frontend, part func([]byte) []byte, w io.Writer) error {
	var failed error
	for {
		msg, err := frontend.Receive()
		if err != nil {
			return errors.Join(failed, fmt.Errorf("back up: %w", err))
		}
		switch msg := msg.(type) {
		case *pgproto3.CopyData:
			if failed == nil {
				_, failed = w.Write(part(msg.Data))
			}
		case *pgproto3.ErrorResponse:
			failed = errors.Join(failed, fmt.Errorf("back up: %w", pgconn.ErrorResponseToPgError(msg)))
		case *pgproto3.ReadyForQuery:
			return failed
		}
	}
}
