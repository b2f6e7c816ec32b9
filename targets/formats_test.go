// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/targets"
)

const (
	protobufType  = "application/vnd.kubernetes.protobuf"
	protobufWatch = protobufType + ";stream=watch"
)

var configMapsV1 = corev1.SchemeGroupVersion.WithResource("configmaps")

// encodeProtobuf encodes an object as an API server does.
func encodeProtobuf(t *testing.T, version, kind string, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	unknown := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: raw}
	if err := protobuf.NewSerializer(nil, nil).Encode(unknown, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func encodeMetadata(t *testing.T, name string) []byte {
	t.Helper()
	return encodeProtobuf(t, "meta.k8s.io/v1", "PartialObjectMetadata", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// encodeFrame encodes an event of a watch as an API server does.
func encodeFrame(t *testing.T, kind watch.EventType, raw []byte) []byte {
	t.Helper()
	event, err := (&metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...) //nolint:gosec // a small event
}

// setAnswer makes the server give this response to every request for ConfigMaps. If format is empty, the response has
// no Content-Type. The returned function returns the Accept header of the last request.
func (a *fakeAPI) setAnswer(status int, format string, body []byte) (accepted func() string) {
	return a.setHandler(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = []string{format}
		if format == "" {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
		_ = http.NewResponseController(w).Flush()
		if r.URL.Query().Get("watch") != "" && status == http.StatusOK {
			<-r.Context().Done()
		}
	})
}

// setStream makes the server send each element of `more` when it arrives.
func (a *fakeAPI) setStream(more <-chan []byte) (accepted func() string) {
	return a.setHandler(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobufWatch)
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case frame := <-more:
				_, _ = w.Write(frame)
			case <-r.Context().Done():
				return
			}
		}
	})
}

// setHandler makes the server call `f` for every request for ConfigMaps, except for the check before a watch continues.
func (a *fakeAPI) setHandler(f http.HandlerFunc) (accepted func() string) {
	var accept string
	a.set(func() {
		a.handle = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path != "/api/v1/configmaps":
				return false
			case r.URL.Query().Get("limit") == "1":
				hostile.WriteJSON(w, http.StatusOK, metav1.PartialObjectMetadataList{
					TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"},
				})
			default:
				a.set(func() { accept = r.Header.Get("Accept") })
				f(w, r)
			}
			return true
		}
	})
	return func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		return accept
	}
}

func newMetadataClient(t *testing.T, c *targets.Client) metadata.Getter {
	t.Helper()
	m, err := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
	if err != nil {
		t.Fatal(err)
	}
	return m.Resource(configMapsV1)
}

// TestMetadataWatchUsesProtobuf checks that a watch of metadata uses Protobuf, and that a client receives each event
// before the server sends the next one.
func TestMetadataWatchUsesProtobuf(t *testing.T) {
	api := newAPI(t, "t")
	gone := encodeProtobuf(t, "v1", "Status", &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
	more := make(chan []byte, 1)
	more <- encodeFrame(t, watch.Added, encodeMetadata(t, "a"))
	accepted := api.setStream(more)
	c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, "t")))
	w, err := newMetadataClient(t, c).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []struct {
		kind watch.EventType
		size int
		then []byte // sent after the event has been received
	}{
		{watch.Added, 1, encodeFrame(t, watch.Modified, encodeMetadata(t, strings.Repeat("b", 100_000)))},
		{watch.Modified, 100_000, encodeFrame(t, watch.Bookmark, encodeMetadata(t, ""))},
		{watch.Bookmark, 0, encodeFrame(t, watch.Error, gone)},
	} {
		e := next(t, w)
		more <- want.then
		if obj, ok := e.Object.(*metav1.PartialObjectMetadata); e.Type != want.kind || !ok || len(obj.Name) != want.size {
			t.Fatalf("got %s %v, want %s", e.Type, e.Object, want.kind)
		}
	}
	if e := next(t, w); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("got %s %v, want the error of the server", e.Type, e.Object)
	}
	if got := accepted(); !strings.HasPrefix(got, protobufType+";as=PartialObjectMetadata;") || strings.Count(got, protobufType) != 1 {
		t.Errorf("the watch accepts %q", got)
	}
}

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("no event")
		return watch.Event{}
	}
}

// TestWatchRejectsOtherFormats checks that events other than metadata are not decoded, and that the target then counts
// as down.
func TestWatchRejectsOtherFormats(t *testing.T) {
	for name, tc := range map[string]struct {
		event  []byte
		option string
	}{
		"another kind [F2]":         {encodeFrame(t, watch.Added, encodeProtobuf(t, "v1", "ConfigMap", &corev1.ConfigMap{})), ""},
		"a list [F2]":               {encodeFrame(t, watch.Added, encodeProtobuf(t, "meta.k8s.io/v1", "PartialObjectMetadataList", &metav1.PartialObjectMetadataList{})), ""},
		"JSON [F2]":                 {[]byte(`{"type":"ADDED","object":{"metadata":{}}}`), "Object"},
		"a huge event [F2]":         {[]byte{0x40, 0, 0, 0}, "Object"},
		"too many fields [F2]":      {encodeFrame(t, watch.Added, encodeProtobuf(t, "meta.k8s.io/v1", "PartialObjectMetadata", raw(encodeObjectMetadata(500_000)))), "Decoding"},
		"too many JSON values [F2]": {encodeFrame(t, watch.Added, encodeProtobuf(t, "meta.k8s.io/v1", "PartialObjectMetadata", managedBy("{"+strings.Repeat(`"f:a":{},`, 500_000)+`"f:b":{}}`))), "Decoding"},
		"too deep JSON [F2]":        {encodeFrame(t, watch.Added, encodeProtobuf(t, "meta.k8s.io/v1", "PartialObjectMetadata", managedBy(strings.Repeat(`{"f:a":`, 600)+"{}"+strings.Repeat("}", 600)))), ""},
		"an endless flood [F3]":     {bytes.Repeat(encodeFrame(t, watch.Modified, encodeMetadata(t, "a")), 20_000), "WatchEvents"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			api := newAPI(t, "t")
			api.setAnswer(http.StatusOK, protobufWatch, tc.event)
			p := newPool(t, targets.PoolOptions{MinPause: time.Minute})
			target := newResolvedTarget("a", api.newContent(t, "t"))
			w, err := newMetadataClient(t, getClient(t, p, target)).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			for e := range w.ResultChan() {
				if tc.option != "WatchEvents" && e.Type != watch.Error {
					t.Errorf("the event %v was decoded", e)
					w.Stop()
				}
			}
			_, err = p.Get(t.Context(), target)
			expectLimitError(t, err, tc.option)
			if !strings.Contains(fmt.Sprint(getMetrics(t, p)), "deployerkit_target_limits_total") {
				t.Error("the metric is missing")
			}
		})
	}
}

// raw is an encoded message.
type raw []byte

func (r raw) Marshal() ([]byte, error) { return r, nil }

// encodeObjectMetadata returns encoded metadata with a number of empty finalizers.
func encodeObjectMetadata(finalizers int) []byte {
	content := bytes.Repeat([]byte{0x72, 0}, finalizers)
	return append(binary.AppendUvarint([]byte{0x0a}, uint64(len(content))), content...)
}

// managedBy returns metadata with one entry of managedFields that contains the given fields.
func managedBy(fields string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a", FieldsV1: metav1.NewFieldsV1(fields)}}}}
}

// TestWatchWithoutEvents checks that the response to a watch is read within the limits if its status is not 200,
// because client-go reads such a response completely.
func TestWatchWithoutEvents(t *testing.T) {
	event := []byte(`{"type":"ADDED","object":{}}` + "\n")
	for name, tc := range map[string]struct {
		status int
		format string
		body   []byte
		option string
	}{
		"an endless body [F2]":          {http.StatusCreated, "application/json", bytes.Repeat(event, 1<<20), "Page"},
		"partial content [F2]":          {http.StatusPartialContent, "application/json", bytes.Repeat(event, 1<<20), "Page"},
		"Protobuf instead of JSON [F2]": {http.StatusAccepted, protobufType, encodeMetadata(t, "a"), ""},
	} {
		t.Run("limits the response with "+name, func(t *testing.T) {
			api := newAPI(t, "t")
			api.setAnswer(tc.status, tc.format, tc.body)
			_, err := newMetadataClient(t, getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, "t")))).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
			expectLimitError(t, err, tc.option)
		})
	}
}

// TestUntypedResponsesAreNotDecodedAsProtobuf checks that a response without a Content-Type is not decoded as Protobuf,
// which metadata clients would otherwise do.
func TestUntypedResponsesAreNotDecodedAsProtobuf(t *testing.T) {
	list := encodeProtobuf(t, "meta.k8s.io/v1", "PartialObjectMetadataList", &metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, 3)})
	for name, format := range map[string]string{"absent [F2]": "", "invalid [F2]": "; x", "Protobuf [F2]": protobufType} {
		t.Run("a list is not decoded as Protobuf if the Content-Type is "+name, func(t *testing.T) {
			api := newAPI(t, "t")
			accepted := api.setAnswer(http.StatusOK, format, list)
			c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, "t")))
			if got, err := newMetadataClient(t, c).List(t.Context(), metav1.ListOptions{}); err == nil {
				t.Errorf("a list of %d objects was decoded", len(got.Items))
			}
			if got := accepted(); strings.Contains(got, "protobuf") || !strings.Contains(got, "application/json") {
				t.Errorf("the list accepts %q", got)
			}
		})
	}
	t.Run("decodes JSON without a Content-Type", func(t *testing.T) {
		api := newAPI(t, "t")
		api.setAnswer(http.StatusOK, "", []byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"a"}}]}`))
		c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, "t")))
		if got, err := newMetadataClient(t, c).List(t.Context(), metav1.ListOptions{}); err != nil || len(got.Items) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// formatTestName returns the name of a subtest.
func formatTestName(decoded bool, name string) string {
	if decoded {
		return "decodes " + name
	}
	return "does not decode " + name
}

// TestDecodingOfErrorResponses checks which error responses are decoded. Other responses still yield an error with
// their code.
func TestDecodingOfErrorResponses(t *testing.T) {
	content := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "no watch"}
	status := encodeProtobuf(t, "v1", "Status", content)
	content.Details = &metav1.StatusDetails{Causes: make([]metav1.StatusCause, 10_000)}
	huge := encodeProtobuf(t, "v1", "Status", content)
	for name, tc := range map[string]struct {
		watch   bool
		format  string
		body    []byte
		decoded bool
	}{
		"a Status of a watch":             {true, protobufType, status, true},
		"a Status of a list [F2]":         {false, protobufType, status, false},
		"a Status without a type [F2]":    {true, "", status, false},
		"a Status with many causes [F2]":  {true, protobufType, huge, false},
		"a Status in JSON":                {false, "application/json", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no watch"}`), true},
		"JSON with many values [F2]":      {false, "application/json", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no watch","details":{"causes":[{}` + strings.Repeat(",{}", 50_000) + `]}}`), false},
		"a Status in JSON without a type": {true, "", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no watch"}`), true},
	} {
		t.Run(formatTestName(tc.decoded, name), func(t *testing.T) {
			api := newAPI(t, "t")
			api.setAnswer(http.StatusForbidden, tc.format, tc.body)
			m := newMetadataClient(t, getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, "t"))))
			_, err := m.List(t.Context(), metav1.ListOptions{})
			if tc.watch {
				_, err = m.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
			}
			if !apierrors.IsForbidden(err) {
				t.Fatalf("error %v, want one with the code 403", err)
			}
			got, _ := errors.AsType[*apierrors.StatusError](err)
			if decoded := got.ErrStatus.Message == "no watch"; decoded != tc.decoded {
				t.Errorf("the error %.200q was decoded: %t, want %t", err, decoded, tc.decoded)
			}
		})
	}
}
