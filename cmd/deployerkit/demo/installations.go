// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	installations "github.com/deployerkit/deployerkit/examples/landscaper"
	"github.com/deployerkit/deployerkit/internal/steps"
)

// These variables are the parts of the manifests that the demo changes.
var (
	newHost         = edit{"host: db-1.example.com", "host: db-2.example.com"}
	withoutMetrics  = edit{"          - {name: metrics, type: GoTemplate, file: /metrics.yaml}\n", ""}
	unquotedNumber  = edit{`connections: "10"`, `connections: 20`}
	moreConnections = edit{`connections: "10"`, `connections: "20"`}
)

// numberRefused is a part of the error message after the edit unquotedNumber.
const numberRefused = "ConfigMap default/app: .data.connections: expected string"

const (
	targetName      = "workload"
	targetNamespace = "default" // namespace of the objects that the Installations deploy
)

// newInstallationSteps returns the steps of the demo with the real Landscaper.
func (d *demo) newInstallationSteps() []steps.Step {
	return []steps.Step{
		steps.Do(`Create a namespace and a Target "workload", which is this cluster`, createNamespaceAndTarget,
			steps.Expect("Landscaper gives the namespace a Context", steps.ContextExists)),
		steps.Do("Install database, with the deploy items server, address and metrics", install("database.yaml"),
			steps.Expect("Installation database succeeds", steps.InstallationSucceeds("database")),
			steps.Expect("the server of database runs in the cluster", steps.ObjectExists("Deployment", targetNamespace, "database")),
			steps.Expect("the metrics of database are configured", steps.ObjectExists("ConfigMap", targetNamespace, "database-metrics")),
			steps.Expect("address started when server was ready", steps.ItemsRanInOrder("server", "address")),
			steps.Expect("the host that address exports is the DataObject database-host", steps.DataObjectHas("database-host", `"db-1.example.com"`))),
		steps.Do("Install app, which imports the host", install("app.yaml"),
			steps.Expect("Installation app succeeds", steps.InstallationSucceeds("app")),
			steps.Expect("its ConfigMap has the host", expectApp("url", "postgres://db-1.example.com:5432/app"))),
		steps.Do("Change the host in the blueprint of database", install("database.yaml", newHost),
			steps.Expect("Installation database succeeds", steps.InstallationSucceeds("database")),
			steps.Expect("the DataObject has the new host", steps.DataObjectHas("database-host", `"db-2.example.com"`)),
			steps.Expect("Landscaper reconciles Installation app as well, since it imports from database", steps.InstallationSucceeds("app")),
			steps.Expect("its ConfigMap has the new host", expectApp("url", "postgres://db-2.example.com:5432/app"))),
		steps.Do("Remove the item metrics from the blueprint of database", install("database.yaml", newHost, withoutMetrics),
			steps.Expect("Installation database succeeds", steps.InstallationSucceeds("database")),
			steps.Expect("metrics is gone", steps.ItemIsGone("metrics")),
			steps.Expect("so is its ConfigMap", steps.ObjectIsGone("ConfigMap", targetNamespace, "database-metrics")),
			steps.Expect("the server is still there", steps.ObjectExists("Deployment", targetNamespace, "database")),
			steps.Expect("Landscaper reconciles Installation app", steps.InstallationSucceeds("app"))),
		steps.Do("Make a mistake in app: more connections, but as a number without quotes", install("app.yaml", unquotedNumber),
			steps.Expect("Installation app fails", steps.InstallationFails("app", lsv1alpha1.InstallationPhases.Failed)),
			steps.ExpectItem("settings", "says: "+numberRefused, steps.ItemFails(lsv1alpha1.Error{Message: numberRefused})),
			steps.Expect("the ConfigMap is as before", expectApp("connections", "10"))),
		steps.Do("Add the quotes", install("app.yaml", moreConnections),
			steps.Expect("Installation app succeeds", steps.InstallationSucceeds("app")),
			steps.Expect("the ConfigMap of app has the new value", expectApp("connections", "20"))),
		steps.Do("Delete app", steps.DeleteInstallation("app"),
			steps.Expect("Installation app is gone", steps.InstallationIsGone("app")),
			steps.Expect("so is its ConfigMap", steps.ObjectIsGone("ConfigMap", targetNamespace, "app"))),
		steps.Do("Delete database, which no other Installation needs any more", steps.DeleteInstallation("database"),
			steps.Expect("Installation database is gone", steps.InstallationIsGone("database")),
			steps.Expect("so is its server", steps.ObjectIsGone("Deployment", targetNamespace, "database")),
			steps.Expect("no Execution, deploy item or DataObject is left", expectNothingLeft)),
	}
}

// createNamespaceAndTarget creates the namespace and the Target of the Installations.
func createNamespaceAndTarget(ctx context.Context, e *steps.Env) error {
	if err := e.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}); err != nil {
		return err
	}
	return steps.CreateTarget(targetName)(ctx, e)
}

// install returns an action that edits the manifest of an Installation and applies the result.
func install(file string, edits ...edit) steps.Func {
	return func(ctx context.Context, e *steps.Env) error {
		objects, err := decode(installations.Files, file, edits...)
		if err != nil {
			return err
		}
		if err := e.StoreJobs(ctx); err != nil {
			return err
		}
		return e.Apply(ctx, client.ApplyConfigurationFromUnstructured(objects[0]), client.FieldOwner("demo"), client.ForceOwnership)
	}
}

// expectApp expects a value in the ConfigMap of the Installation "app".
func expectApp(key, want string) steps.Func {
	return steps.ConfigMapHas(targetNamespace, "app", key, want)
}

// expectNothingLeft expects that Landscaper has removed all its objects.
func expectNothingLeft(ctx context.Context, e *steps.Env) error {
	for _, kind := range []string{"Installation", "Execution", "DeployItem", "DataObject"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := e.List(ctx, list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%s %s still exists", kind, list.Items[0].Name)
		}
	}
	return nil
}
