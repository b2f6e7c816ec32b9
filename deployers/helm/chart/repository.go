// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxIndex is the maximum size of the index of a repository, compressed or not.
const maxIndex = 64 << 20

// versionKey identifies what a server has returned: for a version of a chart in an index, or for an archive.
type versionKey struct{ url, secret, name, want string }

// version is what a server has returned, with the validators for the next conditional request.
type version struct {
	etag, modified string
	entry          indexEntry // of an index
	digest         string     // of an archive
}

// download is a request for a file.
type download struct {
	path    string // in the configuration
	url     *url.URL
	auth    repositoryAuth
	known   *version // sends a conditional request if it is not nil
	zipped  bool     // accepts compressed answers
	subject string
}

// resolveRepository resolves the chart in the field helmChartRepo.
func (f *fetcher) resolveRepository(ctx context.Context, r Request) (Identity, error) {
	const path = "helmChartRepo"
	if r.Chart.HelmChartRepo == nil {
		return Identity{}, newError(path, "required")
	}
	base, err := parseAddress(r.Chart.HelmChartRepo.HelmChartRepoUrl)
	if err != nil {
		return Identity{}, newError(path+".helmChartRepoUrl", "%w", err)
	}
	base.RawQuery, base.Fragment = "", ""
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/")+"/", ""
	selected, err := newSelection(r.Chart.HelmChartRepo.HelmChartName, r.Chart.HelmChartRepo.HelmChartVersion)
	if err != nil {
		return Identity{}, newError(path+".helmChartVersion", "%w", err)
	}
	entry, err := f.readIndex(ctx, r, base, selected)
	if err != nil {
		return Identity{}, err
	}
	return f.resolveEntry(ctx, r, path, base, entry)
}

// readIndex returns the entry of a chart in the index of a repository. It reads the index only if it has changed.
func (f *fetcher) readIndex(ctx context.Context, r Request, base *url.URL, selected *selection) (indexEntry, error) {
	const path = "helmChartRepo"
	auth, err := findRepositoryAuth(ctx, r, base)
	if err != nil {
		return indexEntry{}, credentialError(path, err)
	}
	d := download{path: path, url: base.JoinPath("index.yaml"), auth: auth, zipped: true}
	d.subject = "read " + d.url.Path
	key := versionKey{d.url.String(), auth.key(), selected.name, selected.want}
	unlock, err := f.locks.lock(ctx, "index "+key.url+" "+key.secret+" "+key.name+" "+key.want)
	if err != nil {
		return indexEntry{}, requestError(path, base.Host, d.subject, err)
	}
	defer unlock()
	d.known = f.version(key)
	resp, err := f.get(ctx, d)
	if err != nil {
		return indexEntry{}, err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written
	if resp.StatusCode == http.StatusNotModified {
		return d.known.entry, nil
	}
	if err := scanAnswer(resp, selected); err != nil {
		return indexEntry{}, requestError(path, base.Host, d.subject, err)
	}
	if selected.best == nil {
		return indexEntry{}, &Error{Path: path, Err: errors.New(oneLine(base.Host + ": the repository contains no version " + selected.want + " of the chart " + selected.name))}
	}
	f.remember(key, resp, version{entry: *selected.best})
	return *selected.best, nil
}

// scanAnswer reads an index, which may be compressed.
func scanAnswer(resp *http.Response, selected *selection) error {
	var body io.Reader = &limitedReader{resp.Body, maxIndex}
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = &limitedReader{unzipped, maxIndex}
	}
	return selected.scan(body)
}

// limitedReader returns a final error after a number of bytes.
type limitedReader struct {
	io.Reader

	left int64
}

// Read reads from the underlying reader.
func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, newError("", "the file index.yaml has more than %d bytes", maxIndex)
	}
	return n, err
}

// resolveEntry resolves an entry of an index.
func (f *fetcher) resolveEntry(ctx context.Context, r Request, path string, base *url.URL, entry indexEntry) (Identity, error) {
	if len(entry.URLs) == 0 {
		return Identity{}, newError(path, "%s: the index contains no URL for the chart", base.Host)
	}
	if strings.HasPrefix(entry.URLs[0], "oci://") {
		ref, err := parseReference(path, entry.URLs[0])
		if err != nil {
			return Identity{}, err
		}
		return f.resolveOCI(ctx, r, path, ref)
	}
	relative, err := url.Parse(entry.URLs[0])
	if err != nil || relative.User != nil {
		return Identity{}, newError(path, "%s: the index contains an invalid URL for the chart", base.Host)
	}
	address := base.ResolveReference(relative)
	if entry.Digest == "" {
		return f.resolveURL(ctx, r, path, address)
	}
	digest := "sha256:" + strings.ToLower(strings.TrimPrefix(entry.Digest, "sha256:"))
	if !isDigest(digest) {
		return Identity{}, newError(path, "%s: the index contains an invalid digest of the chart", base.Host)
	}
	d, err := f.archiveDownload(ctx, r, path, address)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Digest: digest, Reference: publicURL(address), found: f.found(d)}, nil
}

// isDigest reports whether a text has the form of Identity.Digest.
func isDigest(text string) bool {
	sum, found := strings.CutPrefix(text, "sha256:")
	return found && len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
}

// publicURL returns a URL without its query, which may contain a secret.
func publicURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// resolveRemote resolves the chart in the field archive.remote.
func (f *fetcher) resolveRemote(ctx context.Context, r Request) (Identity, error) {
	const path = "archive.remote.url"
	if r.Chart.Archive == nil || r.Chart.Archive.Remote == nil {
		return Identity{}, newError(path, "required")
	}
	address, err := parseAddress(r.Chart.Archive.Remote.URL)
	if err != nil {
		return Identity{}, newError(path, "%w", err)
	}
	return f.resolveURL(ctx, r, path, address)
}

// resolveURL resolves an archive whose digest is not known. It downloads the archive, unless it has not changed.
func (f *fetcher) resolveURL(ctx context.Context, r Request, path string, address *url.URL) (Identity, error) {
	d, err := f.archiveDownload(ctx, r, path, address)
	if err != nil {
		return Identity{}, err
	}
	key := versionKey{url: address.String(), secret: d.auth.key()}
	unlock, err := f.locks.lock(ctx, "archive "+key.url+" "+key.secret)
	if err != nil {
		return Identity{}, requestError(path, address.Host, d.subject, err)
	}
	defer unlock()
	id := Identity{Reference: publicURL(address), found: f.found(d)}
	d.known = f.version(key)
	resp, err := f.get(ctx, d)
	if err != nil {
		return Identity{}, err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written
	if resp.StatusCode == http.StatusNotModified {
		id.Digest = d.known.digest
		return id, nil
	}
	data, err := readAll(resp.Body, f.options.Limits.Archive)
	if err != nil {
		return Identity{}, requestError(path, address.Host, d.subject, err)
	}
	id.Digest = DigestOf(data)
	f.cache.add(id.found.origin+" "+id.Digest, data)
	f.remember(key, resp, version{digest: id.Digest})
	return id, nil
}

// archiveDownload returns the request for an archive.
func (f *fetcher) archiveDownload(ctx context.Context, r Request, path string, address *url.URL) (download, error) {
	auth, err := findRepositoryAuth(ctx, r, address)
	if err != nil {
		return download{}, credentialError(path, err)
	}
	return download{path: path, url: address, auth: auth, subject: "read " + oneLine(address.Path)}, nil
}

// found returns what Fetch needs to download an archive and its provenance file.
func (f *fetcher) found(d download) *found {
	provenance := d
	copied := *d.url
	copied.Path, copied.RawPath = copied.Path+".prov", ""
	provenance.url, provenance.subject = &copied, d.subject+".prov"
	return &found{
		path:       d.path,
		origin:     "url " + d.url.String() + " " + d.auth.key(),
		load:       func(ctx context.Context) ([]byte, error) { return f.read(ctx, d, f.options.Limits.Archive) },
		provenance: func(ctx context.Context) ([]byte, error) { return f.read(ctx, provenance, maxProvenance) },
	}
}

// read downloads a file.
func (f *fetcher) read(ctx context.Context, d download, limit int64) ([]byte, error) {
	resp, err := f.get(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written
	data, err := readAll(resp.Body, limit)
	if err != nil {
		return nil, requestError(d.path, d.url.Host, d.subject, err)
	}
	return data, nil
}

// get sends a request. The answer has the status 200, or 304 if the request is conditional.
func (f *fetcher) get(ctx context.Context, d download) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url.String(), nil)
	if err != nil {
		return nil, newError(d.path, "is not a URL")
	}
	req.Header.Set("User-Agent", "deployerkit-helm-deployer")
	if d.zipped {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if d.known != nil {
		setUnlessEmpty(req.Header, "If-None-Match", d.known.etag)
		setUnlessEmpty(req.Header, "If-Modified-Since", d.known.modified)
	}
	resp, err := f.authorize(d.auth).Do(req)
	if err != nil {
		return nil, requestError(d.path, d.url.Host, d.subject, err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotModified && d.known != nil {
		return resp, nil
	}
	_ = resp.Body.Close() // nothing was written
	return nil, requestError(d.path, d.url.Host, d.subject, statusError(resp.StatusCode))
}

func setUnlessEmpty(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// version returns what a server has returned before, or nil.
func (f *fetcher) version(key versionKey) *version {
	if known, ok := f.versions.Get(key); ok {
		return known.(*version)
	}
	return nil
}

// remember stores what a server has returned, if the answer has a validator of reasonable size.
func (f *fetcher) remember(key versionKey, resp *http.Response, v version) {
	v.etag, v.modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	if len(v.etag)+len(v.modified) > 1000 || v.etag == "" && v.modified == "" {
		f.versions.Remove(key)
		return
	}
	f.versions.Add(key, &v)
}
