// SPDX-License-Identifier: Apache-2.0

package faultnet_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

// A deployer that uses the config from Wrap does not receive the response to its second write.
func ExampleStart() {
	test := func(t *testing.T, cfg *rest.Config) *rest.Config {
		network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
			{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Nth: 2, Fault: faultnet.DropResponse()},
		}})
		return network.Wrap(cfg)
	}
	_ = test
}

// Chaos makes requests fail at random. The same seed always selects the same faults.
func ExampleChaos() {
	scenario := faultnet.Chaos(42, faultnet.Match{Resource: "deployitems"}, 0.05)
	fmt.Println(scenario.Seed, len(scenario.Rules) > 0)
	// Output: 42 true
}

// A Counter counts the requests of a client.
func ExampleCounter() {
	counter := &faultnet.Counter{}
	answer := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	c := &http.Client{Transport: counter.Transport(answer)}
	for _, path := range []string{"/api/v1/namespaces/default/configmaps/a", "/api/v1/namespaces/default/configmaps"} {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://api.example.org"+path, http.NoBody)
		if err != nil {
			fmt.Println(err)
			return
		}
		response, err := c.Do(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = response.Body.Close()
	}
	fmt.Println(counter.Snapshot().Sum(), counter.Snapshot().OnlyWrites().Sum())
	// Output: 2 0
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
