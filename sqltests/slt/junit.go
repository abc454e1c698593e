package slt

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	ClassName string        `xml:"classname,attr"`
	Name      string        `xml:"name,attr"`
	File      string        `xml:"file,attr"`
	Time      string        `xml:"time,attr"`
	Failures  []junitText   `xml:"failure"`
	Skipped   *junitSkipped `xml:"skipped"`
	Output    string        `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// JUnit writes the report as JUnit XML: a suite of that name, a test case per file.
func (r *Report) JUnit(w io.Writer, name string) error {
	suite := junitSuite{
		Name: name, Tests: len(r.Outcomes), Failures: r.Count(Failed), Skipped: r.Count(Skipped), Time: seconds(r.Elapsed),
	}
	for _, o := range r.Outcomes {
		suite.Cases = append(suite.Cases, o.junit())
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, text); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}

func (o *Outcome) junit() junitCase {
	class := strings.ReplaceAll(strings.Trim(filepath.ToSlash(filepath.Dir(o.File)), "./"), "/", ".")
	c := junitCase{ClassName: class, Name: filepath.Base(o.File), File: o.File, Time: seconds(o.Elapsed)}
	c.Output = strings.Join(o.Skipped, "\n")
	switch o.Status() {
	case Failed:
		for _, err := range o.Failures {
			first, _, _ := strings.Cut(err.Error(), "\n")
			c.Failures = append(c.Failures, junitText{Message: first, Text: err.Error()})
		}
	case Skipped:
		reason := o.Rest
		if reason == "" {
			reason = "no record ran"
		}
		c.Skipped = &junitSkipped{Message: reason}
	}
	return c
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
