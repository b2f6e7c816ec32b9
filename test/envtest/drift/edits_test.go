// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// Each edit is made to a new object. If `field` is not empty, the event must name this field and the field manager of
// the edit.
var _ = DescribeTable("an edit of an owned field is one drift, and one write corrects it",
	func(ctx SpecContext, kind schema.GroupVersionKind, body string, change edit, field string) {
		l := newLab(cp.Config)
		m := manifest(kind, body)
		obj := l.run(ctx, m)[0]
		before := l.key(ctx, obj)
		Expect(l.collectDrifts(ctx, kind)).To(BeEmpty())

		change(ctx, obj)
		Expect(l.key(ctx, obj)).NotTo(Equal(before))
		events := l.collectDrifts(ctx, kind)
		Expect(events).To(HaveLen(1))
		Expect(events[0]).To(SatisfyAll(
			HaveField("Item", l.owner.UID), HaveField("Reason", observe.DriftReasonChanged), HaveField("UID", obj.GetUID()),
			HaveField("Object", observe.Object{Resource: resourceOf(kind), NamespacedName: client.ObjectKeyFromObject(obj)})))
		if field != "" {
			Expect(events[0].String()).To(SatisfyAll(ContainSubstring(" by hand"), ContainSubstring(field)))
		}

		healed := l.run(ctx, m)[0]
		Expect(healed.GetResourceVersion()).NotTo(Equal(obj.GetResourceVersion()))
		again := l.run(ctx, m)[0]
		Expect(again.GetResourceVersion()).To(Equal(healed.GetResourceVersion()), "a second apply changed the object")
		Expect(l.collectDrifts(ctx, kind)).To(BeEmpty(), "the correction is not reported as drift")
	},
	Entry("changed value", configMap, configMapBody, merge(`{"data":{"color":"blue"}}`), "data.color"),
	Entry("value set to empty", configMap, configMapBody, merge(`{"data":{"color":""}}`), "data.color"),
	Entry("removed key", configMap, configMapBody, merge(`{"data":{"color":null}}`), ""),
	Entry("removed map", configMap, configMapBody, patchWithOperations(`[{"op":"remove","path":"/data"}]`), ""),
	Entry("map replaced by PUT", configMap, configMapBody, replaceWith(func(obj *object) {
		obj.Object["data"] = map[string]any{"color": "blue", "more": "x"}
	}), "data.color"),
	Entry("changed label", configMap, configMapBody, merge(`{"metadata":{"labels":{"app":"else"}}}`), "metadata.labels.app"),
	Entry("removed label", configMap, configMapBody, merge(`{"metadata":{"labels":{"app":null}}}`), ""),
	Entry("changed annotation", configMap, configMapBody, merge(`{"metadata":{"annotations":{"note":"y"}}}`), "metadata.annotations.note"),
	Entry("removed annotations", configMap, configMapBody, patchWithOperations(`[{"op":"remove","path":"/metadata/annotations"}]`), ""),
	Entry("changed owner annotation", configMap, configMapBody, merge(`{"metadata":{"annotations":{"`+ownership.AnnotationName+`":"else"}}}`), "item-name"),
	Entry("forced by another apply", configMap, configMapBody, applied("hand", `"data":{"color":"blue"}`), "data.color"),
	Entry("changed and changed back", configMap, configMapBody, runInOrder(
		merge(`{"data":{"color":"blue"}}`), merge(`{"data":{"color":"red"}}`)), "data.color"),

	Entry("changed Secret", secret, secretBody, merge(`{"data":{"p":"eA=="}}`), "data.p"),
	Entry("removed key of a Secret", secret, secretBody, merge(`{"data":{"p":null}}`), ""),
	Entry("Secret changed by stringData", secret, secretBody, merge(`{"stringData":{"p":"x"}}`), "data.p"),

	Entry("target port", service, serviceBody, patchWithOperations(`[{"op":"replace","path":"/spec/ports/0/targetPort","value":9090}]`), "targetPort"),
	Entry("port name", service, serviceBody, patchWithOperations(`[{"op":"replace","path":"/spec/ports/0/name","value":"x"}]`), "name"),
	Entry("selector value", service, serviceBody, merge(`{"spec":{"selector":{"app":"else"}}}`), "spec.selector"),
	Entry("key added to an atomic map", service, serviceBody, merge(`{"spec":{"selector":{"more":"x"}}}`), "spec.selector"),

	Entry("replicas", deployment, deploymentBody, merge(`{"spec":{"replicas":5}}`), "spec.replicas"),
	Entry("replicas by /scale", deployment, deploymentBody, mergeSubresource("scale", `{"spec":{"replicas":5}}`), "hand/scale (spec.replicas)"),
	Entry("replicas by /scale and back", deployment, deploymentBody, runInOrder(
		mergeSubresource("scale", `{"spec":{"replicas":5}}`), mergeSubresource("scale", `{"spec":{"replicas":2}}`)), "spec.replicas"),
	Entry("image", deployment, deploymentBody, patchStrategic(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`), `containers[name="web"].image`),
	Entry("value of an environment variable", deployment, deploymentBody, patchStrategic(`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"9"}]}]}}}}`), `env[name="A"].value`),
	Entry("removed environment variable", deployment, deploymentBody, patchWithOperations(`[{"op":"remove","path":"/spec/template/spec/containers/0/env/0"}]`), ""),
	Entry("reordered arguments", deployment, deploymentBody, patchWithOperations(`[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":["b","a"]}]`), "args"),
	Entry("limit", deployment, deploymentBody, patchWithOperations(`[{"op":"replace","path":"/spec/template/spec/containers/0/resources/limits/cpu","value":"2"}]`), "limits.cpu"),
	Entry("removed container", deployment, deploymentBody, patchWithOperations(`[{"op":"remove","path":"/spec/template/spec/containers/1"}]`), ""),
	Entry("label of the Pod template", deployment, deploymentBody, patchWithOperations(`[{"op":"add","path":"/spec/template/metadata/labels/app","value":"web"},{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"x"}]`), `containers[name="proxy"].image`),

	Entry("custom resource: changed leaf", sample, sampleBody, merge(`{"spec":{"free":{"deep":{"leaf":"z"}}}}`), "spec.free.deep.leaf"),
	Entry("custom resource: removed leaf", sample, sampleBody, merge(`{"spec":{"free":{"deep":{"leaf":null}}}}`), ""),
	Entry("custom resource: removed subtree", sample, sampleBody, merge(`{"spec":{"free":{"deep":null}}}`), ""),
	Entry("custom resource: other type", sample, sampleBody, merge(`{"spec":{"free":{"n":"one"}}}`), "spec.free.n"),
	Entry("custom resource: inside a list", sample, sampleBody, patchWithOperations(`[{"op":"replace","path":"/spec/free/deep/list/1/b","value":"d"}]`), "spec.free.deep.list"),
	Entry("custom resource: changed atomic list", sample, sampleBody, merge(`{"spec":{"atomic":["a","c"]}}`), "spec.atomic"),
	Entry("custom resource: reordered atomic list", sample, sampleBody, merge(`{"spec":{"atomic":["b","a"]}}`), "spec.atomic"),
	Entry("custom resource: atomic map", sample, sampleBody, merge(`{"spec":{"atomicMap":{"more":"x"}}}`), "spec.atomicMap"),
	Entry("custom resource: removed from a set", sample, sampleBody, merge(`{"spec":{"set":["b"]}}`), ""),
	Entry("custom resource: removed set", sample, sampleBody, merge(`{"spec":{"set":null}}`), ""),
	Entry("custom resource: value of a list item", sample, sampleBody, patchWithOperations(`[{"op":"replace","path":"/spec/map/0/value","value":"9"}]`), `spec.map[name="a"].value`),
	Entry("custom resource: removed list item", sample, sampleBody, patchWithOperations(`[{"op":"remove","path":"/spec/map/0"}]`), ""),
	Entry("custom resource: /scale", sample, sampleBody, mergeSubresource("scale", `{"spec":{"replicas":5}}`), "hand/scale (spec.replicas)"),
	Entry("custom resource: through another API version", sample, sampleBody, inVersion("v2", merge(`{"spec":{"free":{"text":"z"}}}`)), "spec.free.text"),
	Entry("autoscaler: through another API version", scalerV2, scalerBody, inVersion("v1", merge(`{"spec":{"maxReplicas":7}}`)), "spec.maxReplicas"),
)

var _ = DescribeTable("a write of fields that the item does not own is no drift",
	func(ctx SpecContext, kind schema.GroupVersionKind, body string, change edit) {
		l := newLab(cp.Config)
		m := manifest(kind, body)
		obj := l.run(ctx, m)[0]
		before := l.key(ctx, obj)
		change(ctx, obj)
		Expect(l.key(ctx, obj)).To(Equal(before))
		Expect(l.collectDrifts(ctx, kind)).To(BeEmpty())

		// The edit applies the same content, so it changes nothing. Therefore, the next apply of the item does not
		// create a new version.
		version := read(ctx, obj).GetResourceVersion()
		Expect(l.run(ctx, m)[0].GetResourceVersion()).To(Equal(version))
		Expect(l.collectDrifts(ctx, kind)).To(BeEmpty())
	},
	Entry("foreign key", configMap, configMapBody, merge(`{"data":{"more":"x"}}`)),
	Entry("foreign binaryData", configMap, configMapBody, merge(`{"binaryData":{"more":"eA=="}}`)),
	Entry("foreign label", configMap, configMapBody, merge(`{"metadata":{"labels":{"more":"x"}}}`)),
	Entry("foreign annotation", configMap, configMapBody, merge(`{"metadata":{"annotations":{"more":"x"}}}`)),
	Entry("foreign finalizer", configMap, configMapBody, merge(`{"metadata":{"finalizers":["example.org/x"]}}`)),
	Entry("foreign owner reference", configMap, configMapBody, merge(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`)),
	Entry("same value by merge patch", configMap, configMapBody, merge(`{"data":{"color":"red"}}`)),
	Entry("same value by PUT", configMap, configMapBody, replaceWith(func(*object) {})),
	Entry("same value by apply, and dropped again", configMap, configMapBody, runInOrder(
		applied("hand", `"data":{"color":"red","x":"y"}`), applied("hand", `"data":{"x":"y"}`))),
	Entry("more managers than the API server keeps", configMap, configMapBody, manyManagers),
	Entry("session affinity, which the API server defaults", service, serviceBody, merge(`{"spec":{"sessionAffinity":"ClientIP"}}`)),
	Entry("another type of Service", service, serviceBody, merge(`{"spec":{"type":"NodePort"}}`)),
	Entry("another port", service, serviceBody, patchWithOperations(`[{"op":"add","path":"/spec/ports/-","value":{"name":"more","port":82}}]`)),
	Entry("load balancer status", service, balancerBody, mergeSubresource("status", `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`)),
	Entry("sidecar", deployment, deploymentBody, patchStrategic(`{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"x"}]}}}}`)),
	Entry("environment variable in a container of the item", deployment, deploymentBody, patchStrategic(`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"MORE","value":"1"}]}]}}}}`)),
	Entry("strategy", deployment, deploymentBody, merge(`{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`)),
	Entry("same scale", deployment, deploymentBody, mergeSubresource("scale", `{"spec":{"replicas":2}}`)),
	Entry("replicas that the item does not set", deployment, scaledBody, mergeSubresource("scale", `{"spec":{"replicas":5}}`)),
	Entry("status and revision", deployment, deploymentBody, mergeSubresource("status", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"1"}},"status":{"replicas":2,"observedGeneration":1}}`)),
	Entry("custom resource: foreign leaf", sample, sampleBody, merge(`{"spec":{"free":{"more":"x"}}}`)),
	Entry("custom resource: added to a set", sample, sampleBody, merge(`{"spec":{"set":["a","b","c"]}}`)),
	Entry("custom resource: another list item", sample, sampleBody, patchWithOperations(`[{"op":"add","path":"/spec/map/-","value":{"name":"c"}}]`)),
	Entry("custom resource: status", sample, sampleBody, mergeSubresource("status", `{"status":{"x":"y"}}`)),
	Entry("custom resource: status in the body", whole, sampleBody, merge(`{"status":{"x":"y"}}`)),
	Entry("custom resource: foreign leaf through another API version", sample, sampleBody, inVersion("v2", merge(`{"spec":{"free":{"more":"x"}}}`))),
)

// manyManagers returns an edit that consists of many changes, each under a different field manager. The number of
// changes exceeds ten, which is the number of Update entries that the API server keeps.
var manyManagers = func() edit {
	edits := make([]edit, 0, 14)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"} {
		edits = append(edits, mergeAs("manager-"+name, `{"metadata":{"annotations":{"`+name+`":"x"}}}`))
	}
	return runInOrder(edits...)
}()
