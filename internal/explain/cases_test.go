// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/internal/explain"
)

var now = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

const (
	manifestType = "landscaper.gardener.cloud/kubernetes-manifest"
	manifestName = "manifest.deployer.deployerkit.dev"
)

func newTimeBefore(d time.Duration) metav1.Time     { return metav1.NewTime(now.Add(-d)) }
func newTimeBeforePtr(d time.Duration) *metav1.Time { t := newTimeBefore(d); return &t }

// change is a function that changes facts.
type change func(*explain.Facts)

// newFacts returns facts about an item that has a Target, an active deployer and an Execution, and follows the job-ID
// revision.
func newFacts(changes ...change) explain.Facts {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "1", Generation: 1, CreationTimestamp: newTimeBefore(time.Hour),
		Labels:      map[string]string{lsv1alpha1.ExecutionManagedByLabel: "shop"},
		Annotations: map[string]string{lsv1alpha1.DeployerTypeAnnotation: manifestType},
		Finalizers:  []string{lsv1alpha1.LandscaperFinalizer},
	}}
	di.Spec.Type = manifestType
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cluster", Labels: map[string]string{"stage": "prod"}}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	f := explain.Facts{Now: now, Item: di, Target: target, Deployers: []explain.KnownDeployer{newDeployer(10 * time.Second)}}
	for _, c := range changes {
		c(&f)
	}
	return f
}

// newDeployer returns a deployer whose lease was renewed the given time ago.
func newDeployer(ago time.Duration) explain.KnownDeployer {
	return explain.KnownDeployer{
		Source: "Lease ls-system/" + manifestName, Registered: explain.Registered{Name: manifestName, Type: manifestType},
		Lease: &explain.Lease{Holder: "manifest-deployer-7d4_a1", Renewed: now.Add(-ago), Duration: 15 * time.Second},
	}
}

func withStatus(do func(*lsv1alpha1.DeployItemStatus)) change {
	return func(f *explain.Facts) { do(&f.Item.Status) }
}

func withAnnotation(key, value string) change {
	return func(f *explain.Facts) { f.Item.Annotations[key] = value }
}

// withJob sets a job that Landscaper handed out the given time ago.
func withJob(ago time.Duration) change {
	return withStatus(func(s *lsv1alpha1.DeployItemStatus) { s.JobID, s.JobIDGenerationTime = "2", newTimeBeforePtr(ago) })
}

// withStartedRun sets a job whose run started the given time ago. The item is now in the given phase.
func withStartedRun(phase string, ago time.Duration) change {
	return func(f *explain.Facts) {
		withJob(ago + time.Second)(f)
		s := &f.Item.Status
		s.Phase, s.LastReconcileTime, s.ObservedGeneration = lsv1alpha1.DeployItemPhase(phase), newTimeBeforePtr(ago), f.Item.Generation
		s.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: newTimeBeforePtr(ago)}
		s.Deployer = lsv1alpha1.DeployerInformation{Name: manifestName, Identity: manifestName, Version: "v1.2.0"}
	}
}

// withFinishedRun sets a job that ended in the given phase the given time ago.
func withFinishedRun(phase string, ago time.Duration) change {
	return func(f *explain.Facts) {
		withStartedRun(phase, ago+30*time.Second)(f)
		f.Item.Status.JobIDFinished = "2"
		f.Item.Status.TransitionTimes.FinishedTime = newTimeBeforePtr(ago)
	}
}

func withLastError(operation, reason, message string, codes ...lsv1alpha1.ErrorCode) change {
	return withStatus(func(s *lsv1alpha1.DeployItemStatus) {
		s.LastError = &lsv1alpha1.Error{Operation: operation, Reason: reason, Message: message, Codes: codes, LastTransitionTime: newTimeBefore(time.Minute)}
		if s.FirstError == nil {
			s.FirstError = s.LastError.DeepCopy()
		}
	})
}

func withWaiting(message string, ago time.Duration) change {
	return withStatus(func(s *lsv1alpha1.DeployItemStatus) {
		s.Conditions = contract.SetCondition(s.Conditions, contract.ConditionWaiting, "True", "Waiting", message, now.Add(-ago))
	})
}

func withStopByHook(message string) change {
	return func(f *explain.Facts) { contract.SetStoppedByHook(f.Item, message, now.Add(-time.Minute)) }
}

func withProviderStatus(body string) change {
	return withStatus(func(s *lsv1alpha1.DeployItemStatus) { s.ProviderStatus = &runtime.RawExtension{Raw: []byte(body)} })
}

func withDeletion(ago time.Duration) change {
	return func(f *explain.Facts) { f.Item.DeletionTimestamp = newTimeBeforePtr(ago); f.Item.Generation = 2 }
}

func withDeployers(d ...explain.KnownDeployer) change {
	return func(f *explain.Facts) { f.Deployers = d }
}

func withoutExecution(f *explain.Facts) { f.Item.Labels = nil }

func withMissingTarget(f *explain.Facts) { f.Target, f.TargetMissing = nil, true }

func withEvent(reason, message string) change {
	return func(f *explain.Facts) {
		f.Events = append(f.Events, explain.Event{Reason: reason, Message: message, At: now.Add(-time.Minute)})
	}
}

// newSelectingDeployer returns a deployer whose target selectors do not match the Target of the item.
func newSelectingDeployer() explain.KnownDeployer {
	d := newDeployer(10 * time.Second)
	d.TargetSelectors = []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{{Key: "stage", Operator: "=", Values: []string{"dev"}}}}}
	return d
}

// newSecondDeployer returns another deployer that is responsible for the same items as the one that the function
// `newDeployer` returns.
func newSecondDeployer() explain.KnownDeployer {
	d := newDeployer(5 * time.Second)
	d.Source, d.Name, d.Lease.Holder = "Lease other/manifest", "manifest-copy", "other-1_b2"
	return d
}

const inventory = `{"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderStatus", "managedResources": [
	{"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings", "uid": "a"}},
	{"policy": "manage", "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "b"}},
	{"policy": "manage", "resource": {"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "web"}}],
	"inventory": {"entries": [{"h": "1"}, {"h": "2"}, {}]}}`

const moved = `{"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderStatus",
	"managedResources": [{"policy": "manage", "resource": {"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "web"}}],
	"inventory": {"entries": [{"h": "1"}], "cluster": {"uid": "", "target": "cluster", "server": "9f86d081884c7d65"},
		"former": [{"entries": [{"v": "v1", "k": "Service", "ns": "shop", "n": "web", "u": "2", "h": "1"}], "cluster": {"uid": "3", "target": "old", "unverified": true}}]}}`

const graph = `{"apiVersion": "stategraph.deployerkit.dev/v1alpha1", "kind": "ProviderStatus", "components": [
	{"name": "config", "state": "Ready"},
	{"name": "cluster", "state": "Progressing", "reason": "StatefulSet.apps shop/db: 1 of 3 replicas are ready"},
	{"name": "users", "state": "Blocked", "blockedBy": ["cluster"]}]}`

const privateHost = "target cluster: kubeconfig: clusters[0].cluster.server: is an address that only the deployer can reach " +
	"(loopback, link-local, metadata or in-cluster), which the operator did not allow (AllowPrivateHosts, flag --allow-private-hosts)"

// cases contains the examples in docs/troubleshooting.md. The keys are the names of the examples in the guide. The
// field `advice` lists the expected symptoms.
var cases = map[string]struct {
	facts  explain.Facts
	advice []string
}{
	"no type":     {newFacts(withJob(5*time.Minute), withDeployers(), func(f *explain.Facts) { f.Types = []string{"example.org/pasword"} }), []string{"not picked up"}},
	"no deployer": {newFacts(withJob(5*time.Minute), withDeployers(newSelectingDeployer())), []string{"not picked up"}},
	"stopped":     {newFacts(withJob(5*time.Minute), withDeployers(newDeployer(time.Hour))), []string{"not picked up"}},
	"not started": {newFacts(withJob(5 * time.Minute)), []string{"not picked up"}},
	"paused":      {newFacts(withJob(5*time.Minute), withAnnotation(contract.PausedAnnotation, "true")), []string{"not picked up"}},
	"ignored":     {newFacts(withFinishedRun("Succeeded", time.Hour), withAnnotation(lsv1alpha1.IgnoreAnnotation, "true")), []string{"not picked up"}},
	"by hand":     {newFacts(withoutExecution), []string{"not picked up"}},
	"no job yet":  {newFacts(), []string{"not picked up"}},

	"replica gone":    {newFacts(withStartedRun("Init", 2*time.Minute), withDeployers(newDeployer(time.Minute))), []string{"stuck in Init"}},
	"call runs":       {newFacts(withStartedRun("Init", 2*time.Minute)), []string{"stuck in Init"}},
	"fails again":     {newFacts(withStartedRun("Init", 2*time.Minute), withLastError("Reconcile", "ReconcileFailed", "connection refused")), []string{"stuck in Init"}},
	"missing context": {newFacts(withStartedRun("Init", 2*time.Minute), func(f *explain.Facts) { f.ContextMissing = true }), []string{"stuck in Init"}},

	"hook stops":         {newFacts(withStartedRun("Init", 2*time.Minute), withStopByHook("hook BeforeReconcile[0] (window) stopped the run and requested another reconcile after 1h0m0s")), []string{"stuck in Init"}},
	"hook stops a start": {newFacts(withJob(2*time.Minute), withStopByHook("hook AfterResponsibilityCheck[0] (window) stopped the run and requested another reconcile after 1h0m0s")), []string{"not picked up"}},
	"hook waits":         {newFacts(withStartedRun("Progressing", 2*time.Minute), withWaiting("hook BeforeReconcile[0] (window): waiting for the maintenance window", time.Minute)), []string{"Progressing"}},

	"waiting": {newFacts(withStartedRun("Progressing", 2*time.Minute), withWaiting("Deployment.apps shop/web: 1 of 3 replicas are available", time.Minute), withProviderStatus(inventory)), []string{"Progressing"}},
	"graph":   {newFacts(withStartedRun("Progressing", 2*time.Minute), withWaiting("cluster: 1 of 3 replicas are ready", time.Minute), withProviderStatus(graph)), []string{"Progressing"}},

	"wrong configuration": {newFacts(withFinishedRun("Failed", time.Hour), withLastError("DecodeConfiguration", "Invalid", "spec.config.manifests[0]: kind is missing", "ERR_CONFIGURATION_PROBLEM")), []string{"Failed", "Failed"}},
	"timeout":             {newFacts(withFinishedRun("Failed", time.Hour), withLastError("WaitingForCompletion", "ProgressingTimeout", "not finished within 10m0s; last error: connection refused", "ERR_TIMEOUT")), []string{"Failed", "Failed"}},

	"no job for the deletion": {newFacts(withFinishedRun("Succeeded", time.Hour), withDeletion(time.Minute)), []string{"stuck in Deleting"}},
	"deleting":                {newFacts(withDeletion(3*time.Minute), withStartedRun("Deleting", 2*time.Minute), withWaiting("Namespace shop: is being deleted, finalizer example.org/keep", time.Minute)), []string{"stuck in Deleting"}},
	"cluster gone":            {newFacts(withDeletion(2*time.Hour), withFinishedRun("DeleteFailed", time.Hour), withMissingTarget, withLastError("GetTarget", "NotFound", "Target shop/cluster does not exist", "ERR_CONFIGURATION_PROBLEM")), []string{"Failed", "stuck in Deleting", "stuck in Deleting"}},
	"other finalizer":         {newFacts(withFinishedRun("Succeeded", time.Hour), withDeletion(time.Minute), func(f *explain.Facts) { f.Item.Finalizers = []string{"example.org/keep"} }), []string{"stuck in Deleting"}},

	"fight": {newFacts(withFinishedRun("Succeeded", time.Hour), withProviderStatus(inventory),
		withEvent("Drift", "Deployment.apps shop/web: kubectl changed spec.replicas (a fight with kubectl about spec.replicas: corrected again after 1m0s)")), []string{"fights"}},
	"two deployers": {newFacts(withFinishedRun("Succeeded", time.Hour), withDeployers(newDeployer(time.Second), newSecondDeployer())), []string{"fights"}},

	"refused target": {newFacts(withFinishedRun("Failed", time.Hour), withLastError("OpenTarget", "Refused", privateHost, "ERR_CONFIGURATION_PROBLEM")), []string{"refused target", "refused target", "Failed", "Failed"}},
	"missing target": {newFacts(withStartedRun("Init", time.Minute), withMissingTarget, withLastError("GetTarget", "NotFound", "Target shop/cluster does not exist")), []string{"stuck in Init", "refused target"}},

	"missing permissions": {newFacts(withFinishedRun("Failed", time.Hour), withLastError("Apply", "Forbidden",
		`deployments.apps "web" is forbidden: User "system:serviceaccount:kube-system:landscaper" cannot patch resource "deployments"`, "ERR_UNAUTHORIZED")), []string{"missing permissions", "Failed"}},
	"your permissions": {newFacts(withJob(5*time.Minute), withDeployers(), func(f *explain.Facts) {
		f.Unknown = []explain.Unknown{{Part: "leases", Why: `you lack the right: leases.coordination.k8s.io is forbidden: User "dev" cannot list resource "leases"`}}
	}), []string{"missing permissions"}},

	"former clusters": {newFacts(withFinishedRun("Succeeded", time.Hour), withProviderStatus(moved), withStatus(func(s *lsv1alpha1.DeployItemStatus) {
		s.Conditions = append(s.Conditions, lsv1alpha1.Condition{
			Type: "FormerClusters", Status: lsv1alpha1.ConditionTrue, Reason: "ObjectsLeft", LastTransitionTime: newTimeBefore(time.Hour), LastUpdateTime: newTimeBefore(time.Hour),
			Message: "objects of the item may remain in clusters that the item has left: Target old: 1 objects: Service shop/web: …",
		})
	})), []string{"former clusters"}},

	"unknown objects": {newFacts(withFinishedRun("Succeeded", time.Hour), withStatus(func(s *lsv1alpha1.DeployItemStatus) {
		s.Conditions = append(s.Conditions, lsv1alpha1.Condition{
			Type: "UnknownObjects", Status: lsv1alpha1.ConditionTrue, Reason: "NotWritten", LastTransitionTime: newTimeBefore(time.Hour), LastUpdateTime: newTimeBefore(time.Hour),
			Message: "these objects carry the label and the annotations of this item, which did not write them, and are left alone: Secret copies/web-tls",
		})
	})), []string{"unknown objects"}},

	"finished": {newFacts(withFinishedRun("Succeeded", time.Hour), func(f *explain.Facts) {
		f.Item.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"continuousReconcile": {"every": "2h"}}`)}
		f.History = []history.Reconcile{{
			Began: now.Add(-time.Hour), Micros: 31_000, Trigger: "event", Action: "reconcile", Result: "done", Reason: "NewJob",
			Hooks: []history.Hook{{Type: "ShouldReconcile", Name: "continuous-reconcile", Effect: "abort"}},
			Calls: []history.Call{{Cluster: "target", Verb: "patch", Resource: "deployments.apps", Count: 3}},
			Next:  &history.NextReconcile{At: now.Add(time.Hour)},
		}}
	}), []string{"nothing to do"}},
}
