// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/deployers/mock"
)

func testHostileTexts(t *testing.T, w *world, b *browser) {
	hostile := `"><img src=x onerror="window.owned=1"><script>window.owned=1</script>` + "\u202egnp"
	w.deploy("hostile", lsv1alpha1.DeployItemType("example.org/"+hostile), map[string]any{"apiVersion": "x/v1", "kind": "Hostile"})
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name = namespace, "hostile"
	w.setStatus(di, map[string]any{
		"phase": "Failed",
		"lastError": map[string]any{
			"operation": hostile, "reason": hostile, "message": "message " + hostile, "codes": []string{hostile},
			"lastTransitionTime": metav1.Now(), "lastUpdateTime": metav1.Now(),
		},
		"providerStatus": map[string]any{
			"apiVersion": "x/v1", "kind": "X",
			"components": []any{map[string]any{"name": hostile, "state": "Failed", "reason": hostile}, map[string]any{"name": "__proto__", "state": hostile, "blockedBy": []string{hostile}}},
		},
	})
	w.create(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hostile"}, InvolvedObject: corev1.ObjectReference{Kind: "DeployItem", Namespace: namespace, Name: "hostile"},
		Reason: hostile, Message: "event " + hostile, LastTimestamp: metav1.Now(),
	})
	b.open("/?select=DeployItem/shop/hostile&text=%3Cscript%3Ewindow.owned=1%3C/script%3E&state=%22%3E%3Cimg%20src=x%3E")
	b.waitForText("#section-explanation", "<script>window.owned=1</script>")
	b.waitForText("#section-events", "event ")
	b.waitFor("a graph", `document.querySelectorAll('.graph .node').length === 2`)
	if evaluate[bool](b, `window.owned !== undefined || document.querySelector('img, script:not([type=module])') !== null`) {
		t.Error("a text became an element")
	}
	for _, script := range []string{
		`document.body.innerHTML = '<b>x</b>'`,
		`document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.owned = 1' }))`,
		`setTimeout('window.owned = 1')`,
	} {
		if evaluate[bool](b, `(() => { try { `+script+`; return true } catch { return false } })()`) {
			t.Errorf("the policy of the page permits %s", script)
		}
	}
	b.takeFaults() // the browser has reported what the policy forbids
	b.capture("07-hostile")
}

func testOtherServers(t *testing.T, _ *world, b *browser) {
	var requests atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer other.Close()
	b.open("/")
	for _, try := range []string{
		`fetch(%q).then(() => true, () => false)`,
		`new Promise((done) => Object.assign(new Image(), { onload: () => done(true), onerror: () => done(false) }).src = %q)`,
		`new Promise((done) => { const source = new EventSource(%q); source.onopen = () => done(true); source.onerror = () => { source.close(); done(false); }; })`,
	} {
		if evaluate[bool](b, fmt.Sprintf(try, other.URL)) {
			t.Errorf("the page can read from other servers: %s", try)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("another server received %d requests", n)
	}
	b.takeFaults() // the browser has reported the attempts
}

func testMissingRights(_ *testing.T, w *world, b *browser) {
	o := w.page
	o.Page.Config = rest.CopyConfig(w.config)
	o.Page.Config.Impersonate = rest.ImpersonationConfig{UserName: "guest"}
	url, end := w.startPage(o)
	defer end()
	origin := b.origin
	b.origin = url
	defer func() { b.origin = origin }()
	defer b.leave()
	b.open("/?select=DeployItem/shop/frontend")
	b.waitForText("#problems", `The page cannot read DeployItems: deployitems.landscaper.gardener.cloud is forbidden: User "guest" cannot list resource "deployitems"`)
	b.waitForText("#deployers", "You lack the right to list leases, so the deployers are unknown.")
	b.waitForText("#detail", "The page cannot read DeployItems, so it does not know whether shop/frontend exists.")
	b.waitForText("#empty", "The page shows nothing, because it cannot read the cluster.")
	b.capture("08-missing-rights")
}

func testLostConnection(t *testing.T, w *world, b *browser) {
	url, end := w.startPage(w.page)
	origin := b.origin
	b.origin = url
	defer func() { b.origin = origin }()
	b.open("/?select=DeployItem/shop/misspelt")
	b.waitForText("#section-explanation", "The last run is finished")
	end()
	b.waitForText("#problems", "The page is not connected to deployerkit ui, and shows the last known state.")
	b.waitFor("another state", `document.getElementById('live').textContent !== 'Live'`)
	b.waitForText("#rows", "misspelt")
	b.capture("09-lost-connection")
	w.deploy("meanwhile", mock.Type, newMock("Succeeded"))
	o := w.page
	_, o.Address, _ = strings.Cut(url, "//")
	_, end = w.startPage(o)
	defer end()
	defer b.leave()
	b.waitFor("the page to be live again", `document.getElementById('live').textContent === 'Live' && document.getElementById('problems').hidden`)
	b.waitForText("#rows", "meanwhile")
	b.takeFaults() // the browser has reported the lost connection
}
