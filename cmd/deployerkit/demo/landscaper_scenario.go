// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// These variables are the parts of the manifests that the scenario changes.
var (
	newHost      = edit{"host: db-1.example.com", "host: db-2.example.com"}
	noMetrics    = edit{"          - {name: metrics, type: GoTemplate, file: /metrics.yaml}\n", ""}
	moreUnquoted = edit{`connections: "10"`, `connections: 20`}
	more         = edit{`connections: "10"`, `connections: "20"`}
)

// mistake is a part of the error message that the demo expects after the edit moreUnquoted.
const mistake = "ConfigMap default/app: .data.connections: expected string"

// targetNamespace is the namespace of the objects that the Installations deploy.
const targetNamespace = "default"

var (
	succeeded = lsv1alpha1.InstallationPhases.Succeeded
	failed    = lsv1alpha1.InstallationPhases.Failed
)

// landscaperScenario contains the steps of the demo with the real Landscaper.
var landscaperScenario = []step{
	{
		title: `Create a namespace and a Target "workload", which is this cluster`, do: furnish,
		checks: []check{{text: "Landscaper gives the namespace a Context", holds: hasContext}},
	},
	{
		title: "Install database, with the deploy items server, address and metrics", do: install("database.yaml"),
		checks: []check{
			{text: "Installation database succeeds", holds: ends("database", succeeded)},
			{text: "the server of database runs in the cluster", holds: isThere("Deployment", targetNamespace, "database")},
			{text: "the metrics of database are configured", holds: isThere("ConfigMap", targetNamespace, "database-metrics")},
			{item: "address", text: "started when server was ready", holds: startedAfter("server")},
			{text: "the host that address exports is the DataObject database-host", holds: dataObjectIs("database-host", "db-1.example.com")},
		},
	},
	{
		title: "Install app, which imports the host", do: install("app.yaml"),
		checks: []check{
			{text: "Installation app succeeds", holds: ends("app", succeeded)},
			{text: "its ConfigMap has the host", holds: appHas("url", "postgres://db-1.example.com:5432/app")},
		},
	},
	{
		title: "Change the host in the blueprint of database", do: install("database.yaml", newHost),
		checks: []check{
			{text: "Installation database succeeds", holds: ends("database", succeeded)},
			{text: "the DataObject has the new host", holds: dataObjectIs("database-host", "db-2.example.com")},
			{text: "Landscaper reconciles Installation app as well, since it imports from database", holds: ends("app", succeeded)},
			{text: "its ConfigMap has the new host", holds: appHas("url", "postgres://db-2.example.com:5432/app")},
		},
	},
	{
		title: "Remove the item metrics from the blueprint of database", do: install("database.yaml", newHost, noMetrics),
		checks: []check{
			{text: "Installation database succeeds", holds: ends("database", succeeded)},
			{item: "metrics", text: "is gone", holds: gone},
			{text: "so is its ConfigMap", holds: isGone("ConfigMap", targetNamespace, "database-metrics")},
			{text: "the server is still there", holds: isThere("Deployment", targetNamespace, "database")},
			{text: "Landscaper reconciles Installation app", holds: ends("app", succeeded)},
		},
	},
	{
		title: "Make a mistake in app: more connections, but as a number without quotes", do: install("app.yaml", moreUnquoted),
		checks: []check{
			{text: "Installation app fails", holds: ends("app", failed)},
			{item: "settings", text: "says: " + mistake, holds: hasError(mistake)},
			{text: "the ConfigMap is as before", holds: appHas("connections", "10")},
		},
	},
	{
		title: "Add the quotes", do: install("app.yaml", more),
		checks: []check{
			{text: "Installation app succeeds", holds: ends("app", succeeded)},
			{text: "the ConfigMap of app has the new value", holds: appHas("connections", "20")},
		},
	},
	{
		title: "Delete app", do: uninstall("app"),
		checks: []check{
			{text: "Installation app is gone", holds: isUninstalled("app")},
			{text: "so is its ConfigMap", holds: isGone("ConfigMap", targetNamespace, "app")},
		},
	},
	{
		title: "Delete database, which no other Installation needs any more", do: uninstall("database"),
		checks: []check{
			{text: "Installation database is gone", holds: isUninstalled("database")},
			{text: "so is its server", holds: isGone("Deployment", targetNamespace, "database")},
			{text: "no Execution, deploy item or DataObject is left", holds: nothingIsLeft},
		},
	},
}

// furnish creates the namespace and the Target of the Installations.
func furnish(ctx context.Context, st *env) error {
	if err := st.client.Create(ctx, demoNamespace()); err != nil {
		return err
	}
	return st.createTarget(ctx)
}
