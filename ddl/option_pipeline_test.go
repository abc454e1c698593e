package ddl

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOptionsTable: docs/postgres-source.md has a table of all options, with the words of
// SHOW DOCS.
func TestOptionsTable(t *testing.T) {
	text, err := os.ReadFile("../docs/postgres-source.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## All options\n")
	if !found {
		t.Fatal("docs/postgres-source.md has no section \"All options\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	want := "| option | type | default | a change counts | |\n|---|---|---|---|---|\n"
	for _, o := range pipelineOptions {
		want += fmt.Sprintf("| `%s` | %s | `%s` | %s | %s |\n", o.Name, o.Type, o.Default, o.change, o.Help)
	}
	if !strings.Contains(section, want) {
		t.Errorf("the table of options in docs/postgres-source.md is not the one of this program, which is\n%s", want)
	}
}

// TestOptionDefaults: what an option is without a word of the user is a value that the user
// could give.
func TestOptionDefaults(t *testing.T) {
	for _, o := range pipelineOptions {
		if o.Type == "name" {
			continue // a function of the pipeline's name
		}
		if _, err := o.check(o.Default); err != nil {
			t.Errorf("default %q of %s: %v", o.Default, o.Name, err)
		}
	}
}

// TestOptionsRead: what the layers below read of a pipeline's options is declared here, and
// what is declared and has more than one value is read.
func TestOptionsRead(t *testing.T) {
	oneValue := []string{"wal_storage", "on_truncate", "format_version"}
	atOnce := []string{"start", "dry_run"} // of the statement, not of the pipeline
	index := regexp.MustCompile(`Options\["([a-z_]+)"\]`)
	read, code := map[string]string{}, ""
	for _, root := range []string{"../ingest", "../lake", "../catalog", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range index.FindAllStringSubmatch(string(text), -1) {
				read[m[1]] = path
			}
			code += string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(read) < 5 {
		t.Fatalf("only %d options are read: the test looks at nothing", len(read))
	}
	for name, path := range read {
		if !slices.ContainsFunc(pipelineOptions, func(o pipelineOption) bool { return o.Name == name }) {
			t.Errorf("%s reads option %q, which is not declared", path, name)
		}
	}
	for _, o := range pipelineOptions {
		if !strings.Contains(code, `"`+o.Name+`"`) && !slices.Contains(oneValue, o.Name) && !slices.Contains(atOnce, o.Name) {
			t.Errorf("option %q is declared, and nothing reads it", o.Name)
		}
	}
}
