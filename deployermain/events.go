// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/transport"
)

const (
	newEvents  = "/apis/events.k8s.io/v1/namespaces/"
	coreEvents = "/api/v1/namespaces/"

	contentType = "Content-Type"
	jsonType    = "application/json"
	// maxEvent is the maximum number of bytes that are read from the body of a request or a response.
	maxEvent = 1 << 20
)

// eventFallback returns a wrapper for a transport. If the server forbids an event of the API group events.k8s.io, the
// transport sends the event to the core API group. If the server forbids that request as well, the event is lost. The
// transport logs the loss only once.
func eventFallback(log logr.Logger) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return &eventSender{next: next, log: log.WithName("events")}
	}
}

type eventSender struct {
	next http.RoundTripper
	log  logr.Logger

	useCore        atomic.Bool
	fellBack, lost sync.Once
}

// RoundTrip sends a request. It passes all requests except events to the wrapped transport unchanged.
func (s *eventSender) RoundTrip(req *http.Request) (*http.Response, error) {
	isNew := isEvent(req, newEvents)
	if !isNew && !isEvent(req, coreEvents) {
		return s.next.RoundTrip(req)
	}
	body, err := readAll(req.Body)
	if err != nil {
		return nil, err
	}
	if !isNew || !s.useCore.Load() {
		res, err := s.next.RoundTrip(withBody(req, body))
		if err != nil || res.StatusCode != http.StatusForbidden {
			return res, err
		}
		if !isNew {
			return s.dropEvent(req, res, body)
		}
		readToEnd(res)
	}
	return s.sendToCore(req, body)
}

// sendToCore sends an event of the API group events.k8s.io to the core API group.
func (s *eventSender) sendToCore(req *http.Request, body []byte) (*http.Response, error) {
	older, err := toCoreRequest(req, body)
	if err != nil {
		return nil, err
	}
	res, err := s.next.RoundTrip(older)
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusForbidden:
		return s.dropEvent(req, res, body)
	}
	s.useCore.Store(true)
	s.fellBack.Do(func() { s.log.Info("events in events.k8s.io are forbidden; sending core events instead") })
	if res.StatusCode >= http.StatusMultipleChoices {
		return res, nil
	}
	return fromCoreResponse(req, res, body)
}

// dropEvent replaces the response to an event that the server forbids, and logs the first such event. For a new event,
// the replacement reports success. For a patch of an event, the replacement is "not found", so that the recorder
// creates the event again.
func (s *eventSender) dropEvent(req *http.Request, refused *http.Response, body []byte) (*http.Response, error) {
	s.lost.Do(func() {
		s.log.Info("events are forbidden and are lost; this message is logged only once", "path", req.URL.Path)
	})
	readToEnd(refused)
	if req.Method == http.MethodPatch {
		return newResponse(refused, http.StatusNotFound, jsonType, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)), nil
	}
	return newResponse(refused, http.StatusCreated, req.Header.Get(contentType), body), nil
}

// fromCoreResponse converts a response of the core API group to a response of the API group events.k8s.io.
func fromCoreResponse(req *http.Request, res *http.Response, body []byte) (*http.Response, error) {
	if req.Method == http.MethodPost {
		readToEnd(res)
		return newResponse(res, res.StatusCode, req.Header.Get(contentType), body), nil // the fields that the server has added are not used
	}
	stored, err := readAll(res.Body)
	if err != nil {
		return nil, err
	}
	event := &corev1.Event{}
	if err := json.Unmarshal(stored, event); err != nil {
		return nil, fmt.Errorf("decode core event: %w", err)
	}
	changed, err := json.Marshal(fromCore(event))
	return newResponse(res, res.StatusCode, jsonType, changed), err
}

// isEvent reports whether the request creates or changes an event of the given API group.
func isEvent(req *http.Request, api string) bool {
	after, found := strings.CutPrefix(req.URL.Path, api)
	parts := strings.Split(after, "/")
	return found && len(parts) > 1 && parts[1] == "events" && (req.Method == http.MethodPost || req.Method == http.MethodPatch)
}

// toCoreRequest converts the request to a request for the core API group. A patch needs no conversion, because a patch
// only changes the series, which has the same name in both API groups.
func toCoreRequest(req *http.Request, body []byte) (*http.Request, error) {
	if req.Method == http.MethodPost {
		decoded, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, &eventsv1.Event{})
		event, isEvent := decoded.(*eventsv1.Event)
		if err != nil || !isEvent {
			return nil, errors.Join(err, errors.New("the request contains no event"))
		}
		if body, err = json.Marshal(toCore(event)); err != nil {
			return nil, err
		}
	}
	out := withBody(req, body)
	out.URL.Path = coreEvents + strings.TrimPrefix(req.URL.Path, newEvents)
	out.Header.Set("Accept", jsonType)
	if req.Method == http.MethodPost {
		out.Header.Set(contentType, jsonType)
	}
	return out, nil
}

func toCore(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Related: e.Related, Reason: e.Reason, Message: e.Note, Type: e.Type,
		EventTime: e.EventTime, Action: e.Action, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	if e.Series != nil {
		out.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}

func fromCore(e *corev1.Event) runtime.Object {
	out := &eventsv1.Event{
		ObjectMeta: e.ObjectMeta, Regarding: e.InvolvedObject, Related: e.Related, Reason: e.Reason, Note: e.Message, Type: e.Type,
		EventTime: e.EventTime, Action: e.Action, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
	out.SetGroupVersionKind(eventsv1.SchemeGroupVersion.WithKind("Event"))
	if e.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}

// withBody returns a copy of the request with the given body, because a transport must not change its request.
func withBody(req *http.Request, body []byte) *http.Request {
	out := req.Clone(req.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out
}

// newResponse returns a copy of a response in which the status and the body are replaced.
func newResponse(to *http.Response, status int, kind string, body []byte) *http.Response {
	out := *to
	out.StatusCode, out.Status = status, fmt.Sprintf("%d %s", status, http.StatusText(status))
	out.Header = http.Header{contentType: {kind}}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return &out
}

func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	content, err := io.ReadAll(io.LimitReader(body, maxEvent))
	return content, errors.Join(err, body.Close())
}

// readToEnd reads a response to its end, so that its connection can be reused.
func readToEnd(res *http.Response) {
	_, _ = readAll(res.Body)
}
