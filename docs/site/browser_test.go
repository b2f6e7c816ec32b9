// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is the time limit of all waits. It is long, because the machine may be slow.
const patience = 40 * time.Second

// These constants are the sizes of the window, in pixels.
const (
	wide   = 1440
	narrow = 390
	height = 900
)

// prefix is a directory of the server, because the site must not depend on being at the root.
const prefix = "/deployerkit/"

// observed are the pages that the test opens in all sizes and color schemes.
var observed = map[string]string{
	"overview": "", "guide": "docs/getting-started/", "diagram": "docs/monitoring/", "charts": "docs/benchmarks/", "table": "docs/errors/", "decisions": "docs/adr/",
}

func TestSiteInABrowser(t *testing.T) {
	server := httptest.NewServer(http.StripPrefix(prefix, http.FileServer(http.Dir(build(t)))))
	t.Cleanup(server.Close)
	b := startBrowser(t, server.URL+prefix)
	for name, test := range map[string]func(*testing.T, *browser){
		"pages are accessible in both color schemes and two sizes":    testPages,
		"the search finds a section and opens it with the keyboard":   testSearch,
		"the navigation leads to the next page":                       testNavigation,
		"a button opens the navigation on narrow screens":             testMenu,
		"the table of contents follows the section":                   testContents,
		"a diagram is drawn":                                          testDiagram,
		"what other servers send is not loaded, even if a page asked": testPolicy,
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.resize(wide)
			test(t, b)
			for _, fault := range b.takeFaults() {
				t.Error(fault)
			}
		})
	}
}

func testPages(t *testing.T, b *browser) {
	axe, err := os.ReadFile(filepath.Join(root, "test", "ui", "testdata", "axe.min.js"))
	must(t, err)
	for name, path := range observed {
		for scheme, options := range map[string]string{"light": "{}", "dark": "{ runOnly: ['color-contrast'] }"} { // only colors differ
			b.setScheme(scheme)
			for _, width := range []int{wide, narrow} {
				b.resize(width)
				b.open(path)
				b.waitFor("all diagrams", `!document.querySelector('pre.mermaid:not([data-processed])')`)
				b.capture(fmt.Sprintf("%s-%d-%s", name, width, scheme))
				if beside := evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); beside > 0 {
					t.Errorf("%s is %d pixels wider than a window of %d pixels", name, beside, width)
				}
				if width == narrow && scheme == "dark" {
					continue // both have been checked on their own
				}
				evaluate[bool](b, string(axe)+"; true")
				for _, violation := range evaluate[[]string](b, `axe.run(`+options+`).then(({ violations }) => violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html + ' ' + n.failureSummary).join(' | ')))`) {
					t.Errorf("%s, %s, %d pixels: %s", name, scheme, width, violation)
				}
			}
		}
	}
	b.setScheme("light")
}

func testSearch(t *testing.T, b *browser) {
	b.open("")
	b.press("/")
	b.waitFor("the focus", `document.activeElement.id === 'query'`)
	b.press(strings.Split("adoption", "")...)
	b.waitFor("results", `document.querySelectorAll('#results li').length > 1`)
	first := evaluate[string](b, `document.querySelector('#results [aria-selected=true] b').textContent`)
	b.capture("search")
	b.press(kb.ArrowDown, kb.ArrowUp, kb.Enter)
	b.waitFor("the section", `location.hash.length > 1 && document.querySelector(':target')`)
	if got := evaluate[string](b, `document.querySelector(':target').textContent`); got != first {
		t.Errorf("opened %q, want %q", got, first)
	}
	b.press("/")
	b.press(strings.Split("xyzzy", "")...)
	b.waitFor("no results", `document.getElementById('count').textContent === 'No section contains “xyzzy”'`)
	b.press(kb.Escape)
	b.waitFor("the search is closed", `document.getElementById('found').hidden && query.value === ''`)
	b.press("/")
	b.press(strings.Split("<img src=x> (.*", "")...)
	b.waitFor("that the text is not interpreted", `document.getElementById('count').textContent.includes('(.*') && !document.querySelector('#found img')`)
	b.press(kb.Escape)
}

func testNavigation(t *testing.T, b *browser) {
	b.open("docs/getting-started/")
	if got := evaluate[string](b, `document.querySelector('#navigation [aria-current]').textContent`); got != "Getting started" {
		t.Errorf("the navigation marks %q as the current page", got)
	}
	b.click(`.pager [rel=next]`)
	b.waitFor("the next page", `location.pathname.endsWith('/docs/init/') && document.querySelector('h1')?.textContent === 'A repository for a new deployer'`)
	b.click(`#navigation a[href$="docs/adr/"]`)
	b.waitFor("the decisions", `document.querySelectorAll('article .list li').length > 50`)
	b.click(`article .list a`)
	b.waitFor("the first decision", `document.querySelector('h1')?.textContent.startsWith('0001')`)
	b.click(`header .name`)
	b.waitFor("the overview", `location.pathname === '`+prefix+`' && document.querySelector('article img')?.complete`)
}

func testMenu(_ *testing.T, b *browser) {
	b.resize(narrow)
	b.open("docs/targets/")
	b.waitFor("no navigation", `getComputedStyle(document.getElementById('navigation')).display === 'none'`)
	b.click(`#menu`)
	b.waitFor("the navigation", `getComputedStyle(document.getElementById('navigation')).display === 'block' && document.getElementById('menu').getAttribute('aria-expanded') === 'true'`)
	b.capture("menu")
	b.click(`#navigation a[href$="docs/hooks/"]`)
	b.waitFor("the guide", `document.querySelector('h1')?.textContent === 'Extension hooks' && getComputedStyle(document.getElementById('navigation')).display === 'none'`)
}

func testContents(_ *testing.T, b *browser) {
	b.open("docs/targets/")
	b.click(`aside a[href$="#limits"]`)
	b.waitFor("the section", `document.querySelector('aside a.here')?.hash === '#limits'`)
}

func testDiagram(_ *testing.T, b *browser) {
	b.open("docs/stategraph/")
	b.waitFor("two diagrams", `document.querySelectorAll('pre.mermaid svg').length === 2`)
	evaluate[bool](b, `document.querySelector("pre.mermaid").scrollIntoView(), true`)
	b.capture("graph")
}

// testPolicy adds an image of another server to a page. The browser must not send the request.
func testPolicy(t *testing.T, b *browser) {
	var requests atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(other.Close)
	b.open("")
	got := evaluate[string](b, `new Promise((resolve) => {
		document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective));
		document.body.append(Object.assign(new Image(), { src: '`+other.URL+`/x.png' }));
	})`)
	if got != "img-src" || requests.Load() != 0 {
		t.Errorf("the browser reports %q and sent %d requests, want a violation of img-src", got, requests.Load())
	}
	b.takeFaults() // the violation
}

// browser is a tab of a headless Chromium. It records what a page must not do: requests to other servers, and errors.
type browser struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // the context is the handle of chromedp for the tab
	origin string

	mu     sync.Mutex
	faults []string
}

// startBrowser starts Chromium. The page at the URL is not opened yet.
func startBrowser(t *testing.T, url string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("test-site: there is no chromium; install Debian's package chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, origin: url}
	must(t, chromedp.Listen(ctx, b.record))
	b.run(call(network.Enable, network.EnableParams{}), call(cdplog.Enable, cdp.Empty{}))
	return b
}

// record records events that must not happen.
func (b *browser) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.origin) && !strings.HasPrefix(url, "data:") && url != "about:blank" {
			b.faults = append(b.faults, "request to "+url)
		}
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			b.faults = append(b.faults, fmt.Sprintf("error: %s %s", e.Entry.Text, e.Entry.URL))
		}
	}
}

// takeFaults returns what has happened that must not happen, and forgets it.
func (b *browser) takeFaults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// run runs actions, and ends the test if one of them fails.
func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page of the site.
func (b *browser) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.origin + path))
}

// click clicks on an element, as a script would do.
func (b *browser) click(selector string) {
	b.t.Helper()
	evaluate[bool](b, fmt.Sprintf(`document.querySelector(%q).click(), true`, selector))
}

// resize sets the width of the window.
func (b *browser) resize(width int) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(int64(width), height))
}

// waitFor waits until a JavaScript expression is true.
func (b *browser) waitFor(what, expression string) {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if evaluate[bool](b, `Boolean(`+expression+`)`) {
			return
		}
		if time.Now().After(deadline) {
			b.capture("failure")
			b.t.Fatalf("waited %s for %s; the browser reports %q, and the page shows %q", patience, what, b.takeFaults(), evaluate[string](b, `document.body.innerText.slice(0, 300)`))
		}
	}
}

// press presses keys, one after the other. As with a real keyboard, the text of a key belongs to the event of its press,
// so that the text is not entered if the page handles the press.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		r, _ := utf8.DecodeRuneInString(key)
		events := kb.Encode(r)
		down, up := events[0], events[len(events)-1]
		if len(events) > 2 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		b.run(call(input.DispatchKeyEvent, *down), call(input.DispatchKeyEvent, *up))
	}
}

// evaluate returns the value of a JavaScript expression. A promise is awaited.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	must(b.t, err)
	return value
}

// setScheme selects the light or the dark color scheme.
func (b *browser) setScheme(scheme string) {
	b.t.Helper()
	b.run(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// capture writes a screenshot to the directory $SCREENSHOTS, or to a temporary directory.
func (b *browser) capture(name string) {
	b.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = b.t.TempDir()
	}
	image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	must(b.t, err)
	must(b.t, os.MkdirAll(dir, 0o755))
	must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), image, 0o600))
}

// call returns an action that sends a command to the tab and ignores the response.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, command, params)
		return chromedp.Void{}, err
	}
}
