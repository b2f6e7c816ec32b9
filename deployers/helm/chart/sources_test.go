// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	"github.com/google/go-cmp/cmp"
)

// methods returns the methods of requests.
func methods(requests []recorded) string {
	var out []string
	for _, r := range requests {
		out = append(out, r.method)
	}
	return strings.Join(out, " ")
}

func TestSources(t *testing.T) {
	t.Run("returns the same archive from all sources [E20]", func(t *testing.T) {
		content, static := newStore(), newFiles()
		reg, repo := newServer(t, true, content), newServer(t, true, static)
		manifest := string(content.push(t, "charts/test", "1.0.0", layer{helmLayer, testChart}))
		static.set("/charts/index.yaml", index(entry("0.9.0", otherDigest, "test-0.9.0.tgz"), entry("1.0.0", testDigest, "test-1.0.0.tgz"), entry("2.0.0", otherDigest, "test-2.0.0.tgz")))
		static.set("/charts/test-1.0.0.tgz", testChart)
		s := newSources(t, trust(reg, repo))
		inline := ociRequest("")
		inline.Chart.Archive = &helmv1alpha1.ArchiveAccess{Raw: base64.StdEncoding.EncodeToString(testChart)}
		inline.Chart.Ref = ""
		for name, r := range map[string]func() any{
			"inline":                func() any { return mustFetch(t, s, inline).Data },
			"tag":                   func() any { return mustFetch(t, s, ociRequest(reg.host()+"/charts/test:1.0.0")).Data },
			"tag with scheme":       func() any { return mustFetch(t, s, ociRequest("oci://"+reg.host()+"/charts/test:1.0.0")).Data },
			"tag and digest":        func() any { return mustFetch(t, s, ociRequest(reg.host()+"/charts/test:1.0.0@"+manifest)).Data },
			"digest":                func() any { return mustFetch(t, s, ociRequest(reg.host()+"/charts/test@"+manifest)).Data },
			"exact version":         func() any { return mustFetch(t, s, repoRequest(repo.URL+"/charts", "1.0.0")).Data },
			"range":                 func() any { return mustFetch(t, s, repoRequest(repo.URL+"/charts/", "^1.0.0")).Data },
			"no scheme":             func() any { return mustFetch(t, s, repoRequest(repo.host()+"/charts", "1.x")).Data },
			"archive from a server": func() any { return mustFetch(t, s, urlRequest(repo.URL+"/charts/test-1.0.0.tgz")).Data },
		} {
			if diff := cmp.Diff(any(testChart), r()); diff != "" {
				t.Errorf("%s: unexpected archive (-want +got):\n%s", name, diff)
			}
		}
	})

	t.Run("sends one HEAD for a tag, none for a digest, and one conditional GET for a version or URL [Ex1]", func(t *testing.T) {
		content, static := newStore(), newFiles()
		reg, repo := newServer(t, true, content), newServer(t, true, static)
		manifest := string(content.push(t, "charts/test", "1.0.0", layer{helmLayer, testChart}))
		static.set("/index.yaml", index(entry("1.0.0", testDigest, "test-1.0.0.tgz")))
		static.set("/test-1.0.0.tgz", testChart)
		s := newSources(t, trust(reg, repo))
		for _, test := range []struct {
			request string
			want    string
			from    *server
		}{
			{reg.host() + "/charts/test:1.0.0", "HEAD", reg},
			{reg.host() + "/charts/test@" + manifest, "", reg},
			{reg.host() + "/charts/test:1.0.0@" + manifest, "", reg},
			{repo.URL, "GET", repo},
			{repo.URL + "/test-1.0.0.tgz", "GET", repo},
		} {
			r := ociRequest(test.request)
			if test.from == repo {
				r = repoRequest(test.request, "1.0.0")
			}
			if strings.HasSuffix(test.request, ".tgz") {
				r = urlRequest(test.request)
			}
			mustFetch(t, s, r)
			test.from.take()
			if id := mustResolve(t, s, r); id.Digest != testDigest {
				t.Errorf("%s: the digest is %s, want %s", test.request, id.Digest, testDigest)
			}
			if got := methods(test.from.take()); got != test.want {
				t.Errorf("%s: the requests are %q, want %q", test.request, got, test.want)
			}
		}
	})

	t.Run("reports missing charts with their field, host and status", func(t *testing.T) {
		reg, repo := newServer(t, true, newStore()), newServer(t, true, http.NotFoundHandler())
		s := newSources(t, trust(reg, repo))
		fails(t, s, ociRequest(reg.host()+"/charts/test:1.0.0"), "ref", false, reg.host(), "404 Not Found")
		fails(t, s, repoRequest(repo.URL, "1.0.0"), "helmChartRepo", false, repo.host(), "404 Not Found")
		fails(t, s, urlRequest(repo.URL+"/a.tgz?token="+password), "archive.remote.url", false, repo.host(), "404 Not Found")
	})

	t.Run("reports invalid references", func(t *testing.T) {
		s := newSources(t, trust())
		for _, ref := range []string{"a", "registry.test/a", "registry.test/a:b/c", "https://registry.test/a:1", "user:" + password + "@registry.test/a:1", "registry.test/a@sha512:aa", "registry.test/A:1"} {
			fails(t, s, ociRequest(ref), "ref", true)
		}
		fails(t, s, repoRequest("https://registry.test", "one"), "helmChartRepo.helmChartVersion", true)
		fails(t, s, repoRequest("ftp://registry.test", "1"), "helmChartRepo.helmChartRepoUrl", true)
		fails(t, s, urlRequest("https://user:"+password+"@registry.test/a.tgz"), "archive.remote.url", true)
	})
}
