// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
)

// Changes of labels and of the status are sent as two merge patches. The first status of a DeployItem also contains
// observedGeneration, because the schema requires it.
func ExampleDiff() {
	stored := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "41"}}
	wanted := stored.DeepCopy()
	wanted.Labels = map[string]string{"example.org/team": "blue"}
	wanted.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing

	changes, err := itempatch.Diff(stored, wanted)
	fmt.Println(changes.Metadata, changes.Status)
	fmt.Println(err)

	wanted.Spec.Context = "other"
	_, err = itempatch.Diff(stored, wanted)
	fmt.Println(err)
	// Output:
	// map[labels:map[example.org/team:blue]] map[observedGeneration:0 phase:Progressing]
	// <nil>
	// spec.context: must not change; only labels, annotations, finalizers, ownerReferences and status can be written
}
