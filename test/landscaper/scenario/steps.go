// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Step is an action or an expectation of a scenario.
type Step func(ctx context.Context, e *Env) error

// The final phases of an Installation.
const (
	succeeded    = lsv1alpha1.InstallationPhase(lsv1alpha1.PhaseStringSucceeded)
	failed       = lsv1alpha1.InstallationPhase(lsv1alpha1.PhaseStringFailed)
	deleteFailed = lsv1alpha1.InstallationPhase(lsv1alpha1.PhaseStringDeleteFailed)
)

// clusterTarget creates a Target with the kubeconfig of the scenario's user.
func clusterTarget(name string) Step {
	return func(ctx context.Context, e *Env) error {
		t := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
		_, err := controllerutil.CreateOrUpdate(ctx, e, t, func() error {
			t.Spec.Type = clusterType
			t.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(rawJSON(object{"kubeconfig": e.access}))
			return nil
		})
		return err
	}
}

// secretTarget creates a Target and a Secret. The Secret contains the configuration of the Target.
func secretTarget(name string) Step {
	return func(ctx context.Context, e *Env) error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}, Data: map[string][]byte{"config": rawJSON(object{"kubeconfig": e.access})}}
		if err := e.Create(ctx, s); err != nil {
			return err
		}
		t := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
		t.Spec.Type = clusterType
		t.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: name, Key: "config"}
		return e.Create(ctx, t)
	}
}

// removeObject deletes an object in the namespace of the scenario.
func removeObject(obj client.Object, name string) Step {
	return func(ctx context.Context, e *Env) error {
		obj.SetNamespace(e.Namespace)
		obj.SetName(name)
		return e.Delete(ctx, obj)
	}
}

// change changes an Installation.
type change func(in *lsv1alpha1.Installation)

// installed sets the blueprint of an Installation and requests a reconcile. By default, imports of Targets are bound to
// the Targets of the same names, and exports to the DataObjects of the same names.
func installed(name string, b blueprint, changes ...change) Step {
	return func(ctx context.Context, e *Env) error {
		if err := e.rememberJob(ctx, name); err != nil {
			return err
		}
		// Landscaper may still write the Installation after its last job has ended.
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			in := &lsv1alpha1.Installation{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
			_, err := controllerutil.CreateOrUpdate(ctx, e, in, func() error {
				e.bind(in, b)
				for _, c := range changes {
					c(in)
				}
				metav1.SetMetaDataAnnotation(&in.ObjectMeta, lsv1alpha1.OperationAnnotation, string(lsv1alpha1.ReconcileOperation))
				return nil
			})
			return err
		})
	}
}

// bind sets the spec of an Installation for a blueprint.
func (e *Env) bind(in *lsv1alpha1.Installation, b blueprint) {
	definition := b.inline()
	text := strings.ReplaceAll(string(definition.Inline.Filesystem.RawMessage), here, e.Namespace)
	definition.Inline.Filesystem.RawMessage = []byte(text)
	in.Spec = lsv1alpha1.InstallationSpec{Blueprint: definition, AutomaticReconcile: in.Spec.AutomaticReconcile}
	for _, i := range b.imports {
		name := i["name"].(string)
		switch i["type"] {
		case "target":
			in.Spec.Imports.Targets = append(in.Spec.Imports.Targets, lsv1alpha1.TargetImport{Name: name, Target: name})
		case "data":
			in.Spec.Imports.Data = append(in.Spec.Imports.Data, lsv1alpha1.DataImport{Name: name, DataRef: name})
		}
	}
	for _, name := range b.exports {
		in.Spec.Exports.Data = append(in.Spec.Exports.Data, lsv1alpha1.DataExport{Name: name, DataRef: name})
	}
}

// rememberJob stores the ID of the last job of an Installation. A later step `finishes` waits for another job.
func (e *Env) rememberJob(ctx context.Context, name string) error {
	in, err := e.installation(ctx, name)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	e.jobs[name] = in.Status.JobID
	return nil
}

// operated sets the operation annotation of an Installation.
func operated(name string, operation lsv1alpha1.Operation) Step {
	return func(ctx context.Context, e *Env) error {
		if operation != lsv1alpha1.InterruptOperation {
			if err := e.rememberJob(ctx, name); err != nil {
				return err
			}
		}
		in, err := e.installation(ctx, name)
		if err != nil {
			return err
		}
		return e.annotate(ctx, in, lsv1alpha1.OperationAnnotation, string(operation))
	}
}

// annotate sets an annotation of an object.
func (e *Env) annotate(ctx context.Context, obj client.Object, key, value string) error {
	body := rawJSON(object{"metadata": object{"annotations": object{key: value}}})
	return e.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", body))
}

// itemOperated sets the operation annotation of a deploy item.
func itemOperated(name string, operation lsv1alpha1.Operation) Step {
	return func(ctx context.Context, e *Env) error {
		di, err := e.item(ctx, name)
		if err != nil {
			return err
		}
		return e.annotate(ctx, di, lsv1alpha1.OperationAnnotation, string(operation))
	}
}

// finishes waits until the job that the previous step started has ended. It requires that the Installation has the
// given phase at that time.
func finishes(name string, want lsv1alpha1.InstallationPhase) Step {
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, fmt.Sprintf("Installation %s ends as %s", name, want), func(ctx context.Context) error {
			in, err := e.installation(ctx, name)
			if err != nil {
				return err
			}
			s := in.Status
			switch {
			case s.JobID == e.jobs[name]:
				return errors.New("the job of the Installation has not begun")
			case s.JobIDFinished != s.JobID || !s.InstallationPhase.IsFinal():
				return fmt.Errorf("the Installation is in phase %q; %s", s.InstallationPhase, e.explain(ctx))
			case s.InstallationPhase == failed && want == succeeded && e.failedWithoutItems(ctx, s.JobID):
				e.jobs[name] = s.JobID
				return errors.Join(fmt.Errorf("the job of the Installation failed, but none of its items did: %s", lastError(in)),
					e.annotate(ctx, in, lsv1alpha1.OperationAnnotation, string(lsv1alpha1.ReconcileOperation)))
			case s.InstallationPhase != want:
				return finalError{fmt.Errorf("the Installation ended as %q: %s; %s", s.InstallationPhase, lastError(in), e.explain(ctx))}
			}
			return nil
		})
	}
}

// failedWithoutItems reports whether items exist and none of them failed in the given job. In this case, Landscaper
// itself failed the job, because one of its own writes failed with a conflict. An operator would request another job.
func (e *Env) failedWithoutItems(ctx context.Context, job string) bool {
	items, err := e.Items(ctx)
	if err != nil || len(items) == 0 {
		return false
	}
	return !slices.ContainsFunc(items, func(di lsv1alpha1.DeployItem) bool {
		return di.Status.JobID == job && di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded
	})
}

// lastError returns the last error of an Installation as text.
func lastError(in *lsv1alpha1.Installation) string {
	if in.Status.LastError == nil {
		return "no error"
	}
	return in.Status.LastError.Message
}

// deleted deletes an Installation and does not wait until it is gone.
func deleted(name string) Step {
	return func(ctx context.Context, e *Env) error {
		if err := e.rememberJob(ctx, name); err != nil {
			return err
		}
		in, err := e.installation(ctx, name)
		if err != nil {
			return err
		}
		return e.Delete(ctx, in)
	}
}

// uninstalled deletes an Installation and waits until it is gone.
func uninstalled(name string) Step {
	return all(deleted(name), goneInstallation(name))
}

// goneInstallation waits until an Installation is gone.
func goneInstallation(name string) Step {
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, "Installation "+name+" is gone", func(ctx context.Context) error {
			in, err := e.installation(ctx, name)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			err = fmt.Errorf("the Installation is in phase %q; %s", in.Status.InstallationPhase, e.explain(ctx))
			if in.Status.InstallationPhase == deleteFailed && in.Status.JobID == in.Status.JobIDFinished && in.Status.JobID != e.jobs[name] {
				return finalError{err}
			}
			return err
		})
	}
}

// The function `all` returns a step that runs the given steps one after the other.
func all(steps ...Step) Step {
	return func(ctx context.Context, e *Env) error {
		for _, s := range steps {
			if err := s(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}
}

// ref returns an object that contains only its kind, its name, and the namespace of the scenario.
func (e *Env) ref(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(e.Namespace)
	u.SetName(name)
	return u
}

// exists requires that an object exists in the namespace of the scenario.
func exists(apiVersion, kind, name string) Step {
	return func(ctx context.Context, e *Env) error {
		u := e.ref(apiVersion, kind, name)
		return e.Get(ctx, client.ObjectKeyFromObject(u), u)
	}
}

// absent waits until an object is gone.
func absent(apiVersion, kind, name string) Step {
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, kind+" "+name+" is gone", func(ctx context.Context) error {
			u := e.ref(apiVersion, kind, name)
			err := e.Get(ctx, client.ObjectKeyFromObject(u), u)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			return errors.New("the object still exists")
		})
	}
}

// has waits until a ConfigMap contains a value.
func has(name, key, want string) Step {
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, fmt.Sprintf("ConfigMap %s has %s=%s", name, key, want), func(ctx context.Context) error {
			data, err := e.configMap(ctx, name)
			if err != nil {
				return err
			}
			if data[key] != want {
				return fmt.Errorf("the value is %q", data[key])
			}
			return nil
		})
	}
}

// item waits until the function `ok` returns true for a deploy item.
func item(name, what string, ok func(di *lsv1alpha1.DeployItem) bool) Step {
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, "deploy item "+name+" "+what, func(ctx context.Context) error {
			di, err := e.item(ctx, name)
			if err != nil {
				return err
			}
			if !ok(di) {
				return fmt.Errorf("the status of the item is %s", rawJSON(di.Status))
			}
			return nil
		})
	}
}

// phase waits until a deploy item has the given phase.
func phase(name string, want lsv1alpha1.DeployItemPhase) Step {
	return item(name, "is "+string(want), func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == want })
}

// remembered returns a step that stores the UID of an object. A later step `same` compares this UID.
func remembered(apiVersion, kind, name string) Step {
	return func(ctx context.Context, e *Env) error {
		u := e.ref(apiVersion, kind, name)
		if err := e.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		e.uids[kind+"/"+name] = string(u.GetUID())
		return nil
	}
}

// The function `same` returns a step that requires that an object still has the UID that the step `remembered` stored.
func same(apiVersion, kind, name string) Step {
	return func(ctx context.Context, e *Env) error {
		u := e.ref(apiVersion, kind, name)
		if err := e.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if string(u.GetUID()) != e.uids[kind+"/"+name] {
			return fmt.Errorf("%s %s was recreated", kind, name)
		}
		return nil
	}
}

// editedByHand changes the value "a" of the ConfigMap "app", as a user may do.
func editedByHand(ctx context.Context, e *Env) error {
	body := rawJSON(object{"data": object{"a": "by hand"}})
	return e.Patch(ctx, e.ref("v1", "ConfigMap", "app"), client.RawPatch("application/merge-patch+json", body), client.FieldOwner("kubectl-edit"))
}

// dataObject creates a DataObject.
func dataObject(name string, value any) Step {
	return func(ctx context.Context, e *Env) error {
		d := &lsv1alpha1.DataObject{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}, Data: lsv1alpha1.NewAnyJSON(rawJSON(value))}
		return e.Create(ctx, d)
	}
}

// ownedKinds contains the kinds that the function `owned` accepts.
var ownedKinds = map[string]client.ObjectList{
	"Deployment": &appsv1.DeploymentList{}, "StatefulSet": &appsv1.StatefulSetList{}, "Secret": &corev1.SecretList{}, "Service": &corev1.ServiceList{},
}

// owned waits until the given number of objects of a kind exist in the namespace of the scenario. It counts only
// objects that a deployer of this module created.
func owned(kind string, want int) Step {
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, fmt.Sprintf("%d objects of kind %s", want, kind), func(ctx context.Context) error {
			list := ownedKinds[kind].DeepCopyObject().(client.ObjectList)
			if err := e.List(ctx, list, client.InNamespace(e.Namespace), client.HasLabels{ownership.LabelItem}); err != nil {
				return err
			}
			if n := meta.LenList(list); n != want {
				return fmt.Errorf("found %d objects", n)
			}
			return nil
		})
	}
}
