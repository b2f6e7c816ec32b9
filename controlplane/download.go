// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

const (
	// downloadVersion is the release whose prebuilt binaries are downloaded. Some patch releases of Kubernetes have no
	// prebuilt binaries.
	downloadVersion = "v1.36.0"
	// probeTimeout limits the time until the list of releases has been read. Without a network, the download therefore
	// fails after seconds instead of minutes.
	probeTimeout = 5 * time.Second
	// stallTimeout is the time after which a download that receives no data is cancelled.
	stallTimeout = 10 * time.Second
	// maxIndexBytes and maxBinaryBytes limit the size of the list of releases and the size of each binary, in case the
	// server is faulty.
	maxIndexBytes  = 8 << 20
	maxBinaryBytes = 1 << 30
)

// errStalled is the error of a download that received no data for stallTimeout.
var errStalled = errors.New("the download stalled")

// downloader downloads the prebuilt binaries that controller-runtime's envtest would use. It replaces envtest's own
// download, which has no time limit.
type downloader struct {
	index  string
	client *http.Client
	probe  time.Duration
	stall  time.Duration
	report *gobuild.Reporter
}

func newDownloader(report *gobuild.Reporter) *downloader {
	return &downloader{
		index:  cmp.Or(os.Getenv(indexEnv), envtest.DefaultBinaryAssetsIndexURL),
		client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}},
		probe:  probeTimeout,
		stall:  stallTimeout,
		report: report,
	}
}

// downloadKey identifies the downloaded binaries.
func downloadKey() string { return downloadVersion + "-" + runtime.GOOS + "-" + runtime.GOARCH }

// archive is an entry in the list of releases. It describes the archive for one platform.
type archive struct {
	Hash     string `json:"hash"`
	SelfLink string `json:"selfLink"`
}

// download downloads the binaries into dir. It returns an error if the hash of the archive differs from the hash in the
// list of releases.
func (d *downloader) download(ctx context.Context, dir string) error {
	a, err := d.find(ctx)
	if err != nil {
		return err
	}
	d.report.Printf("downloading %s", a.SelfLink)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	guard := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer guard.Stop()
	if err := d.fetch(ctx, a, dir, guard); err != nil {
		if errors.Is(context.Cause(ctx), errStalled) {
			return fmt.Errorf("get %s: %w", a.SelfLink, errStalled)
		}
		return err
	}
	return nil
}

// fetch downloads the archive, unpacks it into dir and checks its hash. Whenever data arrives, fetch resets the timer
// `guard`, which cancels a stalled download.
func (d *downloader) fetch(ctx context.Context, a archive, dir string, guard *time.Timer) error {
	body, err := d.get(ctx, a.SelfLink)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // an error does not matter here: the body was read to its end, or is no longer needed
	hash := sha512.New()
	alive := readerFunc(func(p []byte) (int, error) {
		guard.Reset(d.stall)
		return body.Read(p)
	})
	in := io.TeeReader(alive, hash)
	if err := extractBinaries(in, dir); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != a.Hash {
		return fmt.Errorf("archive %s has hash %s, want %s", a.SelfLink, got, a.Hash)
	}
	return nil
}

// find returns the archive for this platform from the list of releases.
func (d *downloader) find(ctx context.Context) (archive, error) {
	ctx, cancel := context.WithTimeout(ctx, d.probe)
	defer cancel()
	body, err := d.get(ctx, d.index)
	if err != nil {
		return archive{}, err
	}
	defer func() { _ = body.Close() }() // an error does not matter here: the body was read to its end, or is no longer needed
	data, err := io.ReadAll(io.LimitReader(body, maxIndexBytes))
	if err != nil {
		return archive{}, fmt.Errorf("read %s: %w", d.index, err)
	}
	var list struct {
		Releases map[string]map[string]archive `json:"releases"`
	}
	if err := yaml.Unmarshal(data, &list); err != nil {
		return archive{}, fmt.Errorf("read %s: %w", d.index, err)
	}
	name := fmt.Sprintf("envtest-%s-%s-%s.tar.gz", downloadVersion, runtime.GOOS, runtime.GOARCH)
	a, ok := list.Releases[downloadVersion][name]
	if !ok {
		return archive{}, fmt.Errorf("%s is not in %s", name, d.index)
	}
	if a.SelfLink, err = resolve(d.index, a.SelfLink); err != nil {
		return archive{}, err
	}
	return a, nil
}

// resolve returns a link in the list of releases as an absolute URL. In the list of a mirror, the links may be
// relative.
func resolve(index, link string) (string, error) {
	base, err := url.Parse(index)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", index, err)
	}
	target, err := base.Parse(link)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", index, err)
	}
	return target.String(), nil
}

func (d *downloader) get(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err // the error already contains the method and the URL
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("get %s: %s", url, resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}

// extractBinaries writes the regular files in a .tar.gz archive to dir, without their subdirectories.
func extractBinaries(r io.Reader, dir string) error {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	for files := tar.NewReader(zipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeBinary(filepath.Join(dir, filepath.Base(h.Name)), files); err != nil {
			return err
		}
	}
}

func writeBinary(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("write binary: %w", err)
	}
	n, err := io.Copy(f, io.LimitReader(r, maxBinaryBytes))
	if err == nil && n == maxBinaryBytes {
		err = errors.New("the file is too big")
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write binary %s: %s", filepath.Base(path), strings.ReplaceAll(err.Error(), "\n", ": "))
	}
	return nil
}

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
