// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func init() {
	if err := metav1.AddMetaToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
}

var codec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// encode returns an object as an API server encodes it.
func encode(t testing.TB, obj kruntime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := codec.Encode(obj, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// encodeEvent returns an event with an encoded object.
func encodeEvent(t testing.TB, kind string, raw []byte) []byte {
	t.Helper()
	text, err := (&metav1.WatchEvent{Type: kind, Object: kruntime.RawExtension{Raw: raw}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// encodeUnknown returns an encoded object of a kind.
func encodeUnknown(t testing.TB, version, kind string, raw []byte) []byte {
	t.Helper()
	text, err := (&kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: version, Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), text...)
}

func newMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "b", Generation: 3, Labels: map[string]string{"l": "v", "m": "w"}, Finalizers: []string{"f"},
			CreationTimestamp: metav1.NewTime(time.Unix(7, 0)), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}},
		},
	}
}

func TestScanProtobufEvent(t *testing.T) {
	raw := encode(t, newMetadata())
	text := encodeEvent(t, "MODIFIED", raw)
	t.Run("counts the fields and bytes of metadata, and the depth of managedFields", func(t *testing.T) {
		least := int64(8*fieldCost + len(text)*byteCost)
		if got, err := ScanProtobufEvent(text); err != nil || got.Type != "MODIFIED" || got.Memory < least || got.Memory > 4*least || got.Depth != 2 {
			t.Errorf("got %+v, %v, want the type MODIFIED, a memory of at least %d and the depth 2", got, err, least)
		}
	})
	t.Run("counts the bytes of a Status", func(t *testing.T) {
		status := encode(t, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "gone", Code: 410})
		least := int64((len(status) - len(prefix)) * statusByteCost)
		if got, err := ScanProtobufEvent(encodeEvent(t, "ERROR", status)); err != nil || got.Type != "ERROR" || got.Memory < least {
			t.Errorf("got %+v, %v, want the type ERROR and a memory of at least %d", got, err, least)
		}
	})
	t.Run("returns the last type, like the decoder", func(t *testing.T) {
		if got, err := ScanProtobufEvent(append(text, encodeEvent(t, "ERROR", raw)...)); err != nil || got.Type != "ERROR" {
			t.Errorf("got %+v, %v, want the type ERROR", got, err)
		}
	})
}

// TestScanProtobufRejectsOtherFormats checks that everything except metadata and a Status is refused.
func TestScanProtobufRejectsOtherFormats(t *testing.T) {
	raw := encode(t, newMetadata())
	for name, text := range map[string][]byte{
		"another kind [F2]":                encode(t, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}),
		"a list [F2]":                      encodeUnknown(t, "meta.k8s.io/v1", "PartialObjectMetadataList", nil),
		"a kind of another version [F2]":   encodeUnknown(t, "meta.k8s.io/v1beta1", "PartialObjectMetadata", nil),
		"no kind [F2]":                     encodeUnknown(t, "", "", nil),
		"a second kind [F2]":               append(bytes.Clone(raw), encodeUnknown(t, "", "List", nil)[4:]...),
		"JSON [F2]":                        []byte(`{"type":"ADDED"}`),
		"no prefix [F2]":                   raw[4:],
		"a part of an object [F2]":         raw[:len(raw)-1],
		"a group [F2]":                     protowire.AppendTag(bytes.Clone(raw), 9, protowire.StartGroupType),
		"a length beyond the end [F2]":     append(bytes.Clone(raw), 0x12, 0xff, 0xff, 0xff, 0x7f),
		"a field number out of range [F2]": append(bytes.Clone(raw), 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0),
		"metadata that ends early [F2]":    encodeUnknown(t, "meta.k8s.io/v1", "PartialObjectMetadata", []byte{0x0a, 0x02, 0x0a, 0x05}),
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if _, err := ScanProtobuf(text); !errors.Is(err, errFormat) {
				t.Errorf("got the error %v, want ErrFormat", err)
			}
			if _, err := ScanProtobufEvent(encodeEvent(t, "ADDED", text)); !errors.Is(err, errFormat) {
				t.Errorf("got the error %v for an event, want ErrFormat", err)
			}
		})
	}
}

// TestScanProtobufEstimatesMemory decodes events that take as much memory as possible. The estimate must be at least
// the memory that the decoders of client-go allocate.
func TestScanProtobufEstimatesMemory(t *testing.T) {
	const size = 300_000
	fill := func(part ...byte) []byte { return bytes.Repeat(part, size/len(part)) }
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	labels := func(number protowire.Number) (out []byte) {
		for i := 0; len(out) < size; i++ {
			key := field(1, []byte{byte('a' + i%26), byte('a' + i/26%26), byte('a' + i/26/26%26), byte('a' + i/26/26/26%26)})
			out = append(out, field(number, key)...)
		}
		return out
	}
	meta := func(content []byte) []byte {
		return encodeUnknown(t, "meta.k8s.io/v1", "PartialObjectMetadata", field(1, content))
	}
	for name, raw := range map[string][]byte{
		"labels [F2]":               meta(labels(11)),
		"annotations [F2]":          meta(labels(12)),
		"empty labels [F2]":         meta(fill(0x5a, 0)),
		"owners [F2]":               meta(fill(0x6a, 0)),
		"finalizers [F2]":           meta(fill(0x72, 0)),
		"short finalizers [F2]":     meta(fill(0x72, 2, 'x', 'x')),
		"managers [F2]":             meta(fill(0x8a, 1, 0)),
		"names [F2]":                meta(fill(0x0a, 2, 'x', 'x')),
		"times [F2]":                meta(fill(0x42, 0)),
		"deletions [F2]":            meta(fill(0x4a, 0)),
		"grace periods [F2]":        meta(fill(0x50, 1)),
		"controllers [F2]":          meta(field(13, fill(0x30, 1))),
		"names of owners [F2]":      meta(field(13, fill(0x1a, 9, 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'))),
		"times of a manager [F2]":   meta(field(17, fill(0x22, 0))),
		"fields of a manager [F2]":  meta(field(17, fill(0x3a, 0))),
		"a long annotation [F2]":    meta(field(12, append(field(1, []byte("a")), field(2, bytes.Repeat([]byte("x"), size))...))),
		"unknown fields [F2]":       meta(fill(0xfa, 0x7f, 0)),
		"causes [F2]":               encodeUnknown(t, "v1", "Status", field(5, fill(0x22, 0))),
		"details [F2]":              encodeUnknown(t, "v1", "Status", fill(0x2a, 0)),
		"names in a Status [F2]":    encodeUnknown(t, "v1", "Status", fill(0x12, 2, 'x', 'x')),
		"metadata of a Status [F2]": encodeUnknown(t, "v1", "Status", fill(0x0a, 0)),
		"repeated objects [F2]":     append(meta(nil), bytes.Repeat(field(2, nil), size/2)...),
		"kinds [F2]":                append(meta(nil), bytes.Repeat(field(1, field(1, []byte("meta.k8s.io/v1"))), size/18)...),
		"fields as JSON [F2]":       meta(field(17, field(7, field(1, []byte("{"+strings.Repeat(`"":{},`, size/6)+`"":{}}`))))),
		"deep fields [F2]":          meta(field(17, field(7, field(1, []byte(strings.Repeat(`{"":`, 2000)+"1"+strings.Repeat("}", 2000)))))),
	} {
		t.Run("estimates enough memory for "+name, func(t *testing.T) {
			text := encodeEvent(t, "ADDED", raw)
			estimated, err := ScanProtobufEvent(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := getMemory(t, text); got > estimated.Memory {
				t.Errorf("decoding %d bytes took %d bytes of memory, the estimate is %d", len(text), got, estimated.Memory)
			}
		})
	}
}

// getMemory decodes an event as a metadata client does, and its managedFields as a watch does. It returns the allocated
// memory in bytes.
func getMemory(t *testing.T, text []byte) int64 {
	t.Helper()
	info, found := kruntime.SerializerInfoForMediaType(metainternal.Codecs.SupportedMediaTypes(), "application/vnd.kubernetes.protobuf")
	if !found {
		t.Fatal("no decoder for Protobuf")
	}
	embedded := metainternal.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, metav1.SchemeGroupVersion)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := &metav1.WatchEvent{}
	_, _, err := info.StreamSerializer.Decode(text, nil, got)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := kruntime.Decode(embedded, got.Object.Raw)
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		for _, entry := range meta.ManagedFields {
			var fields any
			if entry.FieldsV1 != nil && len(entry.FieldsV1.GetRawBytes()) > 0 {
				err = errors.Join(err, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
			}
		}
	}
	runtime.ReadMemStats(&after)
	if err != nil || strings.Contains(got.Type, "ERROR") {
		t.Fatal(obj, err)
	}
	return int64(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // a small number
}

// FuzzScanProtobufEvent checks that ScanProtobufEvent agrees with the decoder about the type of an event and the kind
// of its object, and that it never panics.
func FuzzScanProtobufEvent(f *testing.F) {
	f.Add(encodeEvent(f, "ADDED", encode(f, newMetadata())))
	f.Add(encodeEvent(f, "ERROR", encode(f, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "gone"})))
	f.Fuzz(func(t *testing.T, text []byte) {
		scanned, err := ScanProtobufEvent(text)
		if err != nil {
			return
		}
		if scanned.Memory < int64(len(text)) {
			t.Errorf("the estimate %d is less than %d bytes", scanned.Memory, len(text))
		}
		got := &metav1.WatchEvent{}
		if got.Unmarshal(text) != nil {
			return
		}
		obj, err := kruntime.Decode(metainternal.Codecs.UniversalDeserializer(), got.Object.Raw)
		switch obj.(type) {
		case nil, *metav1.PartialObjectMetadata, *metav1.Status:
		default:
			t.Errorf("an object of type %T (%v)", obj, err)
		}
		if got.Type != scanned.Type {
			t.Errorf("got the type %q, the decoder returns %q", scanned.Type, got.Type)
		}
	})
}
