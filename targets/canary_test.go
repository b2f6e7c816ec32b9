// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/targets"
)

// logs records everything that this process logs, including headers and bodies. Only client-go's detailed timing
// (verbosity 9) is excluded, because it has a data race with dialers.
var logs = &recorder{}

type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) add(prefix, args string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, prefix+" "+args)
}

func (r *recorder) since(line int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines[line:], "\n")
}

func (r *recorder) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

// TestMain sets the loggers before all tests, because the logger of klog must not be changed later.
func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", "8"); err != nil {
		panic(err)
	}
	log := funcr.New(logs.add, funcr.Options{Verbosity: 8})
	klog.SetLogger(log)
	ctrl.SetLogger(log)
	os.Exit(m.Run())
}

// TestSecretTextIsNeverShown checks that no error, log, metric or returned configuration contains secret text. Secret
// text is the content of a Target or a Secret, a token, and a response that repeats a credential.
func TestSecretTextIsNeverShown(t *testing.T) {
	from := logs.len()
	ls, api := newFakeLandscaper(), newAPI(t, canary, canary+"-1")
	r, _, _ := newTestResolver(map[string]string{"kubeconfig": canary, "bad": canary + ": [" + canary})
	o := ls.options(targets.Policy{EnableOIDC: true, EnableSelf: true})
	o.Resolver, o.ConnectTimeout = r, time.Second
	o.Landscaper = &rest.Config{Host: api.URL, BearerToken: canary}
	p := newPool(t, o)
	inputs := map[string]string{
		"old reference": `{"kubeconfig":{"secretRef":{"name":"creds"}}}`, "bad secret": `{"kubeconfig":{"secretRef":{"name":"creds","key":"bad"}}}`,
		"a token": api.newContent(t, canary), "oidc": api.getOIDCConfig(`,"audience":["x"]`), "self": `{"selfConfig":{"serviceAccount":{"name":"robot"}}}`,
		"no such host": newTargetAt(t, getUnusedAddress(t)), "an audience": api.getOIDCConfig(`,"audience":["` + canary + `",1]`), "text": canary, "JSON": `{"` + canary + `":`,
	}
	for name, tc := range listInvalidKubeconfigs() {
		inputs[name] = tc.text
	}
	var texts []string
	for name, content := range inputs {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		c, err := p.Get(ctx, newResolvedTarget(name, content))
		texts = append(texts, fmt.Sprintf("%v %+v %#v", err, err, err))
		if c != nil {
			texts = append(texts, fmt.Sprintf("%+v %#v", c.Config(), *c.Config()))
			texts = append(texts, runFailingCalls(ctx, api, c)...)
		}
		cancel()
	}
	texts = append(texts, logs.since(from), fmt.Sprint(getMetrics(t, p)))
	if logs.since(from) == "" {
		t.Error("nothing was logged, so the log proves nothing")
	}
	for _, text := range texts {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("the canary shows: …%s…", text[max(0, i-200):min(len(text), i+100)])
		}
		if strings.Contains(text, encodeBase64([]byte(canary))) {
			t.Error("the canary shows, encoded")
		}
	}
}

// runFailingCalls makes the server quote the token in an error, in a warning and in a redirect. It returns the errors
// of the client.
func runFailingCalls(ctx context.Context, api *fakeAPI, c *targets.Client) []string {
	answers := []func(http.ResponseWriter, string){
		func(w http.ResponseWriter, token string) { http.Error(w, token, http.StatusBadRequest) },
		func(w http.ResponseWriter, token string) {
			w.Header().Set("Warning", fmt.Sprintf("299 - %q", token))
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"cm"}}`)
		},
		func(w http.ResponseWriter, token string) {
			w.Header().Set("Location", "https://example.com/"+token)
			w.WriteHeader(http.StatusFound)
		},
	}
	var texts []string
	for _, answer := range answers {
		api.set(func() {
			api.handle = func(w http.ResponseWriter, r *http.Request) bool {
				answer(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
				return true
			}
		})
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "cm"}, &corev1.ConfigMap{})
		texts = append(texts, fmt.Sprintf("%v %+v %#v", err, err, err))
	}
	api.set(func() { api.handle = nil })
	return texts
}
