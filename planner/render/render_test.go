package render_test

import (
	"testing"

	"github.com/skipprd/skipprd/planner/render"
)

const document = `[{"Plan": {"Node Type": "Seq <Scan>", "Rows": 1.50, "Async Capable": false, "Nothing": null},
 "Tables": [{"Table": "a", "Files": 2}, {"Table": "b", "Files": 0}], "Engine Plan": ["x \"y\"", "│z"], "None": []}]`

func TestXML(t *testing.T) {
	want := `<explain xmlns="http://www.postgresql.org/2009/explain">
  <Query>
    <Plan>
      <Node-Type>Seq &lt;Scan&gt;</Node-Type>
      <Rows>1.50</Rows>
      <Async-Capable>false</Async-Capable>
      <Nothing>null</Nothing>
    </Plan>
    <Tables>
      <Table>
        <Table>a</Table>
        <Files>2</Files>
      </Table>
      <Table>
        <Table>b</Table>
        <Files>0</Files>
      </Table>
    </Tables>
    <Engine-Plan>
      <Item>x "y"</Item>
      <Item>│z</Item>
    </Engine-Plan>
    <None>
    </None>
  </Query>
</explain>`
	if got, err := render.XML([]byte(document)); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestYAML(t *testing.T) {
	want := "- Plan: \n    Node Type: \"Seq <Scan>\"\n    Rows: 1.50\n    Async Capable: false\n    Nothing: null\n" +
		"  Tables: \n    - Table: \"a\"\n      Files: 2\n    - Table: \"b\"\n      Files: 0\n" +
		"  Engine Plan: \n    - \"x \\\"y\\\"\"\n    - \"│z\"\n  None: "
	if got, err := render.YAML([]byte(document)); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestMalformed(t *testing.T) {
	for _, text := range []string{"", "[{", `[{"a"`, `{"a": ]`} {
		if _, err := render.XML([]byte(text)); err == nil {
			t.Errorf("%q is taken for XML", text)
		}
		if _, err := render.YAML([]byte(text)); err == nil {
			t.Errorf("%q is taken for YAML", text)
		}
	}
}
