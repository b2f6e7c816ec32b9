// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

func TestRegistryCredentials(t *testing.T) {
	content := newStore()
	content.push(t, "a/charts/test", "1.0.0", layer{helmLayer, testChart})
	content.push(t, "b/test", "1.0.0", layer{helmLayer, otherChart})
	protected := requireBasic(map[string]string{"/v2/a/charts/": password + "-a", "/v2/b/": password + "-b"}, content)

	t.Run("uses the pull Secret with the most specific path [E22]", func(t *testing.T) {
		reg := newServer(t, true, protected)
		s := newSources(t, trust(reg))
		all := dockerConfig(map[string]string{
			reg.host(): password + "-b", "https://" + reg.host() + "/a": "wrong", reg.host() + "/a/charts": password + "-a", reg.host() + "/a/char": "wrong",
		})
		for ref, want := range map[string]string{"/a/charts/test:1.0.0": testDigest, "/b/test:1.0.0": otherDigest} {
			r := ociRequest(reg.host() + ref)
			r.Context, r.Secrets = withPullSecrets("ocm", "pull"), secrets{"ocm": {".ocmcredentialconfig": []byte("{}")}, "pull": {corev1.DockerConfigJsonKey: all}}
			if got := mustFetch(t, s, r); got.Digest != want {
				t.Errorf("%s: the digest is %s, want %s", ref, got.Digest, want)
			}
		}
	})

	t.Run("uses the configuration files of the deployer [E22]", func(t *testing.T) {
		reg := newServer(t, true, protected)
		o := trust(reg)
		o.OCI = configFile(t, dockerConfig(map[string]string{reg.host(): password + "-b"}))
		mustFetch(t, newSources(t, o), ociRequest(reg.host()+"/b/test:1.0.0"))
	})

	t.Run("exchanges the credential for a token [E22]", func(t *testing.T) {
		var reg *server
		reg = newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/token" && r.Header.Get("Authorization") == basic(password):
				_ = json.NewEncoder(w).Encode(map[string]string{"token": "t0"}) // the client may have gone
			case r.URL.Path != "/token" && r.Header.Get("Authorization") == "Bearer t0":
				content.ServeHTTP(w, r)
			default:
				w.Header().Set("WWW-Authenticate", `Bearer realm="`+reg.URL+`/token",service="test"`)
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		s := newSources(t, trust(reg))
		r := ociRequest(reg.host() + "/b/test:1.0.0")
		r.Context, r.Secrets = withPullSecrets("pull"), secrets{"pull": {corev1.DockerConfigJsonKey: dockerConfig(map[string]string{reg.host() + "/b": password})}}
		mustFetch(t, s, r)
		reg.take()
		mustResolve(t, s, r)
		if got := methods(reg.take()); got != "HEAD" {
			t.Errorf("with a known token, the requests are %q, want one HEAD", got)
		}
	})

	t.Run("reports a wrong credential with the host and 401, without the credential [E22] [Ex25]", func(t *testing.T) {
		reg := newServer(t, true, protected)
		s := newSources(t, trust(reg))
		r := ociRequest(reg.host() + "/b/test:1.0.0")
		r.Context, r.Secrets = withPullSecrets("pull"), secrets{"pull": {corev1.DockerConfigJsonKey: dockerConfig(map[string]string{reg.host(): password})}}
		fails(t, s, r, "ref", false, "401 Unauthorized", reg.host())
	})

	t.Run("reports unusable pull Secrets [E22]", func(t *testing.T) {
		s := newSources(t, trust())
		r := ociRequest("registry.test/b/test:1.0.0")
		r.Context, r.Secrets = withPullSecrets("pull"), secrets{}
		fails(t, s, r, "ref", false, "registryPullSecrets[0] of the Context: the Secret ns/pull does not exist")
		r.Secrets = secrets{"pull": {corev1.DockerConfigJsonKey: []byte(password)}}
		fails(t, s, r, "ref", true, "registryPullSecrets[0] of the Context: Secret pull, key .dockerconfigjson: not a docker configuration file")
	})

	t.Run("sends credentials of a registry to no other host [Ex26]", func(t *testing.T) {
		for _, test := range []struct {
			name    string
			hostile func(w http.ResponseWriter, r *http.Request, other *server) bool
		}{
			{"blob on another host", func(w http.ResponseWriter, r *http.Request, other *server) bool {
				if strings.Contains(r.URL.Path, "/blobs/") {
					http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
					return true
				}
				return false
			}},
			{"manifest on another host", func(w http.ResponseWriter, r *http.Request, other *server) bool {
				if strings.Contains(r.URL.Path, "/manifests/") {
					http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
					return true
				}
				return false
			}},
		} {
			t.Run(test.name, func(t *testing.T) {
				other := newServer(t, true, content)
				reg := newServer(t, true, requireBasic(map[string]string{"/v2/": password}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !test.hostile(w, r, other) {
						content.ServeHTTP(w, r)
					}
				})))
				r := ociRequest(reg.host() + "/b/test:1.0.0")
				r.Context, r.Secrets = withPullSecrets("pull"), secrets{"pull": {corev1.DockerConfigJsonKey: dockerConfig(map[string]string{reg.host(): password})}}
				mustFetch(t, newSources(t, trust(reg, other)), r)
				expectAnonymous(t, other)
			})
		}
	})

	t.Run("sends credentials to no token server in another domain [Ex26]", func(t *testing.T) {
		other := newServer(t, true, http.NotFoundHandler())
		reg := newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		r := ociRequest(reg.host() + "/b/test:1.0.0")
		r.Context, r.Secrets = withPullSecrets("pull"), secrets{"pull": {corev1.DockerConfigJsonKey: dockerConfig(map[string]string{reg.host(): password})}}
		fails(t, newSources(t, trust(reg, other)), r, "ref", true, "localhost:", "in another domain")
		if got := other.take(); len(got) > 0 {
			t.Errorf("the token server received %v", got)
		}
	})

	t.Run("does not let the target of a redirect name a token server [Ex26]", func(t *testing.T) {
		var other *server
		other = newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+other.URL+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		reg := newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		r := ociRequest(reg.host() + "/b/test:1.0.0")
		r.Context, r.Secrets = withPullSecrets("pull"), secrets{"pull": {corev1.DockerConfigJsonKey: dockerConfig(map[string]string{reg.host(): password})}}
		fails(t, newSources(t, trust(reg, other)), r, "ref", false, "401")
		expectAnonymous(t, other)
	})

	t.Run("sends no credential for a path to other paths [Ex26]", func(t *testing.T) {
		reg := newServer(t, true, content)
		r := ociRequest(reg.host() + "/b/test:1.0.0")
		r.Context, r.Secrets = withPullSecrets("pull"), secrets{"pull": {corev1.DockerConfigJsonKey: dockerConfig(map[string]string{reg.host() + "/a": password, "registry.test": password})}}
		mustFetch(t, newSources(t, trust(reg)), r)
		expectAnonymous(t, reg)
	})
}

// expectAnonymous checks that a server has received requests, and none of them with a credential.
func expectAnonymous(t *testing.T, s *server) {
	t.Helper()
	requests := s.take()
	if len(requests) == 0 {
		t.Error("the server received no request")
	}
	for _, r := range requests {
		if r.authorization != "" {
			t.Errorf("the server received %v", r)
		}
	}
}

func TestRepositoryCredentials(t *testing.T) {
	static := newFiles()
	static.set("/a/index.yaml", index(entry("1.0.0", testDigest, "test.tgz")))
	static.set("/a/test.tgz", testChart)
	static.set("/b/index.yaml", index(entry("1.0.0", otherDigest, "test.tgz")))
	static.set("/b/test.tgz", otherChart)

	t.Run("sends credentials only to the URL that they name [E23] [Ex26]", func(t *testing.T) {
		one, two, three := newServer(t, true, static), newServer(t, true, static), newServer(t, true, static)
		s := newSources(t, trust(one, two, three))
		lsContext := withAuths(
			t, helmv1alpha1.Auth{URL: one.URL + "/a", AuthHeader: basic(password + "-one")}, helmv1alpha1.Auth{URL: one.URL + "/a/test", AuthHeader: "Basic wrong"},
			helmv1alpha1.Auth{URL: two.host(), SecretRef: &lsv1alpha1.LocalSecretReference{Name: "two", Key: "header"}},
		)
		for _, test := range []struct {
			url, want string
			from      *server
		}{
			{one.URL + "/a", basic(password + "-one"), one},
			{one.URL + "/b", "", one},
			{two.URL + "/a", "Bearer " + password + "-two", two},
			{three.URL + "/a", "", three},
		} {
			r := repoRequest(test.url, "1.0.0")
			r.Context, r.Secrets = lsContext, secrets{"two": {"header": []byte("Bearer " + password + "-two\n")}}
			mustFetch(t, s, r)
			requests := test.from.take()
			if len(requests) != 2 {
				t.Errorf("%s: the server received %d requests, want 2", test.url, len(requests))
			}
			for _, got := range requests {
				if got.authorization != test.want {
					t.Errorf("%s: the server received %q, want %q", test.url, got.authorization, test.want)
				}
			}
		}
	})

	t.Run("sends no credential to the URL of a chart on another host [Ex26]", func(t *testing.T) {
		other := newServer(t, true, static)
		own := newFiles()
		own.set("/index.yaml", index(entry("1.0.0", testDigest, other.URL+"/a/test.tgz")))
		repo := newServer(t, true, requireBasic(map[string]string{"/": password}, own))
		r := repoRequest(repo.URL, "1.0.0")
		r.Context = withAuths(t, helmv1alpha1.Auth{URL: repo.URL, AuthHeader: basic(password)})
		mustFetch(t, newSources(t, trust(repo, other)), r)
		expectAnonymous(t, other)
	})

	t.Run("sends no credential across redirects [Ex26]", func(t *testing.T) {
		var repo, other *server
		other = newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, repo.URL+"/back"+r.URL.Path, http.StatusFound)
		}))
		repo = newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path, ok := strings.CutPrefix(r.URL.Path, "/back"); ok {
				r.URL.Path = path
				static.ServeHTTP(w, r)
				return
			}
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
		}))
		r := repoRequest(repo.URL+"/a", "1.0.0")
		r.Context = withAuths(t, helmv1alpha1.Auth{URL: repo.URL, AuthHeader: basic(password)})
		mustFetch(t, newSources(t, trust(repo, other)), r)
		expectAnonymous(t, other)
		for _, got := range repo.take() {
			if back := strings.HasPrefix(got.path, "/back"); back == (got.authorization != "") {
				t.Errorf("the request %s has the header %q", got.path, got.authorization)
			}
		}
	})

	t.Run("trusts customCAData in PEM format and in base64, for its host only [E23]", func(t *testing.T) {
		one, two := newServer(t, true, static), newServer(t, true, static)
		s := newSources(t, chart.Options{AllowPrivateAddresses: true})
		for _, ca := range []string{string(one.ca()), base64.StdEncoding.EncodeToString(one.ca())} {
			r := repoRequest(one.URL+"/a", "1.0.0")
			r.Context = withAuths(t, helmv1alpha1.Auth{URL: one.URL, CustomCAData: ca})
			mustFetch(t, s, r)
			r.Chart.HelmChartRepo.HelmChartRepoUrl = two.URL + "/a"
			fails(t, s, r, "helmChartRepo", false, two.host(), "certificate")
		}
	})

	t.Run("reports invalid credentials [E23]", func(t *testing.T) {
		s := newSources(t, trust())
		ref := &lsv1alpha1.LocalSecretReference{Name: "missing"}
		for want, auth := range map[string]helmv1alpha1.Auth{
			"auths[0] of the Context: must have either authHeader or secretRef":                       {URL: "repo.test", AuthHeader: basic(password), SecretRef: ref},
			"auths[0].url of the Context: is not a URL":                                               {URL: "https://%zz" + password},
			"auths[0] of the Context: the header must have the form":                                  {URL: "repo.test", AuthHeader: "Digest " + password},
			"auths[0] of the Context: customCAData contains no certificate":                           {URL: "repo.test", CustomCAData: password},
			"helmChartRepoCredentials.auths[0] of the Context: the header must have the form \"Basic": {URL: "repo.test", AuthHeader: "Basic a\r\nHost: " + password},
		} {
			r := repoRequest("https://repo.test", "1.0.0")
			r.Context, r.Secrets = withAuths(t, auth), secrets{}
			fails(t, s, r, "helmChartRepo", true, want)
		}
		r := repoRequest("https://repo.test", "1.0.0")
		r.Context, r.Secrets = withAuths(t, helmv1alpha1.Auth{URL: "repo.test", SecretRef: ref}), secrets{}
		fails(t, s, r, "helmChartRepo", false, "secretRef: the Secret ns/missing does not exist")
		r.Secrets = secrets{"missing": {"other": nil}}
		fails(t, s, r, "helmChartRepo", false, `secretRef: the Secret ns/missing has no key "authHeader"`)
	})
}
