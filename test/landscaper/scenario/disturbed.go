// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// NewDisturbed returns a scenario that deploys three items and calls `disturb` once. At this moment, the first item has
// finished, the second item waits for its Deployment, and the third item has not begun.
func NewDisturbed(name string, disturb func(ctx context.Context) error) Scenario {
	b := newBlueprint(
		newManifestItem("before", []object{newConfigMap("before", "a", "1")}),
		newManifestItem("waits", []object{newDeployment(2, "later")}, withDependencies("before")),
		newMockItem("after", withDependencies("waits")),
	)
	return Scenario{Name: name, Waits: true, Steps: []steps.Step{
		createTarget("cluster"), apply("it", b), expectProgress("waits"), requireObject("Deployment", "app"),
		storeUID("Deployment", "app"), storeUID("ConfigMap", "before"),
		doCall(name, disturb), expectSuccess("it"),
		requireSame("Deployment", "app"), requireSame("ConfigMap", "before"), requireOrder("before", "waits", "after"),
		deleteAndWait("it"), expectNoObject("Deployment", "app"), expectNoObject("ConfigMap", "before"),
	}}
}

// doCall calls a function of the test.
func doCall(name string, f func(ctx context.Context) error) steps.Step {
	return steps.Do(name, func(ctx context.Context, _ *steps.Env) error { return f(ctx) })
}

// NewMigration returns a scenario with two deployers. The first deployer deploys an Installation. The second deployer
// takes over and changes the objects. Then the first deployer takes over again. The functions `toOther` and `back`
// replace the running manifest deployer.
func NewMigration(toOther, back func(ctx context.Context) error) Scenario {
	var storeUIDs, requireSameObjects []steps.Step
	for kind, name := range map[string]string{"ConfigMap": "kept", "Deployment": "app", "Service": "app", "ServiceAccount": "account", "Secret": "token"} {
		storeUIDs = append(storeUIDs, storeUID(kind, name))
		requireSameObjects = append(requireSameObjects, requireSame(kind, name))
	}
	nothingLost := steps.All(requireSameObjects...)
	return Scenario{Name: "an Installation changes its deployer and comes back", Waits: true, Steps: []steps.Step{
		createTarget("cluster"),
		// The token controller deletes the Secret if it has not received the ServiceAccount yet. Landscaper's deployer
		// does not create the Secret again.
		install("it", newMigrated(newConfigMap("kept", "a", "0"), newTokenSecret("account", "token")[0])),
		install("it", newMigratedState("1", newConfigMap("first"), newConfigMap("also"))), steps.All(storeUIDs...), expectData("a", "1"),
		doCall("replace the deployer", toOther), reconcile("it"), nothingLost, requireObject("ConfigMap", "first"), expectData("a", "1"),
		install("it", newMigratedState("2", newConfigMap("also"), newConfigMap("second"))), nothingLost, expectValue("kept", "a", "2"),
		requireObject("ConfigMap", "second"), expectNoObject("ConfigMap", "first"), expectData("a", "2"),
		doCall("restore the deployer", back), reconcile("it"), nothingLost, requireObject("ConfigMap", "second"), expectData("a", "2"),
		install("it", newMigratedState("3", newConfigMap("third"))), nothingLost, expectValue("kept", "a", "3"),
		requireObject("ConfigMap", "third"), expectNoObject("ConfigMap", "second"), expectNoObject("ConfigMap", "also"),
		deleteAndWait("it"), expectNoObject("ConfigMap", "kept"), expectNoObject("Service", "app"), expectNoObject("Deployment", "app"), expectNoObject("Secret", "token"),
	}}
}

// newMigratedState returns a blueprint with objects of several kinds.
func newMigratedState(value string, extra ...object) blueprint {
	service := object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "app", "namespace": namespacePlaceholder},
		"spec": object{"selector": object{"app": "app"}, "ports": []object{{"port": 80}}},
	}
	objects := append([]object{newNamespace("extra"), newConfigMap("kept", "a", value), newDeployment(1), service}, newTokenSecret("account", "token")...)
	return newMigrated(append(objects, extra...)...)
}

// newMigrated returns a blueprint that exports the value "a" of the ConfigMap "kept".
func newMigrated(objects ...object) blueprint {
	b := newBlueprint(newManifestItem("app", objects, withExport("a", ".data.a", "ConfigMap", "kept")))
	b.exports, b.exportTemplate = []string{"a"}, "exports: {a: {{ .deployitems.app.a }}}\n"
	return b
}

// NewRedis returns a scenario for the declarative deployer of examples/declarative/redis.
func NewRedis() Scenario {
	newSessions := func(version string) blueprint {
		return newBlueprint(object{
			"name": "sessions", "type": "example.org/redis", "target": object{"import": "cluster"},
			"config": object{"apiVersion": "redis.example.org/v1", "kind": "Redis", "version": version},
		})
	}
	return Scenario{Name: "the declarative deployer of the Redis example deploys, updates and deletes its objects", Waits: true, Steps: []steps.Step{
		createTarget("cluster"),
		apply("it", newSessions("")), expectFailure("it", failed), expectError("sessions", "spec.config.version"),
		install("it", newSessions("8.0")), expectOwned("Deployment", 1), expectOwned("Secret", 1),
		install("it", newSessions("8.2")), expectOwned("Deployment", 1), reconcile("it"),
		deleteAndWait("it"), expectOwned("Deployment", 0), expectOwned("Secret", 0), expectOwned("Service", 0),
	}}
}

// NewGalera returns a scenario for the state graph of examples/galera.
func NewGalera() Scenario {
	newCluster := func(replicas int) blueprint {
		return newBlueprint(object{
			"name": "galera", "type": "example.org/galera", "target": object{"import": "cluster"},
			"config": object{
				"apiVersion": "galera.example.org/v1", "kind": "Galera", "namespace": namespacePlaceholder, "replicas": replicas, "image": "example.org/none:1",
			},
		}, newMockItem("after", withDependencies("galera")))
	}
	return Scenario{Name: "the state graph of the Galera example deploys and deletes its objects", Waits: true, Steps: []steps.Step{
		createTarget("cluster"),
		apply("it", newCluster(2)), issueCertificate, expectFailure("it", failed), expectError("galera", "must be odd"),
		install("it", newCluster(3)), expectOwned("StatefulSet", 1), expectOwned("Deployment", 1), requireOrder("galera", "after"), reconcile("it"),
		deleteAndWait("it"), expectOwned("StatefulSet", 0), expectOwned("Deployment", 0), expectOwned("Service", 0),
	}}
}

// expectError waits until an item fails with an error that contains a text.
func expectError(name, text string) steps.Step {
	return steps.ExpectItem(name, "fails with "+text, steps.ItemFails(lsv1alpha1.Error{Message: text}))
}

// issueCertificate waits until a certificate is requested, and issues it, as the issuer in the Galera example does.
var issueCertificate = steps.Expect("a certificate is requested and issued", func(ctx context.Context, e *steps.Env) error {
	list := &corev1.SecretList{}
	if err := e.List(ctx, list, client.InNamespace(e.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if s := &list.Items[i]; s.Annotations["example.org/issue-for"] != "" {
			pem := []byte("pem")
			body := mustMarshal(object{"data": map[string][]byte{corev1.TLSCertKey: pem, corev1.TLSPrivateKeyKey: pem}})
			return e.Patch(ctx, s, client.RawPatch(types.MergePatchType, body), client.FieldOwner("issuer"))
		}
	}
	return errors.New("no Secret requests a certificate")
})
