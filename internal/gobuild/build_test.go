// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeGo writes a shell script that replaces the go command, and returns a function that finds the script.
func fakeGo(t *testing.T, script string) func(string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(string) (string, error) { return path, nil }
}

// goodGo is a script that supports `go env` and `go list`, and whose `go build` creates an empty file.
const goodGo = `case "$1" in
env) echo go1.26.8; echo /; echo /;;
list) echo one; echo two; echo three;;
build) echo one >&2; echo two >&2
  while [ "$1" != -o ]; do shift; done; : > "$2"; chmod +x "$2";;
esac
`

func returnEnoughSpace(string) (uint64, error) { return testRecipe.Space, nil }

// testRecipe is the recipe that the fake go command builds.
var testRecipe = Recipe{
	DisplayName: "the control plane", Version: "v1.36.3", Notice: "building Kubernetes, once", Module: "deployerkit.local/controlplane",
	Files:   map[string]string{"go.mod": "module x", "main.go": "package main"},
	Program: "controlplane", Names: []string{etcdName, apiServerName, controllerManagerName, kubectlName}, Space: 5 << 30,
}

const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	kubectlName           = "kubectl"
)

func TestBuildLinksEveryName(t *testing.T) {
	var out bytes.Buffer
	b := &builder{recipe: testRecipe, env: "KUBEBUILDER_ASSETS", report: NewReporter("envtest", &out), lookPath: fakeGo(t, goodGo), freeBytes: returnEnoughSpace}
	dir := t.TempDir()
	if err := b.build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	names := []string{testRecipe.Program, etcdName, apiServerName, controllerManagerName, kubectlName}
	if missing := ListMissing(dir, names); missing != nil {
		t.Errorf("missing: %v", missing)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(names) {
		t.Errorf("want the binaries and nothing else, got %v (%v)", entries, err)
	}
	if !strings.Contains(out.String(), testRecipe.Notice) {
		t.Errorf("the build does not announce itself: %q", out.String())
	}
}

func TestBuildExplainsFailures(t *testing.T) {
	failing := func(step, message string) string {
		return "if [ $1 = " + step + " ]; then echo '" + message + "' >&2; exit 1; fi\n" + goodGo
	}
	cases := map[string]struct {
		reason    string
		lookPath  func(string) (string, error)
		freeBytes func(string) (uint64, error)
		want      string
	}{
		"NoGo": {
			reason:   "the error says what to install or to set",
			lookPath: func(string) (string, error) { return "", exec.ErrNotFound },
			want:     "the go command is missing: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS",
		},
		"OldGo": {
			reason:   "the go command refuses the recipe's go line",
			lookPath: fakeGo(t, failing("env", "go: go.mod requires go >= 1.26.0 (running go 1.22.1; GOTOOLCHAIN=local)")),
			want:     "the go command is too old, Go 1.26 or newer is needed",
		},
		"NoSpace": {
			reason:    "found out before the long work",
			lookPath:  fakeGo(t, failing("build", "must not be reached")),
			freeBytes: func(string) (uint64, error) { return testRecipe.Space - 1, nil },
			want:      "not enough disk space in /: 5.0 GiB are free, but the build needs 5 GiB",
		},
		"StatfsFails": {
			reason:    "not knowing is an error too",
			lookPath:  fakeGo(t, goodGo),
			freeBytes: func(string) (uint64, error) { return 0, errBoom },
			want:      "boom",
		},
		"NoNetwork": {
			reason:   "the proxy's name is in the go command's message",
			lookPath: fakeGo(t, failing("list", "go: x@v1: Get \"https://proxy.golang.org\": dial tcp: lookup proxy.golang.org: no such host")),
			want:     "no Go module proxy within reach (see GOPROXY): go: x@v1",
		},
		"DiskFull": {
			reason:   "the disk may fill while we build",
			lookPath: fakeGo(t, failing("build", "write /x: no space left on device")),
			want:     "the disk is full",
		},
		"CompileError": {
			reason:   "else the last words of the go command",
			lookPath: fakeGo(t, failing("build", "main.go:1:1: something new")),
			want:     "main.go:1:1: something new",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &builder{recipe: testRecipe, env: "KUBEBUILDER_ASSETS", report: NewReporter("envtest", &bytes.Buffer{}), lookPath: tc.lookPath, freeBytes: returnEnoughSpace}
			if tc.freeBytes != nil {
				b.freeBytes = tc.freeBytes
			}
			err := b.build(t.Context(), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestBuildStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	script := "if [ $1 = build ]; then : > " + started + "; exec sleep 60; fi\n" + goodGo
	b := &builder{recipe: testRecipe, env: "KUBEBUILDER_ASSETS", report: NewReporter("envtest", &bytes.Buffer{}), lookPath: fakeGo(t, script), freeBytes: returnEnoughSpace}
	done := make(chan error, 1)
	go func() { done <- b.build(ctx, t.TempDir()) }()
	poll(t, "start of the build", func() bool { _, err := os.Stat(started); return err == nil })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestGoEnvironmentOverridesSettings(t *testing.T) {
	env := []string{"PATH=/bin", "GOFLAGS=-mod=vendor", "GOWORK=/x/go.work", "GOOS=plan9", "GOPROXY=https://p", "CGO_ENABLED=1"}
	if got := goEnvironment(env, true); !slices.Contains(got, "CGO_ENABLED=1") || slices.Contains(got, "CGO_ENABLED=0") {
		t.Errorf("%v does not use cgo as the host does", got)
	}
	got := goEnvironment(env, false)
	for _, want := range []string{"PATH=/bin", "GOPROXY=https://p", "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0"} {
		if !slices.Contains(got, want) {
			t.Errorf("%v has no %q", got, want)
		}
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "GOOS=plan9") || strings.HasPrefix(kv, "GOFLAGS=-mod=vendor") {
			t.Errorf("%q got through", kv)
		}
	}
}

func TestBuildProgress(t *testing.T) {
	p := &progress{displayName: testRecipe.DisplayName, module: testRecipe.Module}
	feed := func(text string) {
		if _, err := p.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	state := func() { got = append(got, p.formatStatus(61*time.Second)) }
	feed("go: downloading k8s.io/api v0.36.3\ngo: downl")
	feed("oading k8s.io/kubernetes v1.36.3\n")
	state()
	p.setTotal(3)
	feed("internal/cpu\nk8s.io/api/core/v1\nk8s.io/ap")
	state()
	feed("i/apps/v1\n# k8s.io/broken\nx.go:1:2: undefined: y\n")
	state()
	feed(testRecipe.Module + "\n")
	state()
	want := []string{
		"building the control plane: 2 modules downloaded, 1m1s",
		"building the control plane: 2 of at most 3 packages, 1m1s",
		"building the control plane: 3 of at most 3 packages, 1m1s",
		"building the control plane: linking, 1m1s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"# k8s.io/broken", "x.go:1:2: undefined: y", ""}, p.getMessages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestBuildProgressKeepsLastLines(t *testing.T) {
	p := &progress{}
	for range 3 * maxMessages {
		if _, err := p.Write([]byte("some message\n")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.getMessages()); n != maxMessages+1 {
		t.Errorf("keeps %d lines, want %d and the unfinished one", n, maxMessages)
	}
}

func TestReporterState(t *testing.T) {
	start := time.Unix(1000, 0)
	steps := []time.Duration{0, time.Second, statusInterval, statusInterval + time.Second, 2 * statusInterval}
	cases := map[string]struct {
		reason   string
		terminal bool
		want     string
	}{
		"File": {
			reason: "one line from time to time",
			want:   "envtest: at 5s\nenvtest: at 10s\nenvtest: done\n",
		},
		"Terminal": {
			reason:   "one line that is rewritten, and gone when something else is said",
			terminal: true,
			want: "\r\x1b[Kenvtest: at 0s\r\x1b[Kenvtest: at 1s\r\x1b[Kenvtest: at 5s\r\x1b[Kenvtest: at 6s" +
				"\r\x1b[Kenvtest: at 10s\r\x1b[Kenvtest: done\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := NewReporter("envtest", &out)
			r.terminal = tc.terminal
			for _, step := range steps {
				r.printStatus(start.Add(step), "at "+step.String())
			}
			r.Printf("done")
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
