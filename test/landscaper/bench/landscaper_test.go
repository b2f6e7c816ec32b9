// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/internal/process"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
	"github.com/deployerkit/deployerkit/test/landscaper/scenario"
)

var (
	update = flag.Bool("landscaper.update", false, "write the results to "+scenario.ResultsFile+", from which the documentation is generated")
	only   = flag.String("landscaper.only", "", "regular expression of the scenarios to run")
	logs   = flag.String("landscaper.logs", "", "directory for the logs of all processes")
)

// atOnce is the number of scenarios that run at the same time. The scenarios need little processor time, because they
// mostly wait.
const atOnce = 4

// BenchmarkLandscaper runs each scenario twice: with Landscaper's deployers and with those of this module. It fails if
// a scenario succeeds only with Landscaper's deployers, or if the deployers of this module write deploy items more
// often.
func BenchmarkLandscaper(b *testing.B) {
	ctrl.SetLogger(logr.Discard())
	bed := newBed(b)
	results := scenario.Results{}
	for _, side := range []struct {
		name   string
		start  func(kubeconfig string) []func() error
		record *[]scenario.Result
	}{{"theirs", bed.startTheirs, &results.Theirs}, {"ours", bed.startOurs, &results.Ours}} {
		*side.record = bed.run(side.name, side.start)
	}
	if err := results.WriteTable(os.Stdout); err != nil {
		b.Error(err)
	}
	if *only == "" {
		for _, fault := range results.ListFaults(scenario.All()) {
			b.Error(fault)
		}
	}
	for _, total := range []struct {
		side    string
		results []scenario.Result
	}{{"theirs", results.Theirs}, {"ours", results.Ours}} {
		b.ReportMetric(float64(scenario.SumItemWrites(total.results)), total.side+"-item-writes")
		b.ReportMetric(float64(scenario.SumTargetCalls(total.results)), total.side+"-target-calls")
	}
	b.ReportMetric(0, "ns/op")
	if *update {
		raw, err := json.MarshalIndent(results, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join("..", "scenario", scenario.ResultsFile), append(raw, '\n'), 0o600)
		}
		if err != nil {
			b.Error(err)
		}
	}
}

// bed is the environment of the benchmark: a control plane with Landscaper.
type bed struct {
	*testing.B
	dir   string
	cp    *controlplane.ControlPlane
	audit *scenario.Audit
	ls    *landscaper.Landscaper
}

func newBed(b *testing.B) *bed {
	b.Helper()
	s := &bed{B: b, dir: b.TempDir()}
	audit, apiServerFlags, err := scenario.NewAudit(s.dir)
	s.check(err)
	s.audit = audit
	s.cp, err = controlplane.Start(b.Context(), controlplane.Options{
		ControllerManager: true, Controllers: append(controlplane.DefaultControllers(), "serviceaccount-token-controller"), APIServerFlags: apiServerFlags,
	})
	s.check(err)
	b.Cleanup(func() { s.check(s.cp.Stop()) })
	s.ls = landscaper.StartLandscaper(b, s.cp, landscaper.Options{PickupTimeout: 15 * time.Second, Logs: s.logFile("landscaper")})
	mgr, err := ctrl.NewManager(s.cp.Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	s.check(err)
	s.check(controlplane.AddKubelet(mgr, scenario.IsReady))
	go func() { _ = mgr.Start(b.Context()) }()
	return s
}

func (s *bed) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// logFile returns a file for the output of a process, or nil if the flag -landscaper.logs is not set.
func (s *bed) logFile(name string) io.Writer {
	if *logs == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(*logs, name+".log")) //nolint:gosec // the user says where
	s.check(err)
	return f
}

// run runs the scenarios with the deployers of one side, which are Landscaper's deployers or those of this module. The
// function `start` starts these deployers.
func (s *bed) run(side string, start func(kubeconfig string) []func() error) []scenario.Result {
	runner := &scenario.Runner{ControlPlane: s.cp, Audit: s.audit, Deployer: side}
	config, err := runner.CreateUser()
	s.check(err)
	kubeconfig, err := faultnet.EncodeKubeconfig(config)
	s.check(err)
	path := filepath.Join(s.dir, side+".kubeconfig")
	s.check(os.WriteFile(path, kubeconfig, 0o600))
	for _, stop := range start(path) {
		defer func() { s.check(stop()) }()
	}
	filter := regexp.MustCompile(*only)
	all := scenario.All()
	out := make([]scenario.Result, len(all))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, sc := range all {
		if !filter.MatchString(sc.Name) {
			continue
		}
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
			defer cancel()
			var err error
			out[i], err = runner.Run(ctx, sc, fmt.Sprintf("%s-%d", side, i))
			fmt.Fprintf(os.Stderr, "%-7s %6.1f s  %s  %s\n", side, out[i].Seconds, sc.Name, out[i].Failure)
			return err
		})
	}
	s.check(group.Wait())
	return out
}

// startTheirs starts Landscaper's own deployers.
func (s *bed) startTheirs(kubeconfig string) []func() error {
	var stops []func() error
	for _, program := range []string{landscaper.MockDeployer, landscaper.ManifestDeployer} {
		d, err := s.ls.StartDeployer(s.Context(), program, kubeconfig)
		s.check(err)
		stops = append(stops, d.Stop)
	}
	return stops
}

// startOurs builds and starts the deployers of this module.
func (s *bed) startOurs(kubeconfig string) []func() error {
	var stops []func() error
	for name, extra := range map[string][]string{"mock-deployer": nil, "manifest-deployer": {"--allow-private-hosts", "--default-strategy=update"}} {
		program := filepath.Join(s.dir, name)
		out, err := exec.CommandContext(s.Context(), "go", "build", "-o", program, "github.com/deployerkit/deployerkit/cmd/"+name).CombinedOutput() //nolint:gosec // constant
		if err != nil {
			s.Fatalf("build %s: %v: %s", name, err, out)
		}
		args := append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--grace-period=5s"}, extra...)
		p, err := process.Start(exec.Command(program, args...), s.logFile(name))
		s.check(err)
		stops = append(stops, p.Stop)
	}
	return stops
}
