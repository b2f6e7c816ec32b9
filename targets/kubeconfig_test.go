// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/targets"
)

// newKubeconfig returns a kubeconfig with the given cluster fields and user fields. The text `more` is appended.
func newKubeconfig(cluster, user, more string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: main
contexts:
- name: main
  context: {cluster: c, user: u, namespace: default}
clusters:
- name: c
  cluster: {%s}
users:
- name: u
  user: {%s}
%s`, cluster, user, more)
}

const (
	okCluster = `server: "https://api.example.com:6443/clusters/a"`
	okUser    = `token: "` + canary + `"`
)

func TestRESTConfigAcceptsAllowedFields(t *testing.T) {
	ca, cert, key := newCertificates(t)
	b64 := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	cases := map[string]struct {
		text   string
		policy targets.Policy
		want   rest.Config
	}{
		"a token": {
			newKubeconfig(okCluster, okUser, ""),
			targets.Policy{},
			rest.Config{Host: "https://api.example.com:6443/clusters/a", BearerToken: canary},
		},
		"all allowed fields": {
			newKubeconfig(okCluster+`, tls-server-name: other, certificate-authority-data: `+b64(ca)+`, disable-compression: true, extensions: [{name: x, extension: {a: 1}}]`,
				`client-certificate-data: `+b64(cert)+`, client-key-data: `+b64(key)+`, extensions: []`, "preferences: {colors: true}"),
			targets.Policy{},
			rest.Config{
				Host: "https://api.example.com:6443/clusters/a", DisableCompression: true,
				TLSClientConfig: rest.TLSClientConfig{ServerName: "other", CAData: ca, CertData: cert, KeyData: key},
			},
		},
		"fields with empty values": {
			newKubeconfig(okCluster+`, insecure-skip-tls-verify: false, certificate-authority: "", proxy-url: null`,
				okUser+`, exec: null, as: "", as-groups: [], username: ""`, ""),
			targets.Policy{},
			rest.Config{Host: "https://api.example.com:6443/clusters/a", BearerToken: canary},
		},
		"JSON": {
			`{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"clusters":[{"name":"x","cluster":{"server":"https://10.0.0.1"}}],"users":[{"name":"x","user":{"token":"t"}}]}`,
			targets.Policy{},
			rest.Config{Host: "https://10.0.0.1", BearerToken: "t"},
		},
		"an insecure server that the operator allows": {
			newKubeconfig(`server: "http://127.0.0.1:8080", insecure-skip-tls-verify: true`, okUser, ""),
			targets.Policy{AllowInsecureTLS: true, AllowHTTP: true, AllowPrivateHosts: true},
			rest.Config{Host: "http://127.0.0.1:8080", BearerToken: canary, TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		},
	}
	for name, tc := range cases {
		t.Run("accepts "+name, func(t *testing.T) {
			got, err := targets.RESTConfigFromKubeconfig([]byte(tc.text), tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			plain := rest.Config{
				Host: got.Host, BearerToken: got.BearerToken, TLSClientConfig: got.TLSClientConfig, DisableCompression: got.DisableCompression,
			}
			if diff := cmp.Diff(tc.want, plain); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			mustBeSafe(t, got, tc.policy)
		})
	}
}

// mustBeSafe requires that a config cannot run a program, read a file, impersonate a user or trust every server.
func mustBeSafe(t *testing.T, c *rest.Config, p targets.Policy) {
	t.Helper()
	switch {
	case c.ExecProvider != nil, c.AuthProvider != nil, c.AuthConfigPersister != nil:
		t.Error("a program or a plugin")
	case c.BearerTokenFile != "", c.CAFile != "", c.CertFile != "", c.KeyFile != "":
		t.Error("a file")
	case c.Username != "", c.Password != "":
		t.Error("a password")
	case c.Impersonate.UserName != "", c.Impersonate.UID != "", len(c.Impersonate.Groups) > 0, len(c.Impersonate.Extra) > 0:
		t.Error("impersonation")
	case c.Insecure && !p.AllowInsecureTLS:
		t.Error("insecure TLS")
	case !strings.HasPrefix(c.Host, "https://") && !p.AllowHTTP:
		t.Errorf("host %q", c.Host)
	case c.Proxy != nil && !p.AllowProxy && getProxy(t, c) != "":
		t.Errorf("proxy %s", getProxy(t, c))
	case c.Dial == nil, c.Proxy == nil, c.WrapTransport == nil, c.WarningHandler == nil:
		t.Error("a guard is missing")
	}
}

// getProxy returns the proxy for a request to a host on the internet, or "" if there is none. The environment of the
// tests defines no proxy.
func getProxy(t *testing.T, c *rest.Config) string {
	t.Helper()
	proxy, err := c.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "api.example.com"}})
	if err != nil || proxy == nil {
		return fmt.Sprint(err)[:0]
	}
	return proxy.String()
}

// listInvalidKubeconfigs returns kubeconfigs that must be refused, each with the path of the field that the error must
// name.
func listInvalidKubeconfigs() map[string]struct{ text, field string } {
	user := func(field string) string { return newKubeconfig(okCluster, okUser+", "+field, "") }
	cluster := func(field string) string { return newKubeconfig(okCluster+", "+field, okUser, "") }
	server := func(url string) string { return newKubeconfig(fmt.Sprintf("server: %q", url), okUser, "") }
	const u, c = "users[0].user.", "clusters[0].cluster."
	cases := map[string]struct{ text, field string }{
		"exec":                                    {user(`exec: {command: "` + canary + `"}`), u + "exec"},
		"exec: empty":                             {user(`exec: {}`), u + "exec"},
		"auth-provider with config":               {user(`auth-provider: {name: gcp, config: {cmd-path: "` + canary + `"}}`), u + "auth-provider"},
		"auth-provider without config":            {user(`auth-provider: {name: oidc}`), u + "auth-provider"},
		"auth-provider: empty":                    {user(`auth-provider: {}`), u + "auth-provider"},
		"client certificate file":                 {user(`client-certificate: /` + canary), u + "client-certificate"},
		"client key file":                         {user(`client-key: /` + canary), u + "client-key"},
		"token file":                              {user(`tokenFile: /` + canary), u + "tokenFile"},
		"CA file":                                 {cluster(`certificate-authority: /` + canary), c + "certificate-authority"},
		"insecure":                                {cluster(`insecure-skip-tls-verify: true`), c + "insecure-skip-tls-verify"},
		"insecure with the YAML 1.1 value yes":    {cluster(`insecure-skip-tls-verify: yes`), c + "insecure-skip-tls-verify"},
		"proxy":                                   {cluster(`proxy-url: "https://` + canary + `"`), c + "proxy-url"},
		"as":                                      {user(`as: ` + canary), u + "as"},
		"as-uid":                                  {user(`as-uid: ` + canary), u + "as-uid"},
		"as-groups":                               {user(`as-groups: [` + canary + `]`), u + "as-groups"},
		"as-user-extra":                           {user(`as-user-extra: {` + canary + `: [a]}`), u + "as-user-extra"},
		"as-user-extra: empty":                    {user(`as-user-extra: {}`), u + "as-user-extra"},
		"user name":                               {user(`username: ` + canary), u + "username"},
		"password":                                {user(`password: ` + canary), u + "password"},
		"field in upper case":                     {user(`Exec: {command: x}`), u + "exec"},
		"an unknown field of a user":              {user(canary + `: 1`), "users[0].user"},
		"an unknown field of a cluster":           {cluster(canary + `: 1`), "clusters[0].cluster"},
		"an unknown field of the kubeconfig":      {newKubeconfig(okCluster, okUser, canary+": 1"), "kubeconfig"},
		"another kind":                            {strings.Replace(user(""), "kind: Config", "kind: "+canary, 1), "kind"},
		"a user without a context":                {newKubeconfig(okCluster, okUser, "- name: other\n  user: {exec: {command: x}}"), "users[1].user.exec"},
		"an alias":                                {"preferences: {a: &x {command: x}}\n" + user(`exec: *x`), "kubeconfig"},
		"a merge key":                             {"preferences: {a: &x {exec: {command: x}}}\n" + user(`<<: *x`), "kubeconfig"},
		"a key that occurs twice":                 {user(`exec: {command: x}, exec: null`), "kubeconfig"},
		"a key that occurs twice in JSON":         {`{"users":[],"users":[{"name":"` + canary + `"}]}`, "kubeconfig"},
		"a list that occurs twice":                {newKubeconfig(okCluster, okUser, "users: []"), "kubeconfig"},
		"a user that occurs twice":                {newKubeconfig(okCluster, okUser, "- name: u\n  user: {token: "+canary+"2}"), "users[1].name"},
		"a user without a name":                   {newKubeconfig(okCluster, okUser, "- user: {token: "+canary+"2}"), "users[1].name"},
		"an unknown current context":              {strings.Replace(user(""), "current-context: main", "current-context: "+canary, 1), "current-context"},
		"a missing current context":               {strings.Replace(user(""), "current-context: main", "", 1), "current-context"},
		"context of an unknown cluster":           {strings.Replace(user(""), "cluster: c,", "cluster: "+canary+",", 1), "contexts[0].context.cluster"},
		"context of an unknown user":              {strings.Replace(user(""), "user: u,", "user: "+canary+",", 1), "contexts[0].context.user"},
		"a user without credentials":              {newKubeconfig(okCluster, "", ""), "users[0].user"},
		"a certificate without a key":             {newKubeconfig(okCluster, "client-certificate-data: Q0FOQVJZ", ""), "users[0].user"},
		"an invalid certificate":                  {newKubeconfig(okCluster, "client-certificate-data: Q0FOQVJZ, client-key-data: Q0FOQVJZ", ""), "users[0].user"},
		"an invalid CA":                           {cluster(`certificate-authority-data: Q0FOQVJZ`), c + "certificate-authority-data"},
		"a CA that is not base64":                 {cluster(`certificate-authority-data: "` + canary + `!"`), c + "certificate-authority-data"},
		"a token with a line break":               {newKubeconfig(okCluster, `token: "`+canary+`\n"`, ""), u + "token"},
		"a token that is an object":               {newKubeconfig(okCluster, `token: {a: `+canary+`}`, ""), u + "token"},
		"users that are not a list":               {`{"users":{"` + canary + `":1}}`, "users"},
		"a user that is not an object":            {`{"users":["` + canary + `"]}`, "users[0]"},
		"invalid YAML":                            {canary + ": [" + canary, "kubeconfig"},
		"a string":                                {canary, "kubeconfig"},
		"a list":                                  {"[" + canary + "]", "kubeconfig"},
		"an empty text":                           {"", "kubeconfig"},
		"an empty object":                         {"{}", "current-context"},
		"a kubeconfig that is too large":          {strings.Repeat("#"+canary+"\n", 1<<18), "kubeconfig"},
		"a YAML bomb":                             {newAliasBomb(), "kubeconfig"},
		"the removed form with a secretRef [H-8]": {`{"secretRef":{"name":"` + canary + `"}}`, "kubeconfig"},
	}
	for _, url := range []string{
		"http://api.example.com", "api.example.com:6443", "ftp://api.example.com", "https://", "https://u:" + canary + "@api.example.com",
		"https://api.example.com?x=" + canary, "https://api.example.com#" + canary, "https:api.example.com", "unix:///" + canary, "https://%zz" + canary,
		"https://127.0.0.1", "https://127.9.9.9:1", "https://[::1]:6443", "https://[::ffff:127.0.0.1]", "https://0.0.0.0", "https://[::]", "https://0.1.2.3",
		"https://localhost", "https://LOCALHOST.:6443", "https://a.localhost", "https://169.254.169.254/latest", "https://[fe80::1]", "https://[fe80::1%25eth0]",
		"https://[fd00:ec2::254]", "https://100.100.100.200", "https://[64:ff9b::7f00:1]", "https://[::7f00:1]", "https://224.0.0.1", "https://255.255.255.255",
		"https://kubernetes", "https://kubernetes.default", "https://kubernetes.default.svc", "https://Kubernetes.default.svc.cluster.local.",
	} {
		cases["server "+url] = struct{ text, field string }{server(url), c + "server"}
		cases["server of a cluster that no context names "+url] = struct{ text, field string }{
			strings.Replace(newKubeconfig(okCluster, okUser, ""), "users:\n", fmt.Sprintf("- name: other\n  cluster: {server: %q}\nusers:\n", url), 1), "clusters[1].cluster.server",
		}
	}
	return cases
}

// newAliasBomb returns a small document that is huge when its aliases are expanded.
func newAliasBomb() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return text
}

func TestRESTConfigRejectsInvalidKubeconfigs(t *testing.T) {
	for name, tc := range listInvalidKubeconfigs() {
		t.Run("refuses "+name, func(t *testing.T) {
			got, err := targets.RESTConfigFromKubeconfig([]byte(tc.text), targets.Policy{})
			refused, ok := errors.AsType[*targets.ConfigError](err)
			if !ok {
				t.Fatalf("RESTConfig() = %v, %v, want a ConfigError", got, err)
			}
			if refused.Field != tc.field || refused.Reason == "" || !refused.IsConfigError() {
				t.Errorf("error %q, want one of field %s", err, tc.field)
			}
			mustHideCanary(t, err)
		})
	}
}

// mustHideCanary requires that the canary does not appear in an error, however the error is printed.
func mustHideCanary(t *testing.T, err error) {
	t.Helper()
	for _, format := range []string{"%v", "%+v", "%#v", "%q"} {
		if text := fmt.Sprintf(format, err); strings.Contains(text, canary) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) {
			t.Errorf("error shows the canary: %s", text)
		}
	}
}

// TestPolicyOptionAllowsOneFeature checks that each option of a Policy allows only the feature that it names, and that
// all other features are still rejected.
func TestPolicyOptionAllowsOneFeature(t *testing.T) {
	all := targets.Policy{AllowInsecureTLS: true, AllowHTTP: true, AllowProxy: true, AllowPrivateHosts: true, AllowForeignSecrets: true, EnableOIDC: true, EnableSelf: true}
	only := func(change func(*targets.Policy)) targets.Policy {
		p := targets.Policy{}
		change(&p)
		return p
	}
	cases := map[string]struct {
		cluster string
		policy  targets.Policy
	}{
		"AllowInsecureTLS":  {okCluster + ", insecure-skip-tls-verify: true", only(func(p *targets.Policy) { p.AllowInsecureTLS = true })},
		"AllowHTTP":         {"server: http://api.example.com", only(func(p *targets.Policy) { p.AllowHTTP = true })},
		"AllowProxy":        {okCluster + ", proxy-url: socks5://proxy.example.com", only(func(p *targets.Policy) { p.AllowProxy = true })},
		"AllowPrivateHosts": {"server: https://127.0.0.1", only(func(p *targets.Policy) { p.AllowPrivateHosts = true })},
	}
	for name, tc := range cases {
		t.Run(name+" allows one field", func(t *testing.T) {
			text := []byte(newKubeconfig(tc.cluster, okUser, ""))
			if got, err := targets.RESTConfigFromKubeconfig(text, tc.policy); err != nil {
				t.Errorf("refused although allowed: %v", err)
			} else {
				mustBeSafe(t, got, tc.policy)
			}
			if _, err := targets.RESTConfigFromKubeconfig(text, targets.Policy{}); err == nil {
				t.Error("accepted by the default")
			}
		})
	}
	for _, field := range []string{"exec: {}", "auth-provider: {}", "tokenFile: x", "client-key: x", "as: x", "as-uid: x", "as-groups: [x]", "as-user-extra: {}", "username: x"} {
		if _, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(okCluster, okUser+", "+field, "")), all); err == nil {
			t.Errorf("%s is accepted by a policy that allows all", field)
		}
	}
	for _, url := range []string{"http://u:" + canary + "@proxy", "ftp://proxy", "proxy:80"} {
		_, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(okCluster+fmt.Sprintf(", proxy-url: %q", url), okUser, "")), all)
		if err == nil {
			t.Errorf("proxy %s is accepted", url)
			continue
		}
		mustHideCanary(t, err)
	}
}

// TestInClusterServerIsOwnServer checks that the API server address in the environment of a pod counts as the
// deployer's own API server.
func TestInClusterServerIsOwnServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	if _, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig("server: https://10.96.0.1:443", okUser, "")), targets.Policy{}); err == nil {
		t.Error("the deployer's own API server is accepted")
	}
	if _, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig("server: https://10.96.0.2:443", okUser, "")), targets.Policy{}); err != nil {
		t.Errorf("another server: %v", err)
	}
	for _, same := range []string{"https://[::ffff:10.96.0.1]", "https://[64:ff9b::a60:1]"} {
		if _, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(fmt.Sprintf("server: %q", same), okUser, "")), targets.Policy{}); err == nil {
			t.Errorf("the deployer's own API server is accepted as %s", same)
		}
	}
}

// FuzzRESTConfig checks that every accepted kubeconfig is safe, and that errors do not quote a rejected kubeconfig.
func FuzzRESTConfig(f *testing.F) {
	for _, tc := range listInvalidKubeconfigs() {
		if len(tc.text) < 1<<12 {
			f.Add([]byte(tc.text), false)
		}
	}
	f.Add([]byte(newKubeconfig(okCluster, okUser, "")), true)
	f.Add([]byte("clusters: []\nusers: []\ncontexts:\n- unknown: x\n"), true)
	f.Add([]byte("{0, 1}"), false)
	f.Add([]byte("current-context: 2001-01-01\n"), false)
	f.Fuzz(func(t *testing.T, text []byte, loose bool) {
		p := targets.Policy{AllowHTTP: loose, AllowProxy: loose, AllowPrivateHosts: loose}
		cfg, err := targets.RESTConfigFromKubeconfig(text, p)
		if err != nil {
			if _, typed := errors.AsType[*targets.ConfigError](err); !typed {
				t.Errorf("error %v is of type %T", err, err)
			}
			mustHideCanary(t, err)
			return
		}
		mustBeSafe(t, cfg, p)
		if _, err := rest.TransportFor(cfg); err != nil {
			t.Errorf("accepted, but of no use: %v", err)
		}
	})
}

// FuzzRESTConfigField adds a field with any name and value at any level of a valid kubeconfig. If the kubeconfig is
// accepted, it must be safe. If it is rejected, the error must not quote the value.
func FuzzRESTConfigField(f *testing.F) {
	for _, name := range []string{"exec", "Exec", "auth-provider", "client-key", "tokenFile", "as", "username", "token", "<<", "proxy-url", "server", "insecure-skip-tls-verify", "certificate-authority", "name", "namespace", "users", ""} {
		for level := range uint8(6) {
			f.Add(level, name, `"x"`, false)
		}
		f.Add(uint8(0), name, `{command: x, args: [&a y, *a]}`, true)
	}
	f.Add(uint8(1), "server", `https://example.com@169.254.169.254/`, true)
	f.Add(uint8(1), "proxy-url", `socks5://a:b@c`, true)
	f.Add(uint8(0), "extra", "[&open", false)
	f.Add(uint8(0), "Client", `"x"`, true)
	f.Fuzz(func(t *testing.T, level uint8, name, value string, loose bool) {
		text := newKubeconfigWithField(level, name, strings.ReplaceAll(value, "x", canary))
		p := targets.Policy{AllowHTTP: loose, AllowProxy: loose, AllowPrivateHosts: loose}
		cfg, err := targets.RESTConfigFromKubeconfig([]byte(text), p)
		if err == nil {
			mustBeSafe(t, cfg, p)
			if again, err := targets.RESTConfigFromKubeconfig([]byte(text), targets.Policy{AllowHTTP: true, AllowProxy: true, AllowPrivateHosts: true, AllowInsecureTLS: true}); err != nil || again.Host != cfg.Host {
				t.Errorf("more is allowed, and now it is refused: %v", err)
			}
			return
		}
		typed, ok := errors.AsType[*targets.ConfigError](err)
		if !ok || strings.ContainsAny(err.Error(), "\n\r\x00") {
			t.Errorf("error %q of type %T, field %v", err, err, typed)
		}
		mustHideCanary(t, err)
	})
}

// newKubeconfigWithField returns a kubeconfig with one additional field. The level determines where the field is: in
// the user, the cluster, the context, an entry of a list or at the top level. At one of the levels, the field replaces
// the token.
func newKubeconfigWithField(level uint8, name, value string) string {
	field := fmt.Sprintf("%q: %s", name, value)
	switch level % 6 {
	case 0:
		return newKubeconfig(okCluster, okUser+", "+field, "")
	case 1:
		return newKubeconfig(okCluster+", "+field, okUser, "")
	case 2:
		return strings.Replace(newKubeconfig(okCluster, okUser, ""), "namespace: default", field, 1)
	case 3:
		return strings.Replace(newKubeconfig(okCluster, okUser, ""), "- name: u\n", "- name: u\n  "+field+"\n", 1)
	case 4:
		return newKubeconfig(okCluster, okUser, field)
	}
	return newKubeconfig(okCluster, field, "")
}
