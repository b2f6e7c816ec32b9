// SPDX-License-Identifier: Apache-2.0

package targets

import "k8s.io/apimachinery/pkg/types"

// Health is the health of a target. It depends on whether the target completes its responses.
type Health string

const (
	// HealthUnknown means that the target has not completed the responses to the first discovery yet.
	HealthUnknown Health = "Unknown"
	// HealthStalled means that a request has been in progress for 100 ms and no response was completed during that
	// time. After two seconds, the target counts as HealthBad.
	HealthStalled Health = "Stalled"
	// HealthGood means that the target completes its responses.
	HealthGood Health = "Good"
	// HealthBad means that the target is down, that the last request ended without a complete response, or that a
	// request has been in progress for a while and no response was completed during that time.
	HealthBad Health = "Bad"
)

// GetHealth returns the health of the cluster that a Target refers to, without making a request. It does not consider
// watches. It returns HealthUnknown if Get has not been called for the Target.
func (p *Pool) GetHealth(target types.NamespacedName) Health {
	p.mu.Lock()
	known := p.bindings[target]
	p.mu.Unlock()
	if known == nil {
		return HealthUnknown
	}
	return known.client.transport.health.getHealth(p.options.Clock.Now())
}
