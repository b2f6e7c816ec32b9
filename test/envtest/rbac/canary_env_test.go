// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing/fstest"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
)

// canary is the beginning of every secret. It must not appear in any output. The suffix of a secret shows where the
// secret came from.
const canary = "k4n4ry!secret-"

// encodedCanary is the beginning of every secret in base64.
var encodedCanary = base64.StdEncoding.EncodeToString([]byte(canary[:12]))

// logbook stores all log messages of this process.
var logbook = &logBuffer{}

type logBuffer struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (b *logBuffer) add(prefix, args string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines.WriteString(prefix + " " + args + "\n")
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.String()
}

// verbosity is the highest log level that the programs accept. From the next level on, client-go logs bodies of
// requests.
const verbosity = 7

func newVerboseLogger() logr.Logger {
	return funcr.New(logbook.add, funcr.Options{Verbosity: verbosity})
}

// secretive contains a function for each deployer. The function returns the configuration of an item. With this
// configuration, the item creates a Secret in a target.
var secretive = map[string]func(ns, name, password string) map[string]any{
	"manifest": func(ns, name, password string) map[string]any {
		meta := map[string]any{"namespace": ns, "name": name}
		secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": map[string]any{"x": password}}
		from := map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": ns, "name": name}
		exports := []any{map[string]any{"key": "x", "jsonPath": "data.x", "fromResource": from}}
		return newManifestConfig(map[string]any{"exports": map[string]any{"exports": exports}}, secret)
	},
	"declarative": func(_, name, password string) map[string]any {
		return map[string]any{"apiVersion": "example.org/v1", "kind": "Password", "name": name, "password": password}
	},
	"graph": func(ns, name, password string) map[string]any {
		return map[string]any{"apiVersion": "example.org/v1", "kind": "Password", "namespace": ns, "name": name, "password": password}
	},
}

// handle is the handler of the declarative deployer.
func handle(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := declarative.Config[struct {
		Name     string `json:"name"`
		Password string `json:"password"`
	}](req)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{StringData: map[string]string{"x": config.Password}}
	secret.Name = config.Name
	return declarative.NewBuilder(map[string]any{"done": true}).Add(secret).Build()
}

const passwordTemplate = `apiVersion: v1
kind: Secret
metadata: {namespace: {{ .Config.namespace }}, name: {{ .Config.name }}}
data: {x: {{ .Config.password | b64enc }}}
`

// typeOf returns the item type of one of the deployers.
func (w *env) typeOf(deployer string) lsv1alpha1.DeployItemType {
	return w.Type + lsv1alpha1.DeployItemType("-"+deployer)
}

// startAll runs all deployers in this process. Their requests go through the network.
func (w *env) startAll(network *faultnet.Network) {
	GinkgoHelper()
	graph, err := stategraph.NewBuilder().Add("password", stategraph.Template(fstest.MapFS{
		"templates/x.yaml": &fstest.MapFile{Data: []byte(passwordTemplate)},
	}, "x.yaml")).Build()
	Expect(err).NotTo(HaveOccurred())
	children := declarative.Options{Targets: local, Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "Secret"}}}
	all := map[string]deployerlib.DeployerArgs{
		"manifest":    manifest.Args(nil, manifest.Options{Targets: local}),
		"mock":        mock.Args(nil),
		"declarative": declarative.Args("declarative", "", declarative.HandlerFunc(handle), children),
		"graph":       stategraph.Args("graph", "", graph, stategraph.Options{Targets: local}),
	}
	options := []landscapertest.ManagerOption{landscapertest.WithLog(newVerboseLogger())}
	for name, args := range all {
		args.Type = w.typeOf(name)
		all[name] = args
		if name != "mock" {
			options = append(options, landscapertest.WithDeployer(args))
		}
	}
	w.Manager = landscapertest.StartManager(GinkgoTB(), network.Wrap(cp.Config), all["mock"], options...)
}

// updateTarget changes the Target. With the new content, the deployer connects to the cluster through the network, with
// the given token.
func (w *env) updateTarget(ctx context.Context, network *faultnet.Network, token string) {
	GinkgoHelper()
	access := rest.CopyConfig(network.Proxy(cp.Config))
	access.BearerToken = canary + token
	content, err := faultnet.EncodeKubeconfig(access)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(content)).To(ContainSubstring(canary))
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = w.Namespace, "cluster"
	if w.Client.Get(ctx, w.Key("cluster"), secret) != nil {
		w.createTarget(ctx, "cluster", content)
		return
	}
	secret.Data[secretKey] = content
	Expect(w.Client.Update(ctx, secret)).To(Succeed())
}

// listVisibleTexts returns all texts that are visible to a user who may read neither the configuration of items nor
// Secrets. The keys describe where each text was found.
func (w *env) listVisibleTexts(ctx context.Context) map[string]string {
	GinkgoHelper()
	out := map[string]string{"log": logbook.String()}
	note := func(where string, what any) {
		raw, err := json.Marshal(what)
		Expect(err).NotTo(HaveOccurred())
		out[where] = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
	}
	events, old, items := &eventsv1.EventList{}, &corev1.EventList{}, &lsv1alpha1.DeployItemList{}
	for _, list := range []client.ObjectList{events, old, items} {
		Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	}
	note("events", events)
	note("old events", old)
	for i := range items.Items {
		note("metadata of "+items.Items[i].Name, items.Items[i].ObjectMeta)
		note("status of "+items.Items[i].Name, items.Items[i].Status)
	}
	for where, from := range map[string]prometheus.Gatherer{"metrics": w.Manager.Registry, "global metrics": metrics.Registry} {
		families, err := from.Gather()
		Expect(err).NotTo(HaveOccurred())
		out[where] = fmt.Sprint(families)
	}
	for where, text := range out {
		Expect(text).NotTo(BeEmpty(), where)
	}
	return out
}

// findLeaks returns the canaries in the texts, with the places in which they were found and the text around them.
func findLeaks(texts map[string]string) []string {
	out := []string{}
	for where, text := range texts {
		for _, form := range []string{canary, encodedCanary} {
			for rest := text; strings.Contains(rest, form) && len(out) < 10; {
				at := strings.Index(rest, form)
				out = append(out, fmt.Sprintf("%s: …%s…", where, rest[max(0, at-300):min(len(rest), at+80)]))
				rest = rest[at+len(form):]
			}
		}
	}
	return out
}
