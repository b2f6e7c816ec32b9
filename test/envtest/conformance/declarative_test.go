// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// handleNote is a handler in the style of docs/declarative.md. It returns a ConfigMap with the text of the item.
func handleNote(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := declarative.Config[struct {
		Text string `json:"text"`
		Mode string `json:"mode"` // if the mode is "asking", the item is ready when the ConfigMap contains an answer
	}](req)
	if err != nil {
		return nil, err
	}
	if config.Mode != "" && config.Mode != "asking" {
		return nil, deployerlib.NewConfigError("spec.config.mode", "want asking or nothing, is %q", config.Mode)
	}
	name := req.Item.Name
	now, _ := req.Children.Find("ConfigMap", name)
	response := declarative.NewBuilder(map[string]any{"text": config.Text}).Add(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"text": config.Text},
	})
	switch {
	case now.GetString("data", "text") != config.Text || now.GetString("metadata", "name") == "":
		response.Wait("the ConfigMap is not there yet")
	case config.Mode == "asking" && now.GetString("data", "ready") != "true":
		response.Wait("the ConfigMap does not say yet that it is ready")
	}
	return response.Build()
}

// newDeclarativeSubject returns the conformance subject for a deployer that uses package declarative.
func newDeclarativeSubject() conformance.Subject {
	making := func(fields map[string]any) any {
		fields["apiVersion"], fields["kind"] = "conformance.deployerkit.dev/v1", "Note"
		return fields
	}
	options := declarative.Options{
		Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}}, MinInterval: 10 * time.Millisecond,
		Targets: targets.Policy{AllowPrivateHosts: true},
	}
	return conformance.Subject{
		Name: "declarative", Type: "conformance.deployerkit.dev/note",
		Start: conformance.NewStartFunc(func() deployerlib.DeployerArgs {
			args := declarative.Args("note-deployer", "conformance.deployerkit.dev/note", declarative.HandlerFunc(handleNote), options)
			args.TargetSelectors = newSelectors()
			return args
		}),
		Target: newTargetSpec, TargetLabels: ourTargets, OtherTargetLabels: otherTargets,
		Valid:   func(types.NamespacedName) any { return making(map[string]any{"text": "a"}) },
		Invalid: func(_ types.NamespacedName, note string) any { return making(map[string]any{"mode": note}) },
		Slow:    func(types.NamespacedName) any { return making(map[string]any{"mode": "asking"}) },
		Finish:  setReady, Deployed: configMapStands,
		Exceptions: newDeclarativeExceptions(),
		Options:    conformance.Options{SideBySide: true},
		Bounds:     conformance.Bounds{Finish: time.Minute, Timeout: 4 * time.Second},
	}
}

// newDeclarativeExceptions returns exceptions for some checks. These checks require that a deployer does not run
// finished items, but a declarative deployer runs every finished item once after its start.
func newDeclarativeExceptions() []conformance.Exception {
	var all []conformance.Exception
	for _, check := range []string{"finished-rests", "abort-late", "restart-rests"} {
		all = append(all, conformance.Exception{
			Check: check, Revision: contract.RevisionAnnotation,
			Reason: "news of a child, also one of its own making, and a restart call the handler; without job IDs each call is a run (docs/declarative.md)",
		})
	}
	return all
}
