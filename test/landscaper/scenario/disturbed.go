// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Disturbed returns a scenario that deploys three items and calls `disturb` once. At this moment, the first item has
// finished, the second item waits for its Deployment, and the third item has not begun.
func Disturbed(name string, disturb func(ctx context.Context) error) Scenario {
	b := blueprint{imports: importsTarget("cluster"), items: []object{
		manifests("before", []object{cm("before", "a", "1")}),
		manifests("waits", []object{deployment(2, "later")}, dependsOn("before")),
		mock("after", dependsOn("waits")),
	}}
	call := func(ctx context.Context, _ *Env) error { return disturb(ctx) }
	return Scenario{Name: name, Waits: true, Steps: []Step{
		clusterTarget("cluster"), installed("it", b),
		phase("waits", lsv1alpha1.DeployItemPhases.Progressing), exists("apps/v1", "Deployment", "app"),
		remembered("apps/v1", "Deployment", "app"), remembered("v1", "ConfigMap", "before"),
		call, finishes("it", succeeded),
		same("apps/v1", "Deployment", "app"), same("v1", "ConfigMap", "before"), inOrder("before", "waits", "after"),
		uninstalled("it"), absent("apps/v1", "Deployment", "app"), absent("v1", "ConfigMap", "before"),
	}}
}

// Migration returns a scenario with two deployers. The first deployer deploys an Installation. The second deployer
// takes over and changes the objects. Then the first deployer takes over again. The functions `toOther` and `back`
// replace the running manifest deployer.
func Migration(toOther, back func(ctx context.Context) error) Scenario {
	account := tokenSecret("account", "token")
	service := object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "app", "namespace": here},
		"spec": object{"selector": object{"app": "app"}, "ports": []object{{"port": 80}}},
	}
	export := config("exports", object{"exports": []object{{
		"key": "a", "jsonPath": ".data.a", "fromResource": object{"apiVersion": "v1", "kind": "ConfigMap", "name": "kept", "namespace": here},
	}}})
	deploys := func(objects ...object) blueprint {
		return blueprint{
			imports: importsTarget("cluster"), items: []object{manifests("app", objects, export)},
			exports: []string{"a"}, exportOf: "exports: {a: {{ .deployitems.app.a }}}\n",
		}
	}
	state := func(value string, extra ...object) blueprint {
		objects := append([]object{namespace("extra"), cm("kept", "a", value), deployment(1), service}, account...)
		return deploys(append(objects, extra...)...)
	}
	kept := [][3]string{
		{"v1", "ConfigMap", "kept"}, {"apps/v1", "Deployment", "app"}, {"v1", "Service", "app"}, {"v1", "ServiceAccount", "account"}, {"v1", "Secret", "token"},
	}
	var remember, nothingLost []Step
	for _, k := range kept {
		remember = append(remember, remembered(k[0], k[1], k[2]))
		nothingLost = append(nothingLost, same(k[0], k[1], k[2]))
	}
	call := func(f func(ctx context.Context) error) Step {
		return func(ctx context.Context, _ *Env) error { return f(ctx) }
	}
	reconciled := all(operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded))
	return Scenario{Name: "an Installation changes its deployer and comes back", Waits: true, Steps: []Step{
		clusterTarget("cluster"),
		// The token controller deletes the Secret if it has not received the ServiceAccount yet. Landscaper's deployer
		// does not create the Secret again.
		installed("it", deploys(cm("kept", "a", "0"), account[0])), finishes("it", succeeded),
		installed("it", state("1", cm("first"), cm("also"))), finishes("it", succeeded), all(remember...), exports("1"),
		call(toOther), reconciled, all(nothingLost...), exists("v1", "ConfigMap", "first"), exports("1"),
		installed("it", state("2", cm("also"), cm("second"))), finishes("it", succeeded), all(nothingLost...),
		has("kept", "a", "2"), exists("v1", "ConfigMap", "second"), absent("v1", "ConfigMap", "first"), exports("2"),
		call(back), reconciled, all(nothingLost...), exists("v1", "ConfigMap", "second"), exports("2"),
		installed("it", state("3", cm("third"))), finishes("it", succeeded), all(nothingLost...),
		has("kept", "a", "3"), exists("v1", "ConfigMap", "third"), absent("v1", "ConfigMap", "second"), absent("v1", "ConfigMap", "also"),
		uninstalled("it"), absent("v1", "ConfigMap", "kept"), absent("v1", "Service", "app"), absent("apps/v1", "Deployment", "app"), absent("v1", "Secret", "token"),
	}}
}

// exports waits until the DataObject "a" has the given value.
func exports(want string) Step {
	const name = "a"
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, "DataObject "+name+" is "+want, func(ctx context.Context) error {
			d := &lsv1alpha1.DataObject{}
			if err := e.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, d); err != nil {
				return err
			}
			if got := string(d.Data.RawMessage); got != want && got != fmt.Sprintf("%q", want) {
				return fmt.Errorf("the DataObject is %s", got)
			}
			return nil
		})
	}
}

// Redis returns a scenario for the declarative deployer of examples/declarative/redis.
func Redis() Scenario {
	item := func(version string) blueprint {
		return blueprint{imports: importsTarget("cluster"), items: []object{{
			"name": "sessions", "type": "example.org/redis", "target": object{"import": "cluster"},
			"config": object{"apiVersion": "redis.example.org/v1", "kind": "Redis", "version": version},
		}}}
	}
	return Scenario{Name: "a declarative deployer: Redis", Waits: true, Steps: []Step{
		clusterTarget("cluster"),
		installed("it", item("")), finishes("it", failed), itemFails("sessions", "spec.config.version"),
		installed("it", item("8.0")), finishes("it", succeeded), owned("Deployment", 1), owned("Secret", 1),
		installed("it", item("8.2")), finishes("it", succeeded), owned("Deployment", 1),
		operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded),
		uninstalled("it"), owned("Deployment", 0), owned("Secret", 0), owned("Service", 0),
	}}
}

// Galera returns a scenario for the state graph of examples/galera.
func Galera() Scenario {
	item := func(replicas int) blueprint {
		return blueprint{imports: importsTarget("cluster"), items: []object{{
			"name": "galera", "type": "example.org/galera", "target": object{"import": "cluster"},
			"config": object{"apiVersion": "galera.example.org/v1", "kind": "Galera", "namespace": here, "replicas": replicas, "image": "example.org/none:1"},
		}, mock("after", dependsOn("galera"))}}
	}
	return Scenario{Name: "a state graph: Galera", Waits: true, Steps: []Step{
		clusterTarget("cluster"),
		installed("it", item(2)), issued, finishes("it", failed), itemFails("galera", "must be odd"),
		installed("it", item(3)), finishes("it", succeeded),
		owned("StatefulSet", 1), owned("Deployment", 1), inOrder("galera", "after"),
		operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded),
		uninstalled("it"), owned("StatefulSet", 0), owned("Deployment", 0), owned("Service", 0),
	}}
}

// itemFails requires that the last error of an item contains a text.
func itemFails(name, text string) Step {
	return item(name, "fails with "+text, func(di *lsv1alpha1.DeployItem) bool {
		return di.Status.LastError != nil && strings.Contains(di.Status.LastError.Message, text)
	})
}

// issued issues the requested certificates, as the issuer in the Galera example does.
func issued(ctx context.Context, e *Env) error {
	return e.await(ctx, "a certificate is asked for", func(ctx context.Context) error {
		list := &corev1.SecretList{}
		if err := e.List(ctx, list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if s := &list.Items[i]; s.Annotations["example.org/issue-for"] != "" {
				pem := []byte("pem")
				body := rawJSON(object{"data": map[string][]byte{corev1.TLSCertKey: pem, corev1.TLSPrivateKeyKey: pem}})
				return e.Patch(ctx, s, client.RawPatch("application/merge-patch+json", body), client.FieldOwner("issuer"))
			}
		}
		return errors.New("the Secret that requests the certificates does not exist")
	})
}
