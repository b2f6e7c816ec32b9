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

// The default timeouts that Landscaper enforces.
const (
	DefaultPickup      = 5 * time.Minute
	DefaultProgressing = contract.DefaultTimeout
	DefaultAbort       = contract.AbortTimeout
)

// LandscaperOptions configures a Landscaper.
type LandscaperOptions struct {
	// Revision is the revision of the contract. The default is contract.RevisionJobID.
	Revision contract.Revision
	// ManagedBy is the name of the Execution to which the items claim to belong. If it is empty, they do not have its
	// labels, like items that a user creates.
	ManagedBy string
	// DeployerType adds the annotations deployer-type and deployer-target-name to items, as Landscaper with job IDs
	// does since v0.68.
	DeployerType bool
	// Pickup, Progressing and Abort are the timeouts that Enforce applies. The defaults are those of Landscaper.
	// Progressing applies to items without spec.timeout.
	Pickup, Progressing, Abort time.Duration
	// Poll is the poll interval while waiting. The default is 20 ms.
	Poll time.Duration
	// Clock is the source of time. The default is the real clock.
	Clock clock.PassiveClock
}

// Landscaper plays the part of Landscaper that a deployer sees, in either revision of the contract. Its writes have no
// resourceVersion, so that they cannot conflict with those of the deployer. It is safe for concurrent use.
//
// With ManagedBy and DeployerType set, it writes the same to a deploy item as the real Landscaper v0.127.0. A suite
// takes both through installation, update, interrupt, pickup timeout and deletion, and compares the item after each
// step. These differences remain:
//
//   - Items have no owner reference, because there is no Execution.
//   - Timeouts are enforced when Enforce or Run checks them, and not five seconds later.
//   - The annotation revision cannot be compared, because no Landscaper that follows it can be built from modules.
type Landscaper struct {
	client   itemClient
	options  LandscaperOptions
	protocol protocol
}

// NewLandscaper returns a Landscaper that uses c, which should read from the API server (client.New) and know the types
// of Scheme. If the revision in o does not exist, every call returns an error.
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
	l.protocol, l.client.Client = protocolOf(o.Revision, c)
	return l
}

// Scheme returns a scheme with the types of Kubernetes and Landscaper.
func Scheme() (*runtime.Scheme, error) { return deployerlib.Scheme() }

// Item returns an item that has not been created yet. A config of type string or []byte is used as JSON, and any other
// value is marshalled. If config is nil, the item has no configuration.
func (l *Landscaper) Item(namespace, name string, t lsv1alpha1.DeployItemType, config any) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.Spec.Type = namespace, name, t
	if config != nil {
		di.Spec.Configuration = &runtime.RawExtension{Raw: rawOf(config)}
	}
	return di
}

// rawOf returns config as JSON. If it cannot be marshalled, the result is a string with the error.
func rawOf(config any) []byte {
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

// EnsureContext creates the Context "default" in a namespace if it is missing.
func (l *Landscaper) EnsureContext(ctx context.Context, namespace string) error {
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = namespace, lsv1alpha1.DefaultContextName
	if err := l.client.Create(ctx, lsCtx); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Context %s: %w", client.ObjectKeyFromObject(lsCtx), err)
	}
	return nil
}

// Deploy creates the Context and the item and requests its first run.
func (l *Landscaper) Deploy(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	if err := l.EnsureContext(ctx, di.Namespace); err != nil {
		return err
	}
	if err := l.Create(ctx, di); err != nil {
		return err
	}
	if !l.protocol.jobs() {
		return nil
	}
	_, err := l.Trigger(ctx, keyOf(di))
	return err
}

// Create creates an item as Landscaper does. With job IDs the item has the finalizer and no job yet. With annotations
// Create requests its first run.
func (l *Landscaper) Create(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	if di.Annotations == nil {
		di.Annotations = map[string]string{}
	}
	di.Annotations[lsv1alpha1.ReconcileTimestampAnnotation] = l.now()
	l.protocol.create(di)
	if l.options.DeployerType {
		di.Annotations[lsv1alpha1.DeployerTypeAnnotation] = string(di.Spec.Type)
		di.Annotations[lsv1alpha1.DeployerTargetNameAnnotation] = lsv1alpha1.NoTargetNameValue
		if di.Spec.Target != nil {
			di.Annotations[lsv1alpha1.DeployerTargetNameAnnotation] = di.Spec.Target.Name
		}
	}
	if l.options.ManagedBy != "" {
		l.manage(di)
	}
	if err := l.client.Create(ctx, di); err != nil {
		return fmt.Errorf("create deploy item %s: %w", keyOf(di), err)
	}
	return nil
}

// manage adds the labels of an Execution to an item. Unless the item says otherwise, its template has the same name and
// no dependencies.
func (l *Landscaper) manage(di *lsv1alpha1.DeployItem) {
	if di.Labels == nil {
		di.Labels = map[string]string{}
	}
	di.Labels[lsv1alpha1.ExecutionManagedByLabel] = l.options.ManagedBy
	di.Labels[lsv1alpha1.ExecutionManagedNameLabel] = cmp.Or(di.Labels[lsv1alpha1.ExecutionManagedNameLabel], di.Name)
	metav1.SetMetaDataAnnotation(&di.ObjectMeta, lsv1alpha1.ExecutionDependsOnAnnotation, di.Annotations[lsv1alpha1.ExecutionDependsOnAnnotation])
	di.Spec.Context = cmp.Or(di.Spec.Context, lsv1alpha1.DefaultContextName)
}

// Trigger requests a run. With job IDs it hands out a new job and returns its ID. With annotations it sets the
// operation "reconcile" and returns "".
func (l *Landscaper) Trigger(ctx context.Context, item types.NamespacedName) (string, error) {
	if !l.protocol.jobs() {
		return "", l.Operate(ctx, item, lsv1alpha1.ReconcileOperation)
	}
	id := uuid.NewString()
	return id, l.TriggerAs(ctx, item, id)
}

// TriggerAs hands out a job with the given ID. It changes only the fields of the job; phase and errors of the last job
// stay.
func (l *Landscaper) TriggerAs(ctx context.Context, item types.NamespacedName, jobID string) error {
	now := l.now()
	return l.client.patchStatus(ctx, item, map[string]any{
		"jobID": jobID, "jobIDGenerationTime": now,
		"transitionTimes":    map[string]any{"triggerTime": now, "initTime": nil, "waitTime": nil, "finishedTime": nil},
		"observedGeneration": nil,
	})
}

// Update replaces the configuration of an item. apiVersion and kind stay if config does not contain them. With
// annotations the same write requests a run. With job IDs the caller must call Trigger afterwards.
func (l *Landscaper) Update(ctx context.Context, item types.NamespacedName, config any) error {
	di, err := l.Get(ctx, item)
	if err != nil {
		return err
	}
	old := di.DeepCopy()
	if di.Spec.Configuration, err = withKindOf(di.Spec.Configuration, rawOf(config)); err != nil {
		return fmt.Errorf("configuration of deploy item %s: %w", item, err)
	}
	l.protocol.update(di, l.now())
	if err := l.client.Patch(ctx, di, client.MergeFrom(old)); err != nil {
		return fmt.Errorf("update deploy item %s: %w", item, err)
	}
	return nil
}

// withKindOf sets missing apiVersion and kind from the old configuration.
func withKindOf(old *runtime.RawExtension, raw []byte) (*runtime.RawExtension, error) {
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

// Operate sets the operation annotation and, for "reconcile" and "abort", the annotation with its time.
func (l *Landscaper) Operate(ctx context.Context, item types.NamespacedName, operation lsv1alpha1.Operation) error {
	timeKeys := map[lsv1alpha1.Operation]string{
		lsv1alpha1.ReconcileOperation: lsv1alpha1.ReconcileTimestampAnnotation,
		contract.AbortOperation:       contract.AbortTimestampAnnotation,
	}
	return l.client.patch(ctx, item, map[string]any{"metadata": annotated(operation, timeKeys[operation], l.now())})
}

// Annotate sets annotations. An empty value removes an annotation.
func (l *Landscaper) Annotate(ctx context.Context, item types.NamespacedName, annotations map[string]string) error {
	values := map[string]any{}
	for key, value := range annotations {
		values[key] = value
		if value == "" {
			values[key] = nil
		}
	}
	return l.client.patch(ctx, item, map[string]any{"metadata": map[string]any{"annotations": values}})
}

// annotated returns metadata with an operation and, if key is not empty, its time.
func annotated(operation lsv1alpha1.Operation, key, now string) map[string]any {
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

// shell returns an item that has only a name.
func shell(item types.NamespacedName) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name}}
}

// now returns the current time in the format of the API server.
func (l *Landscaper) now() string { return l.options.Clock.Now().UTC().Format(time.RFC3339) }
