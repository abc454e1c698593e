package moment

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// sampleRows is about how many rows are looked at for bounds, for each of them.
const sampleRows = 32

// Bounds implements verify.Reader: quantiles of a sample of pages.
func (s *Session) Bounds(ctx context.Context, n int) ([]string, error) {
	var rows, pages int64
	for _, l := range s.leaves {
		rows, pages = rows+l.rows, pages+l.pages
	}
	const pageRows = 50 // a guess for a table without statistics
	rows = max(rows, pages*pageRows)
	if n = int(min(int64(n), rows/sampleRows)); n <= 1 {
		return nil, nil
	}
	percent := min(100, 100*float64(n*sampleRows)/float64(rows)*2)
	key := s.first()
	var parts []string
	for _, l := range s.leaves {
		parts = append(parts, fmt.Sprintf("SELECT %s AS k FROM ONLY %s TABLESAMPLE SYSTEM (%g) REPEATABLE (1)", key, l.name, percent))
	}
	sql := fmt.Sprintf(`SELECT DISTINCT ON (tile) k
	  FROM (SELECT k, ntile(%d) OVER (ORDER BY k) AS tile FROM (SELECT k FROM (%s) a LIMIT %d) b) c
	 ORDER BY tile, k OFFSET 1`, n, strings.Join(parts, " UNION ALL "), 64*n*sampleRows)
	var found [][][]byte
	err := s.released(ctx, func() (err error) {
		found, err = s.query(ctx, sql)
		return err
	})
	if err != nil {
		return nil, skip(err)
	}
	var out []string
	for _, r := range found {
		text := r[0]
		if !s.table.IntegerKey {
			if text, err = unhex(text); err != nil {
				return nil, err
			}
		}
		out = append(out, string(text))
	}
	return out, nil
}

// unhex reads a bytea in its hexadecimal form.
func unhex(text []byte) ([]byte, error) {
	digits, ok := strings.CutPrefix(string(text), `\x`)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return nil, errors.New("the source wrote a bytea in another form")
	}
	return b, nil
}

// first is the expression by which the table is cut: the first key column as an integer or
// as the bytes of its text.
func (s *Session) first() string {
	name := quote.Name(s.table.Columns[s.table.Key[0]])
	if s.table.IntegerKey {
		return name + "::int8"
	}
	return "convert_to(format('%s', " + name + "), 'UTF8')"
}

// unit is the expression of a row's unit. hash is an expression of its key's hash.
func (s *Session) unit(q *verify.Query, hash string) string {
	at := "0::int8"
	if bounds := q.Ranges.Bounds(); len(bounds) > 0 {
		kind := "int8"
		if !q.Ranges.Integer() {
			kind = "bytea"
			for i, b := range bounds {
				bounds[i] = `'\x` + hex.EncodeToString([]byte(b)) + `'`
			}
		}
		at = fmt.Sprintf("width_bucket(%s, ARRAY[%s]::%s[])::int8", s.first(), strings.Join(bounds, ","), kind)
	}
	if q.Parts <= 1 {
		return at
	}
	return fmt.Sprintf("%s * %d + ('x' || substr(%s, 1, 8))::bit(32)::int8 %% %d", at, q.Parts, hash, q.Parts)
}

// hash is the MD5 of columns as a record, in the text that all servers agree on.
func (s *Session) hash(columns []int) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = s.value(s.table.Columns[c])
	}
	return "md5(convert_to(ROW(" + strings.Join(names, ", ") + ")::text, 'UTF8'))"
}

// The last timestamp that 64 bits of microseconds since 1970 have, and what greater ones
// are clamped to.
const (
	timestampMost  = "294247-01-10 04:00:54.775807"
	timestampClamp = "294246-12-31 23:59:59.999999"
	firstDay       = "4714-11-24 BC"
	lastDay        = "5874897-12-31"
)

// value is the expression of a column as it is kept here.
func (s *Session) value(column string) string {
	name := quote.Name(column)
	r, ok := s.table.Replaced[column]
	if !ok {
		return name
	}
	moment := map[verify.RangeKind]string{verify.RangeTimestamp: "timestamp", verify.RangeTimestampTZ: "timestamptz"}[r.Kind]
	most, clamped, least := timestampMost, timestampClamp, "4714-11-24 00:00:00 BC"
	if r.Kind == verify.RangeTimestampTZ {
		most, clamped, least = most+"+00", clamped+"+00", "4714-11-24 00:00:00+00 BC"
	}
	switch {
	case r.Kind == verify.RangeDecimal && !r.Clamp:
		return fmt.Sprintf("CASE WHEN %[1]s <> 'NaN' THEN %[1]s END", name)
	case r.Kind == verify.RangeDate && r.Clamp:
		return fmt.Sprintf("CASE WHEN isfinite(%[1]s) THEN %[1]s WHEN %[1]s > '2000-01-01' THEN '%[2]s'::date WHEN %[1]s < '2000-01-01' THEN '%[3]s'::date END",
			name, lastDay, firstDay)
	case r.Kind == verify.RangeDate:
		return fmt.Sprintf("CASE WHEN isfinite(%[1]s) THEN %[1]s END", name)
	case moment != "" && r.Clamp:
		return fmt.Sprintf("CASE WHEN %[1]s > '%[2]s'::%[5]s THEN '%[3]s'::%[5]s WHEN %[1]s = '-infinity' THEN '%[4]s'::%[5]s ELSE %[1]s END",
			name, most, clamped, least, moment)
	case moment != "":
		return fmt.Sprintf("CASE WHEN isfinite(%[1]s) AND %[1]s <= '%[2]s'::%[3]s THEN %[1]s END", name, most, moment)
	}
	return name
}

// aside is the condition that leaves out rows that are set aside, "" for none.
func (s *Session) aside(keyHash string) string {
	if len(s.table.SetAside) == 0 {
		return ""
	}
	var hashes []string
	for _, key := range slices.Sorted(maps.Keys(s.table.SetAside)) {
		hashes = append(hashes, verify.HashText([]byte(key)).String())
	}
	return keyHash + " <> ALL ('{" + strings.Join(hashes, ",") + "}'::text[])"
}

// inner is the query of the rows of a leaf in units that are asked for: u their unit, m
// their hash, and key columns k0, k1, …. OFFSET 0 keeps the server from working out a hash
// for each use of it.
func (s *Session) inner(q *verify.Query, l leaf, where []string) string {
	t := s.table
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	keyHash := s.hash(t.Key)
	if len(t.Key) == 0 {
		keyHash = s.hash(all)
	}
	unit := s.unit(q, keyHash)
	list := []string{unit + " AS u", s.hash(all) + " AS m"}
	for i, k := range t.Key {
		list = append(list, fmt.Sprintf("%s AS k%d", quote.Name(t.Columns[k]), i))
	}
	if q.Only != nil {
		units := make([]string, 0, len(q.Only))
		for _, u := range slices.Sorted(maps.Keys(q.Only)) {
			units = append(units, strconv.FormatInt(int64(u), 10))
		}
		where = append(where, unit+" = ANY ('{"+strings.Join(units, ",")+"}'::int8[])")
	}
	if aside := s.aside(keyHash); aside != "" {
		where = append(where, aside)
	}
	if s.filter != "" {
		where = append(where, "("+s.filter+")")
	}
	sql := "SELECT " + strings.Join(list, ", ") + " FROM ONLY " + l.name
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	return sql + " OFFSET 0"
}

// pieces runs a query for each run of pages of each leaf, and between them holds no lock. Before
// version 14 there is one for each leaf.
func (s *Session) pieces(ctx context.Context, run func(l leaf, where []string) (rows int64, err error), tick func(float64)) error {
	var total, done int64
	for _, l := range s.leaves {
		total += l.pages
	}
	began, read := s.clock.Now(), int64(0)
	for _, l := range s.leaves {
		step := s.cfg.Pages
		if s.cfg.RowsPerSecond > 0 {
			step = max(1, step/8) // so that it is an even load
		}
		if s.cfg.Version < versionTIDRange {
			step = l.pages + 1
		}
		for first := int64(0); ; first += step {
			var where []string
			if first > 0 {
				where = append(where, fmt.Sprintf("ctid >= '(%d,0)'::tid", first))
			}
			last := first+step >= l.pages
			if !last {
				where = append(where, fmt.Sprintf("ctid < '(%d,0)'::tid", first+step))
			}
			var rows int64
			err := s.locked(ctx, l, func() (err error) {
				rows, err = run(l, where)
				return err
			})
			if err != nil {
				return skip(err)
			}
			read += rows
			share := min(1, float64(done+first+step)/float64(max(total, 1)))
			if err := s.pace(ctx, began, read, func() { tick(share) }); err != nil {
				return err
			}
			if last {
				break
			}
			tick(share)
		}
		done += l.pages
	}
	return nil
}

// pace waits until so many rows may have been read since. tick is called about once a second.
func (s *Session) pace(ctx context.Context, began time.Time, rows int64, tick func()) error {
	if s.cfg.RowsPerSecond <= 0 {
		return nil
	}
	due := time.Duration(float64(rows) / float64(s.cfg.RowsPerSecond) * float64(time.Second))
	for {
		ahead := due - s.clock.Since(began)
		if ahead <= 0 {
			return nil
		}
		if err := s.clock.Sleep(ctx, min(ahead, time.Second)); err != nil {
			return err
		}
		tick()
	}
}

// Sums implements verify.Reader.
func (s *Session) Sums(ctx context.Context, q *verify.Query, tick func(share float64)) (map[verify.Unit]verify.Sum, error) {
	out := map[verify.Unit]verify.Sum{}
	err := s.pieces(ctx, func(l leaf, where []string) (rows int64, err error) {
		sql := `SELECT u, count(*), sum(('x' || substr(m, 1, 16))::bit(64)::int8), sum(('x' || substr(m, 17, 16))::bit(64)::int8)
		  FROM (` + s.inner(q, l, where) + `) x GROUP BY u`
		err = s.stream(ctx, sql, func(row [][]byte) error {
			unit, err1 := strconv.ParseInt(string(row[0]), 10, 64)
			count, err2 := strconv.ParseInt(string(row[1]), 10, 64)
			a, err3 := modulo(row[2])
			b, err4 := modulo(row[3])
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				return fmt.Errorf("read sums: %w", err)
			}
			rows += count
			sum := out[verify.Unit(unit)]
			out[verify.Unit(unit)] = verify.Sum{Rows: sum.Rows + count, A: sum.A + a, B: sum.B + b}
			return nil
		})
		return rows, err
	}, tick)
	return out, err
}

// modulo reads a sum modulo 2^64.
func modulo(text []byte) (uint64, error) {
	n, ok := new(big.Int).SetString(string(text), 10)
	if !ok {
		return 0, errors.New("sum is not a number")
	}
	return n.And(n, new(big.Int).SetUint64(1<<64-1)).Uint64(), nil
}

// Rows implements verify.Reader.
func (s *Session) Rows(ctx context.Context, q *verify.Query, emit func(key verify.Cells, hash verify.Hash) error) error {
	list := "m"
	for i := range s.table.Key {
		list += fmt.Sprintf(", k%d", i)
	}
	return s.pieces(ctx, func(l leaf, where []string) (rows int64, err error) {
		sql := "SELECT " + list + " FROM (" + s.inner(q, l, where) + ") x"
		err = s.stream(ctx, sql, func(row [][]byte) error {
			h, ok := verify.ParseHash(row[0])
			if !ok {
				return errors.New("read rows: not a hash")
			}
			rows++
			return emit(row[1:], h)
		})
		return rows, err
	}, func(float64) {})
}

// Columns implements verify.Reader.
func (s *Session) Columns(ctx context.Context, keys [][]string, emit func(key verify.Cells, hashes []string) error) error {
	t := s.table
	var list, terms []string
	for _, k := range t.Key {
		list = append(list, quote.Name(t.Columns[k]))
	}
	for _, c := range t.Columns {
		list = append(list, fmt.Sprintf("CASE WHEN %[1]s IS DISTINCT FROM NULL THEN md5(convert_to(format('%%s', %[1]s), 'UTF8')) END", s.value(c)))
	}
	for _, key := range keys {
		var equal []string
		for i, k := range t.Key {
			equal = append(equal, quote.Name(t.Columns[k])+" = "+quote.Literal(key[i]))
		}
		terms = append(terms, "("+strings.Join(equal, " AND ")+")")
	}
	for _, l := range s.leaves {
		sql := "SELECT " + strings.Join(list, ", ") + " FROM ONLY " + l.name + " WHERE " + strings.Join(terms, " OR ")
		err := s.locked(ctx, l, func() error {
			return s.stream(ctx, sql, func(row [][]byte) error {
				hashes := make([]string, len(t.Columns))
				for i := range hashes {
					hashes[i] = string(row[len(t.Key)+i])
				}
				return emit(row[:len(t.Key)], hashes)
			})
		})
		if err != nil {
			return skip(err)
		}
	}
	return nil
}
