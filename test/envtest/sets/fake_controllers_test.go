// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/controlplane"
)

// These annotations of objects in the sets request a stand-in.
const (
	prefix           = "sets.test.deployerkit.dev/"
	annotationInject = prefix + "inject"     // adds the certificate of the webhooks
	annotationWrites = prefix + "controller" // writes the status of the objects of a definition
	annotationPatch  = prefix + "patches"    // on a Pod of a Job: the Job adds the certificate to this webhook
	annotationFill   = prefix + "fill"       // adds data to a Secret
	annotationCopy   = prefix + "copy-to"    // copies a Secret to this namespace
	annotationSource = prefix + "copied-from"
)

// standInPoll is the interval at which the stand-ins check something that no event reports.
const standInPoll = 200 * time.Millisecond

var (
	definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	validating  = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	mutating    = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}
)

// jobRuns counts the Pods that ran to their end, by the namespace and name of their Job.
var jobRuns counter

// fakeControllers changes objects as the programs of a cluster would.
type fakeControllers struct {
	client.Client
}

// startStandIns starts all stand-ins. They run until the suite ends.
func startStandIns(ctx context.Context) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}})
	Expect(err).NotTo(HaveOccurred())
	s := fakeControllers{mgr.GetClient()}
	Expect(controlplane.AddKubelet(mgr, func(pod *corev1.Pod) bool { return pod.Labels[batchv1.JobNameLabel] == "" })).To(Succeed())
	add(mgr, "jobs", &corev1.Pod{}, s.completeJob)
	add(mgr, "load-balancers", &corev1.Service{}, s.setAddress)
	add(mgr, "volumes", &corev1.PersistentVolumeClaim{}, s.createVolume)
	add(mgr, "secrets", &corev1.Secret{}, s.fillAndCopy)
	for name, kind := range map[string]schema.GroupVersionKind{"definitions": definitions, "validating": validating, "mutating": mutating} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(kind)
		add(mgr, name, obj, func(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
			return s.addCertificate(ctx, kind, key)
		})
	}
	Expect(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		direct, err := client.New(cp.Config, client.Options{Scheme: mgr.GetScheme()})
		if err != nil {
			return err
		}
		wait.UntilWithContext(ctx, fakeControllers{direct}.writeStatuses, standInPoll)
		return nil
	}))).To(Succeed())
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(running) }()
	DeferCleanup(func() error { cancel(); return <-done })
}

// add adds a controller for a kind to the manager.
func add(mgr manager.Manager, name string, kind client.Object, run func(context.Context, types.NamespacedName) (reconcile.Result, error)) {
	GinkgoHelper()
	Expect(ctrl.NewControllerManagedBy(mgr).For(kind).Named(name).Complete(
		reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			result, err := run(ctx, req.NamespacedName)
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return reconcile.Result{RequeueAfter: standInPoll}, nil
			}
			return result, err
		}))).To(Succeed())
}

// completeJob ends the Pods of Jobs successfully, and does the work of these Jobs.
func (s fakeControllers) completeJob(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := s.Get(ctx, key, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if pod.Labels[batchv1.JobNameLabel] == "" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending {
		return reconcile.Result{}, nil
	}
	if name := pod.Annotations[annotationPatch]; name != "" {
		config := &unstructured.Unstructured{}
		config.SetGroupVersionKind(validating)
		if err := s.Get(ctx, types.NamespacedName{Name: name}, config); err != nil {
			return reconcile.Result{RequeueAfter: standInPoll}, client.IgnoreNotFound(err)
		}
		if err := s.addCertificateTo(ctx, config); err != nil {
			return reconcile.Result{}, err
		}
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	if err := s.Status().Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return reconcile.Result{}, err
	}
	jobRuns.add(pod.Namespace + "/" + pod.Labels[batchv1.JobNameLabel])
	return reconcile.Result{}, nil
}

// setAddress gives each load balancer an address.
func (s fakeControllers) setAddress(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	service := &corev1.Service{}
	if err := s.Get(ctx, key, service); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || len(service.Status.LoadBalancer.Ingress) > 0 {
		return reconcile.Result{}, nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	return reconcile.Result{}, s.Status().Patch(ctx, service, client.MergeFrom(before))
}

// createVolume creates a volume for a claim when a Pod uses the claim, and deletes the volume after the claim.
func (s fakeControllers) createVolume(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	volume := &corev1.PersistentVolume{}
	volume.Name = key.Namespace + "-" + key.Name
	claim := &corev1.PersistentVolumeClaim{}
	err := s.Get(ctx, key, claim)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, client.IgnoreNotFound(s.Delete(ctx, volume))
	case err != nil || claim.Status.Phase == corev1.ClaimBound || claim.DeletionTimestamp != nil:
		return reconcile.Result{}, err
	}
	pods := &corev1.PodList{}
	if err := s.List(ctx, pods, client.InNamespace(key.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	uses := func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == key.Name
	}
	if !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return slices.ContainsFunc(pod.Spec.Volumes, uses) }) {
		return reconcile.Result{RequeueAfter: standInPoll}, nil
	}
	volume.Spec = corev1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: *claim.Spec.StorageClassName,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
		ClaimRef:                      &corev1.ObjectReference{Namespace: key.Namespace, Name: key.Name},
	}
	return reconcile.Result{}, client.IgnoreAlreadyExists(s.Create(ctx, volume))
}

// fillAndCopy adds data to a Secret, or fills its keys, or copies a Secret to another namespace with all its labels and
// annotations.
func (s fakeControllers) fillAndCopy(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	switch err := s.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, s.deleteCopies(ctx, key)
	case err != nil:
		return reconcile.Result{}, err
	}
	if secret.Annotations[annotationFill] != "" && isUnfilled(secret) {
		before := secret.DeepCopy()
		if len(secret.Data) == 0 {
			secret.Data = map[string][]byte{corev1.TLSCertKey: nil}
		}
		for key := range secret.Data {
			secret.Data[key] = []byte("a value")
		}
		return reconcile.Result{}, s.Patch(ctx, secret, client.MergeFrom(before), client.FieldOwner("filler"))
	}
	namespace := secret.Annotations[annotationCopy]
	if namespace == "" || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	replica := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name, Labels: secret.Labels}, Data: secret.Data}
	replica.Annotations = map[string]string{annotationSource: key.String()}
	for name, value := range secret.Annotations {
		if name != annotationCopy {
			replica.Annotations[name] = value
		}
	}
	return reconcile.Result{}, client.IgnoreAlreadyExists(s.Create(ctx, replica, client.FieldOwner("copier")))
}

// isUnfilled reports whether a Secret has no values.
func isUnfilled(secret *corev1.Secret) bool {
	for _, value := range secret.Data {
		if len(value) > 0 {
			return false
		}
	}
	return true
}

// deleteCopies deletes the copies of a Secret.
func (s fakeControllers) deleteCopies(ctx context.Context, key types.NamespacedName) error {
	list := &corev1.SecretList{}
	if err := s.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		if replica := &list.Items[i]; replica.Annotations[annotationSource] == key.String() {
			if err := client.IgnoreNotFound(s.Delete(ctx, replica)); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCertificate adds the certificate of the webhooks to objects with the annotation annotationInject.
func (s fakeControllers) addCertificate(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (reconcile.Result, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	if err := s.Get(ctx, key, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if obj.GetAnnotations()[annotationInject] != "true" || obj.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, s.addCertificateTo(ctx, obj)
}

// addCertificateTo adds the certificate of the webhooks to all client configurations of an object.
func (s fakeControllers) addCertificateTo(ctx context.Context, obj *unstructured.Unstructured) error {
	changed := obj.DeepCopy()
	if !setBundles(changed.Object, webhooks.bundle) {
		return nil
	}
	return s.Patch(ctx, changed, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{}), client.FieldOwner("certificate-injector"))
}

// setBundles sets the field caBundle in all objects clientConfig. It reports whether a value changed.
func setBundles(value any, bundle string) (changed bool) {
	switch value := value.(type) {
	case map[string]any:
		if config, found := value["clientConfig"].(map[string]any); found && config["caBundle"] != bundle {
			config["caBundle"], changed = bundle, true
		}
		for _, below := range value {
			changed = setBundles(below, bundle) || changed
		}
	case []any:
		for _, below := range value {
			changed = setBundles(below, bundle) || changed
		}
	}
	return changed
}

// writeStatuses writes the status of all objects whose definitions have the annotation annotationWrites. It ignores
// errors, because it is called again.
func (s fakeControllers) writeStatuses(ctx context.Context) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(definitions)
	if s.List(ctx, all) != nil {
		return
	}
	for i := range all.Items {
		definition := &all.Items[i]
		if definition.GetAnnotations()[annotationWrites] != "true" || definition.GetDeletionTimestamp() != nil {
			continue
		}
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
		if s.List(ctx, objects) != nil {
			continue
		}
		for j := range objects.Items {
			s.writeStatus(ctx, &objects.Items[j])
		}
	}
}

func (s fakeControllers) writeStatus(ctx context.Context, obj *unstructured.Unstructured) {
	if seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); seen == obj.GetGeneration() {
		return
	}
	before := obj.DeepCopy()
	obj.Object["status"] = map[string]any{
		"observedGeneration": obj.GetGeneration(), "conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Done"}},
	}
	_ = s.Status().Patch(ctx, obj, client.MergeFrom(before), client.FieldOwner("operator")) // the next call tries again
}
