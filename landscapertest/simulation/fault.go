// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"
)

// FaultKind is what a Fault does.
type FaultKind string

// These are the kinds of faults. The first seven concern a single request.
const (
	// FaultReset breaks the connection before the request takes effect.
	FaultReset FaultKind = "reset"
	// FaultLoseResponse breaks the connection after the request took effect.
	FaultLoseResponse FaultKind = "lose response"
	// FaultConflict responds to a write with 409, as if another client had changed the object.
	FaultConflict FaultKind = "conflict"
	// FaultServerError responds with 500.
	FaultServerError FaultKind = "server error"
	// FaultTooManyRequests responds with 429 and the advice to wait for a second.
	FaultTooManyRequests FaultKind = "too many requests"
	// FaultForbidden responds with 403. It concerns only requests to targets.
	FaultForbidden FaultKind = "forbidden"
	// FaultDelay delays a request. If the client does not wait so long, the request takes effect later.
	FaultDelay FaultKind = "delay"

	// FaultBreakWatch ends a watch.
	FaultBreakWatch FaultKind = "break watch"
	// FaultDelayWatch delays the events of a watch, so that the cache of the client becomes stale.
	FaultDelayWatch FaultKind = "delay watch"
	// FaultExpireWatches makes all watches of the server expire, so that their clients list the objects again.
	FaultExpireWatches FaultKind = "expire watches"

	// FaultKillBefore ends the process immediately before the request.
	FaultKillBefore FaultKind = "kill before"
	// FaultKillAfter ends the process immediately after the request took effect.
	FaultKillAfter FaultKind = "kill after"
	// FaultStop ends the process as SIGTERM does.
	FaultStop FaultKind = "stop"
	// FaultPartition separates the process from all servers for some time. Requests that it has sent arrive afterwards.
	FaultPartition FaultKind = "partition"
)

// Fault is something that goes wrong at a request, or at an event of a watch.
type Fault struct {
	// At identifies the request or event. It is the result of Request.String. For an event of a watch, " event n" follows.
	At string
	// Kind is what goes wrong.
	Kind FaultKind
	// Duration is for how long. Some kinds ignore it.
	Duration time.Duration
	// After is the time since the beginning of the run.
	After time.Duration
}

// String describes the fault in one line.
func (f Fault) String() string {
	text := fmt.Sprintf("%9s  %-18s %s", f.After.Round(time.Millisecond), f.Kind, f.At)
	if f.Duration > 0 {
		text += fmt.Sprintf(" (%s)", f.Duration.Round(time.Millisecond))
	}
	return text
}

// random returns a number that depends only on its arguments.
func random(seed uint64, about string) uint64 {
	h := fnv.New64a()
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], seed)
	h.Write(raw[:])
	h.Write([]byte(about))
	x := h.Sum64() // similar texts have similar hashes, so the bits are mixed as in splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// randomBelow returns a number in the interval [0, n) that depends only on its arguments.
func randomBelow(seed uint64, about string, n uint64) uint64 { return random(seed, about) % n }

// randomDuration returns a duration between lowest and highest that depends only on its arguments.
func randomDuration(seed uint64, about string, lowest, highest time.Duration) time.Duration {
	return lowest + time.Duration(randomBelow(seed, about, uint64(highest-lowest)))
}

// plan decides which faults happen in a run. With `only`, exactly these faults happen, if their requests do.
type plan struct {
	seed   uint64
	chance uint64 // of a fault of a request, of 10 000
	deadly uint64 // of a fault of a process, of 10 000
	only   map[string]Fault
}

// newPlan returns the plan for a seed. Some seeds have many faults and some have few, because many faults can hide what
// a single one reveals.
func newPlan(seed uint64) *plan {
	return &plan{
		seed:   seed,
		chance: []uint64{0, 100, 300, 1000}[randomBelow(seed, "chance", 4)],
		deadly: []uint64{0, 50, 100, 300}[randomBelow(seed, "deadly", 4)],
	}
}

// These are the faults of single requests, by kind of request. A fault that is listed several times is more likely.
var (
	readFaults   = []FaultKind{FaultReset, FaultServerError, FaultTooManyRequests, FaultDelay}
	writeFaults  = []FaultKind{FaultReset, FaultLoseResponse, FaultLoseResponse, FaultConflict, FaultServerError, FaultTooManyRequests, FaultDelay}
	watchFaults  = []FaultKind{FaultBreakWatch, FaultBreakWatch, FaultDelayWatch, FaultDelayWatch, FaultExpireWatches}
	deadlyFaults = []FaultKind{FaultKillBefore, FaultKillAfter, FaultKillAfter, FaultStop, FaultPartition}
)

// maxFaultDuration is the longest duration of a fault. It is longer than the duration of a lease.
const maxFaultDuration = 25 * time.Second

// decide returns the fault at a request or an event, or nil.
func (p *plan) decide(at string, kinds []FaultKind) *Fault {
	if p.only != nil {
		if f, ok := p.only[at]; ok {
			return &f
		}
		return nil
	}
	n := randomBelow(p.seed, at+" chance", 10_000)
	switch {
	case n < p.chance:
	case n < p.chance+p.deadly:
		kinds = deadlyFaults
	default:
		return nil
	}
	kind := kinds[randomBelow(p.seed, at+" kind", uint64(len(kinds)))]
	f := &Fault{At: at, Kind: kind}
	if kind == FaultDelay || kind == FaultDelayWatch || kind == FaultPartition {
		f.Duration = randomDuration(p.seed, at+" duration", time.Second, maxFaultDuration)
	}
	return f
}
