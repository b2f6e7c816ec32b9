// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"text/template"
	"time"
)

// Limits restrict the rendering of charts. The zero value of a field selects its default.
type Limits struct {
	// Time is the maximum time of a rendering. The default is 30 seconds.
	Time time.Duration
	// Output is the maximum size of the output, in bytes. The default is 16 MiB.
	Output int
	// Concurrent is the maximum number of renderings at the same time. The default is 2.
	Concurrent int
}

// Default returns the limits with all defaults set.
func (l Limits) Default() Limits {
	return Limits{
		Time: cmp.Or(l.Time, 30*time.Second), Output: cmp.Or(l.Output, 16<<20), Concurrent: cmp.Or(l.Concurrent, 2),
	}
}

// Renderer renders charts within limits. Templates cannot be interrupted from outside. A Renderer therefore calls a
// function in each iteration of a loop and in the functions that create large values. After a limit was exceeded, these
// functions fail. A rendering that does not even end then costs one goroutine. Its input is not rendered again.
// A Renderer is safe for concurrent use.
type Renderer struct {
	limits Limits
	slots  chan struct{}

	mu       sync.Mutex
	exceeded map[string]*Error // by the key of the input
}

// NewRenderer returns a Renderer.
func NewRenderer(limits Limits) *Renderer {
	limits = limits.Default()
	return &Renderer{limits: limits, slots: make(chan struct{}, limits.Concurrent), exceeded: map[string]*Error{}}
}

// maxExceeded is the maximum number of inputs that a Renderer remembers because they exceeded a limit.
const maxExceeded = 1000

// Render renders a chart. The key identifies the input. Render returns the same *Error at once if the input with this
// key has exceeded a limit before. It returns an *Error if the chart cannot be rendered, an error of Input.Lookup, or
// the error of ctx.
func (r *Renderer) Render(ctx context.Context, key string, in Input) (*Rendered, error) {
	r.mu.Lock()
	err := r.exceeded[key]
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	out, renderErr := r.renderInTime(ctx, in)
	if limit, ok := errors.AsType[*Error](renderErr); ok && limit.Reason == ReasonLimit {
		r.mu.Lock()
		if len(r.exceeded) >= maxExceeded {
			clear(r.exceeded)
		}
		r.exceeded[key] = limit
		r.mu.Unlock()
	}
	return out, renderErr
}

// result is the result of a rendering.
type result struct {
	out *Rendered
	err error
}

// renderInTime renders a chart in a goroutine, and returns when the rendering or its time has ended.
func (r *Renderer) renderInTime(ctx context.Context, in Input) (*Rendered, error) {
	limited, cancel := context.WithTimeout(ctx, r.limits.Time)
	defer cancel()
	l := &limiter{ctx: limited, limits: r.limits, chart: in.Chart.String()}
	if in.Lookup != nil {
		in.Lookup = r.withoutSlot(in.Lookup, l)
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-r.slots }()
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: newError(ReasonTemplate, "chart %s: rendering failed: %v", l.chart, NewRedactor(in.Values).Redact(fmt.Sprint(p)))}
			}
		}()
		out, err := render(limited, in, l)
		done <- result{out: out, err: err}
	}()
	select {
	case got := <-done:
		if limited.Err() == nil || got.err == nil {
			return got.out, got.err
		}
	case <-limited.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.lookingUp.Load() {
		return nil, fmt.Errorf("rendering chart %s: the target does not respond to a lookup within %s", l.chart, r.limits.Time)
	}
	return nil, newError(ReasonLimit, "rendering chart %s takes longer than %s", l.chart, r.limits.Time)
}

// withoutSlot returns a Lookup during which another rendering may use the slot, so that a slow target does not delay the
// items of other targets.
func (r *Renderer) withoutSlot(lookup Lookup, l *limiter) Lookup {
	return func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		l.lookingUp.Store(true)
		<-r.slots
		defer func() { r.slots <- struct{}{} }()
		found, err := lookup(ctx, apiVersion, kind, namespace, name)
		l.lookingUp.Store(ctx.Err() != nil)
		return found, err
	}
}

// limiter counts the work of one rendering.
type limiter struct {
	ctx    context.Context //nolint:containedctx // templates call functions without a context
	limits Limits
	chart  string

	written   atomic.Int64 // the estimated size of the output, in bytes
	exceeded  atomic.Pointer[Error]
	lookingUp atomic.Bool // a lookup is under way, or took until the end of the time
}

// err returns why the rendering was stopped, or nil.
func (l *limiter) err() error {
	if e := l.exceeded.Load(); e != nil {
		return e
	}
	return nil
}

// count adds to the estimated size of the output. It returns an error if the rendering must stop.
func (l *limiter) count(size int) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	// Most loops create intermediate values that never become part of the output, so the estimate may be larger.
	if limit := 4 * int64(l.limits.Output); l.written.Add(int64(size)) > limit {
		l.exceeded.CompareAndSwap(nil, newError(ReasonLimit, "the templates of chart %s produce more than %d bytes", l.chart, limit))
	}
	return l.err()
}

// tickName is the name of the function that is called in each iteration of a loop. Its parameter is the size of the
// loop's body.
const tickName = "deployerkitTick"

// functions returns the functions that replace those of Helm.
func (l *limiter) functions() template.FuncMap {
	return template.FuncMap{
		tickName: func(size int) (string, error) { return "", l.count(size) },
		"repeat": func(count int, text string) (string, error) {
			if count <= 0 {
				return "", nil
			}
			if len(text) > 0 && count > l.limits.Output/len(text) {
				return "", l.fail("repeat")
			}
			return strings.Repeat(text, count), l.count(count * len(text))
		},
		"until": func(count int) ([]int, error) {
			step := 1
			if count < 0 {
				step = -1
			}
			return l.sequence("until", 0, count, step)
		},
		"untilStep": func(start, stop, step int) ([]int, error) { return l.sequence("untilStep", start, stop, step) },
	}
}

// fail records that a function exceeds the limits.
func (l *limiter) fail(function string) error {
	l.exceeded.CompareAndSwap(nil, newError(ReasonLimit, "the function %q in the templates of chart %s creates too large a value", function, l.chart))
	return l.err()
}

// maxSequence is the maximum length of a sequence of numbers.
const maxSequence = 1 << 20

// sequence returns the numbers from start to stop, without stop.
func (l *limiter) sequence(function string, start, stop, step int) ([]int, error) {
	numbers := []int{}
	if step == 0 {
		return numbers, nil
	}
	for n := start; step > 0 && n < stop || step < 0 && n > stop; n += step {
		if len(numbers) >= maxSequence {
			return nil, l.fail(function)
		}
		numbers = append(numbers, n)
	}
	return numbers, l.count(8 * len(numbers))
}
