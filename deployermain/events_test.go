// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/deployerlib"
)

func newDeployerArgs(count func(int)) *deployerlib.DeployerArgs {
	return &deployerlib.DeployerArgs{CountCalls: count}
}

// eventServer allows the requests whose path begins with one of the allowed prefixes. The response to an allowed
// request contains the body of the request.
type eventServer struct {
	allowed  []string
	requests []string
}

func (s *eventServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	s.requests = append(s.requests, req.Method+" "+req.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	for _, prefix := range s.allowed {
		if strings.HasPrefix(req.URL.Path, prefix) {
			w.Header().Set("Content-Type", req.Header.Get("Content-Type"))
			if req.Method == http.MethodPatch {
				w.Header().Set("Content-Type", "application/json")
				version := "v1"
				if prefix == newEvents {
					version = "events.k8s.io/v1"
				}
				body = []byte(`{"kind":"Event","apiVersion":"` + version + `","metadata":{"name":"e","namespace":"ns"},"message":"text","series":{"count":7}}`)
			}
			_, _ = w.Write(body)
			return
		}
	}
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
}

// newEvent is the event that the tests send.
func newEvent() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}, Note: "text", Reason: "Failed", Type: "Warning", Action: "Reconcile",
		Regarding: corev1.ObjectReference{Kind: "DeployItem", Namespace: "ns", Name: "item"}, ReportingController: "c", ReportingInstance: "i",
		Series: &eventsv1.EventSeries{Count: 2},
	}
}

func TestEventFallback(t *testing.T) {
	const newPath, corePath = newEvents + "ns/events", coreEvents + "ns/events"
	for name, tc := range map[string]struct {
		allowed  []string
		requests []string
		logs     int
		found    bool
	}{
		"the transport sends events to the new API if that is allowed [F57]": {
			[]string{newEvents}, []string{"POST " + newPath, "POST " + newPath, "PATCH " + newPath + "/e"}, 0, true,
		},
		"the transport sends events to the core API if only that is allowed, and remembers it [F57] [O32]": {
			[]string{coreEvents}, []string{"POST " + newPath, "POST " + corePath, "POST " + corePath, "PATCH " + corePath + "/e"}, 1, true,
		},
		"the transport logs once that events are lost [F57] [O32]": {
			nil, []string{"POST " + newPath, "POST " + corePath, "POST " + newPath, "POST " + corePath, "PATCH " + newPath + "/e", "PATCH " + corePath + "/e"}, 1, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &eventServer{allowed: tc.allowed}
			clients, logs := eventClients(t, server)
			events := clients.EventsV1().Events("ns")
			for range 2 {
				got, err := events.Create(t.Context(), newEvent(), metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(newEvent().Note, got.Note); diff != "" {
					t.Errorf("response to the recorder: -want, +got:\n%s", diff)
				}
			}
			got, err := events.Patch(t.Context(), "e", types.StrategicMergePatchType, []byte(`{"series":{"count":7}}`), metav1.PatchOptions{})
			if (err == nil) != tc.found {
				t.Errorf("a change: want found %t, got %v", tc.found, err)
			}
			if tc.found && len(tc.requests) == 4 && (got.Note != "text" || got.Series == nil || got.Series.Count != 7) {
				t.Errorf("a change: got %+v", got)
			}
			if diff := cmp.Diff(tc.requests, server.requests); diff != "" {
				t.Errorf("requests: -want, +got:\n%s", diff)
			}
			if len(*logs) != tc.logs {
				t.Errorf("want %d lines in the log, got %q", tc.logs, *logs)
			}
		})
	}
	t.Run("a converted event keeps its content [F57]", func(t *testing.T) {
		want := newEvent()
		want.SetGroupVersionKind(eventsv1.SchemeGroupVersion.WithKind("Event"))
		if diff := cmp.Diff(want, fromCore(toCore(want))); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the transport logs one line if core events are lost [F57]", func(t *testing.T) {
		clients, logs := eventClients(t, &eventServer{})
		for range 2 {
			if _, err := clients.CoreV1().Events("ns").Create(t.Context(), &corev1.Event{}, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		}
		if len(*logs) != 1 {
			t.Errorf("log = %q, want one line", *logs)
		}
	})
	t.Run("the transport does not change other requests [F57]", func(t *testing.T) {
		clients, logs := eventClients(t, &eventServer{})
		_, err := clients.CoreV1().Secrets("ns").Create(t.Context(), &corev1.Secret{}, metav1.CreateOptions{})
		_, listErr := clients.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		if err == nil || listErr == nil || len(*logs) > 0 {
			t.Errorf("want both forbidden, got %v, %v, %q", err, listErr, *logs)
		}
	})
}

// eventClients returns a clientset for a server with the given handler. The clients send events as a program does. The
// second result is the log of the clients.
func eventClients(t *testing.T, handler http.Handler) (kubernetes.Interface, *[]string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	logs := &[]string{}
	cfg := &rest.Config{Host: server.URL}
	cfg.Wrap(eventFallback(funcr.New(func(_, args string) { *logs = append(*logs, args) }, funcr.Options{})))
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return clients, logs
}

func TestEventFallbackRejectsInvalidEvents(t *testing.T) {
	clients, _ := eventClients(t, &eventServer{})
	err := clients.EventsV1().RESTClient().Post().Namespace("ns").Resource("events").Body([]byte("nonsense")).Do(t.Context()).Error()
	if err == nil {
		t.Error("want an error for a body that is not an event")
	}
}
