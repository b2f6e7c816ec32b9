// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Problem is the reason why the work on an object ended without the desired state, if it is not the error of a request.
type Problem struct {
	Kind ProblemKind
	// Path is the path of the field in question, or "".
	Path string
	// Reason is an explanation for users.
	Reason string

	rival *ownership.Owner // the item that owns the object, or nil
}

// ProblemKind determines what can resolve a Problem.
type ProblemKind string

const (
	// ProblemWaiting means that the object is unfinished and needs nothing but time.
	ProblemWaiting ProblemKind = "waiting"
	// ProblemConflict means that the object belongs to another owner, who may release it.
	ProblemConflict ProblemKind = "conflict"
	// ProblemOwned means that the object belongs to another item that exists, so that the configuration must change.
	ProblemOwned ProblemKind = "owned"
	// ProblemInvalid means that the configuration must change.
	ProblemInvalid ProblemKind = "invalid"
)

func (p *Problem) Error() string { return p.Reason }

// newConflict returns the problem of an object that belongs to another owner.
func newConflict(format string, args ...any) *Problem {
	return &Problem{Kind: ProblemConflict, Reason: fmt.Sprintf(format, args...)}
}

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }
