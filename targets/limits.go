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

// Limits bound what targets can cost the deployer, whatever they answer. They belong to the operator, like a Policy.
// Zero values stand for the defaults.
type Limits struct {
	// Object is the most that an answer about one object may have, in bytes after decompression. 0: 8 MiB.
	Object int64
	// Page is the most that an answer with a page of a list may have, in bytes. 0: 8 MiB.
	Page int64
	// PageSize is how many objects a page of a list holds. A page that is too large is asked for again with half of
	// them. 0: 500.
	PageSize int64
	// List is the most that all pages of a list may have together, in bytes. 0: 64 MiB.
	List int64
	// Discovery is the most that one answer about kinds may have, in bytes. 0: 8 MiB.
	Discovery int64
	// Groups is how many versions of API groups a target may have. 0: 1000.
	Groups int
	// Requests is how many requests of one target, without watches, are under way at a time. 0: 32.
	Requests int
	// Reading is how much the large answers that are being read may have, of all targets together, in bytes. 0: 32 MiB.
	Reading int64
	// Decoding is how much memory the answers that are being decoded may take, of all targets together, in bytes. One
	// that alone would take more is refused. 0: 96 MiB.
	Decoding int64
	// WatchObjects is how many objects a watch may begin with. 0: 20 000.
	WatchObjects int
	// WatchEvents is how many events per second a watch may bring for long. 0: 1000.
	WatchEvents int
	// WatchBytes is how many bytes per second a watch may bring for long. 0: 4 MiB.
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

// Validate reports every limit that is negative.
func (l Limits) Validate() error {
	var faults []error
	for field, value := range reflect.ValueOf(l).Fields() {
		if value.Int() < 0 {
			faults = append(faults, fmt.Errorf("limits of targets: %s is %d, must not be negative", field.Name, value.Int()))
		}
	}
	return errors.Join(faults...)
}

// FlagOf returns the flag by which the programs of this module set a field of Limits: --target-limit-watch-events for
// WatchEvents.
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

// LimitError is the error of an answer that exceeded one of the Limits. Find it with errors.As.
type LimitError struct {
	// Option is the field of Limits that raises the limit; empty for a limit that is fixed.
	Option string
	// Reason says what was exceeded, and by what limit.
	Reason string
}

func (e *LimitError) Error() string {
	if e.Option == "" {
		return "the answer of the target " + e.Reason
	}
	return fmt.Sprintf("the answer of the target %s (%s)", e.Reason, raisedBy(e.Option))
}

// raisedBy says what raises a limit.
func raisedBy(option string) string {
	return fmt.Sprintf("targets.Limits.%s or the flag %s raises this limit", option, FlagOf(option))
}

// maxAnswerDepth is how deep an answer may be nested. Schemas of CustomResourceDefinitions are the deepest; they stay
// below 200.
const maxAnswerDepth = 500

// check returns what is wrong with an answer as far as it was scanned.
func (l *Limits) check(s *jsonscan.Scan) error {
	if s.Depth > maxAnswerDepth {
		return &LimitError{Reason: "is nested more than 500 levels deep"}
	}
	if s.Cost() > l.Decoding {
		return &LimitError{Option: "Decoding", Reason: "has too many values: decoding it would take more memory than all answers may together"}
	}
	return nil
}

// Hold returns a context for one call with a client that is made of Client.Config and Client.HTTPClient, such as a
// dynamic one. The memory that decoding the answer takes counts against Limits.Decoding until release is called: call
// it when the call has returned. Client does this itself. Without Hold, the deployer can only guess how long
// decoding takes.
func Hold(ctx context.Context) (held context.Context, release func()) {
	ctx, h := budget.WithHold(ctx)
	return ctx, h.Release
}

func tooLarge(option, what string, limit int64) *LimitError {
	return &LimitError{Option: option, Reason: fmt.Sprintf("has more than %d bytes, the limit for %s", limit, what)}
}
