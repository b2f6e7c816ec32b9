// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

// TestPage shows one cluster in one browser. The subtests build on each other, as the work of a user does.
func TestPage(t *testing.T) {
	w := newWorld(t)
	b := startBrowser(t, w.url)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *world, *browser)
	}{
		{"an empty cluster is described [U13]", testEmptyCluster},
		{"the tree grows while items are created [U6]", testGrowingTree},
		{"the overview counts the items, and lists changes and deployers [U12]", testOverview},
		{"a failing item is found and explained, with a Gantt chart of its reconciles [U7]", testFailingItem},
		{"the tree is filtered by state, type and text [U10]", testFilters},
		{"the state graph of Galera changes its colors [U7]", testStateGraph},
		{"the drift and the planned changes of an item are shown, without secrets [U5, U7]", testObjects},
		{"each state of the page has an address [U11]", testAddresses},
		{"everything can be done with the keyboard [U9]", testKeyboard},
		{"hostile texts stay texts [U3]", testHostileTexts},
		{"the browser sends no request to other servers [U3]", testOtherServers},
		{"missing rights are described [U13]", testMissingRights},
		{"a lost connection is described, and restored [U13]", testLostConnection},
		{"axe-core finds no serious problem in light and in dark [U9]", testAccessibility},
		{"5000 items are shown within a second, and so is an update [U8]", testManyItems},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			w.t, b.t = t, t
			step.run(t, w, b)
			if faults := b.takeFaults(); len(faults) > 0 {
				t.Errorf("the browser reports: %s", strings.Join(faults, "\n"))
			}
		}) {
			return
		}
	}
	t.Run("the page has written nothing [U4]", func(t *testing.T) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.writes) > 0 {
			t.Errorf("the page sent %v", w.writes)
		}
	})
}

func testEmptyCluster(_ *testing.T, _ *world, b *browser) {
	b.open("/")
	b.waitForText("#empty", "There are no Installations and no deploy items in the cluster.")
	b.waitForText("#detail", "Select a row")
	b.capture("01-empty")
}

func testGrowingTree(_ *testing.T, w *world, b *browser) {
	root, sub := &lsv1alpha1.Installation{}, &lsv1alpha1.Installation{}
	root.Namespace, root.Name = namespace, "webshop"
	root.Spec.Blueprint.Inline = &lsv1alpha1.InlineBlueprint{Filesystem: lsv1alpha1.NewAnyJSON([]byte(`{}`))}
	sub.Namespace, sub.Name, sub.Labels = namespace, "storefront", map[string]string{lsv1alpha1.EncompassedByLabel: "webshop"}
	sub.Spec.Blueprint.Inline = &lsv1alpha1.InlineBlueprint{Filesystem: lsv1alpha1.NewAnyJSON([]byte(`{}`))}
	w.create(root)
	b.waitForText("#rows", "webshop")
	w.create(sub)
	exec := &lsv1alpha1.Execution{}
	exec.Namespace, exec.Name = namespace, "storefront"
	exec.OwnerReferences = []metav1.OwnerReference{{APIVersion: "landscaper.gardener.cloud/v1alpha1", Kind: "Installation", Name: sub.Name, UID: sub.UID}}
	w.create(exec)
	managed := func(name string) func(*lsv1alpha1.DeployItem) {
		return func(di *lsv1alpha1.DeployItem) {
			di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "storefront", lsv1alpha1.ExecutionManagedNameLabel: name}
		}
	}
	w.deploy("frontend", manifest.Type, newManifests("frontend", "blue"), managed("web-frontend"))
	b.waitForText("#rows", "web-frontend")
	b.waitFor("the item below its Execution", `document.querySelector('[data-id="DeployItem/shop/frontend"]')?.getAttribute('aria-level') === '4'`)
	w.deploy("migration", mock.Type, newMock("Progressing"), managed("database-migration"))
	for i := range 4 {
		w.deploy(fmt.Sprintf("cache-%d", i), mock.Type, newMock("Succeeded"))
	}
	w.deploy("unknown", "example.org/unregistered", map[string]any{"apiVersion": "example.org/v1", "kind": "X"})
	for _, obj := range []client.Object{root, sub, exec} {
		w.setStatus(obj, map[string]any{"observedGeneration": 1, "phase": "Progressing", "executionPhase": "Progressing"})
	}
	b.waitForText("#shown", "7 deploy items")
	b.run(chromedp.Click(chromedp.CSS(`[data-id="DeployItem/shop/unknown"] .name`)))
	b.waitForText("#detail", "No known deployer processes items of type example.org/unregistered")
	b.run(chromedp.Click(chromedp.CSS(`[data-id="Installation/shop/webshop"] .name`)))
	b.waitForText("#detail", "The Installation is in progress; its phase is Progressing.")
	b.waitForText("#section-children", "storefront")
	b.capture("02-installation")
}

func testOverview(_ *testing.T, w *world, b *browser) {
	b.waitFor("the count of items that have succeeded", `document.querySelector('.count.succeeded .big').textContent === '5'`)
	b.waitFor("an item that has succeeded", `document.querySelector('#recent .succeeded[aria-label=Succeeded]')`)
	for _, text := range []string{"mock.deployer.landscaper.gardener.cloud-0", "v0.9.0", "0 waiting, 1 running", "not registered", "1 waiting, 0 running"} {
		b.waitForText("#deployers", text)
	}
	w.setHolder(mock.Name, nil)
	b.waitForText("#deployers", "no leader")
	w.setHolder(mock.Name, new(mock.Name+"-0"))
	b.waitForText("#deployers", mock.Name+"-0")
	b.run(chromedp.Click(chromedp.CSS(`#recent button`)))
	b.waitFor("the item that changed last", `document.querySelector('#detail h2').textContent === document.querySelector('#recent button').lastChild.textContent`)
}

func testFailingItem(t *testing.T, w *world, b *browser) {
	w.deploy("misspelt", mock.Type, map[string]any{"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "phase": "Sucseeded"})
	b.waitFor("the failed item at the top", `document.querySelector('[role=treeitem]')?.dataset.id === 'DeployItem/shop/misspelt'`)
	b.run(chromedp.Click(chromedp.CSS(`.count.failed`)))
	b.waitForText("#shown", "1 of")
	b.run(chromedp.Click(chromedp.CSS(`[data-id="DeployItem/shop/misspelt"] .name`)))
	b.waitForText("#detail", `spec.config.phase: is "Sucseeded"`)
	b.waitForText("#section-explanation", "The last run is finished and nothing has changed since.")
	b.waitFor("a Gantt chart", `document.querySelector('#section-timeline .gantt-bar')`)
	b.waitForText("#section-timeline", "failed")
	if got := evaluate[string](b, `location.search`); got != "?select=DeployItem/shop/misspelt&state=failed" {
		t.Errorf("the address is %q", got)
	}
	b.capture("03-failed")
	b.run(chromedp.Click(chromedp.CSS(`.count.failed`)))
	b.waitForText("#shown", "8 deploy items")
	b.captureGuide("ui")
}

func testFilters(_ *testing.T, _ *world, b *browser) {
	ids := `[...document.querySelectorAll('[role=treeitem]')].map((row) => row.dataset.id.split('/').pop()).join()`
	for query, want := range map[string]string{
		"state=succeeded&type=landscaper.gardener.cloud/mock": "cache-0,cache-1,cache-2,cache-3",
		"text=FRONT": "webshop,storefront,storefront,frontend", "text=Sucseeded": "misspelt", // a part of the message
		"state=running":           "webshop,storefront,storefront,migration", // an item that matches is shown with its parents
		"text=cache&state=failed": "",
	} {
		b.open("/?" + query)
		b.waitFor(query+" to show "+want, fmt.Sprintf(`%s === %q && document.getElementById('empty').hidden === %t`, ids, want, want != ""))
	}
	b.press(kb.Escape)
	b.waitForText("#shown", "8 deploy items")
	b.waitFor("problems before other rows", ids+`.startsWith('misspelt,unknown,')`)
}

func testStateGraph(t *testing.T, w *world, b *browser) {
	w.deploy("galera", galeraType, map[string]any{
		"apiVersion": "galera.example.org/v1", "kind": "Galera", "namespace": "database", "replicas": 3, "image": "example.com/none:1",
		"settings": map[string]string{"max_connections": "100"},
	})
	b.open("/?select=DeployItem/shop/galera")
	state := func(component, want string) {
		t.Helper()
		b.waitFor(component+" is "+want, fmt.Sprintf(`document.querySelector('.graph [data-node="%s"].%s')`, component, want))
	}
	state("certificates", "running")
	state("service", "succeeded")
	state("database", "waiting")
	before := evaluate[string](b, `getComputedStyle(document.querySelector('[data-node=certificates] rect')).fill`)
	b.waitForText("#section-graph", "the issuer has not answered")
	b.press("3")
	b.capture("04-graph-blocked")
	b.captureGuide("ui-graph")
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "database", "galera-tls"
	answer := client.RawPatch(types.MergePatchType, []byte(`{"data":{"tls.crt":"cGVt","tls.key":"cGVt"}}`))
	must(t, w.client.Patch(t.Context(), secret, answer, client.FieldOwner("issuer")))
	state("certificates", "succeeded")
	state("database", "running")
	if after := evaluate[string](b, `getComputedStyle(document.querySelector('[data-node=certificates] rect')).fill`); after == before {
		t.Errorf("the color is still %s", before)
	}
	w.mu.Lock()
	w.databaseReady = true
	w.mu.Unlock()
	b.waitForText("#section-graph", "All 6 components are ready.")
	if edges := evaluate[int](b, `document.querySelectorAll('.graph .edge').length`); edges < 5 {
		t.Errorf("the graph has %d arrows, want at least 5", edges)
	}
	b.run(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('.reconcile')].find((run) => !run.textContent.includes(' 0 calls')).click()`))
	b.waitFor("requests in the chart", `document.querySelector('.gantt .call')`)
	if !evaluate[bool](b, callsAreWithinOperate) {
		t.Errorf("the requests are not drawn below the phase that sent them: %s", evaluate[string](b, `document.querySelector('.gantt').outerHTML`))
	}
	b.waitForText("#section-objects", "galera-0")
	b.capture("05-graph-ready")
}

// callsAreWithinOperate is true if the bars of all requests are within the bar of the phase operate.
const callsAreWithinOperate = `(() => {
	const rows = [...document.querySelectorAll('.gantt tbody tr')];
	const range = (row) => { const bar = row.querySelector('rect'), x = Number(bar.getAttribute('x')); return [x, x + Number(bar.getAttribute('width'))]; };
	const [from, to] = range(rows.find((row) => row.textContent.startsWith('operate')));
	return from > 0 && rows.filter((row) => row.classList.contains('call')).map(range).every(([begin, end]) => begin >= from && end <= to + 3);
})()`

func testObjects(t *testing.T, w *world, b *browser) {
	live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "frontend"}}
	must(t, w.client.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"red"}}`)), client.FieldOwner("another-controller")))
	b.open("/?select=DeployItem/shop/frontend&section=objects")
	b.waitForText("#section-objects", "Drift")
	b.waitForText("#section-objects", "another-controller")
	must(t, w.ls.Update(t.Context(), w.key("frontend"), newManifests("frontend", "green")))
	b.waitForText("#section-objects", "Compare with the target")
	b.run(chromedp.Click(chromedp.CSS(`.plan`)))
	b.waitFor("the planned value", `document.querySelector('.diff ins')?.textContent.includes('green')`)
	b.waitFor("the current value", `document.querySelector('.diff del')?.textContent.includes('blue')`)
	b.waitForText("#section-objects", "change Secret shop/frontend")
	b.capture("06-objects")
	all := evaluate[string](b, `Promise.all(['item', 'objects'].map((path) => fetch('/api/' + path + '/shop/frontend').then((r) => r.text()))).then((texts) => texts.join() + document.documentElement.outerHTML)`)
	for _, secret := range []string{"hunter2", "aHVudGVyMi", "client-key-data", "BEGIN CERTIFICATE"} {
		if strings.Contains(all, secret) {
			t.Errorf("the page knows %q", secret)
		}
	}
}

func testAddresses(_ *testing.T, _ *world, b *browser) {
	b.open("/?select=Object/DeployItem/shop/frontend/ConfigMap:shop:frontend&open=DeployItem/shop/frontend&closed=Execution/shop/none&section=objects")
	b.waitForText("#detail h2", "web-frontend")
	b.waitFor("the selected object in the tree", `document.querySelector('[role=treeitem].selected .name')?.textContent === 'frontend'`)
	b.waitFor("the selected object in the table", `document.querySelector('#section-objects tr.selected')?.textContent.startsWith('ConfigMap frontend')`)
	b.waitFor("the section", `document.getElementById('detail').scrollTop > 0`)
	b.open("/?select=DeployItem/shop/galera")
	b.waitFor("several reconciles", `document.querySelectorAll('.reconcile').length > 2`)
	b.run(chromedp.Click(chromedp.CSS(`.reconcile:nth-child(3)`)))
	b.waitFor("the run in the address", `new URLSearchParams(location.search).get('run') !== null`)
	address := evaluate[string](b, `location.pathname + location.search`)
	const reconcile = `document.querySelector('.reconcile-detail p')?.textContent.split('; next')[0]`
	picked := evaluate[string](b, reconcile)
	b.run(chromedp.Click(chromedp.CSS(`[data-id="DeployItem/shop/misspelt"] .name`)))
	b.waitForText("#detail h2", "misspelt")
	b.run(chromedp.NavigateBack())
	b.waitForText("#detail h2", "galera")
	b.open(address)
	b.waitFor("the same reconcile", fmt.Sprintf(`%s === %q`, reconcile, picked))
	b.open("/?select=DeployItem/shop/gone")
	b.waitForText("#detail", "DeployItem shop/gone does not exist, or no longer exists.")
}
