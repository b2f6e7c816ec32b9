// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"archive/tar"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/faultnet"
)

// store is a source of charts in memory, by their references.
type store struct {
	charts  map[string]charttest.Files
	fetched int
	err     error // the error of Fetch, or nil

	mu    sync.Mutex
	byRef map[string]int // how often each chart was fetched
}

// add adds a chart while the deployer may use other charts.
func (s *store) add(ref string, files charttest.Files) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charts = maps.Clone(s.charts)
	s.charts[ref] = files
}

// countFetches returns how often a chart was fetched.
func (s *store) countFetches(ref string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRef[ref]
}

func (s *store) Resolve(_ context.Context, r chart.Request) (chart.Identity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.charts[r.Chart.Ref]; !found {
		return chart.Identity{}, &chart.Error{Path: "ref", Final: true, Err: errors.New("there is no such chart")}
	}
	return chart.Identity{Digest: "sha256:" + r.Chart.Ref, Reference: r.Chart.Ref}, nil
}

func (s *store) Fetch(_ context.Context, r chart.Request, id chart.Identity) (*chart.Archive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRef == nil {
		s.byRef = map[string]int{}
	}
	s.byRef[r.Chart.Ref]++
	s.fetched++
	if s.err != nil {
		return nil, s.err
	}
	if r.Chart.Ref == "panic" {
		panic("a defect of the source")
	}
	return &chart.Archive{Identity: id, Data: s.charts[r.Chart.Ref].Archive()}, nil
}

// useStore makes a world use a store for references.
func useStore(s *store) func(*world) {
	return func(w *world) { w.options.Sources.OCI = s }
}

// ref returns the change of a configuration that names a chart in the store.
func ref(name string) config { return config{"chart": map[string]any{"ref": name}} }

// noise returns text that cannot be compressed, always the same.
func noise(size int) string {
	raw := make([]byte, size/4*3)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

// holder is a transport that holds the first request that matches.
type holder struct {
	match   func(*http.Request) bool
	held    chan any // closed when the request arrives
	proceed chan any // the request is sent when this channel is closed
	sent    chan error
}

func newHolder(match func(*http.Request) bool) *holder {
	return &holder{match: match, held: make(chan any), proceed: make(chan any), sent: make(chan error, 1)}
}

func (h *holder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if !h.match(r) {
			return next.RoundTrip(r)
		}
		select {
		case <-h.held:
			return next.RoundTrip(r)
		default:
		}
		close(h.held)
		<-h.proceed
		response, err := next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
		if err == nil {
			h.sent <- fmt.Errorf("status %d", response.StatusCode)
		} else {
			h.sent <- err
		}
		return response, err
	})
}

var _ = Describe("The limits of the deployer", func() {
	slow := func(name string) charttest.Files {
		return charttest.Files{"templates/h.yaml": hook(name, "pre-install", "")}
	}

	It("include the number of operations in a target [Ex12]", func(ctx SpecContext) {
		w := newWorld(ctx, func(w *world) { w.options.Operations = helm.OperationLimits{PerTarget: 2} })
		for _, name := range []string{"one", "two"} {
			w.create(ctx, name, w.helmMode(slow(name), nil, config{"name": name}))
			Eventually(w.revisions(ctx, name)).Should(Equal([]string{"1 pending-install"}))
		}
		w.create(ctx, "three", w.helmMode(simple, nil, config{"name": "three"}))
		Eventually(w.condition(ctx, "three", "Waiting")).Should(ContainSubstring("waiting until fewer than 2 operations are under way in the target"))
		Expect(w.history(ctx, "three")).To(BeEmpty())
		other := charttest.Files{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"}
		Expect(w.deploy(ctx, "manifests", w.manifestMode(other, nil, nil))).To(beSucceeded(), "an item in manifest mode does not wait")
		w.endPod(ctx, "one", corev1.PodSucceeded)
		Expect(w.finished(ctx, "one")).To(beSucceeded())
		Eventually(w.revisions(ctx, "three")).ShouldNot(BeEmpty())
		w.endPod(ctx, "two", corev1.PodSucceeded)
		Expect(w.finished(ctx, "two")).To(beSucceeded())
	})

	It("end a job whose operations end the process three times [Ex15]", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.create(ctx, "item", w.helmMode(slow("slow"), nil, nil))
		for i := range 3 {
			Eventually(w.revisions(ctx, "web")).Should(HaveLen(i + 1))
			Eventually(func() error { return w.Get(ctx, w.key("slow"), &corev1.Pod{}) }).Should(Succeed())
			w.kill()
			w.start()
		}
		Expect(w.finished(ctx, "item")).To(beFailed("3 operations of this job have failed or were interrupted"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed", "2 failed", "3 failed"}))
		Expect(w.update(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed", "2 failed", "3 failed", "4 deployed"}))
	})

	It("make an operation continue after transient errors, in the same revision [Ex15]", func(ctx SpecContext) {
		w := newWorld(ctx)
		var failures atomic.Int64
		w.counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Resource == "configmaps" && r.Verb == "patch" }, func(r *http.Request) (*http.Response, error) {
			if failures.Add(1) > 6 {
				return nil, nil
			}
			return faultnet.ReturnStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError)(r)
		}))
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(failures.Load()).To(BeNumerically(">", 6))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
	})

	It("prevent that a request of an operation that has ended overwrites a newer record [Ex11]", func(ctx SpecContext) {
		late := newHolder(func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/sh.helm.release.v1.web.v1")
		})
		w := newWorld(ctx, func(w *world) { w.inner = late.wrap })
		w.create(ctx, "item", w.helmMode(simple, nil, nil))
		Eventually(late.held).Should(BeClosed())
		w.kill()
		w.start()
		Expect(w.finished(ctx, "item")).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed", "2 deployed"}))
		close(late.proceed)
		Eventually(late.sent).Should(Receive(MatchError("status 409")))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed", "2 deployed"}))
	})

	It("turn a panic into an error of the item, and do not affect other items [Ex13]", func(ctx SpecContext) {
		s := &store{charts: map[string]charttest.Files{"panic": simple, "good": simple}}
		w := newWorld(ctx, useStore(s))
		w.create(ctx, "broken", w.helmMode(nil, nil, ref("panic")))
		Eventually(func(g Gomega) {
			di, err := w.landscaper.Get(ctx, w.key("broken"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(di.Status.LastError).NotTo(BeNil())
			g.Expect(di.Status.LastError.Message).To(ContainSubstring("panic: a defect of the source"))
		}).Should(Succeed())
		Expect(w.deploy(ctx, "item", w.helmMode(nil, nil, ref("good")))).To(beSucceeded())
	})

	It("reject a chart whose record is too large before the first write [Ex30]", func(ctx SpecContext) {
		text := noise(1_100_000)
		s := &store{charts: map[string]charttest.Files{"large": simple.With(charttest.Files{"files/noise.txt": text, "crds/a.yaml": definition("large.example.com")})}}
		w := newWorld(ctx, useStore(s))
		before := w.counter.Snapshot()
		di := w.deploy(ctx, "item", w.helmMode(nil, nil, ref("large")))
		Expect(di).To(beFailed("the record of release web has"))
		Expect(di).To(beFailed("files/noise.txt"))
		Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")

		By("leaving the files out of the record, which can still be rolled back")
		slim := func(color string) config {
			c := settings(map[string]any{"atomic": true})
			c["deployerkit"] = map[string]any{"slim": true, "crds": map[string]any{"install": "Skip"}}
			c["chart"], c["values"] = map[string]any{"ref": "large"}, map[string]any{"color": color}
			return w.helmMode(nil, nil, c)
		}
		Expect(w.update(ctx, "item", slim("red"))).To(beSucceeded())
		s.charts["broken"] = s.charts["large"].With(charttest.Files{"templates/s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: broken, ports: [{port: 80}]}\n"})
		broken := slim("green")
		broken["chart"] = map[string]any{"ref": "broken"}
		Expect(w.update(ctx, "item", broken)).To(beFailed("Service " + w.namespace + "/s"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "red"))
	})

	It("end a rendering that takes too long [Ex29]", func(ctx SpecContext) {
		w := newWorld(ctx, func(w *world) { w.options.RenderLimits = release.Limits{Time: 2 * time.Second, Output: 1 << 40} })
		endless := simple.With(charttest.Files{"templates/c.yaml": "{{ range 1000000000000 }}{{ end }}"})
		di := w.deploy(ctx, "item", w.helmMode(endless, nil, nil))
		Expect(di).To(beFailed("rendering chart test 1.0.0 takes longer than 2s"))
		Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		Expect(w.again(ctx, "item")).To(beFailed("rendering chart test 1.0.0 takes longer than 2s"))
		Expect(w.history(ctx, "web")).To(BeEmpty())
	})

	DescribeTable("reject hostile archives before the first write", func(ctx SpecContext, want string, archive func() []byte) {
		w := newWorld(ctx)
		before := w.counter.Snapshot()
		raw := config{"chart": map[string]any{"archive": map[string]any{"raw": base64.StdEncoding.EncodeToString(archive())}}}
		di := w.deploy(ctx, "item", w.helmMode(nil, nil, raw))
		Expect(di).To(beFailed(want))
		Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
	},
		Entry("a symbolic link [Ex27]", "link", func() []byte {
			return charttest.Tar([]tar.Header{{Name: "test/Chart.yaml", Typeflag: tar.TypeReg}, {Name: "test/values.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, chartYAML)
		}),
		Entry("a path outside of the chart [Ex27]", "../", func() []byte {
			return charttest.Tar([]tar.Header{{Name: "test/Chart.yaml", Typeflag: tar.TypeReg}, {Name: "test/../../etc/cron.d/x", Typeflag: tar.TypeReg}}, chartYAML)
		}),
		Entry("more than 100 MiB after unpacking [Ex27] [Ex28]", "more than", func() []byte {
			entries := []tar.Header{{Name: "test/Chart.yaml", Typeflag: tar.TypeReg}}
			for i := range 11 {
				entries = append(entries, tar.Header{Name: fmt.Sprintf("test/files/%d", i), Typeflag: tar.TypeReg})
			}
			zeros := strings.Repeat("0", 10<<20)
			return charttest.Tar(entries, func(name string) string {
				if strings.HasPrefix(name, "test/files/") {
					return zeros
				}
				return chartYAML(name)
			})
		}),
		Entry("a schema that refers to a file of the deployer [Ex27]", "must not refer to other documents", func() []byte {
			return simple.With(charttest.Files{"values.schema.json": `{"properties": {"color": {"$ref": "file:///etc/passwd"}}}`}).Archive()
		}),
		Entry("something that is not an archive [Ex27]", "the chart archive is not a gzip file", func() []byte { return []byte("no archive") }),
	)
})

// chartYAML returns a valid Chart.yaml for any file.
func chartYAML(string) string { return "apiVersion: v2\nname: test\nversion: 1.0.0\n" }
