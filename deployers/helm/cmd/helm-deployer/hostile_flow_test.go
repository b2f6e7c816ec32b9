// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
)

// mostMemory is the limit of the peak memory of the program.
const mostMemory = 400 << 20

// hostileTarget is an API server that attacks the deployer.
type hostileTarget struct {
	name    string
	attack  hostile.Behaviour
	message string // part of the error with which the item fails; if it is empty, the item may also succeed
}

// isOfRelease selects the requests for release records and objects. The target can therefore be reached.
func isOfRelease(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/secrets") || strings.Contains(r.URL.Path, "/configmaps")
}

// hostileTargets are the targets of the spec. The items on most of them fail when their timeout has passed.
func hostileTargets() []hostileTarget {
	when := hostile.When
	isList := func(r *http.Request) bool { return isOfRelease(r) && hostile.IsList(r) }
	return []hostileTarget{
		{"huge", when(isOfRelease, hostile.LargeObject(120<<20)), "more than"},
		{"huge-zipped", when(isOfRelease, hostile.Gzip(), hostile.LargeObject(120<<20)), "more than"},
		{"huge-kinds", when(hostile.IsDiscovery, hostile.LargeObject(120<<20)), "more than"},
		{"many-values", when(isOfRelease, hostile.ManyValues(2_000_000)), "more than"},
		{"deep", when(isOfRelease, hostile.DeepObject(1_000_000)), "nested more than"},
		{"groups", hostile.AddGroups(200_000, false), "more than"},
		{"groups-later", addGroupsLater(), "API group versions, more than 1000"},
		{"endless-pages", when(isList, hostile.EndlessPages(100, 10_000)), ""},
		{"silent", when(isOfRelease, hostile.NoResponse()), "not finished within"},
		{"silent-kinds", hostile.NoResponse(), "not finished within"},
		{"slow", when(isOfRelease, hostile.SendSlowly(time.Second)), ""},
		{"another-format", when(isOfRelease, hostile.ContentType("application/vnd.kubernetes.protobuf")), ""},
		{"wrong-types", when(isOfRelease, hostile.Rewrite(func([]byte) []byte { return []byte(`{"kind": 1, "metadata": [], "items": "x"}`) })), ""},
		{"record-bomb", sendRecord(record(`"chart":{"metadata":{"name":"x"},"files":[` + strings.Repeat("{},", 10<<20) + `{}]}`)), "the record of revision 1 of release web has more than 500000 fields"},
		{"large-record", sendRecord(record(`"manifest":"` + strings.Repeat("x", 100<<20) + `"`)), "bytes after decompression"},
		{"deep-record", sendRecord(record(`"config":` + strings.Repeat(`{"a":`, 10_000))), "is not JSON"},
		{"incomplete-record", sendRecord(record(`"chart":{"metadata":{}},"info":{},"hooks":[null]`)), "is incomplete"},
		{"watches", when(hostile.IsWatch, hostile.WatchEndlessly()), ""},
		{"expired-watches", when(hostile.IsWatch, hostile.WatchExpired()), ""},
	}
}

// addGroupsLater returns the behaviour of a server that names too many API groups after it was asked for records.
func addGroupsLater() hostile.Behaviour {
	var asked atomic.Bool
	grow := hostile.When(func(r *http.Request) bool { return asked.Load() && hostile.IsDiscovery(r) }, hostile.AddGroups(1500, true))
	return func(next http.Handler) http.Handler {
		grown := grow(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.CompareAndSwap(false, isOfRelease(r))
			grown.ServeHTTP(w, r)
		})
	}
}

// record returns a release record with the given fields, in the format of Helm.
func record(fields string) string {
	var out bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is valid
	_, _ = io.WriteString(zipped, `{"name":"web",`+fields+`}`)
	_ = zipped.Close() // a buffer returns no errors
	return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(out.Bytes())))
}

// sendRecord returns the behaviour of a server that contains one revision of the release "web", with the given data.
func sendRecord(data string) hostile.Behaviour {
	metadata := map[string]any{
		"name": "sh.helm.release.v1.web.v1", "namespace": "default", "uid": "u", "resourceVersion": "1",
		"labels": map[string]any{"owner": "helm", "name": "web", "version": "1", "status": "deployed"},
	}
	isSecret := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/secrets") && !hostile.IsWatch(r) }
	return hostile.When(isSecret, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hostile.IsList(r) {
				hostile.WriteJSON(w, http.StatusOK, map[string]any{
					"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": "1"},
					"items": []any{map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}},
				})
				return
			}
			hostile.WriteJSON(w, http.StatusOK, map[string]any{"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "type": "helm.sh/release.v1", "data": map[string]any{"release": data}})
		})
	})
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// readPeakMemory returns the peak memory of a process in bytes, as the kernel reports it.
func readPeakMemory(session *gexec.Session) int {
	GinkgoHelper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", session.Command.Process.Pid))
	Expect(err).NotTo(HaveOccurred())
	found := highWater.FindSubmatch(status)
	Expect(found).NotTo(BeNil(), "the process has ended")
	kib, err := strconv.Atoi(string(found[1]))
	Expect(err).NotTo(HaveOccurred())
	return kib << 10
}

// createHostileItem creates a Target for a server, and an item in Helm mode.
func (w *world) createHostileItem(ctx context.Context, target hostileTarget) {
	GinkgoHelper()
	server := hostile.New(target.attack)
	DeferCleanup(server.Close)
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(server.Kubeconfig("token"))})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Create(ctx, &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: target.name},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(raw)},
	})).To(Succeed())
	di := w.item(target.name, w.config(colorsChart, itemConfig{"namespace": "default", "createNamespace": true}))
	di.Spec.Target.Name = target.name
	di.Spec.Timeout = &lsv1alpha1.Duration{Duration: 15 * time.Second}
	Expect(w.Deploy(ctx, di)).To(Succeed())
}

// colorsChart is the field chart of the items of the spec.
var colorsChart = raw(colors("red"))

var _ = Describe("Hostile targets", func() {
	It("cause errors of one line in their items, affect no other item, and do not exhaust the memory [F2] [F4] [F6]", func(ctx SpecContext) {
		w := newWorld(ctx)
		process := w.start()
		targets := hostileTargets()
		for _, target := range targets {
			w.createHostileItem(ctx, target)
		}
		By("deploying to another target")
		for i := range 5 {
			name := fmt.Sprint("healthy", i)
			Expect(w.deploy(ctx, name, w.config(colorsChart, itemConfig{"name": name}))).To(beSucceeded())
		}
		By("waiting for the items of the hostile targets")
		for _, target := range targets {
			di := &lsv1alpha1.DeployItem{}
			Eventually(func(g Gomega) {
				g.Expect(c.Get(ctx, w.key(target.name), di)).To(Succeed())
				g.Expect(di.Status.JobIDFinished).NotTo(BeEmpty(), "%+v", di.Status.Conditions)
			}).Should(Succeed(), target.name)
			_, _ = fmt.Fprintf(GinkgoWriter, "%s: %s\n", target.name, outcome(di))
			if target.message == "" && di.Status.LastError == nil {
				continue
			}
			Expect(di).To(beFailed(target.message), target.name)
			Expect(di.Status.LastError.Message).NotTo(ContainSubstring("\n"), target.name)
			Expect(len(di.Status.LastError.Message)).To(BeNumerically("<=", 1100), target.name)
		}
		most := readPeakMemory(process)
		_, _ = fmt.Fprintf(os.Stdout, "\npeak memory with %d hostile targets: %d MiB\n", len(targets), most>>20)
		Expect(most).To(BeNumerically("<=", mostMemory), "bytes")
	})
})
