package ddl

import "testing"

func TestRedact(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 'a' FROM t":                                              "SELECT 'a' FROM t",
		"SELECT 'a":                                                      "SELECT 'a",
		"CREATE SECRET s AS 'pw'":                                        "CREATE SECRET s AS '…'",
		"ALTER ROLE r PASSWORD 'pw'; SELECT 'b'":                         "ALTER ROLE r PASSWORD '…'; SELECT 'b'",
		"create user u encrypted password 'cut o":                        "create user u encrypted password …",
		"create secret s as 'cut o":                                      "create secret s as …",
		"create secret s as E'cut ":                                      "create secret s as …",
		"create secret s as $a$cut":                                      "create secret s as …",
		`SELECT ""; ALTER ROLE r PASSWORD 'pw'`:                          `SELECT ""; ALTER ROLE r PASSWORD…`,
		"SELECT 'its; ALTER ROLE r PassWord 'pw'":                        "SELECT 'its; ALTER ROLE r PassWord…",
		"ALTER ROLE r PASSWORD 'a'; SELECT \"x; CREATE SECRET s AS 'pw'": "ALTER ROLE r PASSWORD…",
		"create secret s as 'x'/* c":                                     "create secret s as '…'…",
		"CREATE /* x */ PIPELINE p FROM POSTGRES $$postgres://u:pw@h$$ FOR ALL TABLES": "CREATE /* x */ PIPELINE p FROM POSTGRES '…' FOR ALL TABLES",
		"SELECT 'a'; ALTER SECRET s AS E'p\\'w'; SELECT 'b'":                           "SELECT 'a'; ALTER SECRET s AS '…'; SELECT 'b'",
	} {
		if got := Redact(sql); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("CREATE SECRET s AS 'pw' /* 'x' */; SELECT $1, $a$b$a$, E'\\'")
	f.Fuzz(func(_ *testing.T, sql string) { Redact(sql) })
}
