// SPDX-License-Identifier: Apache-2.0

package errortable

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
)

const reason = "Constant"

func constant() error { return lserrors.NewError("Op", reason, fmt.Sprintf("%s: want %d | more", a, b), lsv1alpha1.ErrorTimeout) }

func again() error { return lserrors.NewError("Op", reason, "second " + text) }

func variable() error {
	reason := "First"
	if x {
		reason = "Second"
	}
	e := NewError(err, action, reason, now)
	e.Codes = append(e.Codes, lsv1alpha1.ErrorConfigurationProblem)
	return e
}

func suffix() error { return NewError(err, action, action+"Failed", now) }

func passedOn(operation, why string) error { return newError(operation, why, "text", now) }

func fault() error {
	codes := []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorInternalProblem}
	return &Fault{Operation: "Op", Reason: "Literal", Message: oneLine("short"), Codes: codes}
}

func late() error { return newTimeoutError("Wait", "Late", "too late", now) }
`

func TestFind(t *testing.T) {
	root, err := filepath.Abs("../../..") // in this directory, the go command finds the API module
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": source, "a_test.go": "not Go", "testdata/b.go": "not Go", "deeper/c.go": "package deeper\n\nvar f = contract.Fault{Operation: \"O\", Reason: \"Deeper\"}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Find(root, relative)
	if err != nil {
		t.Fatal(err)
	}
	want := []Error{
		{Reason: "ACTIONFailed", Operation: Action, Messages: []string{Text}},
		{Reason: "Constant", Operation: "Op", Codes: []string{"ERR_TIMEOUT"}, Messages: []string{"second …", "…: want … | more"}},
		{Reason: "Deeper", Operation: "O", Messages: []string{Text}},
		{Reason: "First", Operation: Action, Codes: []string{"ERR_CONFIGURATION_PROBLEM"}, Messages: []string{Text}},
		{Reason: "Late", Operation: "Wait", Codes: []string{"ERR_TIMEOUT"}, Messages: []string{"too late"}},
		{Reason: "Literal", Operation: "Op", Codes: []string{"ERR_INTERNAL_PROBLEM"}, Messages: []string{"short"}},
		{Reason: "Second", Operation: Action, Codes: []string{"ERR_CONFIGURATION_PROBLEM"}, Messages: []string{Text}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	cells := []string{"`Constant`", "`Op`", "`ERR_TIMEOUT`", "`second …`<br>`…: want … \\| more`"}
	if diff := cmp.Diff(cells, got[1].ListCells()); diff != "" {
		t.Errorf("Cells: -want +got:\n%s", diff)
	}
}
