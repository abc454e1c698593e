package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/cut"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// config is what a source is told: where to connect, and a pipeline's options.
type config struct {
	// conn reaches the database with ordinary settings, never logged.
	conn *pgx.ConnConfig
	// pipeline is its name, for hints.
	pipeline string
	// slot and publication name what we make. Options slot_name and publication,
	// default skippr_<pipeline>.
	slot, publication string
	// parallel is how many chunks of a backfill are read at once: 1..16, option
	// backfill_parallel, default 2.
	parallel int
	// rowsPerSecond bounds a backfill over all its readers; 0 does not. Option
	// backfill_rows_per_second, default 0.
	rowsPerSecond int64
	// chunkPages is the size of a backfill chunk in pages of 8 KiB: option
	// backfill_chunk_pages, default 8192 (64 MiB).
	chunkPages int64
	// heartbeat is how often, at most, a message is written into the source's log while
	// others write there and our tables rest; 0: never. Option heartbeat_interval, default
	// 10 s.
	heartbeat time.Duration
	// failover has the slot carried over to standbys, from version 17 on. Option failover,
	// default on.
	failover bool
	// streaming has the server send large transactions before they end, from version 14
	// on; they are kept on disk here until then, all together at most spillBytes. Options
	// streaming, default on, and spill_max_bytes, default 64 GiB.
	streaming  bool
	spillBytes int64
	selection  catalog.TableSelection
	// skipGenerated leaves out generated columns: option generated_columns.
	skipGenerated bool
	// rule is what becomes of values out of range: option out_of_range.
	rule outofrange.Rule
}

const (
	parallelDefault   = 2
	parallelMax       = 16
	chunkPagesDefault = 8192
	heartbeatDefault  = 10 * time.Second
	heartbeatMax      = time.Hour
	// identifierMax is PostgreSQL's limit on names, in bytes.
	identifierMax = 63
)

// keywords maps options of a connection to libpq's words. A secret option comes in
// among the others, resolved.
var keywords = map[string]string{
	"HOST": "host", "PORT": "port", "DATABASE": "database", "DBNAME": "database", "USER": "user", "PASSWORD": "password",
	"SSLMODE": "sslmode", "SSLROOTCERT": "sslrootcert", "SSLCERT": "sslcert", "SSLKEY": "sslkey",
	"SSLPASSWORD": "sslpassword", "SSLNEGOTIATION": "sslnegotiation", "SSLSNI": "sslsni",
	"CONNECT_TIMEOUT": "connect_timeout", "TARGET_SESSION_ATTRS": "target_session_attrs",
	"PASSFILE": "passfile", "SERVICE": "service", "SERVICEFILE": "servicefile",
	"OPTIONS": "options", "APPLICATION_NAME": "application_name", "CHANNEL_BINDING": "channel_binding",
	"REQUIRE_AUTH": "require_auth",
}

// addresses are the options that hold a whole connection string.
var addresses = []string{"URL", "URI", "DSN", "CONNINFO"}

// newConfig checks everything and reports all problems at once.
func newConfig(c ingest.ResolvedConnection, p *catalog.Pipeline) (config, error) {
	conn, err := connConfig(c.Options)
	if err != nil {
		return config{}, err
	}
	cfg := config{
		conn: conn, selection: p.Selection, pipeline: p.Name,
		slot: "skippr_" + slotName(p.Name), publication: "skippr_" + slotName(p.Name),
		parallel: parallelDefault, chunkPages: chunkPagesDefault, streaming: p.Options["streaming"] != "false",
	}
	cfg.rule = outofrange.RuleOf(p.Options)
	cfg.skipGenerated = p.Options["generated_columns"] == "skip"
	var errs []error
	number := func(name string, least, most int64, set func(int64)) {
		text, ok := p.Options[name]
		if !ok {
			return
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > most {
			errs = append(errs, fmt.Errorf("option %s: a number from %d to %d is required", name, least, most))
			return
		}
		set(n)
	}
	number("backfill_parallel", 1, parallelMax, func(n int64) { cfg.parallel = int(n) })
	number("backfill_rows_per_second", 0, 1<<40, func(n int64) { cfg.rowsPerSecond = n })
	number("spill_max_bytes", 1<<20, 1<<50, func(n int64) { cfg.spillBytes = n })
	number("backfill_chunk_pages", 1, 1<<31, func(n int64) { cfg.chunkPages = n })
	cfg.heartbeat, cfg.failover = heartbeatDefault, p.Options["failover"] != "false"
	if text, ok := p.Options["heartbeat_interval"]; ok {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > heartbeatMax {
			errs = append(errs, fmt.Errorf("option heartbeat_interval: a duration from 0 to %v is required", heartbeatMax))
		}
		cfg.heartbeat = d
	}
	if name := p.Options["slot_name"]; name != "" {
		cfg.slot = name
		if name != slotName(name) {
			errs = append(errs, errors.New("option slot_name: only lower-case letters, digits and underscores are allowed"))
		}
	}
	if name := p.Options["publication"]; name != "" {
		cfg.publication = name
	}
	if len(cfg.slot) > identifierMax-len(temporarySuffix)-16 || len(cfg.publication) > identifierMax-len(appendSuffix) {
		errs = append(errs, fmt.Errorf(
			"the names of its slot %s and its publication %s are too long: name shorter ones, WITH (slot_name = '…', publication = '…')", quote.Name(cfg.slot), quote.Name(cfg.publication)))
	}
	return cfg, errors.Join(errs...)
}

// slotName is name with everything that a slot's name may not have replaced.
func slotName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, name)
}

// connConfig joins a connection's options into what pgx reads. Errors never quote a
// password.
func connConfig(options map[string]string) (*pgx.ConnConfig, error) {
	settings := map[string]string{}
	address := ""
	var unknown []string
	for name, value := range options {
		word, ok := keywords[strings.ToUpper(name)]
		switch {
		case slices.Contains(addresses, strings.ToUpper(name)):
			address = value
		case ok:
			settings[word] = value
		default:
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("unknown connection option %s", strings.Join(unknown, ", "))
	}
	if address == "" && settings["host"] == "" {
		settings["host"] = "localhost" // not what this process's environment says
	}
	text, err := conninfo(address, settings)
	if err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("connection options: %w", err)
	}
	cfg.BuildFrontend = cutting(ingest.RowBytesMax)
	cfg.AfterConnect = takeBytes
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectMost
	}
	for name, value := range sessionSettings {
		cfg.RuntimeParams[name] = value
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "skipprd"
	}
	return cfg, nil
}

// receiveBuffer is how much is read from the server at once: pgproto3 asks for 8 KiB,
// a system call for every few dozen rows.
const receiveBuffer = 128 << 10

// sessionSettings make the server write values in the one form that package value
// reads, and keep it from ending our long transactions and from leaving rows out.
var sessionSettings = map[string]string{
	"client_encoding": "UTF8", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "TimeZone": "UTC",
	"extra_float_digits": "3", "bytea_output": "hex", "search_path": "pg_catalog",
	"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0",
	"row_security": "off", // rather an error than rows that are missing
}

// cutting makes readers that take the large values out of rows with more bytes.
func cutting(most int) pgconn.BuildFrontendFunc {
	return func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(cut.NewReader(r, receiveBuffer, most), w)
	}
}

// takeBytes has the server send texts as they are when it does not know their encoding. One
// that is not UTF-8 is then a row that cannot be taken in; asked for UTF-8 the server would
// end the stream there, again and again.
func takeBytes(ctx context.Context, conn *pgconn.PgConn) error {
	if conn.ParameterStatus("server_encoding") != sqlASCII {
		return nil
	}
	if _, err := conn.Exec(ctx, "SET client_encoding = '"+sqlASCII+"'").ReadAll(); err != nil {
		return fmt.Errorf("set client_encoding: %w", err)
	}
	return nil
}

// sqlASCII is the encoding of a database that does not check its texts.
const sqlASCII = "SQL_ASCII"

// conninfo adds settings to an address, over which they win.
func conninfo(address string, settings map[string]string) (string, error) {
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		u, err := url.Parse(address)
		if err != nil {
			return "", errors.New("connection URL cannot be read")
		}
		return urlWith(u, settings), nil
	}
	words := []string{address}
	escape := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	for name, value := range settings {
		words = append(words, name+"='"+escape.Replace(value)+"'")
	}
	return strings.Join(words, " "), nil
}

func urlWith(u *url.URL, settings map[string]string) string {
	query := u.Query()
	user, password := u.User.Username(), settings["password"]
	if password == "" {
		password, _ = u.User.Password()
	}
	if settings["user"] != "" {
		user = settings["user"]
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	} else if user != "" {
		u.User = url.User(user)
	}
	for name, value := range settings {
		if name != "user" && name != "password" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}
