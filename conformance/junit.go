// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"

	"github.com/deployerkit/deployerkit/contract"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure"`
	Skipped *junitText `xml:"skipped"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report in JUnit format, with a suite per revision and a test case per check. A check that is
// not applicable becomes a skipped case.
func (r *Report) WriteJUnit(w io.Writer) error {
	out := junitSuites{Name: "conformance of " + r.Subject}
	for _, result := range r.Results {
		out.getSuite(r.Subject, result.Revision).add(result)
	}
	body, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("encode JUnit report: %w", err)
	}
	if _, err := io.WriteString(w, xml.Header+string(body)+"\n"); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}

// getSuite returns the suite of a revision, and creates it if necessary.
func (s *junitSuites) getSuite(subject string, revision contract.Revision) *junitSuite {
	name := subject + "." + string(revision)
	i := slices.IndexFunc(s.Suites, func(suite junitSuite) bool { return suite.Name == name })
	if i < 0 {
		s.Suites, i = append(s.Suites, junitSuite{Name: name}), len(s.Suites)
	}
	return &s.Suites[i]
}

func (s *junitSuite) add(result Result) {
	c := junitCase{Class: s.Name, Name: result.Check.SpecName(), Time: fmt.Sprintf("%.3f", result.Took.Seconds())}
	switch result.Outcome {
	case OutcomeFail:
		s.Failures++
		c.Failure = &junitText{Message: result.Check.Promise, Text: result.Evidence}
	case OutcomeNotApplicable:
		s.Skipped++
		c.Skipped = &junitText{Message: result.Evidence}
	case OutcomePass:
		c.Out = result.Evidence
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}
