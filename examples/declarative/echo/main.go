// SPDX-License-Identifier: Apache-2.0

// Command echo runs an echo server for each of its deploy items: a Pod and a Service.
package main

import (
	"context"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
)

var options = declarative.Options{Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "Pod", Update: declarative.StrategyRecreate}, {APIVersion: "v1", Kind: "Service"}}}

func echo(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	type object = map[string]any
	config, err := declarative.Config[struct {
		Text string `json:"text"`
	}](req)
	if err != nil {
		return nil, err // the error names the faulty field and ends the job
	}
	name := req.Name("echo")
	now, _ := req.Children.Find("Pod", name) // the existing Pod, or an empty one
	response := declarative.NewBuilder(object{"pod": now.GetString("status", "phase")}).Add(object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "labels": object{"app": name}},
		"spec": object{"containers": []object{{"name": "echo", "image": "hashicorp/http-echo:1.0", "args": []string{"-text=" + config.Text}}}},
	}, object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name}, "spec": object{"selector": object{"app": name}, "ports": []object{{"port": 5678}}},
	})
	if now.GetString("status", "phase") != "Running" {
		response.Wait("the Pod does not run yet")
	}
	return response.Build()
}

var program = deployermain.Program{
	Short: "Runs an echo server for each of its deploy items",
	NewArgs: func() (deployerlib.DeployerArgs, error) {
		options.Targets.AllowPrivateHosts = true // allows a cluster on this machine
		return declarative.Args("echo-deployer", "example.org/echo", declarative.HandlerFunc(echo), options), nil
	},
}

func main() { deployermain.Run(plan.With(program)) }
