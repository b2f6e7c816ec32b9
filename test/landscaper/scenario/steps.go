// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/steps"
)

// createTarget creates a Target with the kubeconfig of the scenario's user, or restores it.
func createTarget(name string) steps.Step {
	return steps.Do("create Target "+name, steps.CreateTarget(name))
}

// createSecretTarget creates a Target that refers to a Secret with its configuration.
func createSecretTarget(name string) steps.Step {
	return steps.Do("create Target "+name+" with a Secret", func(ctx context.Context, e *steps.Env) error {
		meta := metav1.ObjectMeta{Namespace: e.Namespace, Name: name}
		if err := e.Create(ctx, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"config": e.TargetConfig}}); err != nil {
			return err
		}
		return e.Create(ctx, &lsv1alpha1.Target{ObjectMeta: meta, Spec: lsv1alpha1.TargetSpec{
			Type: steps.ClusterTargetType, SecretRef: &lsv1alpha1.LocalSecretReference{Name: name, Key: "config"},
		}})
	})
}

func deleteTarget(name string) steps.Step {
	return steps.Do("delete Target "+name, func(ctx context.Context, e *steps.Env) error {
		return e.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}})
	})
}

func createContext(name string) steps.Step {
	return steps.Do("create Context "+name, func(ctx context.Context, e *steps.Env) error {
		return e.Create(ctx, &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}})
	})
}

func createDataObject(name string, value any) steps.Step {
	return steps.Do("create DataObject "+name, func(ctx context.Context, e *steps.Env) error {
		return e.Create(ctx, &lsv1alpha1.DataObject{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}, Data: lsv1alpha1.NewAnyJSON(mustMarshal(value)),
		})
	})
}

// change changes an Installation.
type change func(in *lsv1alpha1.Installation)

// install applies an Installation and waits until it succeeds.
func install(name string, b blueprint, changes ...change) steps.Step {
	return steps.All(apply(name, b, changes...), expectSuccess(name))
}

// apply sets the blueprint of an Installation and requests a reconcile. By default, imports of Targets are bound to the
// Targets of the same names, and exports to the DataObjects of the same names.
func apply(name string, b blueprint, changes ...change) steps.Step {
	return steps.Do("apply Installation "+name, func(ctx context.Context, e *steps.Env) error {
		if err := e.StoreJobs(ctx); err != nil {
			return err
		}
		// Landscaper may still write the Installation after its last job has ended.
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			in := e.NewInstallation(name)
			_, err := controllerutil.CreateOrUpdate(ctx, e, in, func() error {
				setBlueprint(in, b)
				for _, c := range changes {
					c(in)
				}
				metav1.SetMetaDataAnnotation(&in.ObjectMeta, lsv1alpha1.OperationAnnotation, string(lsv1alpha1.ReconcileOperation))
				return nil
			})
			return err
		})
	})
}

// setBlueprint sets the blueprint, the imports and the exports of an Installation.
func setBlueprint(in *lsv1alpha1.Installation, b blueprint) {
	definition := b.toDefinition()
	text := strings.ReplaceAll(string(definition.Inline.Filesystem.RawMessage), namespacePlaceholder, in.Namespace)
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

// reconcile requests a reconcile of an Installation and waits until it succeeds.
func reconcile(name string) steps.Step {
	return steps.All(requestOperation(name, lsv1alpha1.ReconcileOperation), expectSuccess(name))
}

// requestOperation sets the operation annotation of an Installation.
func requestOperation(name string, operation lsv1alpha1.Operation) steps.Step {
	return steps.Do(fmt.Sprintf("request %s of Installation %s", operation, name), func(ctx context.Context, e *steps.Env) error {
		if operation != lsv1alpha1.InterruptOperation { // an interrupt ends the current job and starts no other
			if err := e.StoreJobs(ctx); err != nil {
				return err
			}
		}
		return e.SetAnnotation(ctx, e.NewInstallation(name), lsv1alpha1.OperationAnnotation, string(operation))
	})
}

// interruptAgainAfter is the time after which an interrupt is requested again. Landscaper removes the annotation before it
// interrupts the items, and does not try again if it then conflicts with another write of the Execution or of an item.
const interruptAgainAfter = 30 * time.Second

// interrupt interrupts the job of an Installation and waits until the Installation has the given phase.
func interrupt(name string, phase lsv1alpha1.InstallationPhase) steps.Step {
	request, wait := requestOperation(name, lsv1alpha1.InterruptOperation), expectFailure(name, phase)
	var requested time.Time
	repeat := func(ctx context.Context, e *steps.Env) error {
		requested = time.Now()
		return request.Do(ctx, e)
	}
	return steps.All(steps.Do(request.Name, repeat), steps.Expect(wait.Name, func(ctx context.Context, e *steps.Env) error {
		err := wait.Expect(ctx, e)
		if err != nil && time.Since(requested) > interruptAgainAfter {
			err = errors.Join(err, repeat(ctx, e))
		}
		return err
	}))
}

// requestItemOperation sets the operation annotation of a deploy item.
func requestItemOperation(name string, operation lsv1alpha1.Operation) steps.Step {
	return steps.Do(fmt.Sprintf("request %s of item %s", operation, name), func(ctx context.Context, e *steps.Env) error {
		di, err := e.GetItem(ctx, name)
		if err != nil {
			return err
		}
		return e.SetAnnotation(ctx, di, lsv1alpha1.OperationAnnotation, string(operation))
	})
}

// expectSuccess waits until the job that an earlier step has requested succeeds.
func expectSuccess(name string) steps.Step {
	return steps.Expect("Installation "+name+" succeeds", steps.InstallationSucceeds(name))
}

// expectFailure waits until the job that an earlier step has requested ends in the given phase.
func expectFailure(name string, phase lsv1alpha1.InstallationPhase) steps.Step {
	return steps.Expect(fmt.Sprintf("Installation %s is %s", name, phase), steps.InstallationFails(name, phase))
}

// deleteAndWait deletes an Installation and waits until it is gone.
func deleteAndWait(name string) steps.Step {
	return steps.All(deleteInstallation(name), expectUninstalled(name))
}

// deleteInstallation deletes an Installation and does not wait until it is gone.
func deleteInstallation(name string) steps.Step {
	return steps.Do("delete Installation "+name, steps.DeleteInstallation(name))
}

func expectUninstalled(name string) steps.Step {
	return steps.Expect("Installation "+name+" is gone", steps.InstallationIsGone(name))
}

// requireObject requires that an object exists now.
func requireObject(kind, name string) steps.Step {
	return steps.Require(kind+" "+name+" exists", steps.ObjectExists(kind, "", name))
}

// expectNoObject waits until an object is gone.
func expectNoObject(kind, name string) steps.Step {
	return steps.Expect(kind+" "+name+" is gone", steps.ObjectIsGone(kind, "", name))
}

// expectValue waits until a ConfigMap contains a value.
func expectValue(name, key, want string) steps.Step {
	return steps.Expect(fmt.Sprintf("ConfigMap %s has %s=%s", name, key, want), steps.ConfigMapHas("", name, key, want))
}

// expectData waits until a DataObject contains a value, which is given as JSON.
func expectData(name, want string) steps.Step {
	return steps.Expect("DataObject "+name+" is "+want, steps.DataObjectHas(name, want))
}

// storeUID stores the UID of an object for requireSame.
func storeUID(kind, name string) steps.Step {
	return steps.Do("read "+kind+" "+name, steps.StoreUID(kind, name))
}

// requireSame requires that an object was not recreated after the step storeUID.
func requireSame(kind, name string) steps.Step {
	return steps.Require(kind+" "+name+" was not recreated", steps.ObjectIsSame(kind, name))
}

// requireOrder requires that each item started after the previous item had finished.
func requireOrder(names ...string) steps.Step {
	return steps.Require("the items ran in order", steps.ItemsRanInOrder(names...))
}

// editConfigMap changes the value "a" of the ConfigMap "app", as a user may do.
var editConfigMap = steps.Do("edit ConfigMap app", func(ctx context.Context, e *steps.Env) error {
	body := mustMarshal(object{"data": object{"a": "by hand"}})
	return e.Patch(ctx, e.NewObject("ConfigMap", "", "app"), client.RawPatch(types.MergePatchType, body), client.FieldOwner("kubectl-edit"))
})

// ownedLists contains an empty list for each kind that expectOwned accepts.
var ownedLists = map[string]client.ObjectList{
	"Deployment": &appsv1.DeploymentList{}, "StatefulSet": &appsv1.StatefulSetList{}, "Secret": &corev1.SecretList{}, "Service": &corev1.ServiceList{},
}

// expectOwned waits until the given number of objects of a kind exist in the namespace of the scenario. It counts only
// objects that a deployer of this module created.
func expectOwned(kind string, want int) steps.Step {
	return steps.Expect(fmt.Sprintf("%d objects of kind %s", want, kind), func(ctx context.Context, e *steps.Env) error {
		list := ownedLists[kind].DeepCopyObject().(client.ObjectList)
		if err := e.List(ctx, list, client.InNamespace(e.Namespace), client.HasLabels{ownership.LabelItem}); err != nil {
			return err
		}
		if n := meta.LenList(list); n != want {
			return fmt.Errorf("found %d objects", n)
		}
		return nil
	})
}

// mustMarshal encodes a value that consists of maps, lists and scalars.
func mustMarshal(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // this error cannot happen, because the value is part of a scenario
	}
	return raw
}
