// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/controlplane"
)

// serveMirror serves an archive with etcd and kube-apiserver on a loopback address, in the same form as the site with
// the official releases. It returns the URL of the index.
func serveMirror(ctx context.Context) string {
	GinkgoHelper()
	assets, err := controlplane.FindAssets(ctx, controlplane.AssetsOptions{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	archive := filepath.Join(GinkgoT().TempDir(), "archive")
	sum, err := writeArchive(archive, filepath.Join(assets, "etcd"), filepath.Join(assets, "kube-apiserver"))
	Expect(err).NotTo(HaveOccurred())
	mux := http.NewServeMux()
	mux.HandleFunc("/index", func(w http.ResponseWriter, _ *http.Request) {
		minor := controlplane.KubernetesVersion[:strings.LastIndex(controlplane.KubernetesVersion, ".")]
		fmt.Fprintln(w, "releases:")
		for patch := range 10 {
			fmt.Fprintf(w, "  %[1]s.%[2]d:\n    envtest-%[1]s.%[2]d-%[3]s-%[4]s.tar.gz: {hash: %[5]x, selfLink: archive}\n",
				minor, patch, runtime.GOOS, runtime.GOARCH, sum)
		}
	})
	mux.HandleFunc("/archive", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, archive) })
	server := httptest.NewServer(mux)
	DeferCleanup(server.Close)
	return server.URL + "/index"
}

// writeArchive writes files to an archive and returns the hash of the archive.
func writeArchive(archive string, files ...string) (sum []byte, err error) {
	out, err := os.Create(archive)
	if err != nil {
		return nil, err
	}
	hash := sha512.New()
	zipped, err := gzip.NewWriterLevel(io.MultiWriter(out, hash), gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	packed := tar.NewWriter(zipped)
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		h := &tar.Header{Name: "controller-tools/envtest/" + filepath.Base(path), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}
		if err := packed.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := packed.Write(content); err != nil {
			return nil, err
		}
	}
	for _, w := range []io.Closer{packed, zipped, out} {
		if err := w.Close(); err != nil {
			return nil, err
		}
	}
	return hash.Sum(nil), nil
}
