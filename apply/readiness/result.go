// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is the verdict of a check on an object.
type State string

const (
	// StateReady means that nothing is left to wait for.
	StateReady State = "Ready"
	// StateWaiting means that the object may become ready.
	StateWaiting State = "Waiting"
	// StateFailed means that the object reports that it will not become ready. Some objects recover nevertheless, so
	// give them time before giving up.
	StateFailed State = "Failed"
)

// Result is a state with its reason.
type Result struct {
	State State
	// Reason is one line of at most 300 characters. It is empty if the object is ready.
	Reason string
	// RecheckAfter is the time after which the result changes although the object does not. It is zero if the result
	// does not change.
	RecheckAfter time.Duration
	// Guessed reports that the object counts as ready although its status has neither conditions nor
	// observedGeneration, so that these rules cannot be sure.
	Guessed bool
}

// Ready reports whether there is nothing left to wait for.
func (r Result) Ready() bool { return r.State == StateReady }

// maxReason limits a reason, in characters.
const maxReason = 300

func ready() Result { return Result{State: StateReady} }

func waiting(reason string) Result { return Result{State: StateWaiting, Reason: oneLine(reason)} }

func failed(reason string) Result { return Result{State: StateFailed, Reason: oneLine(reason)} }

// oneLine returns a text from a cluster as one line of limited length.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	fields := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	line := []rune(strings.Join(fields, " "))
	if len(line) > maxReason {
		return string(line[:maxReason-1]) + "…"
	}
	return string(line)
}

// Name returns the name that reasons use for an object, such as "Deployment.apps logging/web" or "Namespace logging".
// For nil it is "object".
func Name(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "object"
	}
	return name(obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName())
}

func name(apiVersion, kind, namespace, name string) string {
	if group, _, found := strings.Cut(apiVersion, "/"); found {
		kind += "." + group
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}
