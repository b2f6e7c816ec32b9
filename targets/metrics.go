// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
)

// poolMetrics contains the metrics of a pool. Each label has few possible values, and no label contains the name of a
// target.
type poolMetrics struct {
	clients     *prometheus.Desc
	events      *prometheus.CounterVec
	discoveries *prometheus.CounterVec
	requests    *prometheus.CounterVec
	limits      *prometheus.CounterVec
	budget      *prometheus.Desc
	budgetSize  *prometheus.Desc
	waits       *prometheus.Desc
}

func newPoolMetrics() *poolMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "deployerkit", Subsystem: "target", Name: name, Help: help}, labels)
	}
	m := &poolMetrics{
		clients:     prometheus.NewDesc("deployerkit_target_clients", "Clients of target clusters by state: up, down, connecting.", []string{"state"}, nil),
		events:      counter("client_events_total", "Events of the clients of target clusters: created, rotated, evicted, unauthorized, unreachable.", "event"),
		discoveries: counter("discoveries_total", "Discoveries of the kinds of target clusters.", "result"),
		requests:    counter("requests_total", "Requests to target clusters by method and class of the status code; the code is none if there was no response.", "method", "code"),
		limits: counter("limits_total", "Responses of target clusters that exceeded a limit: object, page, list, discovery, groups, event, rate, values.",
			"limit"),
		budget: prometheus.NewDesc("deployerkit_target_budget_bytes", "Bytes in use of the budgets that all target clusters share: reading, decoding.",
			[]string{"budget"}, nil),
		budgetSize: prometheus.NewDesc("deployerkit_target_budget_size_bytes", "Sizes of the budgets that all target clusters share: reading, decoding.",
			[]string{"budget"}, nil),
		waits: prometheus.NewDesc("deployerkit_target_budget_waits_total", "Number of times that a response of a target cluster had to wait for a budget: reading, decoding.",
			[]string{"budget"}, nil),
	}
	// The counters begin with zero, so that the function increase of Prometheus also counts the first event.
	for _, event := range []string{"created", "rotated", "evicted", "unauthorized", "unreachable"} {
		m.events.WithLabelValues(event)
	}
	for _, limit := range []string{"object", "page", "list", "discovery", "groups", "event", "rate", "values"} {
		m.limits.WithLabelValues(limit)
	}
	return m
}

func (m *poolMetrics) countEvent(what string) { m.events.WithLabelValues(what).Inc() }

func (m *poolMetrics) countDiscovery(err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.discoveries.WithLabelValues(result).Inc()
}

func (m *poolMetrics) countRequest(method, code string) {
	m.requests.WithLabelValues(method, code).Inc()
}

func (m *poolMetrics) countExceeded(name string) { m.limits.WithLabelValues(name).Inc() }

// Describe implements prometheus.Collector. Register the pool to export its metrics.
func (p *Pool) Describe(ch chan<- *prometheus.Desc) {
	ch <- p.metrics.clients
	p.metrics.events.Describe(ch)
	p.metrics.discoveries.Describe(ch)
	p.metrics.requests.Describe(ch)
	p.metrics.limits.Describe(ch)
	ch <- p.metrics.budget
	ch <- p.metrics.budgetSize
	ch <- p.metrics.waits
}

// Collect implements prometheus.Collector.
func (p *Pool) Collect(ch chan<- prometheus.Metric) {
	for state, count := range p.getStates() {
		ch <- prometheus.MustNewConstMetric(p.metrics.clients, prometheus.GaugeValue, float64(count), state)
	}
	p.metrics.events.Collect(ch)
	p.metrics.discoveries.Collect(ch)
	p.metrics.requests.Collect(ch)
	p.metrics.limits.Collect(ch)
	for name, b := range map[string]*budget.Budget{"reading": p.memory.Reading, "decoding": p.memory.Decoding} {
		used, waits := b.GetUsage()
		ch <- prometheus.MustNewConstMetric(p.metrics.budgetSize, prometheus.GaugeValue, float64(b.GetSize()), name)
		ch <- prometheus.MustNewConstMetric(p.metrics.budget, prometheus.GaugeValue, float64(used), name)
		ch <- prometheus.MustNewConstMetric(p.metrics.waits, prometheus.CounterValue, float64(waits), name)
	}
}

func (p *Pool) getStates() map[string]int {
	p.mu.Lock()
	all := make([]*Client, 0, p.used.Len())
	for element := p.used.Front(); element != nil; element = element.Next() {
		all = append(all, toClient(element))
	}
	p.mu.Unlock()
	out := map[string]int{"up": 0, "down": 0, "connecting": 0}
	for _, c := range all {
		out[c.getState()]++
	}
	return out
}

func (c *Client) getState() string {
	if why, _ := c.transport.health.checkDown(c.pool.options.Clock.Now()); why != nil {
		return "down"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.connected {
		return "connecting"
	}
	return "up"
}
