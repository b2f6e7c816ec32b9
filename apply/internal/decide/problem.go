// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// newForeign returns the problem of an object that belongs to another owner. A retry may succeed, because the other
// owner may release the object.
func newForeign(owner string) *Problem {
	return newConflict("belongs to %s and is left unchanged", owner)
}

// newRefusal returns the problem of an existing object without an owner that must not be adopted.
func newRefusal(live metav1.Object) *Problem {
	return newConflict("already exists, belongs to %s, and is not adopted", describeHolder(live))
}

// maxHolders limits the number of managers that an error names.
const maxHolders = 3

// describeHolder returns text that names the presumed creator of an object. This is the controller of the object or, if
// the object has no controller, the field managers that wrote it.
func describeHolder(live metav1.Object) string {
	if controller := metav1.GetControllerOf(live); controller != nil {
		return controller.Kind + " " + controller.Name
	}
	var managers []string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && !ownership.IsFieldManager(entry.Manager) && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	if len(managers) == 0 {
		return "an unknown owner"
	}
	return "the field manager " + strings.Join(managers[:min(len(managers), maxHolders)], ", ")
}
