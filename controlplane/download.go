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
	// downloadVersion is the release of the prebuilt binaries. Not every patch release has them.
	downloadVersion = "v1.36.0"
	// probeTimeout limits everything up to the list of releases, so that a missing network costs seconds and not
	// minutes.
	probeTimeout = 5 * time.Second
	// stallTimeout ends a download that receives no data.
	stallTimeout = 10 * time.Second
	// maxIndexBytes and maxBinaryBytes limit how much is read from a faulty server.
	maxIndexBytes  = 8 << 20
	maxBinaryBytes = 1 << 30
)

// errStalled is the cause of a download that stallTimeout ended.
var errStalled = errors.New("download stands still")

// downloader downloads the prebuilt binaries that controller-runtime's envtest would use. The download of envtest
// itself has no time limit and is not used.
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

// downloadKey identifies the result of the download.
func downloadKey() string { return downloadVersion + "-" + runtime.GOOS + "-" + runtime.GOARCH }

// archive is the entry of one file in the list of releases.
type archive struct {
	Hash     string `json:"hash"`
	SelfLink string `json:"selfLink"`
}

// download fills dir. It checks the content against the hash in the list before it keeps anything.
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

// fetch unpacks the archive into dir and resets guard whenever data arrives.
func (d *downloader) fetch(ctx context.Context, a archive, dir string, guard *time.Timer) error {
	body, err := d.get(ctx, a.SelfLink)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // read to its end or abandoned
	hash := sha512.New()
	alive := readerFunc(func(p []byte) (int, error) {
		guard.Reset(d.stall)
		return body.Read(p)
	})
	in := io.TeeReader(alive, hash)
	if err := unpack(in, dir); err != nil {
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

// find reads the list of releases.
func (d *downloader) find(ctx context.Context) (archive, error) {
	ctx, cancel := context.WithTimeout(ctx, d.probe)
	defer cancel()
	body, err := d.get(ctx, d.index)
	if err != nil {
		return archive{}, err
	}
	defer func() { _ = body.Close() }() // read to its end or abandoned
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

// resolve returns the address of a link in the list of releases: that of a mirror may be relative.
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
		return nil, err // contains method and address already
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("get %s: %s", url, resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}

// unpack writes the regular files of a .tar.gz to dir, without subdirectories.
func unpack(r io.Reader, dir string) error {
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
		err = errors.New("is too big")
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write binary %s: %s", filepath.Base(path), strings.ReplaceAll(err.Error(), "\n", ": "))
	}
	return nil
}

// readerFunc implements io.Reader by a function.
type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
