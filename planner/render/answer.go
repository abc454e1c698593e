package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// Answer is what EXPLAIN shows; JSON has it as it is.
type Answer struct {
	Tree     *Plan   `json:"Plan"`
	Planning *Millis `json:"Planning Time,omitempty"`
	Executed *Millis `json:"Execution Time,omitempty"`
	Pin      Pin     `json:"Pin"`
	SQL      string  `json:"Engine SQL,omitempty"`
	// Plan is the engine's plan in FORMAT TEXT, instead of Tree. Write is there what a statement
	// that writes does, and Written to how many rows it did that.
	Plan    []string `json:"-"`
	Write   string   `json:"-"`
	Written *int     `json:"-"`
}

// Pin is what a query reads.
type Pin struct {
	Repeatable bool     `json:"Repeatable"`
	Pipelines  []Source `json:"Pipelines,omitempty"`
	Tables     []Table  `json:"Tables,omitempty"`
}

// Source is where a pipeline stood.
type Source struct {
	Pipeline string   `json:"Pipeline"`
	Log      string   `json:"Log Position"`
	Source   string   `json:"Source Position"`
	Lag      *float64 `json:"Lag Seconds"`
}

// Table is what is read of a table.
type Table struct {
	Table       string `json:"Table"`
	Snapshot    int64  `json:"Lake Snapshot"`
	Files       int    `json:"Lake Files"`
	Pruned      int    `json:"Lake Files Pruned"`
	LakeRows    int64  `json:"Lake Rows"`
	DeleteFiles int    `json:"Delete Files"`
	Slices      int    `json:"Live Slices"`
	LiveChanges int64  `json:"Live Changes"`
	Compare     bool   `json:"Compares Tokens"`
	Predicate   string `json:"Key Predicate,omitempty"`
}

// Rows are the rows of the answer in a format: one, save for text.
func (x *Answer) Rows(format string) ([]string, error) {
	if format == "" || format == "text" {
		return x.lines(), nil
	}
	var made bytes.Buffer
	j := json.NewEncoder(&made)
	j.SetEscapeHTML(false)
	j.SetIndent("", "  ")
	if err := j.Encode([]*Answer{x}); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	text, err := string(inLine(bytes.TrimSuffix(made.Bytes(), []byte("\n")))), error(nil)
	switch format {
	case "xml":
		text, err = XML(made.Bytes())
	case "yaml":
		text, err = YAML(made.Bytes())
	}
	return []string{text}, err
}

// textList is an indented list of texts. No text has the end of a line in it.
var textList = regexp.MustCompile(`\[\n\s+("(?:[^"\\]|\\.)*"(?:,\n\s+"(?:[^"\\]|\\.)*")*)\n\s*\]`)

// inLine puts each list of texts on one line, as PostgreSQL does.
func inLine(text []byte) []byte {
	return textList.ReplaceAllFunc(text, func(list []byte) []byte {
		var texts []json.RawMessage
		if err := json.Unmarshal(list, &texts); err != nil {
			return list
		}
		out := []byte("[")
		for i, t := range texts {
			if i > 0 {
				out = append(out, ", "...)
			}
			out = append(out, t...)
		}
		return append(out, ']')
	})
}

func (x *Answer) lines() []string {
	kept := "for the statement"
	if x.Pin.Repeatable {
		kept = "for the transaction"
	}
	var out []string
	switch {
	case x.Written != nil:
		out = append(out, fmt.Sprintf("%s (actual rows=%d)", x.Write, *x.Written))
	case x.Write != "":
		out = append(out, x.Write)
	}
	out = append(out, "Pin ("+kept+")")
	for _, p := range x.Pin.Pipelines {
		lagText := "unknown"
		if p.Lag != nil {
			lagText = fmt.Sprintf("%.3f s since the source's last commit", *p.Lag)
		}
		out = append(out, fmt.Sprintf("  Pipeline %s: log position %s, source position %s, lag %s", p.Pipeline, p.Log,
			p.Source, lagText))
	}
	for _, t := range x.Pin.Tables {
		out = append(out, fmt.Sprintf("  Table %s: snapshot %d, %d files (%d pruned, %d delete files), "+
			"%d rows in the lake; %d live slices, %d changes",
			t.Table, t.Snapshot, t.Files, t.Pruned, t.DeleteFiles, t.LakeRows, t.Slices, t.LiveChanges))
		if t.Compare {
			out = append(out, "    live changes may be older than the lake: order tokens are compared")
		}
		if t.Predicate != "" {
			out = append(out, "    key predicate on the log: "+t.Predicate)
		}
	}
	if x.SQL != "" {
		out = append(out, "Engine SQL: "+x.SQL)
	}
	out = append(out, "Engine plan")
	for _, l := range x.Plan {
		out = append(out, "  "+l)
	}
	if x.Planning != nil {
		out = append(out, fmt.Sprintf("Planning Time: %.3f ms", float64(*x.Planning)))
	}
	if x.Executed != nil {
		out = append(out, fmt.Sprintf("Execution Time: %.3f ms", float64(*x.Executed)))
	}
	return out
}
