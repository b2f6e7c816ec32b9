// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Health is how a target answers, judged by complete responses.
type Health string

const (
	// HealthUnproven means that the target has not completed a response yet.
	HealthUnproven Health = "Unproven"
	// HealthGood means that the target completes its responses.
	HealthGood Health = "Good"
	// HealthBad means that the target is down, or has not completed a response for a while although a request is under way.
	HealthBad Health = "Bad"
)

// slowAfter is how long a request may be under way, while no response is completed, until its target is unhealthy.
const slowAfter = 2 * time.Second

// Health returns how the target of a Target that was resolved before answers. Watches do not count. It asks nothing, and
// returns HealthUnproven for a Target without a client.
func (p *Pool) Health(target types.NamespacedName) Health {
	p.mu.Lock()
	known := p.ties[target]
	p.mu.Unlock()
	if known == nil {
		return HealthUnproven
	}
	return known.client.wire.health.state(p.o.Clock.Now())
}

// state is the health as others see it.
func (h *health) state(now time.Time) Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isDown {
		return HealthBad
	}
	for _, since := range h.underWay {
		if since.Before(h.completed) {
			since = h.completed
		}
		if now.Sub(since) >= slowAfter {
			return HealthBad
		}
	}
	if !h.settled {
		return HealthUnproven
	}
	return HealthGood
}

// begin notes that a request is under way until end.
func (h *health) begin(now time.Time) (request uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.underWay == nil {
		h.underWay = map[uint64]time.Time{}
	}
	h.requests++
	h.underWay[h.requests] = now
	return h.requests
}

func (h *health) end(request uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.underWay, request)
}

// judged is the body of a response, which tells how the response ended: complete, broken off by the target, or left
// unread by its reader.
type judged struct {
	io.ReadCloser
	once sync.Once
	end  func(err error)
}

// errUnread says that the reader of a response did not want all of it.
var errUnread = errors.New("not read to the end")

func (j *judged) Read(p []byte) (int, error) {
	n, err := j.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		j.once.Do(func() { j.end(nil) })
	case err != nil:
		j.once.Do(func() { j.end(err) })
	}
	return n, err
}

func (j *judged) Close() error {
	j.once.Do(func() { j.end(errUnread) })
	return j.ReadCloser.Close()
}

// judge reports the end of a response to the health of the target, once it is known.
func (w *wire) judge(req *http.Request, resp *http.Response, start time.Time, request uint64) {
	end := func(err error) {
		w.health.end(request)
		switch {
		case err == nil:
			w.health.report(w.clk.Now(), nil)
		case errors.Is(err, errUnread):
			w.health.withdraw()
		default:
			w.report(req, start, err)
		}
	}
	if isWatch(req) || resp.Body == http.NoBody {
		end(nil)
		return
	}
	resp.Body = &judged{ReadCloser: resp.Body, end: end}
}
