// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the dashboard and the alerts of the charts with Prometheus. The tests run the programs under
// load and in trouble, scrape their metrics, and evaluate the queries on the scraped series. It is a module of its own,
// so that the library does not depend on Prometheus.
package monitoring
