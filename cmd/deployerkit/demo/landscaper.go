// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	installations "github.com/deployerkit/deployerkit/examples/landscaper"
)

// demoNamespace returns the namespace of the Installations.
func demoNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
}

// install returns an action that edits the manifest of an Installation and applies the result.
func install(file string, edits ...edit) func(context.Context, *env) error {
	return func(ctx context.Context, st *env) error {
		objects, err := decode(installations.Files, file, edits...)
		if err != nil {
			return err
		}
		if err := st.rememberJobs(ctx); err != nil {
			return err
		}
		for _, obj := range objects {
			err := st.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("demo"), client.ForceOwnership)
			if err != nil {
				return fmt.Errorf("apply %s: %w", file, err)
			}
		}
		return nil
	}
}

// uninstall returns an action that deletes an Installation and does not wait until it is gone.
func uninstall(name string) func(context.Context, *env) error {
	return func(ctx context.Context, st *env) error { return st.client.Delete(ctx, installation(name)) }
}

// installation returns an Installation in which only the name and the namespace are set.
func installation(name string) *lsv1alpha1.Installation {
	return &lsv1alpha1.Installation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// rememberJobs stores the last job of each Installation. The function `ends` uses this to wait for the next job.
func (st *env) rememberJobs(ctx context.Context) error {
	list := &lsv1alpha1.InstallationList{}
	if err := st.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list Installations: %w", err)
	}
	for i := range list.Items {
		st.jobs[list.Items[i].Name] = list.Items[i].Status.JobID
	}
	return nil
}

func hasContext(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
	return st.client.Get(ctx, item(lsv1alpha1.DefaultContextName), &lsv1alpha1.Context{})
}

// ends requires that a new job of the Installation has ended in the given phase. A job is new if it began after the
// last call of rememberJobs.
func ends(name string, want lsv1alpha1.InstallationPhase) condition {
	return func(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
		in := installation(name)
		if err := st.client.Get(ctx, item(name), in); err != nil {
			return err
		}
		s := in.Status
		if s.JobID == st.jobs[name] || s.JobID != s.JobIDFinished || s.InstallationPhase != want {
			return fmt.Errorf("the phase is %q, the job is %q, the finished job is %q%s", s.InstallationPhase, s.JobID, s.JobIDFinished, why(s.LastError))
		}
		return nil
	}
}

// why returns a text with an error, which can be appended to a message. It returns "" if e is nil.
func why(e *lsv1alpha1.Error) string {
	if e == nil {
		return ""
	}
	return ": " + e.Message
}

// hasError requires that the error of an item contains a text.
func hasError(text string) condition {
	return status(func(di *lsv1alpha1.DeployItem) error {
		if e := di.Status.LastError; e == nil || !strings.Contains(e.Message, text) {
			return fmt.Errorf("the error is %+v", e)
		}
		return nil
	})
}

// startedAfter requires that the run of an item started after the run of the item with the given name had ended.
func startedAfter(name string) condition {
	return existing(func(ctx context.Context, st *env, di *lsv1alpha1.DeployItem) error {
		other, err := st.get(ctx, name)
		if err != nil {
			return err
		}
		if other == nil || other.Status.TransitionTimes == nil || di.Status.TransitionTimes == nil {
			return errors.New("one of the two items has not run")
		}
		end, start := other.Status.TransitionTimes.FinishedTime, di.Status.TransitionTimes.InitTime
		if end == nil || start.Before(end) {
			return fmt.Errorf("the item started at %v, but the item %s ended at %v", start, name, end)
		}
		return nil
	})
}

func dataObjectIs(name, want string) condition {
	return func(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
		data, got := &lsv1alpha1.DataObject{}, ""
		if err := st.client.Get(ctx, item(name), data); err != nil {
			return err
		}
		if err := json.Unmarshal(data.Data.RawMessage, &got); err != nil {
			return fmt.Errorf("decode the value of the DataObject: %w", err)
		}
		if got != want {
			return fmt.Errorf("the value is %q, not %q", got, want)
		}
		return nil
	}
}

// appHas requires that the ConfigMap of the Installation "app" contains the given value under the given key.
func appHas(key, want string) condition {
	return func(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
		cm := &corev1.ConfigMap{}
		if err := st.client.Get(ctx, types.NamespacedName{Namespace: targetNamespace, Name: "app"}, cm); err != nil {
			return err
		}
		if got := cm.Data[key]; got != want {
			return fmt.Errorf("%s is %q, not %q", key, got, want)
		}
		return nil
	}
}

func isUninstalled(name string) condition {
	return func(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
		in := installation(name)
		err := st.client.Get(ctx, item(name), in)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("the Installation still exists, in phase %q%s", in.Status.InstallationPhase, why(in.Status.LastError))
	}
}

func nothingIsLeft(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
	for _, kind := range []string{"Installation", "Execution", "DeployItem", "DataObject"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := st.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%s %s still exists", kind, list.Items[0].Name)
		}
	}
	return nil
}
