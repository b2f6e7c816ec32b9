// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
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

// parseArgs parses a command line for the program p and returns the arguments of its deployer.
func parseArgs(t *testing.T, p Program, args ...string) (deployerlib.DeployerArgs, error) {
	t.Helper()
	got, _, err := parse(t, args...).args(p)
	return got, err
}

func newProgram() Program { return Program{Name: "test", Args: mock.Args(nil)} }

func TestFlagsReachTheDeployer(t *testing.T) {
	args, err := parseArgs(t, newProgram(), "--workers=3", "--grace-period=7s", "--missing-target-grace=3s", "--target-share=0.25", "--item-selector=shard in (a,b)")
	if err != nil {
		t.Fatal(err)
	}
	got := []any{args.Options.MaxConcurrentReconciles, args.GracePeriod, args.MissingTargetGrace, args.TargetShare, args.ItemSelector.Matches(labels.Set{"shard": "b"}), args.ItemSelector.Matches(labels.Set{})}
	if diff := cmp.Diff([]any{3, 7 * time.Second, 3 * time.Second, 0.25, true, false}, got); diff != "" {
		t.Errorf("args: -want, +got:\n%s", diff)
	}
	args, err = parseArgs(t, newProgram())
	if err != nil || args.Options.MaxConcurrentReconciles != 10 || !args.ItemSelector.Empty() || args.GracePeriod != 30*time.Second || args.MissingTargetGrace != 10*time.Second {
		t.Errorf("defaults: want 10 workers, all items, 30 s and 10 s, got %+v, %v", args, err)
	}
}

func TestWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		file   string
		args   []string
		want   int
	}{
		"no setting":                   {reason: "The default applies.", want: deployerlib.DefaultWorkers},
		"setting in the file":          {reason: "The file precedes the default of the flag.", file: "controller: {workers: 3}\n", want: 3},
		"setting in the file and flag": {reason: "A flag precedes the file.", file: "controller: {workers: 3}\n", args: []string{"--workers=10"}, want: 10},
	} {
		args, err := parseArgs(t, newProgram(), append(tc.args, "--config="+write(t, head+tc.file))...)
		if err != nil || args.Options.MaxConcurrentReconciles != tc.want {
			t.Errorf("%s: %s want %d workers, got %d, %v", name, tc.reason, tc.want, args.Options.MaxConcurrentReconciles, err)
		}
	}
}

func TestProgramFlags(t *testing.T) {
	own := ""
	p := newProgram()
	p.Flags = func(fs *pflag.FlagSet) { fs.StringVar(&own, "own", "", "") }
	fs := Command(p).Flags()
	if err := fs.Parse([]string{"--own=here", "--workers=2"}); err != nil || own != "here" {
		t.Errorf("want the program's own flag and the common flags, got %q, %v", own, err)
	}
}

func TestInvalidFlags(t *testing.T) {
	_, err := parseArgs(t, newProgram(), "--workers=-1", "--grace-period=0", "--missing-target-grace=-1s", "--target-share=2", "--leader-election-retry-period=20s", "--namespace=Not/One", "--zap-log-level=8")
	for _, want := range []string{"--workers -1", `--namespace "Not/One"`, "--grace-period 0s", "--missing-target-grace -1s", "--target-share 2", "--leader-election-", "--zap-log-level: must be at most 7"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want one error with all faults, including %q, got %v", want, err)
		}
	}
	if _, err := parseArgs(t, newProgram(), "--zap-log-level=7"); err != nil {
		t.Errorf("level 7 shows no bodies: %v", err)
	}
	errBoom := errors.New("boom")
	_, err = parseArgs(t, Program{NewArgs: func() (deployerlib.DeployerArgs, error) { return deployerlib.DeployerArgs{}, errBoom }})
	if !errors.Is(err, errBoom) {
		t.Errorf("want what NewArgs returned, got %v", err)
	}
}

func TestLeaseOfEachDeployment(t *testing.T) {
	id := func(identity string, args ...string) string {
		f := parse(t, append(args, "--config="+write(t, head+"identity: "+identity+"\n"))...)
		got, _, err := f.args(newProgram())
		if err != nil {
			t.Fatal(err)
		}
		f.options.setDefaults(&got)
		return f.options.Election.ID
	}
	if got := id(`""`); got != mock.Name {
		t.Errorf("one deployment: want the deployer's name, got %q", got)
	}
	if got := id("me", "--leader-election-id=mine"); got != "mine" {
		t.Errorf("with a flag: want the value of the flag, got %q", got)
	}
	seen := map[string]bool{id(`""`): true}
	for _, other := range []string{id("me"), id(`""`, "--item-selector=shard=a"), id(`""`, "--item-selector=shard=b"), id("me", "--item-selector=shard=a"), id(`""`, "--namespace=a"), id(`""`, "--namespace=b")} {
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
	f := parse(t)
	args := mock.Args(nil)
	args.Default()
	f.options.setDefaults(&args)
	f.options.Election.applyTo(&o, &lock{})
	got := []any{o.LeaderElection, *o.LeaseDuration, *o.RenewDeadline, *o.RetryPeriod, o.LeaderElectionReleaseOnCancel}
	if diff := cmp.Diff([]any{true, 15 * time.Second, 10 * time.Second, 2 * time.Second, true}, got); diff != "" {
		t.Errorf("options: -want, +got:\n%s", diff)
	}
}

func TestLeaseNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("pods\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ file, variable, want string }{
		"in a pod with a token":          {file, "other", "pods"},
		"in a pod without a token [O28]": {file + "-missing", "ls-system", "ls-system"},
		"outside a cluster":              {file + "-missing", "", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := getLeaseNamespace(tc.file, tc.variable); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

// errToDo is an error with which a process exits with code 2.
type errToDo struct{}

func (errToDo) Error() string { return "there is something to do" }
func (errToDo) ExitCode() int { return 2 }

func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		code int
		text string
	}{
		"no error":                            {nil, 0, ""},
		"an error is shown in one line [F49]": {errors.Join(errors.New("one"), errors.New("two")), 1, "prog: one; two\n"},
		"control characters are escaped":      {errors.New("a\u202eb"), 1, "prog: a\\u202eb\n"},
		"a command chooses its exit code ":    {fmt.Errorf("plan: %w", errToDo{}), 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := printError(&out, "prog", tc.err); code != tc.code || out.String() != tc.text {
				t.Errorf("want %d and %q, got %d and %q", tc.code, tc.text, code, out.String())
			}
		})
	}
}

func TestCommand(t *testing.T) {
	ran := false
	p := Program{Name: "prog", Version: "v1.2.3", Commands: []*cobra.Command{{Use: "plan", RunE: func(*cobra.Command, []string) error {
		ran = true
		return nil
	}}}}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := Command(p)
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	t.Run("the program shows its version [F49]", func(t *testing.T) {
		if got, err := run("--version"); err != nil || got != "prog version v1.2.3\n" {
			t.Errorf("--version: got %q, %v", got, err)
		}
	})
	t.Run("the program has the commands of the deployer [F47]", func(t *testing.T) {
		if _, err := run("plan"); err != nil || !ran {
			t.Errorf("plan: ran: %t, %v", ran, err)
		}
	})
	t.Run("the program rejects other commands", func(t *testing.T) {
		if _, err := run("now"); err == nil || !strings.Contains(err.Error(), `unknown command "now"`) {
			t.Errorf("now: got %v", err)
		}
	})
}
