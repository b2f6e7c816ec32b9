// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
	"github.com/deployerkit/deployerkit/targets/internal/jsonscan"
)

// Limits limits what the responses of targets can cost the deployer. Like a Policy, it is set by the operator. A field
// that is zero has its default.
type Limits struct {
	// Object is the maximum size of a response about one object, in bytes after decompression. The default is 8 MiB.
	Object int64
	// Page is the maximum size of a page of a list, in bytes. The default is 8 MiB.
	Page int64
	// PageSize is the number of objects per page of a list. A page that is too large is requested again with half of
	// them. The default is 500.
	PageSize int64
	// List is the maximum size of all pages of a list together, in bytes. The default is 64 MiB.
	List int64
	// Discovery is the maximum size of one response of the discovery, in bytes. The default is 8 MiB.
	Discovery int64
	// Groups is the maximum number of versions of API groups of a target. The default is 1000.
	Groups int
	// Requests is the maximum number of concurrent requests to one target, not counting watches. The default is 32.
	Requests int
	// Reading is the maximum size of all large responses that are being read at a time, of all targets together, in
	// bytes. The default is 32 MiB.
	Reading int64
	// Decoding is the maximum memory of the responses that are being decoded at a time, of all targets together, in
	// bytes. A response that alone would take more is rejected. The default is 96 MiB.
	Decoding int64
	// WatchObjects is the maximum number of objects with which a watch may begin. The default is 20 000.
	WatchObjects int
	// WatchEvents is the maximum sustained rate of events of a watch, per second. The default is 1000.
	WatchEvents int
	// WatchBytes is the maximum sustained rate of bytes of a watch, per second. The default is 4 MiB.
	WatchBytes int64
}

func (l Limits) withDefaults() Limits {
	const mib = 1 << 20
	l.Object, l.Page, l.PageSize = cmp.Or(l.Object, 8*mib), cmp.Or(l.Page, 8*mib), cmp.Or(l.PageSize, 500)
	l.List, l.Discovery, l.Groups = cmp.Or(l.List, 64*mib), cmp.Or(l.Discovery, 8*mib), cmp.Or(l.Groups, 1000)
	l.Requests, l.Reading, l.Decoding = cmp.Or(l.Requests, 32), cmp.Or(l.Reading, 32*mib), cmp.Or(l.Decoding, 96*mib)
	l.WatchObjects = cmp.Or(l.WatchObjects, 20_000)
	l.WatchEvents, l.WatchBytes = cmp.Or(l.WatchEvents, 1000), cmp.Or(l.WatchBytes, 4*mib)
	return l
}

// Validate returns an error that lists every negative limit.
func (l Limits) Validate() error {
	var faults []error
	for field, value := range reflect.ValueOf(l).Fields() {
		if value.Int() < 0 {
			faults = append(faults, fmt.Errorf("limits of targets: %s is %d, must not be negative", field.Name, value.Int()))
		}
	}
	return errors.Join(faults...)
}

// FlagOf returns the name of the flag with which the programs of this module set a field of Limits, such as
// --target-limit-watch-events for WatchEvents.
func FlagOf(option string) string {
	var out strings.Builder
	out.WriteString("--target-limit")
	for _, c := range option {
		if unicode.IsUpper(c) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(c))
	}
	return out.String()
}

// LimitError is the error of a response that exceeded one of the Limits. Use errors.As to find it.
type LimitError struct {
	// Option is the field of Limits that raises the limit. It is empty if the limit is fixed.
	Option string
	// Reason says what was exceeded and states the limit.
	Reason string
}

func (e *LimitError) Error() string {
	if e.Option == "" {
		return "the answer of the target " + e.Reason
	}
	return fmt.Sprintf("the answer of the target %s (%s)", e.Reason, raisedBy(e.Option))
}

// raisedBy describes how to raise a limit.
func raisedBy(option string) string {
	return fmt.Sprintf("targets.Limits.%s or the flag %s raises this limit", option, FlagOf(option))
}

// maxAnswerDepth is the maximum nesting depth of a response. Schemas of CustomResourceDefinitions are the deepest; they
// stay below 200.
const maxAnswerDepth = 500

// check returns the fault of a response as far as it was scanned.
func (l *Limits) check(s *jsonscan.Scan) error {
	if s.Depth > maxAnswerDepth {
		return &LimitError{Reason: "is nested more than 500 levels deep"}
	}
	if s.Cost() > l.Decoding {
		return &LimitError{Option: "Decoding", Reason: "has too many values: decoding it would take more memory than all answers may together"}
	}
	return nil
}

// Hold returns a context for one call with a client that was created from Client.Config and Client.HTTPClient, such as
// a dynamic client. The memory for decoding the response counts against Limits.Decoding until release is called. Call
// release when the call has returned. Client does this itself. Without Hold, the deployer can only estimate how long
// decoding takes.
func Hold(ctx context.Context) (held context.Context, release func()) {
	ctx, h := budget.WithHold(ctx)
	return ctx, h.Release
}

func tooLarge(option, what string, limit int64) *LimitError {
	return &LimitError{Option: option, Reason: fmt.Sprintf("has more than %d bytes, the limit for %s", limit, what)}
}
