// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gardener/landscaper/apis/config"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// endless writes data until the client has gone.
func endless(w http.ResponseWriter, r *http.Request, data []byte) {
	for r.Context().Err() == nil {
		if _, err := w.Write(data); err != nil {
			return
		}
	}
}

func TestAddresses(t *testing.T) {
	content := newStore()
	content.push(t, "test", "1.0.0", layer{helmLayer, testChart})

	t.Run("refuses private addresses unless they are allowed [Ex28]", func(t *testing.T) {
		reg := newServer(t, true, content)
		s := newSources(t, chart.Options{Hosts: []chart.Host{{Name: reg.host(), CAData: reg.ca()}}})
		fails(t, s, ociRequest(reg.host()+"/test:1.0.0"), "ref", true, "the address is a loopback, link-local, private or metadata address")
		fails(t, s, repoRequest(reg.URL, "1.0.0"), "helmChartRepo", true, "the address is a loopback")
		fails(t, s, urlRequest(reg.URL), "archive.remote.url", true, "the address is a loopback")
		fails(t, s, urlRequest(strings.Replace(reg.URL, "127.0.0.1", "localhost", 1)), "archive.remote.url", true, "the address is a loopback")
		for _, host := range []string{"169.254.169.254", "10.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[fd00::1]", "[fe80::1]", "0.0.0.0", "100.64.0.1", "[64:ff9b::a00:1]"} {
			fails(t, s, urlRequest("https://"+host+"/a"), "archive.remote.url", true, "the address is a loopback")
		}
		if got := reg.take(); len(got) > 0 {
			t.Errorf("the server received %v", got)
		}
		s = newSources(t, chart.Options{Hosts: []chart.Host{{Name: reg.host(), CAData: reg.ca(), AllowPrivateAddress: true}}})
		mustFetch(t, s, ociRequest(reg.host()+"/test:1.0.0"))
	})

	t.Run("refuses redirects to private addresses [Ex28]", func(t *testing.T) {
		inner := newServer(t, true, http.NotFoundHandler())
		repo := newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inner.URL+"/index.yaml", http.StatusFound)
		}))
		s := newSources(t, chart.Options{Hosts: []chart.Host{{Name: repo.host(), CAData: repo.ca(), AllowPrivateAddress: true}}})
		fails(t, s, repoRequest(repo.URL, "1.0.0"), "helmChartRepo", true, "the address is a loopback")
		if got := inner.take(); len(got) > 0 {
			t.Errorf("the server received %v", got)
		}
	})

	t.Run("uses no TLS or an unverified certificate only for the hosts of the configuration files [E30]", func(t *testing.T) {
		plain, unknown := newServer(t, false, content), newServer(t, true, content)
		fails(t, newSources(t, chart.Options{AllowPrivateAddresses: true}), urlRequest(plain.URL+"/a"), "archive.remote.url", true, "without TLS")
		for _, test := range []struct {
			reg  *server
			oci  func(*config.OCIConfiguration)
			want string
		}{
			{plain, func(o *config.OCIConfiguration) { o.AllowPlainHttp = true }, "HTTP response to HTTPS client"},
			{unknown, func(o *config.OCIConfiguration) { o.InsecureSkipVerify = true }, "certificate"},
		} {
			for _, listed := range []bool{true, false} {
				o := chart.Options{AllowPrivateAddresses: true, OCI: configFile(t, dockerConfig(map[string]string{"registry.test": password}))}
				if listed {
					o.OCI = configFile(t, dockerConfig(map[string]string{test.reg.host(): password}))
				}
				test.oci(o.OCI)
				if r := ociRequest(test.reg.host() + "/test:1.0.0"); listed {
					mustFetch(t, newSources(t, o), r)
				} else {
					fails(t, newSources(t, o), r, "ref", false, test.reg.host())
				}
			}
		}
		if _, err := chart.New(chart.Options{OCI: &config.OCIConfiguration{AllowPlainHttp: true}}); err == nil {
			t.Error("allowPlainHttp without hosts is accepted")
		}
	})

	t.Run("rejects invalid settings", func(t *testing.T) {
		for _, o := range []chart.Options{
			{Hosts: []chart.Host{{Name: "https://a"}}},
			{Hosts: []chart.Host{{Name: "a", CAData: []byte("x")}}},
			{OCI: &config.OCIConfiguration{ConfigFiles: []string{"/missing"}}},
			{OCI: configFile(t, []byte("no JSON"))},
		} {
			if _, err := chart.New(o); err == nil {
				t.Errorf("%+v is accepted", o)
			}
		}
	})
}

func TestHostileServers(t *testing.T) {
	limits := chart.Limits{Archive: 100 << 10}
	bomb := func(content []byte, times int) []byte {
		var out bytes.Buffer
		zipped, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is valid
		for range times {
			_, _ = zipped.Write(content) // a buffer returns no errors
		}
		_ = zipped.Close()
		return out.Bytes()
	}
	line := []byte(strings.Repeat("#", 1023) + "\n")
	compressed := bomb(line, 65<<10) // not in the handler, because the client does not wait long for an answer
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		request func(string) chart.Request
		path    string
		final   bool
		want    string
	}{
		{name: "an archive without end", handler: func(w http.ResponseWriter, r *http.Request) { endless(w, r, line) }, request: urlRequest, path: "archive.remote.url", final: true, want: "more than 102400 bytes"},
		{name: "an index that is too large", handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("entries:\n")) // the client may have gone
			endless(w, r, line)
		}, request: func(url string) chart.Request { return repoRequest(url, "1") }, path: "helmChartRepo", final: true, want: "more than 67108864 bytes"},
		{name: "a compressed index that is too large", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(compressed) // the client may have gone
		}, request: func(url string) chart.Request { return repoRequest(url, "1") }, path: "helmChartRepo", final: true, want: "more than 67108864 bytes"},
		{name: "a line without end", handler: func(w http.ResponseWriter, r *http.Request) { endless(w, r, []byte("x")) }, request: func(url string) chart.Request { return repoRequest(url, "1") }, path: "helmChartRepo", final: true, want: "a line with more than 1048576 bytes"},
		{name: "a page instead of an index", handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>" + password)) }, request: func(url string) chart.Request { return repoRequest(url, "1") }, path: "helmChartRepo", final: true, want: "is not the index of a chart repository"},
		{name: "redirects without end", handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"a", http.StatusFound) }, request: urlRequest, path: "archive.remote.url", final: true, want: "more than 5 redirects"},
		{name: "a redirect without TLS", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/a", http.StatusFound)
		}, request: urlRequest, path: "archive.remote.url", final: true, want: "without TLS"},
		{name: "an unexpected answer to an unconditional request", handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, request: urlRequest, path: "archive.remote.url", want: "304 Not Modified"},
		{name: "an unknown status with a secret", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(599)
			_, _ = w.Write([]byte(password))
		}, request: urlRequest, path: "archive.remote.url", want: "599"},
		{name: "a closed connection", handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, request: urlRequest, path: "archive.remote.url", want: "closed early"},
		{name: "headers without end", handler: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 1000 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 1000))
			}
		}, request: urlRequest, path: "archive.remote.url", want: "invalid answer"},
	} {
		t.Run("survives "+test.name+" [Ex28]", func(t *testing.T) {
			s := newServer(t, true, test.handler)
			o := trust(s)
			o.Limits, o.ResolveTimeout = limits, 10*time.Minute // the machine may be busy
			fails(t, newSources(t, o), test.request(s.URL), test.path, test.final, s.host(), test.want)
		})
	}

	t.Run("does not wait for a slow server longer than the limit [Ex28]", func(t *testing.T) {
		slow := newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("#")) // the client may have gone
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		}))
		o := trust(slow)
		o.ResolveTimeout = 200 * time.Millisecond
		fails(t, newSources(t, o), repoRequest(slow.URL, "1"), "helmChartRepo", false, "timed out") // the server never ends
	})

	t.Run("sends no more requests to a server that does not answer [Ex28]", func(t *testing.T) {
		arrived := make(chan struct{}, 3)
		silent := newServer(t, true, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-r.Context().Done()
		}))
		clock := &steppedClock{}
		o := trust(silent)
		o.Clock, o.ResolveTimeout = clock, 5*time.Minute
		s := newSources(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error)
		for i := range 3 {
			go func() {
				_, err := s.Resolve(ctx, urlRequest(fmt.Sprintf("%s/%d", silent.URL, i)))
				done <- err
			}()
		}
		for range 3 {
			<-arrived
		}
		clock.step(10 * time.Second)
		fails(t, s, urlRequest(silent.URL+"/3"), "archive.remote.url", false, "the host does not finish earlier requests")
		cancel()
		for range 3 {
			if <-done == nil {
				t.Error("a request without an answer has succeeded")
			}
		}
	})
}

func TestHostileRegistry(t *testing.T) {
	manifest := func(layers ...ocispec.Descriptor) []byte {
		return mustMarshal(ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Layers: layers})
	}
	good := ocispec.Descriptor{MediaType: helmLayer, Digest: digest.FromBytes(testChart), Size: int64(len(testChart))}
	changed := func(change func(*ocispec.Descriptor)) []byte {
		d := good
		change(&d)
		return manifest(d)
	}
	for _, test := range []struct {
		name     string
		manifest []byte
		blob     []byte
		headers  func(http.Header)
		final    bool
		want     string
	}{
		{name: "a blob that is too large", manifest: changed(func(d *ocispec.Descriptor) { d.Size = 1 << 40 }), final: true, want: "a layer has 1099511627776 bytes, more than the limit"},
		{name: "a blob of negative size", manifest: changed(func(d *ocispec.Descriptor) { d.Size = -1 }), final: true, want: "a layer has -1 bytes"},
		{name: "a blob with another digest", manifest: manifest(good), blob: bytes.Repeat([]byte("x"), len(testChart)), final: true, want: "a layer has the digest"},
		{name: "a blob that is longer than announced", manifest: manifest(good), blob: append(bytes.Clone(testChart), 'x'), want: ""},
		{name: "an unknown digest algorithm", manifest: changed(func(d *ocispec.Descriptor) { d.Digest = "md5:0" }), final: true, want: "does not have the form sha256"},
		{name: "a digest that leads to another path", manifest: changed(func(d *ocispec.Descriptor) { d.Digest = "sha256:../../../x" }), final: true, want: "does not have the form sha256"},
		{name: "two charts", manifest: manifest(good, good), final: true, want: "several charts"},
		{name: "an image", manifest: manifest(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer}), final: true, want: "is not a Helm chart"},
		{name: "a manifest that is not JSON", manifest: []byte("<html>" + password), final: true, want: "the manifest is not valid"},
		{name: "a huge manifest", manifest: bytes.Repeat([]byte(" "), 2<<20), final: true, want: "more than the limit"},
		{name: "a manifest with another digest", manifest: manifest(good), headers: func(h http.Header) { h.Set("Docker-Content-Digest", otherDigest) }, final: true, want: "the manifest has the digest"},
		{name: "a secret as the digest", manifest: manifest(good), headers: func(h http.Header) { h.Set("Docker-Content-Digest", password) }, want: "invalid answer"},
		{name: "a secret as the media type", manifest: manifest(good), headers: func(h http.Header) { h.Set("Content-Type", password+"/;;") }, want: "invalid answer"},
	} {
		t.Run("rejects "+test.name+" [Ex28] [Ex32]", func(t *testing.T) {
			reg := newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := test.manifest
				if strings.Contains(r.URL.Path, "/blobs/") {
					body = test.blob
				} else {
					w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
					w.Header().Set("Docker-Content-Digest", string(digest.FromBytes(body)))
					if test.headers != nil {
						test.headers(w.Header())
					}
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(body)))
				if r.Method != http.MethodHead {
					_, _ = w.Write(body) // the client may have gone
				}
			}))
			fails(t, newSources(t, trust(reg)), ociRequest(reg.host()+"/test:1.0.0"), "ref", test.final, test.want)
		})
	}
}
