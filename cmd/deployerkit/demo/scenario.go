// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	deployitems "github.com/deployerkit/deployerkit/examples/deploy-items"
	"github.com/deployerkit/deployerkit/extension"
)

// step is an action, and the checks that must succeed afterwards.
type step struct {
	title  string
	do     func(context.Context, *env) error
	checks []check
}

// scenario contains the steps of the demo without the real Landscaper.
var scenario = []step{
	{
		title: "Deploy the items of examples/deploy-items", do: deploy,
		checks: []check{
			{item: "hello", text: "succeeds", holds: hasPhase("Succeeded")},
			{item: "ingress", text: "exports its values in a Secret", holds: exports(`{"host":"blue.example.com","port":443}`)},
			{item: "database", text: "succeeds on its target and reports a provider status", holds: hasProviderStatus("DatabaseStatus")},
			{item: "migration", text: "keeps running", holds: hasPhase("Progressing")},
			{item: "misspelt", text: "fails with ERR_CONFIGURATION_PROBLEM", holds: failedWith(lsv1alpha1.ErrorConfigurationProblem)},
			{item: "modern", text: "finishes the job that Landscaper handed out", holds: finishedJob("job-1")},
			{item: "impatient", text: "fails with ERR_TIMEOUT after its 4 seconds", holds: failedWith(lsv1alpha1.ErrorTimeout)},
			{item: "heartbeat", text: "is reconciled again and again, unchanged", holds: calledFor(extension.BeforeReconcileHook, 3)},
			{item: "logging", text: "succeeds when its Deployment is ready", holds: hasPhase("Succeeded")},
		},
	},
	{
		title: "Scale the logging agent to zero by hand, and take its label away", do: tamper,
		checks: []check{
			{text: "the agent has two replicas and its label again", holds: agentIs(2, "observability")},
			{item: "logging", text: "is still Succeeded", holds: hasPhase("Succeeded")},
		},
	},
	{
		title: "Remove the dashboards from logging", do: shrink,
		checks: []check{
			{item: "logging", text: "has observed the change", holds: observed(2)},
			{text: "the dashboards are gone", holds: isGone("ConfigMap", workloadNamespace, "dashboards")},
			{text: "the rules are still there", holds: isThere("ConfigMap", workloadNamespace, "rules")},
		},
	},
	{
		title: "Delete logging", do: remove("logging"),
		checks: []check{
			{item: "logging", text: "is gone", holds: gone},
			{text: "so is the agent", holds: isGone("Deployment", workloadNamespace, "agent")},
			{text: "and the namespace", holds: isGone("Namespace", "", workloadNamespace)},
		},
	},
	{
		title: "Change the configuration of ingress", do: change,
		checks: []check{
			{item: "ingress", text: "exports the new values", holds: exports(`{"host":"green.example.com"}`)},
			{item: "ingress", text: "has observed the change", holds: observed(2)},
		},
	},
	{
		title: "Abort migration", do: operate("migration", contract.AbortOperation),
		checks: []check{
			{item: "migration", text: "fails, because it was aborted", holds: aborted},
			{item: "migration", text: "has no operation left", holds: operationGone},
		},
	},
	{
		title: "Force-reconcile hello", do: operate("hello", lsv1alpha1.ForceReconcileOperation),
		checks: []check{
			{item: "hello", text: "is reconciled by force", holds: calledFor(extension.BeforeForceReconcileHook, 1)},
			{item: "hello", text: "has no operation left", holds: operationGone},
			{item: "hello", text: "succeeds again", holds: hasPhase("Succeeded")},
		},
	},
	{
		title: "Hand out a second job to modern", do: handOut("job-2"),
		checks: []check{{item: "modern", text: "finishes the second job", holds: finishedJob("job-2")}},
	},
	{
		title: "Delete ingress", do: remove("ingress"),
		checks: []check{
			{item: "ingress", text: "is gone", holds: gone},
			{item: "ingress", text: "has taken its Secret with it", holds: secretGone},
		},
	},
	{
		title:  "Look back",
		checks: []check{{text: "all ten hook points were reached", holds: allHooks}},
	},
}

// deploy creates the objects in all files, and requests the first run of the item "modern", which follows the job-ID
// revision of the contract.
func deploy(ctx context.Context, st *env) error {
	if err := apply(ctx, st.client, deployitems.Files); err != nil {
		return err
	}
	if err := st.createTarget(ctx); err != nil {
		return err
	}
	return st.modern.TriggerAs(ctx, item("modern"), "job-1")
}

// change changes the configuration of the item "ingress".
func change(ctx context.Context, st *env) error {
	return st.classic.Update(ctx, item("ingress"), `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1",`+
		`"kind":"ProviderConfiguration","export":{"host":"green.example.com","port":null}}`)
}

// operate returns an action that sets the operation annotation of an item.
func operate(name string, operation lsv1alpha1.Operation) func(context.Context, *env) error {
	return func(ctx context.Context, st *env) error { return st.classic.Operate(ctx, item(name), operation) }
}

// handOut returns an action that requests a run of the item "modern" by setting its job ID.
func handOut(job string) func(context.Context, *env) error {
	return func(ctx context.Context, st *env) error { return st.modern.TriggerAs(ctx, item("modern"), job) }
}

// remove returns an action that deletes an item. The action does not wait until the item is gone.
func remove(name string) func(context.Context, *env) error {
	return func(ctx context.Context, st *env) error { return st.classic.Mark(ctx, item(name)) }
}

// runSteps runs the steps and returns a text for each failure. If the action of a step fails, the checks of the step
// are skipped.
func runSteps(ctx context.Context, st *env, sc *terminal, steps []step) (broken []string) {
	for i, s := range steps {
		sc.printf("\n%d. %s", i+1, s.title)
		if s.do != nil {
			if err := s.do(ctx, st); err != nil {
				broken = append(broken, fmt.Sprintf("%s: %v", s.title, err))
				continue
			}
		}
		for _, p := range s.checks {
			if err := p.await(ctx, st, sc); err != nil {
				broken = append(broken, fmt.Sprintf("%s: %s: %v", s.title, p, err))
			}
			if ctx.Err() != nil {
				return broken
			}
		}
	}
	return broken
}
