// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State is the result of a readiness check of an object.
type State string

const (
	// StateReady means that the object is ready.
	StateReady State = "Ready"
	// StateWaiting means that the object is not ready but may become ready.
	StateWaiting State = "Waiting"
	// StateFailed means that the object reports that it will not become ready. Some objects recover nevertheless, so
	// wait for some time before you give up.
	StateFailed State = "Failed"
)

// Result contains a state and the reason for it.
type Result struct {
	State State
	// Message is one line of at most 300 characters. It is empty if the object is ready.
	Message string
	// RecheckAfter is the time after which the check should be repeated even if the object has not changed. It is zero
	// if the result can only change when the object changes.
	RecheckAfter time.Duration
	// IsUncertain means that the object counts as ready, but that this is uncertain, because its status contains neither
	// conditions nor observedGeneration.
	IsUncertain bool
}

// IsReady reports whether the state is StateReady.
func (r Result) IsReady() bool { return r.State == StateReady }

// maxReason limits the length of a reason, in characters.
const maxReason = 300

func newReady() Result { return Result{State: StateReady} }

func newWaiting(reason string) Result { return Result{State: StateWaiting, Message: oneLine(reason)} }

func newFailed(reason string) Result { return Result{State: StateFailed, Message: oneLine(reason)} }

// oneLine returns text from a cluster as a single line of limited length.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	fields := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	line := []rune(strings.Join(fields, " "))
	if len(line) > maxReason {
		return string(line[:maxReason-1]) + "…"
	}
	return string(line)
}

// FormatName returns the name that reasons use for an object, such as "Deployment.apps logging/web" or "Namespace
// logging". It returns "object" if obj is nil.
func FormatName(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "object"
	}
	return formatName(obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName())
}

func formatName(apiVersion, kind, namespace, name string) string {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	return gk.String() + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}
