// SPDX-License-Identifier: Apache-2.0

package stategraph

import "github.com/prometheus/client_golang/prometheus"

// metrics count what runs find. Their labels are components and states, never items.
type metrics struct {
	states *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{states: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_stategraph_component_states_total", Help: "What runs found components to be, by component and state.",
	}, []string{"component", "state"})}
}

// count notes the states that a walk found.
func (m *metrics) count(states []ComponentStatus) {
	for _, s := range states {
		m.states.WithLabelValues(s.Name, string(s.State)).Inc()
	}
}
