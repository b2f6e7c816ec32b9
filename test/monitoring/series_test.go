// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

const (
	// job is the job in the alerts.
	job = "deployer"
	// step is the time between two scrapes in a replay. It is less than the five minutes after which Prometheus considers
	// a sample to be stale.
	step = 4 * time.Minute
	// minScrapes is the number of scrapes of a recording: a replay lasts longer than the longest range of a query.
	minScrapes = 17
)

// start is the time of the first scrape in a replay.
var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// sample is the value of one series.
type sample struct {
	series labels.Labels
	value  float64
}

// recording contains the scrapes of one program, in order.
type recording struct {
	address string
	scrapes [][]sample
}

// scrape reads the metrics of the program once, as Prometheus does: if the program does not respond, only the series
// up has a value.
func (r *recording) scrape(ctx context.Context) error {
	samples, err := r.read(ctx)
	up := sample{series: labels.FromStrings(model.MetricNameLabel, "up", "job", job, "instance", r.address), value: 1}
	if err != nil {
		up.value, samples = 0, nil
	}
	r.scrapes = append(r.scrapes, append(samples, up))
	return err
}

func (r *recording) read(ctx context.Context) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return parse(body, r.address)
}

// parse parses metrics in the text format.
func parse(body []byte, address string) ([]sample, error) {
	var out []sample
	p := textparse.NewPromParser(body, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var series labels.Labels
		p.Labels(&series)
		_, _, value := p.Series()
		b := labels.NewBuilder(series)
		b.Set("job", job)
		b.Set("instance", address)
		out = append(out, sample{series: b.Labels(), value: value})
	}
}

// replay is a database with recordings, whose scrapes are one step apart.
type replay struct {
	t     *testing.T
	db    storage.Queryable
	query rules.QueryFunc
	end   time.Time
}

func newReplay(t *testing.T, recordings ...*recording) *replay {
	t.Helper()
	db := teststorage.New(t)
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, Parser: queryParser, NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
	t.Cleanup(func() { must(t, engine.Close()) })
	r := &replay{t: t, db: db, query: rules.EngineQueryFunc(engine, db), end: start}
	for _, recording := range recordings {
		for i, samples := range recording.scrapes {
			at := start.Add(time.Duration(i) * step)
			app := db.Appender(t.Context())
			for _, s := range samples {
				_, err := app.Append(0, s.series, at.UnixMilli(), s.value)
				must(t, err)
			}
			must(t, app.Commit())
			if at.After(r.end) {
				r.end = at
			}
		}
	}
	return r
}

// evaluate returns the result of a query at the end of the replay.
func (r *replay) evaluate(query string) promql.Vector {
	r.t.Helper()
	result, err := r.query(r.t.Context(), query, r.end)
	if err != nil {
		r.t.Fatalf("%v in %s", err, query)
	}
	return result
}

// fires evaluates an alert every minute, and reports whether it fires at some time.
func (r *replay) fires(alert *rules.AlertingRule) bool {
	r.t.Helper()
	for at := start; !at.After(r.end); at = at.Add(time.Minute) {
		if _, err := alert.Eval(r.t.Context(), 0, at, r.query, &url.URL{}, 0); err != nil {
			r.t.Fatalf("%s: %v", alert.Name(), err)
		}
		if slices.ContainsFunc(alert.ActiveAlerts(), func(a *rules.Alert) bool { return a.State == rules.StateFiring }) {
			return true
		}
	}
	return false
}

// listOperands returns the parts of an alert's expression on both sides of comparisons and of `or`, which return data
// even if the alert does not fire.
func listOperands(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.NumberLiteral:
		return nil
	case *parser.ParenExpr:
		return listOperands(e.Expr)
	case *parser.BinaryExpr:
		if e.Op.IsComparisonOperator() || e.Op.IsSetOperator() {
			return append(listOperands(e.LHS), listOperands(e.RHS)...)
		}
	case *parser.Call:
		if e.Func.Name == "absent" {
			return listOperands(e.Args[0])
		}
	}
	return []string{expr.String()}
}
