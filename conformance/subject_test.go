// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
)

// newSampleSubject returns a valid subject.
func newSampleSubject() conformance.Subject {
	return conformance.Subject{
		Name: "sample", Type: "example.com/sample",
		Start: func(context.Context, *rest.Config) error { return nil },
		Valid: func(types.NamespacedName) any { return `{}` },
	}
}

func TestSubjectValidate(t *testing.T) {
	if err := newSampleSubject().Validate(); err != nil {
		t.Errorf("Validate(): %v", err)
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*conformance.Subject)
		want   string
	}{
		"NoName":         {"The report needs a name.", func(s *conformance.Subject) { s.Name = "" }, "name: required"},
		"NoType":         {"Without a type there are no items.", func(s *conformance.Subject) { s.Type = "" }, "type: required"},
		"NoValid":        {"Every check needs a valid item.", func(s *conformance.Subject) { s.Valid = nil }, "valid: required"},
		"NoStart":        {"Nothing could be started.", func(s *conformance.Subject) { s.Start = nil }, "start, command: set exactly one of them"},
		"StartTwice":     {"It is not clear what to start.", func(s *conformance.Subject) { s.Command = func(string) *exec.Cmd { return nil } }, "start, command: set exactly one of them"},
		"UnknownCheck":   {"A misspelt exception would be none.", withException(conformance.Exception{Check: "abbort", Reason: "x"}), `there is no check "abbort"`},
		"UnknownOnly":    {"A misspelt name would select nothing.", func(s *conformance.Subject) { s.Only = []string{"abort", "abbort"} }, `only[1]: there is no check "abbort"`},
		"NoneAtATime":    {"Nothing would ever run.", func(s *conformance.Subject) { s.Parallel = -1 }, "parallel: is -1, want at least 1"},
		"NoReason":       {"An exception needs a reason.", withException(conformance.Exception{Check: "abort"}), "exceptions[0]: reason: required"},
		"OtherRevisions": {"There are two revisions.", func(s *conformance.Subject) { s.Revisions = []contract.Revision{"v3"} }, `there is no revision "v3"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSampleSubject()
			tc.change(&s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nValidate(): want an error with %q, got %v", tc.reason, tc.want, err)
			}
			if _, err := conformance.Execute(t.Context(), s); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nExecute(...): want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func withException(e conformance.Exception) func(*conformance.Subject) {
	return func(s *conformance.Subject) { s.Exceptions = []conformance.Exception{e} }
}
