// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"strings"
)

// value describes one value of a chart.
type value struct {
	path string
	kind string // a key of the map `kinds`
	def  string // default, as YAML in one line, or "" if there is none
	doc  string

	targets bool // the value exists only in the charts of deployers that apply objects to Targets
	helm    bool // the value exists only in the chart of the Helm deployer
	compat  bool // the value exists only in our charts, because Landscaper's charts define it
}

// values returns the values of the chart. The chart of a new deployer replaces no chart of Landscaper, so it has no
// values for compatibility.
func (c *Chart) values() []value {
	return slices.DeleteFunc(slices.Concat(landscaperValues, ownValues, podValues), func(v value) bool {
		return v.targets && !c.Targets || v.helm && !c.Helm || v.compat && !c.Ours
	})
}

// landscaperValues are the values that Landscaper's charts also define.
var landscaperValues = []value{
	{path: "nameOverride", kind: "string", doc: "Replaces the name of the chart in the names and the selector labels of objects."},
	{path: "fullnameOverride", kind: "string", doc: "Name of the Deployment, and prefix of the names of all other objects. Default: composed of the names of the release and the chart."},
	{path: "replicaCount", kind: "positive", def: "1", doc: "Number of replicas, or of replicas of each shard. Only one of them, the leader, handles deploy items. The others are standbys. Has no effect if there is a HorizontalPodAutoscaler."},
	{path: "image.repository", kind: "string", def: "REPOSITORY", doc: "Name of the image, without the tag."},
	{path: "image.tag", kind: "string", doc: "Tag of the image, or its digest, such as sha256:…. Default: the appVersion of the chart."},
	{path: "image.pullPolicy", kind: "pullPolicy", def: "IfNotPresent", doc: "When the image is pulled: Always, IfNotPresent or Never."},
	{path: "imagePullSecrets", kind: "objects", def: "[]", doc: "Secrets with credentials of the registry, each as {name}."},
	{path: "deployer.landscaperClusterKubeconfig.kubeconfig", kind: "string", doc: "Kubeconfig of the cluster with the deploy items, if the deployer runs in another cluster. The chart stores it in a Secret. Takes precedence over secretRef."},
	{path: "deployer.landscaperClusterKubeconfig.secretRef", kind: "string", doc: "Name of a Secret in the namespace of the release that contains this kubeconfig under the key kubeconfig. When the Secret changes, the program exits and is restarted."},
	{path: "deployer.identity", kind: "string", doc: "Name of the deployer in status.deployer.identity."},
	{path: "deployer.namespace", kind: "string", compat: true, doc: "Has no effect, as in Landscaper's charts. See deployer.watchNamespace."},
	{path: "deployer.verbosityLevel", kind: "verbosity", doc: "Log level: error, info, debug, or a number from 0 (info) to 7. Default: info."},
	{path: "deployer.targetSelector", kind: "objects", doc: "Restricts the deployer to deploy items whose Target matches; a list of {targets, annotations, labels}."},
	{path: "deployer.controller.workers", kind: "positive", def: "30", doc: "Number of deploy items that are processed at the same time."},
	{path: "deployer.controller.cacheSyncTimeout", kind: "duration", doc: "Time that the program waits for its caches when it starts. Default: 2m."},
	{path: "deployer.oci.secrets", kind: "object", def: "{}", helm: true, doc: "Docker configuration files with credentials for charts; a map of names to their contents, as objects. The chart stores them in a Secret. The deployer uses them for the deploy items of all namespaces."},
	{path: "deployer.oci.allowPlainHttp", kind: "bool", def: "false", helm: true, doc: "Connects without TLS to the hosts in deployer.oci.secrets. Other hosts are not affected."},
	{path: "deployer.oci.insecureSkipVerify", kind: "bool", def: "false", helm: true, doc: "Does not verify the certificates of the hosts in deployer.oci.secrets."},
	{path: "deployer.k8sClientSettings.hostClient.burst", kind: "positive", def: "30", doc: "Maximum burst of requests to the host cluster, if it is not the cluster with the deploy items."},
	{path: "deployer.k8sClientSettings.hostClient.qps", kind: "positive", def: "20", doc: "Maximum requests per second to the host cluster, if it is not the cluster with the deploy items."},
	{path: "deployer.k8sClientSettings.resourceClient.burst", kind: "positive", def: "60", doc: "Maximum burst of requests to the cluster with the deploy items."},
	{path: "deployer.k8sClientSettings.resourceClient.qps", kind: "positive", def: "40", doc: "Maximum requests per second to the cluster with the deploy items."},
	{path: "hpa.maxReplicas", kind: "positive", def: "1", doc: "Maximum number of replicas. If it is more than 1, a HorizontalPodAutoscaler is created. It can only add standby replicas, because only the leader handles deploy items."},
	{path: "hpa.averageCpuUtilization", kind: "positive", def: "80", doc: "Target CPU utilization of the HorizontalPodAutoscaler, in percent of the requested CPU."},
	{path: "hpa.averageMemoryUtilization", kind: "positive", def: "80", doc: "Target memory utilization of the HorizontalPodAutoscaler, in percent of the requested memory."},
	{path: "serviceAccount.create", kind: "bool", def: "true", doc: "Creates a ServiceAccount."},
	{path: "serviceAccount.annotations", kind: "object", def: "{}", doc: "Annotations of the ServiceAccount."},
	{path: "serviceAccount.name", kind: "string", doc: "Name of the ServiceAccount. Default: the name of the Deployment, or, if serviceAccount.create is false, the ServiceAccount named default."},
	{path: "serviceAccount.tmpSuffix", kind: "bool", def: "false", compat: true, doc: "Adds -tmp to the name of the ServiceAccount. Landscaper's charts do so, except the chart of the mock deployer."},
	{path: "podAnnotations", kind: "object", def: "{}", doc: "Annotations of the Pods."},
	{path: "podSecurityContext.runAsNonRoot", kind: "bool", def: "true", doc: "Field of the security context of the Pods. All other fields can be set, too."},
	{path: "podSecurityContext.seccompProfile", kind: "object", def: "{type: RuntimeDefault}", doc: "Field of the security context of the Pods."},
	{path: "securityContext.allowPrivilegeEscalation", kind: "bool", def: "false", doc: "Field of the security context of the container. All other fields can be set, too."},
	{path: "securityContext.capabilities", kind: "object", def: "{drop: [ALL]}", doc: "Field of the security context of the container."},
	{path: "securityContext.readOnlyRootFilesystem", kind: "bool", def: "true", doc: "Field of the security context of the container."},
	{path: "resources", kind: "object", def: "REQUESTS", doc: "Requests and limits of the container."},
	{path: "nodeSelector", kind: "object", def: "{}", doc: "Labels of the nodes on which the Pods may run."},
	{path: "tolerations", kind: "objects", def: "[]", doc: "Taints of nodes that the Pods tolerate."},
	{path: "affinity", kind: "object", def: "{}", doc: "Affinity of the Pods."},
	{path: "identity", kind: "any", compat: true, doc: "Has no effect. It exists because landscaper-service sets it. See deployer.identity."},
	{path: "useOCMLib", kind: "any", compat: true, doc: "Has no effect. It exists because landscaper-service sets it."},
}

// ownValues are the values that configure the program.
var ownValues = []value{
	{path: "deployer.watchNamespace", kind: "string", doc: "Namespace of the deploy items that the deployer handles. Rights are granted only in this namespace. Default: all namespaces."},
	{path: "deployer.itemSelector", kind: "string", doc: "Label selector of the deploy items that the deployer handles."},
	{path: "deployer.shards", kind: "shards", def: "1", doc: "Number of shards. Each namespace belongs to one shard, and each shard has its own leader. If it is more than 1, the workload is a StatefulSet instead of a Deployment. The number can be changed at any time."},
	{path: "deployer.gracePeriodSeconds", kind: "positive", def: "30", doc: "Time that running calls have to finish when the Pod terminates. The termination grace period of the Pod is twice this time plus 20 seconds."},
	{path: "deployer.updateStrategy", kind: "strategy", def: "apply", targets: true, doc: "Update strategy of deploy items that specify none. The default of Landscaper's own deployer is update."},
	{path: "deployer.recreate", kind: "bool", def: "false", targets: true, doc: "If an immutable field of an object changes, the deployer deletes the object and creates it again, instead of reporting an error."},
	{path: "deployer.targets.allowInsecureTLS", kind: "bool", def: "false", targets: true, doc: "Accepts targets with insecure-skip-tls-verify."},
	{path: "deployer.targets.allowHTTP", kind: "bool", def: "false", targets: true, doc: "Accepts targets without TLS."},
	{path: "deployer.targets.allowProxy", kind: "bool", def: "false", targets: true, doc: "Accepts targets with proxy-url."},
	{path: "deployer.targets.allowPrivateHosts", kind: "bool", def: "false", targets: true, doc: "Accepts targets at loopback and link-local addresses, cloud metadata services, and the deployer's own API server."},
	{path: "deployer.targets.allowForeignSecrets", kind: "bool", def: "false", targets: true, doc: "Accepts targets in the old format kubeconfig.secretRef that name a Secret outside the namespace of the Target."},
	{path: "deployer.targets.enableOIDC", kind: "bool", def: "false", targets: true, doc: "Accepts targets with oidcConfig, and grants the right to create tokens."},
	{path: "deployer.targets.enableSelf", kind: "bool", def: "false", targets: true, doc: "Accepts targets with selfConfig, and grants the right to create tokens."},
	{path: "deployer.targets.landscaperAudiences", kind: "strings", def: "[]", targets: true, doc: "Audiences of the API server of the Landscaper cluster. No token is created for these audiences. If the list is empty, each new token is checked with a TokenReview, and the right to create TokenReviews is granted."},
	{path: "deployer.charts.hosts", kind: "strings", def: "[]", helm: true, doc: "Settings for hosts of charts, each as HOST[:PORT]:SETTING,…; the settings are private, plain-http, insecure and ca=FILE. See --chart-host in the output of --help."},
	{path: "deployer.charts.allowPrivateHosts", kind: "bool", def: "false", helm: true, doc: "Downloads charts from loopback, link-local and private addresses, too."},
	{path: "leaderElection.enabled", kind: "bool", def: "true", doc: "Enables leader election. If it is disabled, only one replica is allowed."},
	{path: "rbac.create", kind: "bool", doc: "Creates roles and bindings. Default: the value of serviceAccount.create."},
	{path: "rbac.landscaperClusterOnly", kind: "bool", def: "false", doc: "Renders only the ServiceAccount and its rights. Install the chart in this way in the cluster with the deploy items if the deployer runs in another cluster."},
	{path: "rbac.tokenNamespaces", kind: "strings", def: "[]", targets: true, doc: "Namespaces in which the deployer may create tokens. Default: the value of deployer.watchNamespace, or all namespaces."},
	{path: "health.port", kind: "port", def: "8081", doc: "Port of the probes."},
	{path: "metrics.enabled", kind: "bool", def: "true", doc: "Serves metrics, without authentication."},
	{path: "metrics.port", kind: "port", def: "8080", doc: "Port of the metrics."},
	{path: "metrics.job", kind: "string", doc: "Label job of the metrics in Prometheus, for the alerts and the dashboard. Default: the namespace and the name of the PodMonitor, separated by a slash."},
	{path: "metrics.podMonitor.enabled", kind: "bool", def: "false", doc: "Creates a PodMonitor, which requires the Prometheus operator."},
	{path: "metrics.podMonitor.namespace", kind: "string", doc: "Namespace of the PodMonitor. Default: the namespace of the release."},
	{path: "metrics.podMonitor.labels", kind: "object", def: "{}", doc: "Additional labels of the PodMonitor, such as those that the Prometheus operator selects."},
	{path: "metrics.podMonitor.interval", kind: "duration", def: "30s", doc: "Interval at which Prometheus reads the metrics."},
	{path: "metrics.rules.enabled", kind: "bool", def: "false", doc: "Creates a PrometheusRule with alerts, which requires the Prometheus operator."},
	{path: "metrics.rules.namespace", kind: "string", doc: "Namespace of the PrometheusRule. Default: the namespace of the release."},
	{path: "metrics.rules.labels", kind: "object", def: "{}", doc: "Additional labels of the PrometheusRule, such as those that the Prometheus operator selects."},
	{path: "metrics.dashboard.enabled", kind: "bool", def: "false", doc: "Creates a ConfigMap with a Grafana dashboard."},
	{path: "metrics.dashboard.namespace", kind: "string", doc: "Namespace of the ConfigMap. Default: the namespace of the release."},
	{path: "metrics.dashboard.labels", kind: "object", def: "{grafana_dashboard: \"1\"}", doc: "Additional labels of the ConfigMap. By default, the label that the sidecar of Grafana's chart selects."},
	{path: "proxy.httpProxy", kind: "string", doc: "HTTP_PROXY of the program."},
	{path: "proxy.httpsProxy", kind: "string", doc: "HTTPS_PROXY of the program. It is also used for targets."},
	{path: "proxy.noProxy", kind: "string", doc: "NO_PROXY of the program. It must contain the API servers to which the program connects directly."},
	{path: "caBundle.configMap", kind: "string", doc: "Name of a ConfigMap with certificates of additional authorities that the program trusts, such as the authority of a proxy. Sets SSL_CERT_DIR."},
	{path: "caBundle.secret", kind: "string", doc: "Name of a Secret with certificates of additional authorities."},
	{path: "networkPolicy.enabled", kind: "bool", def: "false", doc: "Creates a NetworkPolicy. It allows ingress for probes and metrics, and egress for name resolution and API servers."},
	{path: "networkPolicy.apiServerPorts", kind: "ports", def: "[443, 6443]", doc: "Ports of the API servers, of the targets, and of a proxy, if there is one."},
	{path: "podDisruptionBudget.enabled", kind: "bool", def: "true", doc: "Creates a PodDisruptionBudget if there can be more than one replica."},
	{path: "podDisruptionBudget.maxUnavailable", kind: "any", def: "1", doc: "Number or percentage of the replicas that may be unavailable."},
	{path: "extraArgs", kind: "strings", def: "[]", doc: "Additional arguments of the program; --help lists all arguments. Arguments that another value sets together with other objects are rejected."},
}

// podValues are the values that are copied unchanged to objects of the chart.
var podValues = []value{
	{path: "extraEnv", kind: "objects", def: "[]", doc: "Additional environment variables of the container."},
	{path: "extraVolumes", kind: "objects", def: "[]", doc: "Additional volumes of the Pods."},
	{path: "extraVolumeMounts", kind: "objects", def: "[]", doc: "Additional volume mounts of the container."},
	{path: "extraObjects", kind: "list", def: "[]", doc: "Additional objects of the release. Each of them is an object, or a template of an object as text."},
	{path: "podLabels", kind: "object", def: "{}", doc: "Additional labels of the Pods."},
	{path: "commonLabels", kind: "object", def: "{}", doc: "Additional labels of all objects and of the Pods."},
	{path: "topologySpreadConstraints", kind: "objects", doc: "Topology spread constraints of the Pods. Default: spread over zones and nodes if possible, as in Landscaper's charts."},
	{path: "priorityClassName", kind: "string", doc: "Priority class of the Pods."},
	{path: "revisionHistoryLimit", kind: "count", doc: "Number of old ReplicaSets that are kept."},
	{path: "hostUsers", kind: "bool", doc: "Whether the Pods share the user namespace of the node."},
	{path: "runtimeClassName", kind: "string", doc: "Runtime class of the Pods."},
	{path: "dnsPolicy", kind: "string", doc: "DNS policy of the Pods."},
	{path: "automountServiceAccountToken", kind: "bool", def: "true", doc: "Mounts a token of the ServiceAccount. If it is false, the program needs other credentials for the host cluster, such as --kubeconfig in extraArgs."},
}

// renderValues returns the content of the file values.yaml.
func (c *Chart) renderValues() string {
	var b strings.Builder
	b.WriteString("# Values of " + c.Name + ". README.md contains a table of the values. Values without a default are null.\n")
	var open []string
	for _, v := range c.sortedValues() {
		parts := strings.Split(v.path, ".")
		groups := parts[:len(parts)-1]
		shared := 0
		for shared < len(groups) && shared < len(open) && groups[shared] == open[shared] {
			shared++
		}
		for ; shared < len(groups); shared++ {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", shared), groups[shared])
		}
		open = groups
		indent := strings.Repeat("  ", len(groups))
		fmt.Fprintf(&b, "%s# %s\n", indent, v.doc)
		def := c.defaultOf(v)
		if def == "" {
			def = "null"
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, parts[len(parts)-1], def)
	}
	return b.String()
}

// defaultOf returns the default of a value as YAML, or "" if it has none.
func (c *Chart) defaultOf(v value) string {
	return strings.NewReplacer("REPOSITORY", c.Repository, "REQUESTS", c.Requests()).Replace(v.def)
}

// sortedValues returns the values, sorted so that the values of each group are adjacent.
func (c *Chart) sortedValues() []value {
	all := c.values()
	var out []value
	for len(all) > 0 {
		group := all[0].group()
		for _, v := range all {
			if v.group() == group {
				out = append(out, v)
			}
		}
		all = slices.DeleteFunc(all, func(v value) bool { return v.group() == group })
	}
	return out
}

// group returns the first part of the path of the value.
func (v *value) group() string {
	first, _, _ := strings.Cut(v.path, ".")
	return first
}
