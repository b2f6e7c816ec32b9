// SPDX-License-Identifier: Apache-2.0

// Command echo runs an echo server for each of its deploy items: a Pod and a Service.
package main

import (
	"context"
	"errors"
	"log"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
)

var options = declarative.Options{Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "Pod", Update: declarative.Recreate}, {APIVersion: "v1", Kind: "Service"}}}

func echo(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	type object = map[string]any
	config, err := declarative.Config[struct {
		Text string `json:"text"`
	}](req)
	if err != nil {
		return nil, err // names the faulty field and ends the job
	}
	name := req.Name("echo")
	now, _ := req.Children.Named("Pod", name) // the Pod as it is; empty when there is none
	response := declarative.Respond(object{"pod": now.Text("status", "phase")}).Add(object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "labels": object{"app": name}},
		"spec": object{"containers": []object{{"name": "echo", "image": "hashicorp/http-echo:1.0", "args": []string{"-text=" + config.Text}}}},
	}, object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name}, "spec": object{"selector": object{"app": name}, "ports": []object{{"port": 5678}}},
	})
	if now.Text("status", "phase") != "Running" {
		response.Wait("the Pod does not run yet")
	}
	return response.Response()
}

func run(ctx context.Context) error {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		return err
	}
	options.Targets.AllowPrivateHosts = true // a cluster on this machine will do
	args := declarative.Args("echo-deployer", "example.org/echo", declarative.HandlerFunc(echo), options)
	if err := errors.Join(lsv1alpha1.AddToScheme(mgr.GetScheme()), deployerlib.Add(ctrl.Log, mgr, nil, args)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
