// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is what a check says about an object.
type State string

const (
	// StateReady means that nothing is left to wait for.
	StateReady State = "Ready"
	// StateWaiting means that the object may become ready.
	StateWaiting State = "Waiting"
	// StateFailed means that the object says it will not become ready. Some
	// recover nevertheless: give them time before giving up.
	StateFailed State = "Failed"
)

// Result is a state and the reason for it.
type Result struct {
	State State
	// Reason is one line of at most 300 characters; "" when ready.
	Reason string
	// RecheckAfter is when the result changes although the object does not; zero
	// if it does not.
	RecheckAfter time.Duration
	// Guessed reports that the object counts as ready although its status has
	// neither conditions nor observedGeneration: these rules cannot know.
	Guessed bool
}

// Ready tells whether nothing is left to wait for.
func (r Result) Ready() bool { return r.State == StateReady }

// maxReason bounds a reason, in characters.
const maxReason = 300

func ready() Result { return Result{State: StateReady} }

func waiting(reason string) Result { return Result{State: StateWaiting, Reason: oneLine(reason)} }

func failed(reason string) Result { return Result{State: StateFailed, Reason: oneLine(reason)} }

// oneLine makes one bounded line of a text from a cluster.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	fields := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	line := []rune(strings.Join(fields, " "))
	if len(line) > maxReason {
		return string(line[:maxReason-1]) + "…"
	}
	return string(line)
}

// Name is how reasons name an object: "Deployment.apps logging/web",
// "Namespace logging"; "object" for nil.
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
