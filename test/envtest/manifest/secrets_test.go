// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// canary is the beginning of texts that must not appear in any output. Each text has its own suffix, so that a leak
// shows where the text came from.
const canary = "k4n4ry!secret-"

func encodeBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// logBuffer stores all log messages.
type logBuffer struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *logBuffer) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines.WriteString(prefix + " " + args + "\n")
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// verbosity is the highest log level at which client-go does not log bodies of requests.
const verbosity = 7

// startWithLog starts the deployer with its own log.
func (w *env) startWithLog(log *logBuffer) {
	GinkgoHelper()
	args := manifest.Args(nil, w.options)
	args.Type = w.Type
	logger := funcr.New(log.add, funcr.Options{Verbosity: verbosity})
	w.Manager = landscapertest.StartManager(GinkgoTB(), cp.Config, args, landscapertest.WithLog(logger))
}

// newKubeconfig returns a valid kubeconfig. Fields that have no effect contain canaries. The function `change` may make
// the kubeconfig invalid.
func newKubeconfig(name string, change func(*clientcmdapi.Config)) []byte {
	GinkgoHelper()
	config, err := clientcmd.Load(cp.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())
	config.AuthInfos["by-token"] = &clientcmdapi.AuthInfo{Token: canary + name + "-token"}
	config.AuthInfos["by-certificate"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: []byte(canary + name + "-cert"), ClientKeyData: []byte(canary + name + "-key"),
	}
	if change != nil {
		change(config)
	}
	raw, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

// asUser returns a function that replaces the credentials in a kubeconfig.
func asUser(user *clientcmdapi.AuthInfo) func(*clientcmdapi.Config) {
	return func(config *clientcmdapi.Config) {
		config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = user
	}
}

// newSecretManifest returns the manifest of a Secret.
func (w *env) newSecretManifest(name string, fields map[string]any) map[string]any {
	out := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": w.Namespace, "name": name}}
	maps.Copy(out, fields)
	return out
}

// canaryItem describes an item that contains canaries. Such an item fails or waits in a way that could reveal its
// canaries.
type canaryItem struct {
	target string // name of the Target; "" means a valid Target
	config map[string]any
	// The field `says` is a part of lastError or of the reason for waiting. If `says` is empty, the item succeeds.
	says string
}

// newCanaryItems returns the items by name. Each item contains a canary that ends with the name of the item.
func (w *env) newCanaryItems() map[string]canaryItem {
	of := func(name string, fields map[string]any, more ...any) map[string]any {
		return config(nil, append([]any{w.newSecretManifest(name, fields)}, more...)...)
	}
	data := func(name string) map[string]any {
		return map[string]any{"data": map[string]any{"x": encodeBase64(canary + name)}}
	}
	ref := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "name": name, "namespace": w.Namespace}
	}
	label := w.configMap("labelled", nil)
	label["metadata"].(map[string]any)["labels"] = map[string]any{"x": canary + "label"}
	return map[string]canaryItem{
		"data":       {config: of("data", data("data"))},
		"stringdata": {config: of("stringdata", map[string]any{"stringData": map[string]any{"x": canary + "stringdata"}})},
		"nested":     {config: of("nested", map[string]any{"data": map[string]any{"x": map[string]any{"y": canary + "nested"}}}), says: "nested"},
		"nestedtext": {config: of("nestedtext", map[string]any{"stringData": map[string]any{"x": map[string]any{"y": canary + "nestedtext"}}}), says: "nestedtext"},
		"notbase64":  {config: of("notbase64", map[string]any{"data": map[string]any{"x": canary + "notbase64"}}), says: "notbase64"},
		"nomap":      {config: of("nomap", map[string]any{"data": canary + "nomap"}), says: "nomap"},
		"list":       {config: of("list", map[string]any{"data": []any{canary + "list"}}), says: "list"},
		"unknown":    {config: of("unknown", map[string]any{"bogus": canary + "unknown", "type": map[string]any{"a": canary + "unknown"}}), says: "unknown"},
		"type":       {config: of("type", map[string]any{"type": "kubernetes.io/tls", "stringData": map[string]any{"tls.crt": canary + "type"}}), says: "type"},
		"label":      {config: of("label", data("label"), label), says: "labelled"},
		"patched": {config: config(nil, entry{
			"manifest": w.newSecretManifest("patched", data("patched")), "annotateBeforeCreate": map[string]any{"example.com/x": canary + "patched"},
			"patchAfterDeployment": map[string]any{"data": map[string]any{"y": encodeBase64(canary + "patched")}},
		})},
		"badpatch": {config: config(nil, entry{
			"manifest": w.newSecretManifest("badpatch", nil), "patchAfterDeployment": map[string]any{"data": map[string]any{"y": canary + "badpatch"}},
		}), says: "badpatch"},
		"badputs": {config: config(map[string]any{"updateStrategy": "update"}, w.newSecretManifest("badputs", map[string]any{"data": map[string]any{"x": canary + "badputs"}})), says: "badputs"},
		"atdelete": {config: config(nil, entry{
			"manifest": w.newSecretManifest("atdelete", nil), "annotateBeforeDelete": map[string]any{"example.com/x": canary + "atdelete"},
			"patchBeforeDelete": map[string]any{"data": map[string]any{"y": encodeBase64(canary + "atdelete")}},
		})},
		"exported": {config: config(map[string]any{"exports": map[string]any{"exports": []any{
			map[string]any{"key": "x", "jsonPath": "data.x", "fromResource": ref("exported")},
		}}}, w.newSecretManifest("exported", data("exported")))},
		"badexport": {config: config(map[string]any{"exports": map[string]any{"exports": []any{map[string]any{
			"key": "x", "jsonPath": "data.x", "timeout": "1s", "fromResource": ref("badexport"), "fromObjectRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "jsonPath": "data.x"},
		}}}}, w.newSecretManifest("badexport", data("badexport"))), says: "export"},
		"unready": {config: config(map[string]any{"readinessChecks": map[string]any{"timeout": "1s", "custom": []any{map[string]any{
			"name": "check", "resourceSelector": []any{ref("unready")},
			"requirements": []any{map[string]any{"jsonPath": "data.x", "operator": "==", "values": []any{map[string]any{"value": "another"}}}},
		}}}}, w.newSecretManifest("unready", data("unready"))), says: "check"},
		"badtoken": {target: "badtoken", config: of("badtoken", data("badtoken")), says: "target"},
		"badkey":   {target: "badkey", config: of("badkey", data("badkey")), says: "target"},
		"exec":     {target: "exec", config: of("exec", data("exec")), says: "exec"},
		"ref":      {target: "ref", config: of("ref", data("ref"))},
	}
}

// createCanaryTargets creates Targets that contain canaries.
func (w *env) createCanaryTargets(ctx context.Context) {
	GinkgoHelper()
	w.CreateTarget(ctx, "works", newKubeconfig("works", nil))
	w.CreateTarget(ctx, "badtoken", newKubeconfig("badtoken", asUser(&clientcmdapi.AuthInfo{Token: canary + "badtoken"})))
	w.CreateTarget(ctx, "badkey", newKubeconfig("badkey", asUser(&clientcmdapi.AuthInfo{
		ClientCertificateData: []byte(canary + "badkey"), ClientKeyData: []byte(canary + "badkey"),
	})))
	w.CreateTarget(ctx, "exec", newKubeconfig("exec", asUser(&clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: canary + "exec", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}})))
	secret := &corev1.Secret{StringData: map[string]string{"kubeconfig": string(newKubeconfig("ref", nil))}}
	secret.Namespace, secret.Name = w.Namespace, "kubeconfig"
	Expect(w.Client.Create(ctx, secret)).To(Succeed())
	target := &lsv1alpha1.Target{}
	target.Namespace, target.Name, target.Spec.Type = w.Namespace, "ref", "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: "kubeconfig", Key: "kubeconfig"}
	Expect(w.Client.Create(ctx, target)).To(Succeed())
}

// waitForMessage waits until an item shows the error or the reason that could contain its canary.
func (w *env) waitForMessage(ctx context.Context, name string, l canaryItem) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		di, err := w.Landscaper.Get(ctx, w.Key(name))
		g.Expect(err).NotTo(HaveOccurred())
		if l.says == "" {
			g.Expect(di.Status.Phase).To(Equal(phases.Succeeded), "%s: %+v", name, di.Status.LastError)
			return
		}
		g.Expect(di.Status.LastError).NotTo(BeNil(), name)
		g.Expect(di.Status.LastError.Message).To(ContainSubstring(l.says), name)
	}).WithTimeout(patience).Should(Succeed())
}

// listVisibleTexts returns all texts that are visible to a user who may read neither the configuration of items nor
// Secrets. The keys describe where each text was found.
func (w *env) listVisibleTexts(ctx context.Context, log *logBuffer) map[string]string {
	GinkgoHelper()
	out := map[string]string{"log": log.String()}
	note := func(where string, what any) {
		raw, err := json.Marshal(what)
		Expect(err).NotTo(HaveOccurred())
		text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
		out[where] = text
	}
	events, old, items := &eventsv1.EventList{}, &corev1.EventList{}, &lsv1alpha1.DeployItemList{}
	for where, list := range map[string]client.ObjectList{"events": events, "old events": old, "items": items} {
		Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		if where != "items" {
			note(where, list)
		}
	}
	Expect(events.Items).NotTo(BeEmpty())
	for i := range items.Items {
		status := items.Items[i].Status
		note("provider status of "+items.Items[i].Name, status.ProviderStatus)
		status.ProviderStatus = nil
		note("status of "+items.Items[i].Name, status)
	}
	for where, from := range map[string]prometheus.Gatherer{"metrics": w.Manager.Registry, "global metrics": metrics.Registry} {
		families, err := from.Gather()
		Expect(err).NotTo(HaveOccurred())
		Expect(families).NotTo(BeEmpty(), where)
		text := strings.Builder{}
		for _, family := range families {
			text.WriteString(family.String() + "\n")
		}
		out[where] = text.String()
	}
	return out
}

// findLeaks returns the places in which canaries were found. It ignores the provider status of the item "atdelete".
// This status must contain the patch that the deployer sends before it deletes an object. The configuration cannot
// provide the patch, because it may change before the deletion.
func findLeaks(texts map[string]string, names []string) []string {
	out := []string{}
	for where, text := range texts {
		for _, name := range append(names, "works") {
			if name == "atdelete" && where == "provider status of atdelete" {
				continue
			}
			for _, form := range []string{canary + name, encodeBase64(canary + name), encodeBase64(canary + name + "-key"), fmt.Sprintf("%q", canary+name)} {
				if at := strings.Index(text, form); at >= 0 {
					out = append(out, fmt.Sprintf("%s: …%s…", where, text[max(0, at-200):min(len(text), at+60)]))
				}
			}
		}
	}
	return out
}

var _ = Describe("Secret values", func() {
	It("values of all inputs appear in no output", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.expectAPIServerEchoes(ctx)
		w.createCanaryTargets(ctx)
		log := &logBuffer{}
		w.startWithLog(log)
		items := w.newCanaryItems()
		names := []string{}
		for name, l := range items {
			names = append(names, name)
			w.Create(ctx, name, l.config, func(di *lsv1alpha1.DeployItem) {
				di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "works"}
				if l.target != "" {
					di.Spec.Target.Name = l.target
				}
			})
		}
		for name, l := range items {
			w.waitForMessage(ctx, name, l)
		}

		By("causing drift")
		secret := &corev1.Secret{}
		Expect(w.Client.Get(ctx, w.Key("data"), secret)).To(Succeed())
		secret.Data["x"] = []byte("by hand")
		Expect(w.Client.Update(ctx, secret, client.FieldOwner("kubectl-edit"))).To(Succeed())
		Eventually(w.listEvents(ctx, "Drift")).WithTimeout(patience).ShouldNot(BeEmpty())
		Expect(findLeaks(w.listVisibleTexts(ctx, log), names)).To(BeEmpty())

		for _, name := range []string{"patched", "atdelete", "stringdata", "exported"} {
			Expect(w.Landscaper.Delete(ctx, w.Key(name))).To(Succeed())
		}
		Expect(log.String()).NotTo(BeEmpty())
		Expect(findLeaks(w.listVisibleTexts(ctx, log), names)).To(BeEmpty())
	}, SpecTimeout(8*time.Minute))
})

// expectAPIServerEchoes requires that the API server quotes values in its errors. Otherwise, the deployer would have
// nothing to hide.
func (w *env) expectAPIServerEchoes(ctx context.Context) {
	GinkgoHelper()
	body := w.newSecretManifest("echo", map[string]any{"data": map[string]any{"x": map[string]any{"y": canary}}})
	raw, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	obj := &unstructured.Unstructured{Object: body}
	err = w.Client.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner("test"))
	Expect(err).To(MatchError(ContainSubstring(canary)))
}
