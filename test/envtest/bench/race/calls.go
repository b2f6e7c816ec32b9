// SPDX-License-Identifier: Apache-2.0

package race

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// calls reads the number of requests that the API server has served.
type calls struct {
	url  string
	http *http.Client
}

func newCalls(cfg *rest.Config) (*calls, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for metrics: %w", err)
	}
	return &calls{url: strings.TrimSuffix(cfg.Host, "/") + "/metrics", http: httpClient}, nil
}

// readCount returns the number of requests for ConfigMaps and deploy items since the API server started. It does not
// include watches, because the API server counts a watch only when it ends.
func (c *calls) readCount(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return 0, fmt.Errorf("get metrics: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, fmt.Errorf("get metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // an error of Close does not matter, because the body was only read
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("get metrics: %s", res.Status)
	}
	sum := 0
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		sum += parseRequests(lines.Text())
	}
	return sum, lines.Err()
}

// parseRequests returns the number of requests in a line of the metrics. It returns 0 if the line belongs to another
// metric.
func parseRequests(line string) int {
	labels, value, ok := strings.Cut(line, "} ")
	if !ok || !strings.HasPrefix(labels, "apiserver_request_total{") || strings.Contains(labels, `verb="WATCH"`) {
		return 0
	}
	if !strings.Contains(labels, `resource="configmaps"`) && !strings.Contains(labels, `resource="deployitems"`) {
		return 0
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0
	}
	return int(n)
}
