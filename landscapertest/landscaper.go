// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// These are Landscaper's default timeouts.
const (
	DefaultPickup      = 5 * time.Minute
	DefaultProgressing = contract.DefaultTimeout
	DefaultAbort       = contract.AbortTimeout
)

// LandscaperOptions configures the simulated Landscaper.
type LandscaperOptions struct {
	// Revision is the revision of the contract. The default is contract.RevisionJobID.
	Revision contract.Revision
	// ManagedBy is the name of the Execution to which the items appear to belong. If it is empty, the items have no
	// Execution labels, like items that a user creates.
	ManagedBy string
	// DeployerType specifies whether items get the annotations deployer-type and deployer-target-name. Landscaper v0.68
	// and later sets these annotations.
	DeployerType bool
	// Pickup, Progressing and Abort are the timeouts that ApplyTimeouts applies. The defaults are those of Landscaper.
	// Progressing applies only to items without a spec.timeout.
	Pickup, Progressing, Abort time.Duration
	// Poll is the interval at which the methods that wait read an item. The default is 20 ms.
	Poll time.Duration
	// Clock is the source of time. The default is the real clock.
	Clock clock.PassiveClock
}

// Landscaper simulates the parts of Landscaper that a deployer can observe, in either revision of the contract. Writes
// of the deployer do not make the writes of the Landscaper fail, because the latter contain no resourceVersion or are
// retried after a conflict. It is safe for concurrent use.
//
// If ManagedBy and DeployerType are set, the deploy items contain the same values as those of the real Landscaper
// v0.127.0. A test suite compares the deploy items of the simulated and the real Landscaper after an installation, an
// update, an interrupt, a pickup timeout and a deletion. These differences remain:
//
//   - Items have no owner reference, because there is no Execution.
//   - ApplyTimeouts and Run apply a timeout at the first check after it has passed. The real Landscaper applies the timeout
//     five seconds later.
//   - The annotation revision cannot be compared, because no version of Landscaper that follows this revision can be
//     built from modules.
type Landscaper struct {
	client   itemClient
	options  LandscaperOptions
	protocol protocol
}

// NewLandscaper returns a Landscaper that uses the client c. This client should read from the API server and not from a
// cache. Its scheme must contain the types that [Scheme] returns. If the revision in o does not exist, every method
// returns an error.
func NewLandscaper(c client.Client, o LandscaperOptions) *Landscaper {
	if o.Revision == "" {
		o.Revision = contract.RevisionJobID
	}
	for d, fallback := range map[*time.Duration]time.Duration{
		&o.Pickup: DefaultPickup, &o.Progressing: DefaultProgressing, &o.Abort: DefaultAbort, &o.Poll: 20 * time.Millisecond,
	} {
		if *d == 0 {
			*d = fallback
		}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	l := &Landscaper{options: o}
	l.protocol, l.client.Client = selectProtocol(o.Revision, c)
	return l
}

// Scheme returns a scheme with the types of Kubernetes and Landscaper.
func Scheme() (*runtime.Scheme, error) { return deployerlib.Scheme() }

// Item returns a new item. It does not create the item in the cluster. A config of type string or []byte must contain
// JSON. Any other value is marshalled. If config is nil, the item has no configuration.
func (l *Landscaper) Item(namespace, name string, t lsv1alpha1.DeployItemType, config any) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.Spec.Type = namespace, name, t
	if config != nil {
		di.Spec.Configuration = &runtime.RawExtension{Raw: encodeConfig(config)}
	}
	return di
}

// encodeConfig returns config as JSON. If config cannot be marshalled, the result is a JSON string with the error.
func encodeConfig(config any) []byte {
	switch v := config.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return []byte(fmt.Sprintf("%q", err.Error()))
	}
	return raw
}

// EnsureContext creates the Context "default" in a namespace if it does not exist.
func (l *Landscaper) EnsureContext(ctx context.Context, namespace string) error {
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = namespace, lsv1alpha1.DefaultContextName
	if err := l.client.Create(ctx, lsCtx); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Context %s: %w", client.ObjectKeyFromObject(lsCtx), err)
	}
	return nil
}

// Deploy creates the item and requests its first run. It also creates the Context of the item if necessary.
func (l *Landscaper) Deploy(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	if err := l.EnsureContext(ctx, di.Namespace); err != nil {
		return err
	}
	if err := l.Create(ctx, di); err != nil {
		return err
	}
	if !l.protocol.hasJobs() {
		return nil
	}
	_, err := l.Trigger(ctx, keyOf(di))
	return err
}

// Create creates an item as Landscaper does. Under the job-ID revision, the item has the finalizer but no job yet.
// Under the annotation revision, Create also requests the first run.
func (l *Landscaper) Create(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	if di.Annotations == nil {
		di.Annotations = map[string]string{}
	}
	di.Annotations[lsv1alpha1.ReconcileTimestampAnnotation] = l.now()
	l.protocol.prepareCreate(di)
	if l.options.DeployerType {
		di.Annotations[lsv1alpha1.DeployerTypeAnnotation] = string(di.Spec.Type)
		di.Annotations[lsv1alpha1.DeployerTargetNameAnnotation] = lsv1alpha1.NoTargetNameValue
		if di.Spec.Target != nil {
			di.Annotations[lsv1alpha1.DeployerTargetNameAnnotation] = di.Spec.Target.Name
		}
	}
	if l.options.ManagedBy != "" {
		l.addExecutionLabels(di)
	}
	if err := l.client.Create(ctx, di); err != nil {
		return fmt.Errorf("create deploy item %s: %w", keyOf(di), err)
	}
	return nil
}

// addExecutionLabels adds the labels of an Execution to an item. One of the labels is the name of the item's template;
// if it is missing, addExecutionLabels sets it to the name of the item. It also adds the annotation that lists the
// dependencies of the item. If the item has no dependencies, the value of this annotation is empty.
func (l *Landscaper) addExecutionLabels(di *lsv1alpha1.DeployItem) {
	if di.Labels == nil {
		di.Labels = map[string]string{}
	}
	di.Labels[lsv1alpha1.ExecutionManagedByLabel] = l.options.ManagedBy
	di.Labels[lsv1alpha1.ExecutionManagedNameLabel] = cmp.Or(di.Labels[lsv1alpha1.ExecutionManagedNameLabel], di.Name)
	metav1.SetMetaDataAnnotation(&di.ObjectMeta, lsv1alpha1.ExecutionDependsOnAnnotation, di.Annotations[lsv1alpha1.ExecutionDependsOnAnnotation])
	di.Spec.Context = cmp.Or(di.Spec.Context, lsv1alpha1.DefaultContextName)
}

// Trigger requests a run. Under the job-ID revision, it hands out a new job and returns the ID of the job. Under the
// annotation revision, it sets the operation "reconcile" and returns "".
func (l *Landscaper) Trigger(ctx context.Context, item types.NamespacedName) (string, error) {
	if !l.protocol.hasJobs() {
		return "", l.SetOperation(ctx, item, lsv1alpha1.ReconcileOperation)
	}
	id := uuid.NewString()
	return id, l.TriggerWithJobID(ctx, item, id)
}

// TriggerWithJobID hands out a job with the given ID. It changes only the fields that belong to the job. The phase and
// the errors of the previous job remain.
func (l *Landscaper) TriggerWithJobID(ctx context.Context, item types.NamespacedName, jobID string) error {
	now := l.now()
	return l.client.patchStatus(ctx, item, map[string]any{
		"jobID": jobID, "jobIDGenerationTime": now,
		"transitionTimes":    map[string]any{"triggerTime": now, "initTime": nil, "waitTime": nil, "finishedTime": nil},
		"observedGeneration": nil,
	})
}

// Update replaces the configuration of an item. If config lacks apiVersion or kind, the old value of this field
// remains. Under the annotation revision, the same write also requests a run. Under the job-ID revision, call Trigger
// afterwards.
func (l *Landscaper) Update(ctx context.Context, item types.NamespacedName, config any) error {
	di, err := l.Get(ctx, item)
	if err != nil {
		return err
	}
	old := di.DeepCopy()
	if di.Spec.Configuration, err = keepTypeMeta(di.Spec.Configuration, encodeConfig(config)); err != nil {
		return fmt.Errorf("configuration of deploy item %s: %w", item, err)
	}
	l.protocol.prepareUpdate(di, l.now())
	if err := l.client.Patch(ctx, di, client.MergeFrom(old)); err != nil {
		return fmt.Errorf("update deploy item %s: %w", item, err)
	}
	return nil
}

// keepTypeMeta returns the new configuration. If it lacks apiVersion or kind, keepTypeMeta copies the value from the
// old configuration.
func keepTypeMeta(old *runtime.RawExtension, raw []byte) (*runtime.RawExtension, error) {
	fields := map[string]json.RawMessage{}
	if old != nil {
		if err := json.Unmarshal(old.Raw, &fields); err != nil {
			return nil, err
		}
		maps.DeleteFunc(fields, func(key string, _ json.RawMessage) bool { return key != "apiVersion" && key != "kind" })
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(fields)
	return &runtime.RawExtension{Raw: raw}, err
}

// SetOperation sets the operation annotation. For "reconcile" and "abort", it also sets the annotation with the time of
// the request.
func (l *Landscaper) SetOperation(ctx context.Context, item types.NamespacedName, operation lsv1alpha1.Operation) error {
	timeKeys := map[lsv1alpha1.Operation]string{
		lsv1alpha1.ReconcileOperation: lsv1alpha1.ReconcileTimestampAnnotation,
		contract.AbortOperation:       contract.AbortTimestampAnnotation,
	}
	return l.client.patch(ctx, item, map[string]any{"metadata": newOperationMetadata(operation, timeKeys[operation], l.now())})
}

// SetAnnotations sets annotations. An annotation with an empty value is removed.
func (l *Landscaper) SetAnnotations(ctx context.Context, item types.NamespacedName, annotations map[string]string) error {
	values := map[string]any{}
	for key, value := range annotations {
		values[key] = value
		if value == "" {
			values[key] = nil
		}
	}
	return l.client.patch(ctx, item, map[string]any{"metadata": map[string]any{"annotations": values}})
}

// newOperationMetadata returns metadata with the operation annotation. If `key` is not empty, the metadata also
// contains an annotation with this key, whose value is the current time.
func newOperationMetadata(operation lsv1alpha1.Operation, key, now string) map[string]any {
	annotations := map[string]any{lsv1alpha1.OperationAnnotation: string(operation)}
	if key != "" {
		annotations[key] = now
	}
	return map[string]any{"annotations": annotations}
}

// Get reads an item.
func (l *Landscaper) Get(ctx context.Context, item types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	return l.client.get(ctx, item)
}

// newItemWithKey returns an item that contains only its namespace and name.
func newItemWithKey(item types.NamespacedName) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name}}
}

// now returns the current time in the format of the API server.
func (l *Landscaper) now() string { return l.options.Clock.Now().UTC().Format(time.RFC3339) }
