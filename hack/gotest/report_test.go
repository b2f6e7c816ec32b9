// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/hack/internal/evidence"
)

// TestMain lets this test binary act as gotest when go test uses it as a wrapper for another test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == withReport {
		fmt.Fprintln(os.Stderr, execWithReport(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestReports(t *testing.T) {
	dir := t.TempDir()
	// The output is discarded. Otherwise, the gotest that runs this test would count the specs in it as specs of this
	// package.
	ok, err := run(io.Discard, []string{"-reports", dir, "-count=1", "./testdata/suite"})
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		t.Error("a pending spec did not cause a failure")
	}
	got, err := evidence.Collect(dir)
	if err != nil {
		t.Fatal(err)
	}
	const pkg = "hack/gotest/testdata/suite"
	t.Run("names of tests and specs that ran and passed are evidence, other strings are not [F51]", func(t *testing.T) {
		want := []evidence.Report{{Package: pkg, Proofs: []evidence.Proof{
			{ID: "Z2", Package: pkg, Test: "TestPlain"},
			{ID: "Z3", Package: pkg, Test: "TestPlain"},
			{ID: "Z4", Package: pkg, Test: "runs"},
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("a run of a part of a package is no evidence [F51]", func(t *testing.T) {
		if _, err := run(io.Discard, []string{"-reports", dir, "-run=TestPlain", "./testdata/suite"}); err == nil {
			t.Error("gotest wrote a report")
		}
	})
}
