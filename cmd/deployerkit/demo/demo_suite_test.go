// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/internal/steps"
	"github.com/deployerkit/deployerkit/internal/testtime"
)

func TestDemo(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "demo")
}

// readPage returns the page at the address at the end of the output, or an error as text.
func readPage(ctx context.Context, output string) string {
	match := regexp.MustCompile(`The page: (http://127\.0\.0\.1:\d+/)`).FindStringSubmatch(output)
	if match == nil {
		return "no address"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, match[1], nil)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err.Error()
	}
	return string(body)
}

var _ = Describe("Demo", func() {
	DescribeTable("Steps and checks", func(ctx SpecContext, o Options, story []steps.Step) {
		out := &bytes.Buffer{}
		o.Out = out
		Expect(Run(ctx, o)).To(Succeed(), "output: %s", out)
		GinkgoWriter.Print(out)
		for _, s := range story {
			Expect(out.String()).To(ContainSubstring(s.Name))
			for _, check := range s.Then {
				Expect(out.String()).To(ContainSubstring("✓ " + check.Name))
			}
		}
		Expect(out.String()).To(ContainSubstring("All checks succeeded"))
		Expect(out.String()).NotTo(ContainSubstring("\x1b"), "the output is not a terminal, so it must not contain escape sequences")
	},
		Entry("succeed with deploy items", Options{}, (&demo{}).newDeployItemSteps(), SpecTimeout(10*time.Minute)),
		// The first time on a machine, this takes long, because Landscaper is built.
		Entry("succeed with Installations under the real Landscaper", Options{Landscaper: true}, (&demo{}).newInstallationSteps(), SpecTimeout(15*time.Minute)),
	)

	It("serves the page until it is interrupted if it is to be kept, and then ends without an error [U14]", func(ctx SpecContext) {
		ctx2, interrupt := context.WithCancel(ctx)
		defer interrupt()
		out := &bytes.Buffer{}
		var page string
		err := Run(ctx2, Options{Out: writerFunc(func(p []byte) (int, error) {
			if strings.Contains(string(p), "export KUBECONFIG=") {
				page = readPage(ctx, out.String())
				interrupt()
			}
			return out.Write(p)
		}), Keep: true})
		Expect(err).NotTo(HaveOccurred(), "output: %s", out)
		Expect(page).To(ContainSubstring("<title>DeployerKit</title>"), "output: %s", out)
		Expect(out.String()).To(MatchRegexp(`export KUBECONFIG=\S+/kubeconfig\n\s+\S*kubectl -n demo get deployitems`))
	}, SpecTimeout(10*time.Minute))

	It("runs with the prebuilt binaries of a mirror and without a go command", func(ctx SpecContext) {
		index := serveMirror(ctx)
		cache := GinkgoT().TempDir()
		for name, value := range map[string]string{
			"DEPLOYERKIT_ENVTEST_INDEX": index, "KUBEBUILDER_ASSETS": "", "XDG_CACHE_HOME": cache, "HOME": cache, "PATH": "",
		} {
			GinkgoT().Setenv(name, value)
		}
		ctx2, interrupt := context.WithCancel(ctx)
		defer interrupt()
		out := &bytes.Buffer{}
		err := Run(ctx2, Options{Out: writerFunc(func(p []byte) (int, error) {
			if strings.Contains(string(p), "✓") {
				interrupt()
			}
			return out.Write(p)
		})})
		Expect(err).To(MatchError(context.Canceled), "output: %s", out)
		Expect(out.String()).To(And(ContainSubstring("downloading "+strings.TrimSuffix(index, "index")), ContainSubstring("✓ hello succeeds")))
	}, SpecTimeout(10*time.Minute))

	It("lists the checks that failed, and runs the steps after them", func(ctx SpecContext) {
		d, err := start(ctx, GinkgoWriter, false)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(d.stop()).To(Succeed()) })
		out := &bytes.Buffer{}
		wrong := steps.ExpectItem("hello", "fails", steps.ItemHasPhase("Failed"))
		missing := steps.ExpectItem("missing", "succeeds", steps.ItemHasPhase("Succeeded"))
		wrong.Timeout, missing.Timeout = time.Second, time.Second
		failed := d.runSteps(ctx, newTerminal(out), []steps.Step{
			steps.Do("Deploy", d.createItems, steps.ExpectItem("hello", "succeeds", steps.ItemHasPhase("Succeeded")), wrong, missing),
			steps.Do("Abort missing", d.setOperation("missing", "abort"), steps.Expect("skipped", steps.ItemIsGone("missing"))),
		})
		Expect(failed).To(ConsistOf(
			MatchError(ContainSubstring(`Deploy: hello fails: the phase is "Succeeded", not "Failed"`)),
			MatchError(And(ContainSubstring("Deploy: missing succeeds: "), ContainSubstring("not found"))),
			MatchError(ContainSubstring("Abort missing: patch deploy item demo/missing:")),
		))
		Expect(newFailure(ctx, failed)).To(MatchError(ContainSubstring("3 of the checks failed:\n  Deploy: hello fails")))
		Expect(out.String()).To(And(ContainSubstring("✗ hello fails"), ContainSubstring("✓ hello succeeds"), Not(ContainSubstring("skipped"))))
	}, SpecTimeout(8*time.Minute))

	It("stops at once when it is interrupted during its start [F49]", func(ctx SpecContext) {
		for _, delay := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second} {
			starting, interrupt := context.WithCancel(ctx)
			out := &bytes.Buffer{}
			var interrupted time.Time
			err := Run(starting, Options{Out: writerFunc(func(p []byte) (int, error) {
				if strings.Contains(string(p), "Starting a control plane") {
					time.AfterFunc(delay, func() {
						interrupted = time.Now()
						interrupt()
					})
				}
				return out.Write(p)
			})})
			<-starting.Done()
			Expect(err).To(MatchError(SatisfyAll(ContainSubstring("the demo was interrupted"), Not(ContainSubstring("healthy")))), "after %s", delay)
			Expect(time.Since(interrupted)).To(BeNumerically("<", testtime.ScaleTimeout(5*time.Second)), "after %s", delay)
			Expect(out.String()).NotTo(ContainSubstring("✗"))
		}
	}, SpecTimeout(5*time.Minute))

	It("reports an interrupt later, and no failed check [F49]", func(ctx SpecContext) {
		interrupted, interrupt := context.WithCancel(ctx)
		out := &bytes.Buffer{}
		failed := (&demo{}).runSteps(interrupted, newTerminal(out), []steps.Step{
			steps.Do("Wait", nil, steps.Expect("never succeeds", func(context.Context, *steps.Env) error {
				interrupt()
				return errors.New("not yet")
			})),
		})
		Expect(newFailure(interrupted, failed)).To(MatchError(context.Canceled))
		Expect(out.String()).NotTo(ContainSubstring("✗"))
	})
})

// writerFunc is a function that implements io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
