// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testKeyboard(t *testing.T, _ *world, b *browser) {
	selected := `new URLSearchParams(location.search).get('select')`
	b.open("/")
	b.press("n")
	b.waitForText("#detail h2", "misspelt")
	b.press(kb.ArrowDown)
	b.waitFor("the next row", selected+` !== 'DeployItem/shop/misspelt'`)
	b.press(kb.Home, "/", "w", "e", "b", "-", "f", kb.Enter)
	b.waitForText("#detail h2", "web-frontend")
	b.press(kb.ArrowRight)
	b.waitForText("#rows", "ConfigMap")
	b.press(kb.ArrowRight)
	b.waitFor("an object is selected", selected+`.startsWith('Object/DeployItem/shop/frontend')`)
	b.press(kb.ArrowLeft, kb.ArrowLeft)
	b.waitFor("the item is closed", `document.querySelector('[data-id="DeployItem/shop/frontend"]').getAttribute('aria-expanded') === 'false'`)
	b.press("4")
	b.waitFor("the focus on the objects", `document.activeElement.id === 'section-objects'`)
	b.press("p")
	b.waitFor("the plan", `document.querySelector('.diff ins')`)
	b.press("?")
	b.waitFor("the keys", `document.getElementById('keys').open`)
	b.press(kb.Escape)
	b.waitFor("the keys are closed", `!document.getElementById('keys').open`)
	b.press("/")
	b.waitFor("the focus on the filter", `document.activeElement.id === 'text'`)
	b.press(kb.Escape)
	b.waitFor("no filter", `document.getElementById('text').value === '' && document.activeElement.id === 'tree'`)
	b.run(chromedp.NavigateBack())
	b.waitFor("the state before", `location.search.length > 0`)
}

func testAccessibility(t *testing.T, _ *world, b *browser) {
	source, err := os.ReadFile("testdata/axe.min.js")
	must(t, err)
	for scheme, options := range map[string]string{"light": "{}", "dark": "{ runOnly: ['color-contrast'] }"} { // only colors differ
		b.setScheme(scheme)
		for _, path := range []string{"/", "/?select=DeployItem/shop/misspelt", "/?select=DeployItem/shop/galera", "/?select=DeployItem/shop/frontend&open=DeployItem/shop/frontend", "/?select=Installation/shop/webshop&text=nothing"} {
			b.open(path)
			if strings.Contains(path, "DeployItem") {
				b.waitFor("the explanation", `document.querySelector('.sentences')`)
			}
			evaluate[bool](b, string(source)+"; true")
			found := evaluate[[]string](b, `axe.run(`+options+`).then(({ violations }) => violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html + ' ' + n.failureSummary).join(' | ')))`)
			for _, violation := range found {
				t.Errorf("%s in %s: %s", path, scheme, violation)
			}
		}
		b.open("/?select=DeployItem/shop/galera")
		b.waitFor("the graph", `document.querySelector('.graph')`)
		b.capture("10-" + scheme)
		b.run(chromedp.EmulateViewport(narrow, height))
		b.capture("11-narrow-" + scheme)
		b.press("3")
		b.capture("12-narrow-graph-" + scheme)
		b.run(chromedp.EmulateViewport(wide, height))
	}
	b.setScheme("light")
}

func testManyItems(t *testing.T, w *world, b *browser) {
	const count = 5000
	w.createNamespace("many")
	var group errgroup.Group
	group.SetLimit(32)
	for i := range count {
		group.Go(func() error {
			di := w.ls.Item("many", fmt.Sprintf("item-%04d", i), "example.org/many", map[string]any{"apiVersion": "example.org/v1", "kind": "Many"})
			return w.client.Create(t.Context(), di)
		})
	}
	must(t, group.Wait())
	b.open("/?type=example.org/many")
	b.waitForText("#shown", "5,000 of")
	if elements := measure(t, w, b, count); elements > 100 {
		t.Errorf("%d rows exist as elements, want only the visible ones", elements)
	}
	b.press(kb.End)
	b.waitFor("the last row", `document.querySelector('[role=treeitem].selected')?.getAttribute('aria-posinset') === document.querySelector('[role=treeitem]').getAttribute('aria-setsize')`)
	b.capture("13-many")
}

// measure checks the limits for a page with many items. Each time is the best of at most three attempts, because the machine may be busy.
// measure returns the number of rows that exist as elements.
func measure(t *testing.T, w *world, b *browser, count int) int {
	t.Helper()
	paint, row, update := time.Hour, time.Hour, time.Hour
	for attempt := 0; attempt < 3 && max(paint, row, update) > time.Second; attempt++ {
		b.open("/?text=item-4321")
		b.waitForText("#rows", "item-4321")
		di := &lsv1alpha1.DeployItem{}
		di.Namespace, di.Name = "many", "item-4321"
		began, message := time.Now(), fmt.Sprintf("attempt %d", attempt)
		w.setStatus(di, map[string]any{
			"phase": "Failed", "observedGeneration": 0,
			"lastError": map[string]any{"operation": "Reconcile", "reason": "Test", "message": message, "lastTransitionTime": metav1.Now(), "lastUpdateTime": metav1.Now()},
		})
		b.waitFor("the update", fmt.Sprintf(`document.querySelector('[data-id="DeployItem/many/item-4321"]')?.title === %q`, message))
		update = min(update, time.Since(began))

		b.open("/")
		b.waitFor("all items", fmt.Sprintf(`Number(document.querySelector('.count .big').textContent.replace(',', '')) >= %d`, count))
		paint = min(paint, millis(evaluate[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`)))
		row = min(row, millis(evaluate[float64](b, `window.firstRow`)))
	}
	heap := float64(b.measureHeap()) / (1 << 20)
	t.Logf("first paint after %s, first row after %s, update after %s, memory for JavaScript %.1f MB", paint, row, update.Round(time.Millisecond), heap)
	if paint > time.Second || update > time.Second || heap > 60 {
		t.Errorf("first paint after %s, update after %s, %.1f MB; want at most 1 s, 1 s and 60 MB", paint, update, heap)
	}
	return evaluate[int](b, `document.querySelectorAll('[role=treeitem]').length`)
}

func millis(ms float64) time.Duration { return time.Duration(ms) * time.Millisecond }
