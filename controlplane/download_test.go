// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

// newArchive returns an archive that contains a small executable for each name. The directory in the archive is the
// same as in the real archives.
func newArchive(t *testing.T, names ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	files := tar.NewWriter(zipped)
	for _, name := range names {
		h := &tar.Header{Name: "controller-tools/envtest/" + name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(name))}
		if err := files.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// release describes a server that serves a list of releases and one archive.
type release struct {
	archive []byte
	hash    string
	file    string
	link    string           // the link in the list; by default, the whole URL of the archive
	list    http.HandlerFunc // serves the list; by default, a correct list
	get     http.HandlerFunc // serves the archive; by default, a correct archive
}

func (r *release) startServer(t *testing.T) *downloader {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/list", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "releases:\n  %s:\n    %s:\n      hash: %q\n      selfLink: %s\n", downloadVersion, r.file, r.hash, cmp.Or(r.link, server.URL+"/archive"))
	})
	if r.list != nil {
		mux.HandleFunc("/other-list", r.list)
	}
	mux.HandleFunc("/archive", func(w http.ResponseWriter, req *http.Request) {
		if r.get != nil {
			r.get(w, req)
			return
		}
		_, _ = w.Write(r.archive)
	})
	d := &downloader{
		index: server.URL + "/list", client: server.Client(), probe: 30 * time.Second, stall: 30 * time.Second,
		report: gobuild.NewReporter("envtest", &bytes.Buffer{}),
	}
	if r.list != nil {
		d.index = server.URL + "/other-list"
	}
	return d
}

func newRelease(t *testing.T) *release {
	t.Helper()
	data := newArchive(t, etcdName, apiServerName, kubectlName)
	sum := sha512.Sum512(data)
	return &release{
		archive: data, hash: hex.EncodeToString(sum[:]),
		file: fmt.Sprintf("envtest-%s-%s-%s.tar.gz", downloadVersion, runtime.GOOS, runtime.GOARCH),
	}
}

func TestDownload(t *testing.T) {
	for name, link := range map[string]string{"Release": "", "Mirror": "archive"} {
		t.Run(name, func(t *testing.T) {
			dir, r := t.TempDir(), newRelease(t)
			r.link = link
			if err := r.startServer(t).download(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			if missing := gobuild.ListMissing(dir, []string{etcdName, apiServerName, kubectlName}); missing != nil {
				t.Errorf("missing: %v", missing)
			}
			got, err := os.ReadFile(filepath.Join(dir, etcdName))
			if err != nil || string(got) != etcdName {
				t.Errorf("got %q (%v)", got, err)
			}
		})
	}
}

func TestDownloadErrors(t *testing.T) {
	hangs := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	cases := map[string]struct {
		reason string
		change func(*release)
		limits time.Duration
		want   string
	}{
		"ListHangs": {
			reason: "a connection without a response ends after the time limit of the probe",
			change: func(r *release) { r.list = hangs }, limits: 100 * time.Millisecond, want: "context deadline exceeded",
		},
		"ListMissing": {
			reason: "the error contains the status",
			change: func(r *release) { r.list = http.NotFound }, want: "404 Not Found",
		},
		"NotReleased": {
			reason: "a version that was removed is an error",
			change: func(r *release) { r.file = "other" }, want: "is not in",
		},
		"ArchiveHangs": {
			reason: "a stalled download is cancelled",
			change: func(r *release) { r.get = hangs }, limits: 100 * time.Millisecond, want: errStalled.Error(),
		},
		"WrongHash": {
			reason: "a file with another checksum is removed",
			change: func(r *release) { r.hash = "00" }, want: "has hash",
		},
		"NoArchive": {
			reason: "a file that is not an archive is an error",
			change: func(r *release) { r.archive = []byte("<html>") }, want: "read archive",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t)
			tc.change(r)
			d := r.startServer(t)
			if tc.limits > 0 {
				d.probe, d.stall = 30*time.Second, tc.limits
				if r.list != nil {
					d.probe = tc.limits
				}
			}
			err := d.download(t.Context(), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestFinderUsesMirrorAndInstallation(t *testing.T) {
	for name, tc := range map[string]struct {
		index, want string
		places      []string
	}{
		"Default": {"", envtest.DefaultBinaryAssetsIndexURL, []string{installedDir}},
		"Mirror":  {"http://127.0.0.1:1/index.yaml", "http://127.0.0.1:1/index.yaml", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(indexEnv, tc.index)
			if got := newDownloader(gobuild.NewReporter("envtest", &bytes.Buffer{})).index; got != tc.want {
				t.Errorf("the list is %s, want %s", got, tc.want)
			}
			f, err := newFinder(AssetsOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.places, f.Places[1:], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewDownloaderHasOwnClient(t *testing.T) {
	d := newDownloader(gobuild.NewReporter("envtest", &bytes.Buffer{}))
	if d.probe > 5*time.Second {
		t.Errorf("the probe may take %s, want at most 5 s", d.probe)
	}
	if d.client == http.DefaultClient {
		t.Error("the downloader uses http.DefaultClient")
	}
}
