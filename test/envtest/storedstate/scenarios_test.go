// SPDX-License-Identifier: Apache-2.0

package storedstate_test

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// scenario is a deployer with an item.
type scenario struct {
	name    string // of the file with the item, and of the recorded file
	program string // the package of the program
	flags   []string
	// finish does what other controllers would do, such as running Pods. It is called repeatedly until the item has
	// reached its state.
	finish func(ctx context.Context, c client.Client) error
	// waits is part of the message with which the item waits. It is empty if the item succeeds.
	waits string
	// change changes the configuration so that one object changes and, if there is one, the object `removed` is deleted.
	change  func(config string) string
	changed object
	removed *object
	kept    *object // remains after the deletion of the item
}

// object identifies an object in the namespace of the item, and the text that it contains after the change.
type object struct{ apiVersion, kind, name, text string }

var scenarios = []scenario{
	{
		name: "manifest", program: "./cmd/manifest-deployer", flags: []string{"--allow-private-hosts"},
		change:  replaceAll("text: first", "text: second", "name: obsolete", "name: new"),
		changed: object{"v1", "ConfigMap", "settings", "second"},
		removed: &object{apiVersion: "v1", kind: "ConfigMap", name: "obsolete"},
		kept:    &object{apiVersion: "v1", kind: "ConfigMap", name: "kept"},
	},
	{
		name: "declarative", program: "./examples/declarative/echo",
		finish: func(ctx context.Context, c client.Client) error {
			return patchStatus(ctx, c, object{apiVersion: "v1", kind: "Pod", name: "item-echo"}, `{"status": {"phase": "Running"}}`)
		},
	},
	{
		name: "stategraph", program: "./examples/galera/galera-deployer",
		finish: func(ctx context.Context, c client.Client) error {
			return patch(ctx, c, object{apiVersion: "v1", kind: "Secret", name: "item-tls"}, `{"stringData": {"tls.crt": "none", "tls.key": "none"}}`)
		},
		waits:   "blocked by database: StatefulSet.apps demo/item",
		change:  replaceAll("replicas: 3", "replicas: 5"),
		changed: object{"apps/v1", "StatefulSet", "item", `"replicas":5`},
	},
}

// key is the name of the item.
var key = types.NamespacedName{Namespace: "demo", Name: "item"}

// waitForState waits until the item has succeeded or, in a scenario that never succeeds, until it waits as expected.
func (s scenario) waitForState(ctx context.Context, c client.Client) {
	Eventually(func(g Gomega) {
		if s.finish != nil {
			g.Expect(client.IgnoreNotFound(s.finish(ctx, c))).To(Succeed())
		}
		item := &lsv1alpha1.DeployItem{}
		g.Expect(c.Get(ctx, key, item)).To(Succeed())
		if s.waits != "" {
			g.Expect(item.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring(s.waits))))
			return
		}
		g.Expect(item.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "%+v", item.Status.GetLastError())
		g.Expect(item.Status.JobIDFinished).To(Equal(item.Status.GetJobID()))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
}
