// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// parseObject parses an object in the same way as the API server's client, so that whole numbers are int64.
func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return obj
}

// These constants are the beginnings of the objects in the tables below.
const (
	deployment  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ns, generation: 2}, "
	statefulSet = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: ns, generation: 2}, "
	daemonSet   = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: ns, generation: 2}, "
	replicaSet  = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, namespace: ns, generation: 2}, "
	replication = "{apiVersion: v1, kind: ReplicationController, metadata: {name: a, namespace: ns, generation: 2}, "
	jobs        = "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns, generation: 2}, "
	claims      = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: ns}, "
	definition  = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, generation: 2}, "
	services    = "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ns}, "
	custom      = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, namespace: ns, generation: 2}, "
	pods        = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, "
	deployItem  = "{apiVersion: landscaper.gardener.cloud/v1alpha1, kind: DeployItem, metadata: {name: a, namespace: ns, generation: 2}, "

	available = "conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}, {type: Available, status: 'True'}]"
)

// TestDefaultChecksOfKinds compares the result of the default check with the expected result for many objects.
func TestDefaultChecksOfKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   State
		reason string // a part of the reason
	}{
		"DeploymentNoStatus":        {deployment + "spec: {replicas: 2}}", StateWaiting, "not observed it yet"},
		"DeploymentBehind":          {deployment + "spec: {replicas: 2}, status: {observedGeneration: 1}}", StateWaiting, "generation is 2"},
		"DeploymentNone":            {deployment + "spec: {replicas: 2}, status: {observedGeneration: 2}}", StateWaiting, "Replicas: 0/2"},
		"DeploymentUnavailable":     {deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, unavailableReplicas: 2}}", StateWaiting, "Available: 0/2"},
		"DeploymentOldReplica":      {deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3, readyReplicas: 3, " + available + "}}", StateWaiting, "Pending termination: 1"},
		"DeploymentPaused":          {deployment + "spec: {replicas: 2, paused: true}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 0, availableReplicas: 2, readyReplicas: 2, " + available + "}}", StateWaiting, "Updated: 0/2"},
		"DeploymentDeadline":        {deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}", StateFailed, "Progress deadline exceeded"},
		"DeploymentQuota":           {deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: 'exceeded quota: q'}]}}", StateWaiting, "FailedCreate: exceeded quota: q"},
		"DeploymentNoCondition":     {deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}", StateWaiting, "Deployment not Available"},
		"DeploymentComplete":        {deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2, " + available + "}}", StateReady, ""},
		"DeploymentUnobserved":      {deployment + "spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2, " + available + "}}", StateWaiting, "not observed it yet"},
		"DeploymentZero":            {deployment + "spec: {replicas: 0}, status: {observedGeneration: 2, " + available + "}}", StateReady, ""},
		"StatefulSetNoStatus":       {statefulSet + "spec: {replicas: 2}}", StateWaiting, "not observed it yet"},
		"StatefulSetZeroNoStatus":   {statefulSet + "spec: {replicas: 0}}", StateWaiting, "not observed it yet"},
		"StatefulSetOneOfTwo":       {statefulSet + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, currentReplicas: 2, updatedReplicas: 2}}", StateWaiting, "Ready: 1/2"},
		"StatefulSetRevisions":      {statefulSet + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}", StateWaiting, "revision"},
		"StatefulSetOnDeleteNone":   {statefulSet + "spec: {replicas: 2, updateStrategy: {type: OnDelete}}}", StateWaiting, "not observed it yet"},
		"StatefulSetOnDeleteOne":    {statefulSet + "spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 1}}", StateWaiting, "Ready: 1/2"},
		"StatefulSetOnDeleteOnly":   {statefulSet + "spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 1}}", StateWaiting, "Ready: 0/1"},
		"StatefulSetOnDeleteOld":    {statefulSet + "spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentRevision: a, updateRevision: b}}", StateReady, ""},
		"StatefulSetPartition":      {statefulSet + "spec: {replicas: 2, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b}}", StateReady, ""},
		"StatefulSetComplete":       {statefulSet + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: b, updateRevision: b}}", StateReady, ""},
		"JobNoStatus":               {jobs + "spec: {}}", StateWaiting, "not complete"},
		"JobSuspended":              {jobs + "spec: {suspend: true}, status: {conditions: [{type: Suspended, status: 'True'}]}}", StateWaiting, "is suspended"},
		"JobActive":                 {jobs + "spec: {}, status: {startTime: '2026-01-01T00:00:00Z', active: 1}}", StateWaiting, "1 active"},
		"JobComplete":               {jobs + "spec: {}, status: {startTime: '2026-01-01T00:00:00Z', succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}", StateReady, ""},
		"JobFailed":                 {jobs + "spec: {}, status: {startTime: '2026-01-01T00:00:00Z', failed: 1, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}}", StateFailed, "BackoffLimitExceeded"},
		"ClaimNoStatus":             {claims + "spec: {}}", StateWaiting, "not Bound"},
		"ClaimPending":              {claims + "spec: {}, status: {phase: Pending}}", StateWaiting, "Pending"},
		"ClaimLost":                 {claims + "spec: {}, status: {phase: Lost}}", StateFailed, "lost"},
		"ClaimBound":                {claims + "spec: {}, status: {phase: Bound}}", StateReady, ""},
		"DefinitionNoStatus":        {definition + "spec: {}}", StateWaiting, "progress"},
		"DefinitionInstalling":      {definition + "spec: {}, status: {conditions: [{type: Established, status: 'False', reason: Installing}]}}", StateWaiting, "progress"},
		"DefinitionNamesConflict":   {definition + "spec: {}, status: {conditions: [{type: NamesAccepted, status: 'False', reason: C, message: conflict}]}}", StateFailed, "conflict"},
		"DefinitionNotEstablished":  {definition + "spec: {}, status: {conditions: [{type: Established, status: 'False', reason: Other, message: why}]}}", StateFailed, "why"},
		"DefinitionEstablished":     {definition + "spec: {}, status: {conditions: [{type: Established, status: 'True'}]}}", StateReady, ""},
		"ServiceClusterIP":          {services + "spec: {clusterIP: 10.0.0.1}}", StateReady, ""},
		"ServiceBalancerNoIP":       {services + "spec: {type: LoadBalancer}}", StateWaiting, "no address"},
		"ServiceBalancerNoIngress":  {services + "spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {}}}", StateWaiting, "no address"},
		"ServiceBalancer":           {services + "spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}", StateReady, ""},
		"CustomNoStatus":            {custom + "spec: {}}", StateWaiting, "no status yet"},
		"CustomEmptyStatus":         {custom + "spec: {}, status: {}}", StateWaiting, "no status yet"},
		"CustomNoGeneration":        {"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}", StateReady, ""},
		"CustomBehind":              {custom + "status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}}", StateWaiting, "generation is 2"},
		"CustomReady":               {custom + "status: {conditions: [{type: Ready, status: 'True'}]}}", StateReady, ""},
		"CustomReadyOld":            {custom + "status: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}}", StateWaiting, "at generation 1, not 2"},
		"CustomNotReady":            {custom + "status: {conditions: [{type: Ready, status: 'False', reason: NoDNS, message: no name yet}]}}", StateWaiting, "no name yet"},
		"CustomNotReadyNoMessage":   {custom + "status: {conditions: [{type: Ready, status: 'False', reason: NoDNS}]}}", StateWaiting, "NoDNS"},
		"CustomUnknown":             {custom + "status: {conditions: [{type: Ready, status: Unknown, message: who knows}]}}", StateWaiting, "who knows"},
		"CustomReconciling":         {custom + "status: {conditions: [{type: Reconciling, status: 'True', message: at it}, {type: Ready, status: 'True'}]}}", StateWaiting, "at it"},
		"CustomStalled":             {custom + "status: {conditions: [{type: Stalled, status: 'True', message: stuck}, {type: Ready, status: 'False'}]}}", StateFailed, "stuck"},
		"CustomAvailableFalse":      {custom + "status: {conditions: [{type: Available, status: 'False'}]}}", StateReady, ""},
		"CustomFailedTrue":          {custom + "status: {conditions: [{type: Failed, status: 'True'}]}}", StateReady, ""},
		"CustomPhaseFailed":         {custom + "status: {phase: Failed}}", StateReady, ""},
		"CustomBrokenConditions":    {custom + "status: {conditions: {a: b}}}", StateWaiting, "cannot be read"},
		"Terminating":               {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [a/b]}}", StateWaiting, "is being deleted, held by finalizers a/b"},
		"DeployItemProgressing":     {deployItem + "status: {observedGeneration: 2, phase: Progressing}}", StateReady, ""},
		"DeployItemFailed":          {deployItem + "status: {observedGeneration: 2, phase: Failed}}", StateReady, ""},
		"DaemonSetNoStatus":         {daemonSet + "spec: {}}", StateWaiting, "not observed it yet"},
		"DaemonSetNone":             {daemonSet + "spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 3}}", StateWaiting, "Current: 0/3"},
		"DaemonSetNotReady":         {daemonSet + "spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3, numberReady: 2}}", StateWaiting, "Ready: 2/3"},
		"DaemonSetZero":             {daemonSet + "spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 0}}", StateReady, ""},
		"ReplicaSetOneOfTwo":        {replicaSet + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 1, readyReplicas: 1}}", StateWaiting, "Available: 1/2"},
		"ReplicaSetComplete":        {replicaSet + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2}}", StateReady, ""},
		"ReplicationNoStatus":       {replication + "spec: {replicas: 2}}", StateWaiting, "not observed it yet"},
		"ReplicationOneOfTwo":       {replication + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 1, readyReplicas: 1}}", StateWaiting, "Available: 1/2"},
		"ReplicationFailure":        {replication + "spec: {replicas: 2}, status: {observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate}]}}", StateWaiting, "FailedCreate"},
		"ReplicationComplete":       {replication + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2}}", StateReady, ""},
		"PodPending":                {pods + "status: {phase: Pending}}", StateWaiting, "Pending"},
		"PodNotReady":               {pods + "status: {phase: Running, conditions: [{type: Ready, status: 'False'}]}}", StateWaiting, "not Ready"},
		"PodReady":                  {pods + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}", StateReady, ""},
		"PodImagePull":              {pods + "status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}}", StateWaiting, "container app: ImagePullBackOff: no such image"},
		"PodCrashLoop":              {pods + "status: {phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff}}}]}}", StateFailed, "CrashLoop"},
		"PodSucceeded":              {pods + "status: {phase: Succeeded}}", StateReady, ""},
		"PodFailed":                 {pods + "status: {phase: Failed, reason: Evicted, message: 'disk\nfull'}}", StateFailed, "has failed: Evicted: disk full"},
		"PodMalformed":              {pods + "status: {phase: Running, containerStatuses: [7]}}", StateWaiting, "cannot be read"},
		"ConfigMap":                 {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", StateReady, ""},
		"CronJob":                   {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, generation: 2}, spec: {}}", StateReady, ""},
		"IngressNoAddress":          {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, generation: 2}, status: {loadBalancer: {}}}", StateReady, ""},
		"NetworkPolicy":             {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, generation: 2}}", StateReady, ""},
		"Webhook":                   {"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a, generation: 2}}", StateReady, ""},
		"AutoscalerInactive":        {"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, status: {conditions: [{type: ScalingActive, status: 'False'}]}}", StateReady, ""},
		"APIServiceUnavailable":     {"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, status: {conditions: [{type: Available, status: 'False', reason: ServiceNotFound}]}}", StateWaiting, "ServiceNotFound"},
		"APIServiceNoStatus":        {"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}}", StateWaiting, "not available"},
		"APIServiceAvailable":       {"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, status: {conditions: [{type: Available, status: 'True'}]}}", StateReady, ""},
		"DisruptionBudgetNoStatus":  {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, generation: 2}}", StateWaiting, "not observed it yet"},
		"DisruptionBudgetObserved":  {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, generation: 2}, status: {observedGeneration: 2}}", StateReady, ""},
		"NamespaceActive":           {"{apiVersion: v1, kind: Namespace, metadata: {name: a}, status: {phase: Active}}", StateReady, ""},
		"CustomGroupOfSIG":          {"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a, generation: 2}}", StateWaiting, "no status yet"},
		"CustomStatusWithoutReport": {custom + "status: {color: blue}}", StateReady, ""},
	} {
		t.Run(name+" [D12][H-20]", func(t *testing.T) {
			obj := parseObject(t, tc.object)
			before := obj.DeepCopy()
			got := CheckObject(obj)
			if got.State != tc.want || !strings.Contains(got.Message, tc.reason) || got.IsReady() != (got.Message == "") {
				t.Errorf("Of(...): want %s with %q, got %s with %q", tc.want, tc.reason, got.State, got.Message)
			}
			if !jsondiff.Equal(before.Object, obj.Object) {
				t.Error("Of(...) changed the object")
			}
			// The result is the same if the object was decoded so that all numbers are float64.
			floats := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.object), &floats); err != nil {
				t.Fatal(err)
			}
			if again := CheckObject(&unstructured.Unstructured{Object: floats}); again.State != got.State {
				t.Errorf("Of(... with float64 numbers): want %s, got %s with %q", got.State, again.State, again.Message)
			}
		})
	}
}

func TestMissingObjectIsNotReady(t *testing.T) {
	if got := CheckObject(nil); got.State != StateWaiting || got.Message != "does not exist" {
		t.Errorf("Of(nil): got %+v", got)
	}
}
