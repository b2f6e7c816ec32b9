// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errKilled is the error of all requests of a process that has ended.
var errKilled = errors.New("the simulated process has ended")

// errConnection is the error of a request whose connection broke.
var errConnection = errors.New("simulated: connection reset by peer")

// Process is a process with a manager and a deployer, or another client of the servers.
type Process struct {
	// Name is the name of the process, such as "replica-1.2" for the second process of the first replica.
	Name string

	world  *World
	faulty bool               // faults happen to the requests of the process
	stop   context.CancelFunc // ends the process as SIGTERM does

	warm chan struct{} // closed when the caches of the manager are filled

	// World.mu guards the following fields.
	ended   chan struct{} // closed when the process has been killed or has ended
	dead    bool
	elected int       // numbers the leaders in the order of their elections
	frozen  time.Time // the process is separated from the servers until then
	counts  map[Request]int
}

// Transport returns a transport to the targets of the run. Pass this method as WrapTransport of a pool of targets.
func (p *Process) Transport(http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		server := p.world.targets[req.URL.Hostname()]
		if server == nil {
			return nil, fmt.Errorf("simulated: no such host %q", req.URL.Hostname())
		}
		return p.roundTrip(server, req)
	})
}

// World returns the run to which the process belongs.
func (p *Process) World() *World { return p.world }

// roundTripper implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// kill ends the process at once: no further request of it reaches a server.
func (p *Process) kill() {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if !p.dead {
		p.dead = true
		close(p.ended)
		p.world.calls.forget(p)
	}
}

// isWarm reports whether the caches of the manager are filled. It returns true for clients without a manager.
func (p *Process) isWarm() bool {
	select {
	case <-p.warm:
		return true
	default:
		return !p.faulty
	}
}

// number returns the description of a request with its number.
func (p *Process) number(server *namedServer, req *http.Request, body []byte) Request {
	about := describe(p.Name, req)
	if server != p.world.landscaper {
		about.Client += "@" + server.name
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.counts[about]++
	about.Nth, about.process, about.holder = p.counts[about], p, p.world.holder
	if server != p.world.landscaper {
		about.target, about.created = server.name, getCreatedName(about, body)
	}
	about.gaveUp, about.deleted = req.Context().Done(), p.world.countDeletions(about)
	return about
}

// getCreatedName returns the name of the object that a request creates, or "" for other requests.
func getCreatedName(about Request, body []byte) string {
	obj := metav1.PartialObjectMetadata{}
	if about.Verb != "create" || json.Unmarshal(body, &obj) != nil {
		return ""
	}
	return obj.Name
}

// isQuiet reports whether a request takes no time and has no faults. Client-go sends these requests while it holds a
// lock, and in a bubble no time passes while a goroutine waits for a lock.
func isQuiet(about Request) bool { return about.Resource == "" || about.Resource == "events" }

// exchange is a request on its way.
type exchange struct {
	process *Process
	server  *namedServer
	req     *http.Request
	about   Request
	fault   *Fault
}

// roundTrip sends a request to a server. The request takes effect even if the client does not wait for the response.
func (p *Process) roundTrip(server *namedServer, req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	x := &exchange{process: p, server: server, req: sent, about: p.number(server, req, body)}
	ended := p.ended
	if !x.about.IsWrite() && !p.isWarm() {
		ended = nil // see runProcess
	}
	select {
	case <-ended:
		return nil, errKilled
	default:
	}
	if isQuiet(x.about) {
		return server.serve(sent, &x.about), nil
	}
	if p.faulty {
		x.fault = p.world.decide(x.about.String(), x.kinds())
	}
	if x.fault != nil && x.fault.Kind == FaultReset {
		return nil, errConnection
	}
	done := make(chan *http.Response, 1) // nil for a broken connection
	go func() { done <- x.run() }()
	select {
	case res := <-done:
		if res == nil {
			return nil, errConnection
		}
		return res, nil
	case <-ended:
		return nil, errKilled
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

// kinds returns the faults that can happen to the request.
func (x *exchange) kinds() []FaultKind {
	switch {
	case x.about.IsWrite() && x.server != x.process.world.landscaper:
		return append(slices.Clip(writeFaults), FaultForbidden)
	case x.about.IsWrite():
		return writeFaults
	}
	return readFaults
}

// run sends the request after its delay, and returns the response after another one. It returns nil if the connection
// breaks.
func (x *exchange) run() *http.Response {
	w, at := x.process.world, x.about.String()
	w.sleep(randomDuration(w.seed, at+" there", 200*time.Microsecond, 8*time.Millisecond))
	kind, duration := FaultKind(""), time.Duration(0)
	if x.fault != nil {
		kind, duration = x.fault.Kind, x.fault.Duration
	}
	switch kind {
	case FaultDelay:
		w.sleep(duration)
	case FaultKillBefore:
		x.process.kill()
		return nil
	case FaultStop:
		x.process.stop()
	case FaultPartition:
		x.process.freeze(duration)
	default:
	}
	x.process.waitUntilConnected(at)
	res := x.respond(kind)
	if kind == FaultKillAfter {
		x.process.kill()
	}
	x.process.waitUntilConnected(at)
	w.sleep(randomDuration(w.seed, at+" back", 200*time.Microsecond, 8*time.Millisecond))
	if kind == FaultLoseResponse || kind == FaultKillAfter {
		_ = res.Body.Close()
		return nil
	}
	return res
}

// respond returns the response of the server or of a fault.
func (x *exchange) respond(kind FaultKind) *http.Response {
	resource := schema.GroupResource{Group: x.about.Group, Resource: x.about.Resource}
	var err error
	switch kind {
	case FaultConflict:
		err = apierrors.NewConflict(resource, x.about.Name, errors.New("simulated"))
	case FaultServerError:
		err = apierrors.NewInternalError(errors.New("simulated"))
	case FaultTooManyRequests:
		err = apierrors.NewTooManyRequests("simulated", 1)
	case FaultForbidden:
		err = apierrors.NewForbidden(resource, x.about.Name, errors.New("simulated"))
	default:
	}
	w := x.process.world
	if err != nil {
		w.record("%s: %s", x.about, kind)
		return newErrorResponse(x.req, err)
	}
	res := x.server.serve(x.req, &x.about)
	if body, ok := res.Body.(*stream); ok && x.process.faulty {
		body.delay = x.delayEvent
	}
	w.record("%s: %d", x.about, res.StatusCode)
	return res
}

// delayEvent returns the delay of an event of a watch, or an error if the watch ends there.
func (x *exchange) delayEvent(n int) (time.Duration, error) {
	p, w := x.process, x.process.world
	at := fmt.Sprintf("%s event %d", x.about, n)
	x.process.waitUntilConnected(at)
	delay := randomDuration(w.seed, at, 100*time.Microsecond, 5*time.Millisecond)
	f := w.decide(at, watchFaults)
	if f == nil {
		return delay, nil
	}
	switch f.Kind {
	case FaultBreakWatch:
		return delay, io.ErrUnexpectedEOF
	case FaultDelayWatch:
		return f.Duration, nil
	case FaultExpireWatches:
		x.server.ExpireWatches()
	case FaultKillBefore, FaultKillAfter:
		p.kill()
	case FaultStop:
		p.stop()
	case FaultPartition:
		p.freeze(f.Duration)
		p.waitUntilConnected(at)
	default:
	}
	return delay, nil
}

// freeze separates the process from the servers.
func (p *Process) freeze(d time.Duration) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.frozen = time.Now().Add(d)
}

// waitUntilConnected waits while the process is separated from the servers. Requests that wait continue one after the
// other.
func (p *Process) waitUntilConnected(at string) {
	for {
		p.world.mu.Lock()
		d := time.Until(p.frozen)
		p.world.mu.Unlock()
		if d <= 0 {
			return
		}
		p.world.sleep(d + randomDuration(p.world.seed, at+" connected", time.Microsecond, 5*time.Millisecond))
	}
}
