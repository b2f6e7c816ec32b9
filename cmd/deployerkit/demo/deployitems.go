// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	deployitems "github.com/deployerkit/deployerkit/examples/deploy-items"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/internal/steps"
)

// workloadNamespace is the namespace of the objects that the item "logging" deploys.
const workloadNamespace = "logging"

// withoutDashboards removes the ConfigMap "dashboards" from the item "logging".
var withoutDashboards = edit{`    - manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: dashboards
          namespace: logging
        data:
          main: "{}"
`, ""}

// newDeployItemSteps returns the steps of the demo without the real Landscaper.
func (d *demo) newDeployItemSteps() []steps.Step {
	return []steps.Step{
		steps.Do("Deploy the items of examples/deploy-items", d.createItems,
			steps.ExpectItem("hello", "succeeds", steps.ItemHasPhase("Succeeded")),
			steps.Expect("ingress exports its values in a Secret", expectExport("ingress", `{"host":"blue.example.com","port":443}`)),
			steps.ExpectItem("database", "succeeds on its target and reports a provider status", hasProviderStatus("DatabaseStatus")),
			steps.ExpectItem("migration", "keeps running", steps.ItemHasPhase("Progressing")),
			steps.ExpectItem("misspelt", "fails with ERR_CONFIGURATION_PROBLEM", expectErrorCode(lsv1alpha1.ErrorConfigurationProblem)),
			steps.ExpectItem("modern", "finishes the job that Landscaper handed out", hasFinishedJob("job-1")),
			steps.ExpectItem("impatient", "fails with ERR_TIMEOUT after its 4 seconds", expectErrorCode(lsv1alpha1.ErrorTimeout)),
			steps.Expect("heartbeat is reconciled again and again, unchanged", d.hasCalledHook("heartbeat", extension.BeforeReconcileHook, 3)),
			steps.ExpectItem("logging", "succeeds when its Deployment is ready", steps.ItemHasPhase("Succeeded"))),
		steps.Do("Scale the logging agent to zero by hand, and take its label away", patchAgent,
			steps.Expect("the agent has two replicas and its label again", expectAgent(2, "observability")),
			steps.ExpectItem("logging", "is still Succeeded", steps.ItemHasPhase("Succeeded"))),
		steps.Do("Remove the dashboards from logging", d.removeDashboards,
			steps.ExpectItem("logging", "has observed the change", hasObserved(2)),
			steps.Expect("the dashboards are gone", steps.ObjectIsGone("ConfigMap", workloadNamespace, "dashboards")),
			steps.Expect("the rules are still there", steps.ObjectExists("ConfigMap", workloadNamespace, "rules"))),
		steps.Do("Delete logging", d.deleteItem("logging"),
			steps.Expect("logging is gone", steps.ItemIsGone("logging")),
			steps.Expect("so is the agent", steps.ObjectIsGone("Deployment", workloadNamespace, "agent")),
			steps.Expect("and the namespace", steps.ObjectIsGone("Namespace", "", workloadNamespace))),
		steps.Do("Change the configuration of ingress", d.updateIngress,
			steps.Expect("ingress exports the new values", expectExport("ingress", `{"host":"green.example.com"}`)),
			steps.ExpectItem("ingress", "has observed the change", hasObserved(2))),
		steps.Do("Abort migration", d.setOperation("migration", contract.AbortOperation),
			steps.ExpectItem("migration", "fails, because it was aborted", steps.ItemFails(lsv1alpha1.Error{Reason: contract.AbortedReason})),
			steps.ExpectItem("migration", "has no operation left", steps.ItemHasNoOperation)),
		steps.Do("Force-reconcile hello", d.setOperation("hello", lsv1alpha1.ForceReconcileOperation),
			steps.Expect("hello is reconciled by force", d.hasCalledHook("hello", extension.BeforeForceReconcileHook, 1)),
			steps.ExpectItem("hello", "has no operation left", steps.ItemHasNoOperation),
			steps.ExpectItem("hello", "succeeds again", steps.ItemHasPhase("Succeeded"))),
		steps.Do("Hand out a second job to modern", d.startJob("job-2"),
			steps.ExpectItem("modern", "finishes the second job", hasFinishedJob("job-2"))),
		steps.Do("Delete ingress", d.deleteItem("ingress"),
			steps.Expect("ingress is gone", steps.ItemIsGone("ingress")),
			steps.Expect("ingress has taken its Secret with it", steps.ObjectIsGone("Secret", "", "ingress-export"))),
		steps.Do("Look back", nil,
			steps.Expect("all ten hook points were reached", d.hasCalledAllHooks)),
	}
}

// createItems creates the objects in all files, a Target, and the first job of the item "modern", which follows the
// job-ID revision of the contract.
func (d *demo) createItems(ctx context.Context, e *steps.Env) error {
	objects, err := decode(deployitems.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := e.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	if err := steps.CreateTarget(targetName)(ctx, e); err != nil {
		return err
	}
	return d.startJob("job-1")(ctx, e)
}

// removeDashboards removes the dashboards from the configuration of the item "logging".
func (d *demo) removeDashboards(ctx context.Context, e *steps.Env) error {
	objects, err := decode(deployitems.Files, "logging.yaml", withoutDashboards)
	if err != nil {
		return err
	}
	config, _, err := unstructured.NestedMap(objects[0].Object, "spec", "config")
	if err != nil {
		return fmt.Errorf("find the configuration: %w", err)
	}
	return d.annotations.Update(ctx, e.Key("logging"), config)
}

func (d *demo) updateIngress(ctx context.Context, e *steps.Env) error {
	return d.annotations.Update(ctx, e.Key("ingress"), `{"export":{"host":"green.example.com","port":null}}`)
}

// setOperation returns an action that sets the operation annotation of an item.
func (d *demo) setOperation(name string, operation lsv1alpha1.Operation) steps.Func {
	return func(ctx context.Context, e *steps.Env) error {
		return d.annotations.SetOperation(ctx, e.Key(name), operation)
	}
}

// startJob returns an action that requests a job of the item "modern".
func (d *demo) startJob(id string) steps.Func {
	return func(ctx context.Context, e *steps.Env) error {
		return d.jobs.TriggerWithJobID(ctx, e.Key("modern"), id)
	}
}

// deleteItem returns an action that deletes an item. It does not wait until the item is gone.
func (d *demo) deleteItem(name string) steps.Func {
	return func(ctx context.Context, e *steps.Env) error { return d.annotations.MarkForDeletion(ctx, e.Key(name)) }
}

// patchAgent changes two fields of the Deployment "agent", as a user may do by mistake.
func patchAgent(ctx context.Context, e *steps.Env) error {
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: workloadNamespace, Name: "agent"}}
	scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":null}}}`))
	return errors.Join(
		e.SubResource("scale").Patch(ctx, agent.DeepCopy(), scale, client.FieldOwner("kubectl-scale")),
		e.Patch(ctx, agent, label, client.FieldOwner("kubectl-label")))
}

// expectAgent expects that the Deployment "agent" has the given number of ready replicas and the given label.
func expectAgent(replicas int32, team string) steps.Func {
	return func(ctx context.Context, e *steps.Env) error {
		agent := &appsv1.Deployment{}
		if err := e.Get(ctx, client.ObjectKey{Namespace: workloadNamespace, Name: "agent"}, agent); err != nil {
			return err
		}
		if ready := agent.Status.ReadyReplicas; ready != replicas || *agent.Spec.Replicas != replicas || agent.Labels["team"] != team {
			return fmt.Errorf("%d of %d replicas are ready, and the label team is %q", ready, *agent.Spec.Replicas, agent.Labels["team"])
		}
		return nil
	}
}

func expectErrorCode(code lsv1alpha1.ErrorCode) steps.ItemFunc {
	return steps.ItemFails(lsv1alpha1.Error{Codes: []lsv1alpha1.ErrorCode{code}})
}

// expectExport expects that the export Secret of an item contains the given text.
func expectExport(name, want string) steps.Func {
	return func(ctx context.Context, e *steps.Env) error {
		di, err := e.GetItem(ctx, name)
		if err != nil {
			return err
		}
		ref := di.Status.ExportReference
		if ref == nil {
			return errors.New("the item exports nothing")
		}
		secret := &corev1.Secret{}
		if err := e.Get(ctx, ref.NamespacedName(), secret); err != nil {
			return err
		}
		if got := string(secret.Data[lsv1alpha1.DataObjectSecretDataKey]); got != want {
			return fmt.Errorf("the item exports %s, not %s", got, want)
		}
		return nil
	}
}

func hasProviderStatus(kind string) steps.ItemFunc {
	return func(di *lsv1alpha1.DeployItem) error {
		var got metav1.TypeMeta
		if raw := di.Status.ProviderStatus; raw != nil {
			if err := json.Unmarshal(raw.Raw, &got); err != nil {
				return fmt.Errorf("decode the provider status: %w", err)
			}
		}
		if got.Kind != kind {
			return fmt.Errorf("the provider status is %q, not %q", got.Kind, kind)
		}
		return nil
	}
}

func hasFinishedJob(id string) steps.ItemFunc {
	return func(di *lsv1alpha1.DeployItem) error {
		if s := di.Status; s.JobID != id || s.JobIDFinished != id || s.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
			return fmt.Errorf("the job is %q, the finished job is %q, and the phase is %q", s.JobID, s.JobIDFinished, s.Phase)
		}
		return nil
	}
}

func hasObserved(generation int64) steps.ItemFunc {
	return func(di *lsv1alpha1.DeployItem) error {
		if di.Generation != generation || di.Status.ObservedGeneration != generation {
			return fmt.Errorf("the generation is %d and the observed generation is %d, but both should be %d", di.Generation, di.Status.ObservedGeneration, generation)
		}
		return nil
	}
}

// hasCalledHook expects that the hook was called for an item at a hook point at least the given number of times.
func (d *demo) hasCalledHook(name string, t extension.HookType, times int) steps.Func {
	return func(context.Context, *steps.Env) error {
		if got := d.table.countHooks(name, t); got < times {
			return fmt.Errorf("the hook point %s was reached %d times, not %d", t, got, times)
		}
		return nil
	}
}

func (d *demo) hasCalledAllHooks(context.Context, *steps.Env) error {
	sums := d.table.sumHooks()
	for _, hook := range extension.AllHookTypes() {
		if sums[hook] == 0 {
			return fmt.Errorf("the hook point %s was never reached", hook)
		}
	}
	return nil
}
