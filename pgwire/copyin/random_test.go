package copyin_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/pgwire/copyin"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// pieces are what random data is made of.
var pieces = []string{
	"a", "b", "1", "\t", "\t", ",", ",", "\n", "\n", "\r", "\r\n", `\`, `\`, ".", `\.`, "\\.\n", `"`, `"`, "'", ";", "|", "N", `\N`, "nil", "x", "\\x4", "\\7", "\\101", "é", "\xc3", "\xff", " ",
	"a\tb\n", "a,b\n", "a\tb\r\n", "a,b\r\n", "\"a\nb\",c\n",
}

// Random data in random dialects is read as PostgreSQL reads it. SKIPPRD_COPY_ROUNDS
// sets how many copies (500), SKIPPRD_SEED where the random numbers begin.
func TestRandomAgainstPostgres(t *testing.T) {
	c, err := pgconn.Connect(context.Background(), pgtest.Start(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	number := func(name string, n int) int {
		if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return v
		}
		return n
	}
	ask(t, c, "CREATE TEMP TABLE t (a text, b text)")
	seed := number("SKIPPRD_SEED", 1)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for range number("SKIPPRD_COPY_ROUNDS", 500) {
		group := corners[[]int{0, 3}[r.IntN(2)]]
		d := group.dialects[r.IntN(len(group.dialects))]
		if strings.Contains(d.sql, `QUOTE '\'`) {
			continue // see twice
		}
		var b strings.Builder
		for range 1 + r.IntN(14) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		data := b.String()
		options, err := copyin.Parse(d.options)
		if err != nil {
			t.Fatal(err)
		}
		want := fromPostgres(t, c, d.sql, data)
		got := decode(t, &cuts{[]byte(data), rand.New(rand.NewPCG(1, 1))}, copyin.Config{Columns: columns("a b"), Options: options})
		if e := strings.LastIndex(got, "\n"); strings.Contains(want, " / ") {
			got = got[e+1:]
		}
		if got != want {
			t.Errorf("seed %d, %s %q:\n%s\nPostgreSQL:\n%s", seed, d.sql, data, got, want)
		}
	}
}
