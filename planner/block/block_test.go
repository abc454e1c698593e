package block

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func TestParse(t *testing.T) {
	b, err := Parse(`DO $$ BEGIN
		CREATE TYPE "a b" AS ENUM ('x;y');
		IF NOT EXISTS (SELECT 1) THEN PERFORM f(1); ELSIF true THEN NULL; ELSE DROP TABLE t; END IF;
	EXCEPTION WHEN duplicate_object OR SQLSTATE '42P07' THEN NULL; WHEN OTHERS THEN DELETE FROM t; END $$`)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Steps) == 1 && b.Steps[0].Block != nil { // the parser has a block around it for RETURN
		b = b.Steps[0].Block
	}
	if len(b.Steps) != 2 || b.Steps[0].Run != `CREATE TYPE "a b" AS ENUM ('x;y')` || b.Steps[0].Line != 2 {
		t.Fatalf("steps: %+v", b.Steps)
	}
	ifs := b.Steps[1].If
	if len(ifs) != 3 || ifs[0].Steps[0].Perform != "SELECT f(1)" || len(ifs[1].Steps) != 0 || ifs[2].Condition != "" || ifs[2].Steps[0].Run != "DROP TABLE t" {
		t.Fatalf("branches: %+v", ifs)
	}
	if len(b.Handlers) != 2 || len(b.Handlers[1].Steps) != 1 {
		t.Fatalf("handlers: %+v", b.Handlers)
	}
	for code, want := range map[string][2]bool{"42710": {true, true}, "42P07": {true, true}, "42601": {false, true}, "57014": {false, false}} {
		if got := [2]bool{b.Handlers[0].For(code), b.Handlers[1].For(code)}; got != want {
			t.Errorf("%s: handled is %v, want %v", code, got, want)
		}
	}
	if h := (&Handler{Codes: codesOf("integrity_constraint_violation")}); !h.For("23505") || h.For("22012") {
		t.Error("a class is not its codes")
	}
}

// TestRefused: what needs more of a language than blocks have is refused, and what is no
// block is an error.
func TestRefused(t *testing.T) {
	for body, code := range map[string]string{
		"DECLARE x int; BEGIN NULL; END":                         "0A000",
		"BEGIN FOR i IN 1..2 LOOP NULL; END LOOP; END":           "0A000",
		"BEGIN EXECUTE 'SELECT 1'; END":                          "0A000",
		"BEGIN RAISE NOTICE 'x'; END":                            "0A000",
		"BEGIN SELECT 1 INTO found; END":                         "0A000",
		"BEGIN NULL; EXCEPTION WHEN nosuch_thing THEN NULL; END": "42704",
		"BEGIN SELECT 1":                                         "42601",
	} {
		_, err := Parse("DO $$" + body + "$$")
		e, ok := pgerr.As(err)
		if !ok || string(e.Code) != code {
			t.Errorf("%s: %v, want %s", body, err, code)
		}
		if ok && strings.Contains(e.Message, "\n") {
			t.Errorf("%s: %q", body, e.Message)
		}
	}
}
