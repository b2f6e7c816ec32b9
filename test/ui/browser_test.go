// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is the time limit of all waits. It is long, because the machine may be slow.
const patience = 40 * time.Second

// These constants are the sizes of the window, in pixels.
const (
	wide   = 1440
	narrow = 820
	height = 900
)

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
		t.Fatal("test-ui: there is no chromium; install Debian's package chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, origin: url}
	must(t, chromedp.Listen(ctx, b.record))
	b.run(call(network.Enable, network.EnableParams{}), call(cdplog.Enable, cdp.Empty{}),
		call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: observeRows}),
		chromedp.EmulateViewport(wide, height))
	return b
}

// observeRows is a script that records when the page first shows a row.
const observeRows = `const timer = setInterval(() => {
	if (document.querySelector('[role=treeitem]')) { window.firstRow = performance.now(); clearInterval(timer); }
}, 5);`

// record records events that must not happen.
func (b *browser) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.origin) && url != "about:blank" {
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

// open opens a path of the page, and waits until the page has shown the state of the cluster.
func (b *browser) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.origin + path))
	b.waitFor("the page to be live", `document.getElementById('live').textContent === 'Live'`)
}

// leave leaves the page, so that it sends no requests to a server that ends.
func (b *browser) leave() {
	b.t.Helper()
	b.run(chromedp.Navigate("about:blank"))
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
			b.t.Fatalf("waited %s for %s; the browser reports %q, and the page shows:\n%s", patience, what, b.takeFaults(), evaluate[string](b, `document.body.innerText`))
		}
	}
}

// waitForText waits until an element contains a text.
func (b *browser) waitForText(selector, text string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf("%q in %s", text, selector), fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, text))
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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// captureGuide writes a screenshot in the size of the images in docs/images.
func (b *browser) captureGuide(name string) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(1280, 960))
	b.capture(name)
	b.run(chromedp.EmulateViewport(wide, height))
}

// measureHeap returns the number of bytes that JavaScript objects and the objects of the page need after a garbage collection.
func (b *browser) measureHeap() int64 {
	b.t.Helper()
	b.run(call(heapprofiler.CollectGarbage, cdp.Empty{}))
	used, err := chromedp.Run(b.ctx, func(ctx context.Context, tab *chromedp.Target) (float64, error) {
		usage, err := cdp.Call(ctx, tab, runtime.GetHeapUsage, cdp.Empty{})
		return usage.UsedSize + usage.EmbedderHeapUsedSize + usage.BackingStorageSize, err
	})
	must(b.t, err)
	return int64(used)
}

// call returns an action that sends a command to the tab and ignores the response.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, command, params)
		return chromedp.Void{}, err
	}
}
