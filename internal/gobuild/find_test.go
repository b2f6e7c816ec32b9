// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errBoom = errors.New("boom")

// fakeBinaries returns a function that writes files to a directory, in place of a build or a download.
func fakeBinaries(names ...string) func(context.Context, string) error {
	return func(_ context.Context, dir string) error {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/false"), 0o700); err != nil {
				return err
			}
		}
		return nil
	}
}

// newFinder returns a Finder for testRecipe that calls `build` instead of the go command.
func newFinder(cache string, out io.Writer, build func(context.Context, string) error, need ...string) *Finder {
	return &Finder{
		Recipe: testRecipe, Required: need, Env: "DEPLOYERKIT_TEST_PROGRAMS", Cache: cache, Report: NewReporter("envtest", out),
		DownloadKey: "v1.36.0", build: build,
	}
}

func returnError(context.Context, string) error { return errBoom }

func newDirWithBinaries(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := fakeBinaries(names...)(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFindSearchesInOrder(t *testing.T) {
	all := []string{etcdName, apiServerName, controllerManagerName}
	prebuilt := all[:2]
	cases := map[string]struct {
		reason        string
		env           []string // binaries in KUBEBUILDER_ASSETS
		built, loaded []string // binaries in the cache
		placed        []string // binaries in another place
		need          []string
		download      func(context.Context, string) error
		build         func(context.Context, string) error
		want          string // the kind of directory that Find must return
		wantErr       error
		wantReport    string
	}{
		"Environment": {
			reason: "the environment variable wins over the cache",
			env:    all, built: all, need: all, want: "env",
		},
		"IncompleteEnvironment": {
			reason: "a directory without the required programs is skipped with a message",
			env:    prebuilt, built: all, need: all, want: "built", wantReport: "has no kube-controller-manager",
		},
		"Cache": {
			reason: "a complete cache needs neither a download nor a build",
			built:  all, need: all, download: returnError, build: returnError, want: "built",
		},
		"DownloadedCache": {
			reason: "an earlier download is used again",
			loaded: prebuilt, need: prebuilt, download: returnError, build: returnError, want: "downloaded",
		},
		"DownloadedCacheIsNotEnough": {
			reason: "a download does not contain the controller manager",
			loaded: prebuilt, need: all, build: fakeBinaries(all...), want: "built",
		},
		"Place": {
			reason: "a directory of another installation is used",
			placed: prebuilt, need: prebuilt, download: returnError, build: returnError, want: "placed",
		},
		"CacheBeforePlace": {
			reason: "the cache precedes another installation",
			built:  prebuilt, placed: prebuilt, need: prebuilt, want: "built",
		},
		"PlaceIsNotEnough": {
			reason: "an installation without the required programs is skipped",
			placed: prebuilt, need: all, build: fakeBinaries(all...), want: "built",
		},
		"Download": {
			reason: "a download precedes a build",
			need:   prebuilt, download: fakeBinaries(prebuilt...), build: returnError, want: "downloaded",
		},
		"DownloadFails": {
			reason: "a build follows a failed download, with a message",
			need:   prebuilt, download: returnError, build: fakeBinaries(all...), want: "built", wantReport: "boom",
		},
		"IncompleteDownload": {
			reason: "an archive without the required programs is a failed download",
			need:   prebuilt, download: fakeBinaries(etcdName), build: fakeBinaries(all...), want: "built",
		},
		"IncompleteCache": {
			reason: "an incomplete cache is built again",
			built:  []string{etcdName}, need: all, build: fakeBinaries(all...), want: "built",
		},
		"BuildFails": {
			reason: "the last error is returned",
			need:   all, build: returnError, wantErr: errBoom,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			f := newFinder(t.TempDir(), &out, tc.build, tc.need...)
			f.Download = tc.download
			env := ""
			if tc.env != nil {
				env = newDirWithBinaries(t, tc.env...)
			}
			t.Setenv(f.Env, env)
			f.Places = []string{"/nowhere", filepath.Join(t.TempDir(), "bin")}
			places := map[string]string{"env": env, "built": f.buildDir(), "downloaded": f.downloadDir(), "placed": f.Places[1]}
			prepareCache(t, places["built"], tc.built)
			prepareCache(t, places["downloaded"], tc.loaded)
			prepareCache(t, places["placed"], tc.placed)

			got, err := f.Find(t.Context())
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("%s: got error %v, want %v", tc.reason, err, tc.wantErr)
			}
			if diff := cmp.Diff(places[tc.want], got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(out.String(), tc.wantReport) {
				t.Errorf("%s: report %q has no %q", tc.reason, out.String(), tc.wantReport)
			}
			assertNoLeftovers(t, f.Cache)
		})
	}
}

func prepareCache(t *testing.T, dir string, names []string) {
	t.Helper()
	if names == nil {
		return
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fakeBinaries(names...)(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
}

func assertNoLeftovers(t *testing.T, cache string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(cache, "tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary directories are left: %v (%v)", left, err)
	}
}

func TestFindBuildsOnceForTwoCallers(t *testing.T) {
	// A lock belongs to an open file, so two finders in one process exclude each other in the same way as two
	// processes.
	var builds atomic.Int32
	inBuild, goOn := make(chan struct{}), make(chan struct{})
	cache := t.TempDir()
	var out lockedBuffer
	newOne := func() *Finder {
		return newFinder(cache, &out, func(ctx context.Context, dir string) error {
			builds.Add(1)
			close(inBuild) // a second build would panic here
			<-goOn
			return fakeBinaries(etcdName)(ctx, dir)
		}, etcdName)
	}
	results := make(chan error, 2)
	find := func() {
		dir, err := newOne().Find(t.Context())
		if err == nil && len(ListMissing(dir, []string{etcdName})) > 0 {
			err = errors.New("found an incomplete directory")
		}
		results <- err
	}
	go find()
	<-inBuild
	go find()
	out.waitFor(t, "another process is preparing the control plane")
	close(goOn)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := builds.Load(); n != 1 {
		t.Errorf("got %d builds, want 1", n)
	}
}

func TestFindStopsWaitingWithContext(t *testing.T) {
	cache := t.TempDir()
	unlock, err := lockFile(t.Context(), filepath.Join(cache, "lock"), func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := newFinder(cache, &bytes.Buffer{}, returnError, etcdName)
	if _, err := f.Find(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestFindRemovesFilesOfKilledBuilds(t *testing.T) {
	f := newFinder(t.TempDir(), &bytes.Buffer{}, fakeBinaries(etcdName), etcdName)
	if err := os.Mkdir(filepath.Join(f.Cache, "tmp-dead"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	assertNoLeftovers(t, f.Cache)
}

func TestMissingRequiresExecutables(t *testing.T) {
	dir := newDirWithBinaries(t, etcdName)
	if err := os.WriteFile(filepath.Join(dir, apiServerName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, kubectlName), 0o700); err != nil {
		t.Fatal(err)
	}
	got := ListMissing(dir, []string{etcdName, apiServerName, kubectlName, controllerManagerName})
	if diff := cmp.Diff([]string{apiServerName, kubectlName, controllerManagerName}, got); diff != "" {
		t.Errorf("only an executable file counts (-want +got):\n%s", diff)
	}
}

// lockedBuffer is a buffer that one goroutine reads while another writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// waitFor polls until the buffer contains text.
func (b *lockedBuffer) waitFor(t *testing.T, text string) {
	t.Helper()
	poll(t, "report of "+text, func() bool { return strings.Contains(b.String(), text) })
}
