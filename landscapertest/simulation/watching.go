// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// bookmarkInterval is the interval of the bookmarks of a watch.
	bookmarkInterval = time.Minute
	// maxWatch is the longest duration of a watch.
	maxWatch = 10 * time.Minute
)

// stream is the body of the response to a watch. It computes the events when the client reads, so that it needs no
// goroutine.
type stream struct {
	server    *Server
	req       *http.Request
	resource  *resource
	selection selection
	bookmarks bool
	ends      time.Time
	closed    chan struct{}
	close     func()
	// delay returns how long the event with a number waits before it arrives, and an error if the watch breaks there.
	delay func(n int) (time.Duration, error)

	// Only the reader uses the following fields.
	buffer   []byte
	initial  []object
	list     bool // the initial objects end with a bookmark
	version  int64
	events   int
	bookmark time.Time
}

// handleWatch starts a watch. The caller holds the lock.
func (s *Server) handleWatch(req *http.Request, r *resource, by *Request) (*http.Response, error) {
	query := req.URL.Query()
	sel, err := parseSelection(by.Namespace, query)
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(cmp.Or(query.Get("timeoutSeconds"), "600"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	version, err := strconv.ParseInt(cmp.Or(query.Get("resourceVersion"), "0"), 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	now := time.Now()
	body := &stream{
		server: s, req: req, resource: r, selection: sel, closed: make(chan struct{}), version: version, bookmark: now.Add(bookmarkInterval),
		bookmarks: query.Get("allowWatchBookmarks") == "true", ends: now.Add(min(time.Duration(seconds)*time.Second, maxWatch)),
		list: query.Get("sendInitialEvents") == "true", delay: func(int) (time.Duration, error) { return 0, nil },
	}
	body.close = sync.OnceFunc(func() { close(body.closed) })
	if version == 0 || body.list {
		body.version = s.version
		for _, obj := range r.sorted(by.Namespace) {
			if sel.matches(obj) {
				body.initial = append(body.initial, obj)
			}
		}
	} else if version < s.expired {
		return nil, newExpired(version)
	}
	res, err := newResponse(req, http.StatusOK, nil)
	if err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = body, -1
	return res, nil
}

func newExpired(version int64) *apierrors.StatusError {
	return apierrors.NewResourceExpired("too old resource version: " + strconv.FormatInt(version, 10))
}

// Read returns the next events. It waits until there is one.
func (w *stream) Read(p []byte) (int, error) {
	for len(w.buffer) == 0 {
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.buffer)
	w.buffer = w.buffer[n:]
	return n, nil
}

// Close ends the watch.
func (w *stream) Close() error {
	w.close()
	return nil
}

// fill puts the next event into the buffer, or waits until something changes.
func (w *stream) fill() error {
	event, changed := w.next()
	if event != nil {
		delay, broken := w.delay(w.events)
		w.events++
		if err := w.wait(nil, delay); err != nil {
			return err
		}
		if broken != nil {
			return broken
		}
		var err error
		w.buffer, err = json.Marshal(event)
		w.buffer = append(w.buffer, '\n')
		return err
	}
	now := time.Now()
	if !now.Before(w.ends) {
		return io.EOF
	}
	wait := w.ends.Sub(now)
	if w.bookmarks {
		wait = min(wait, w.bookmark.Sub(now))
	}
	return w.wait(changed, wait)
}

// wait waits until a channel is closed or a duration has passed. It returns an error if the watch ends before.
func (w *stream) wait(changed <-chan struct{}, d time.Duration) error {
	if d <= 0 {
		return w.req.Context().Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-w.closed:
		return io.ErrClosedPipe
	case <-w.req.Context().Done():
		return context.Cause(w.req.Context())
	}
	return nil
}

// watchEvent is an event as it is sent to the client.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// next returns the next event, or a channel that is closed at the next change of any object.
func (w *stream) next() (*watchEvent, <-chan struct{}) {
	if len(w.initial) > 0 {
		obj := w.initial[0]
		w.initial = w.initial[1:]
		return w.newEvent(watch.Added, obj), nil
	}
	if w.list {
		w.list = false
		return w.newBookmark(map[string]any{metav1.InitialEventsAnnotationKey: "true"}), nil
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if w.version < w.server.expired {
		status := newExpired(w.version).ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.ends = time.Time{}
		w.version = w.server.version
		return &watchEvent{Type: watch.Error, Object: status}, nil
	}
	for _, c := range w.server.log {
		if c.version <= w.version {
			continue
		}
		w.version = c.version
		if event := w.newChangeEvent(c); event != nil {
			return event, nil
		}
	}
	if w.bookmarks && !time.Now().Before(w.bookmark) {
		w.bookmark = time.Now().Add(bookmarkInterval)
		return w.newBookmark(nil), nil
	}
	return nil, w.server.changed
}

// newChangeEvent returns the event for a change, or nil if the change does not concern the watch.
func (w *stream) newChangeEvent(c change) *watchEvent {
	if c.resource != w.resource {
		return nil
	}
	was, is := w.selection.matches(c.before), w.selection.matches(c.after)
	switch {
	case !was && is:
		return w.newEvent(watch.Added, c.after)
	case was && is:
		return w.newEvent(watch.Modified, c.after)
	case was && c.after == nil:
		return w.newEvent(watch.Deleted, c.gone)
	case was: // no longer selected: the state before, in the version of the change
		gone := c.before.DeepCopy()
		gone.SetResourceVersion(c.after.GetResourceVersion())
		return w.newEvent(watch.Deleted, gone)
	}
	return nil
}

func (w *stream) newEvent(t watch.EventType, obj object) *watchEvent {
	return &watchEvent{Type: t, Object: convert(w.req, obj)}
}

// newBookmark returns a bookmark with the version up to which the watch has sent all events.
func (w *stream) newBookmark(annotations map[string]any) *watchEvent {
	obj := newObject(w.resource.GroupVersionKind)
	obj.SetResourceVersion(strconv.FormatInt(w.version, 10))
	metadata, _ := obj.Object["metadata"].(map[string]any)
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	metadata["creationTimestamp"] = nil
	return w.newEvent(watch.Bookmark, obj)
}
