// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

// parse reads a command line.
func parse(t *testing.T, args ...string) *flags {
	t.Helper()
	f := newFlags()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.addTo(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// program is the mock deployer with a configured identity.
func program(identity string) Program {
	return Program{Name: "test", Args: func(string) (deployerlib.DeployerArgs, error) {
		return mock.Args(&mockv1alpha1.Configuration{Identity: identity}), nil
	}}
}

func TestFlagsReachTheDeployer(t *testing.T) {
	args, err := parse(t, "--workers=3", "--grace-period=7s", "--missing-target-grace=3s", "--target-share=0.25", "--item-selector=shard in (a,b)").args(program(""))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{args.Options.MaxConcurrentReconciles, args.GracePeriod, args.MissingTargetGrace, args.TargetShare, args.ItemSelector.Matches(labels.Set{"shard": "b"}), args.ItemSelector.Matches(labels.Set{})}
	if diff := cmp.Diff([]any{3, 7 * time.Second, 3 * time.Second, 0.25, true, false}, got); diff != "" {
		t.Errorf("args: -want, +got:\n%s", diff)
	}
	args, err = parse(t).args(program(""))
	if err != nil || args.Options.MaxConcurrentReconciles != 10 || !args.ItemSelector.Empty() || args.GracePeriod != 30*time.Second || args.MissingTargetGrace != 10*time.Second || args.TargetShare != 0.5 {
		t.Errorf("defaults: want 10 workers, half of them for one target, all items, 30 s and 10 s, got %+v, %v", args, err)
	}
}

func TestWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		configured int
		args       []string
		want       int
	}{
		"neither": {reason: "Nobody says anything: the default.", want: deployerlib.DefaultWorkers},
		"file":    {reason: "The flag's default does not hide the file.", configured: 3, want: 3},
		"flag":    {reason: "What is given by hand wins.", configured: 3, args: []string{"--workers=10"}, want: 10},
	} {
		p := Program{Args: func(string) (deployerlib.DeployerArgs, error) {
			args := mock.Args(nil)
			args.Options.MaxConcurrentReconciles = tc.configured
			return args, nil
		}}
		args, err := parse(t, tc.args...).args(p)
		if err != nil || args.Options.MaxConcurrentReconciles != tc.want {
			t.Errorf("%s: %s want %d workers, got %d, %v", name, tc.reason, tc.want, args.Options.MaxConcurrentReconciles, err)
		}
	}
}

func TestFlagsOfTheProgram(t *testing.T) {
	own := ""
	p := program("")
	p.Flags = func(fs *pflag.FlagSet) { fs.StringVar(&own, "own", "", "") }
	fs := Command(p).Flags()
	if err := fs.Parse([]string{"--own=here", "--workers=2"}); err != nil || own != "here" {
		t.Errorf("want the program's flag besides those of all, got %q, %v", own, err)
	}
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	_, err := parse(t, "--workers=-1", "--grace-period=0", "--missing-target-grace=-1s", "--target-share=2", "--leader-election-retry-period=20s", "--namespace=Not/One", "--zap-log-level=8").args(program(""))
	for _, want := range []string{"--workers -1", `--namespace "Not/One"`, "--grace-period 0s", "--missing-target-grace -1s", "--target-share 2", "--leader-election-", "--zap-log-level: must be 7"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want all faults at once, %q among them, got %v", want, err)
		}
	}
	if _, err := parse(t, "--zap-log-level=7").args(program("")); err != nil {
		t.Errorf("level 7 shows no bodies: %v", err)
	}
	errBoom := errors.New("boom")
	_, err = parse(t).args(Program{Args: func(string) (deployerlib.DeployerArgs, error) { return deployerlib.DeployerArgs{}, errBoom }})
	if !errors.Is(err, errBoom) {
		t.Errorf("want what Args returned, got %v", err)
	}
}

func TestLeaseOfEachDeployment(t *testing.T) {
	id := func(identity string, args ...string) string {
		f := parse(t, args...)
		if _, err := f.args(program(identity)); err != nil {
			t.Fatal(err)
		}
		return f.election.id
	}
	if got := id(""); got != mock.Name {
		t.Errorf("one deployment: want the deployer's name, got %q", got)
	}
	if got := id("me", "--leader-election-id=mine"); got != "mine" {
		t.Errorf("with a flag: want what it says, got %q", got)
	}
	seen := map[string]bool{id(""): true}
	for _, other := range []string{id("me"), id("", "--item-selector=shard=a"), id("", "--item-selector=shard=b"), id("me", "--item-selector=shard=a"), id("", "--namespace=a"), id("", "--namespace=b")} {
		if seen[other] {
			t.Errorf("deployments that share the items must not share the lease %q", other)
		}
		seen[other] = true
	}
	if one, other := id("me"), id("me"); one != other {
		t.Errorf("the replicas of a deployment must share a lease, have %q and %q", one, other)
	}
}

func TestElectionOptions(t *testing.T) {
	var o manager.Options
	f := parse(t, "--leader-election-namespace=here")
	f.election.applyTo(&o)
	got := []any{o.LeaderElection, o.LeaderElectionNamespace, *o.LeaseDuration, *o.RenewDeadline, *o.RetryPeriod, o.LeaderElectionReleaseOnCancel}
	if diff := cmp.Diff([]any{true, "here", 15 * time.Second, 10 * time.Second, 2 * time.Second, false}, got); diff != "" {
		t.Errorf("options [decision 28]: -want, +got:\n%s", diff)
	}
}

func TestLeaseNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("pods\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ flag, file, want string }{
		"flag":              {flag: "flagged", file: file, want: "flagged"},
		"in a pod":          {file: file, want: "pods"},
		"outside a cluster": {file: file + "-missing", want: "default"},
	} {
		e := &election{namespace: tc.flag}
		if got := e.leaseNamespace(tc.file); got != tc.want {
			t.Errorf("%s: want %q, got %q", name, tc.want, got)
		}
	}
}

func TestExitCode(t *testing.T) {
	if got := []int{exitCode(nil), exitCode(errors.New("boom"))}; !cmp.Equal([]int{0, 1}, got) {
		t.Errorf("exit codes: want 0 and 1, got %v", got)
	}
}
