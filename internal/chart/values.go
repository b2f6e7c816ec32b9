// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"strings"
)

// value is one value of a chart.
type value struct {
	path string
	kind string // key of kinds
	def  string // as YAML in one line; none if it is empty
	doc  string

	manifest bool // only in the chart of the manifest deployer
}

// values returns the values of the chart.
func (c *Chart) values() []value {
	return slices.DeleteFunc(slices.Concat(landscaperValues, ownValues, podValues), func(v value) bool { return v.manifest && !c.Manifest })
}

// landscaperValues are those that Landscaper's charts have too.
var landscaperValues = []value{
	{path: "nameOverride", kind: "string", doc: "Replaces the name of the chart in the names and the selector labels of objects."},
	{path: "fullnameOverride", kind: "string", doc: "Name of the Deployment and beginning of the names of all objects, instead of the release's name and the chart's."},
	{path: "replicaCount", kind: "positive", def: "1", doc: "Number of replicas. One of them works, the others wait. Without effect if there is a HorizontalPodAutoscaler."},
	{path: "image.repository", kind: "string", def: "REPOSITORY", doc: "Image without its tag."},
	{path: "image.tag", kind: "string", doc: "Tag of the image, or its digest, such as sha256:…. Default: the appVersion of the chart."},
	{path: "image.pullPolicy", kind: "pullPolicy", def: "IfNotPresent", doc: "When the image is pulled: Always, IfNotPresent or Never."},
	{path: "imagePullSecrets", kind: "objects", def: "[]", doc: "Secrets with credentials of the registry, each as {name}."},
	{path: "deployer.landscaperClusterKubeconfig.kubeconfig", kind: "string", doc: "Kubeconfig of the cluster with the deploy items, if that is another one. It goes into a Secret. Takes precedence over secretRef."},
	{path: "deployer.landscaperClusterKubeconfig.secretRef", kind: "string", doc: "Name of a Secret of the release's namespace with that kubeconfig, under the key kubeconfig. When it changes, the program ends and starts again."},
	{path: "deployer.identity", kind: "string", doc: "Name of the deployer in status.deployer.identity."},
	{path: "deployer.namespace", kind: "string", doc: "Has no effect, as in Landscaper's charts. See deployer.watchNamespace."},
	{path: "deployer.verbosityLevel", kind: "verbosity", doc: "What is logged: error, info, debug, or a number from 0 (info) to 7. Default: info."},
	{path: "deployer.targetSelector", kind: "objects", doc: "Restricts the deployer to the items of some Targets; a list of {targets, annotations, labels}."},
	{path: "deployer.controller.workers", kind: "positive", def: "30", doc: "Number of deploy items that are worked on at the same time."},
	{path: "deployer.controller.cacheSyncTimeout", kind: "duration", doc: "How long the program waits for its caches at the start. Default: 2m."},
	{path: "deployer.k8sClientSettings.hostClient.burst", kind: "positive", def: "30", doc: "Requests to the host cluster at once, if it is not the cluster with the deploy items."},
	{path: "deployer.k8sClientSettings.hostClient.qps", kind: "positive", def: "20", doc: "Requests per second to the host cluster, if it is not the cluster with the deploy items."},
	{path: "deployer.k8sClientSettings.resourceClient.burst", kind: "positive", def: "60", doc: "Requests to the cluster with the deploy items at once."},
	{path: "deployer.k8sClientSettings.resourceClient.qps", kind: "positive", def: "40", doc: "Requests per second to the cluster with the deploy items."},
	{path: "hpa.maxReplicas", kind: "positive", def: "1", doc: "Largest number of replicas. More than 1 makes a HorizontalPodAutoscaler. One replica works, so it adds only replicas that wait."},
	{path: "hpa.averageCpuUtilization", kind: "positive", def: "80", doc: "Part of the requested processor time, in percent, that the HorizontalPodAutoscaler aims at."},
	{path: "hpa.averageMemoryUtilization", kind: "positive", def: "80", doc: "Part of the requested memory, in percent, that the HorizontalPodAutoscaler aims at."},
	{path: "serviceAccount.create", kind: "bool", def: "true", doc: "Makes a ServiceAccount."},
	{path: "serviceAccount.annotations", kind: "object", def: "{}", doc: "Annotations of the ServiceAccount."},
	{path: "serviceAccount.name", kind: "string", doc: "Name of the ServiceAccount. Default: that of the Deployment; default if none is made."},
	{path: "serviceAccount.tmpSuffix", kind: "bool", def: "false", doc: "Adds -tmp to the name, as Landscaper's charts do, except for the mock deployer's."},
	{path: "podAnnotations", kind: "object", def: "{}", doc: "Annotations of the Pods."},
	{path: "podSecurityContext.runAsNonRoot", kind: "bool", def: "true", doc: "Security context of the Pods; takes all its fields."},
	{path: "podSecurityContext.seccompProfile", kind: "object", def: "{type: RuntimeDefault}", doc: "The same."},
	{path: "securityContext.allowPrivilegeEscalation", kind: "bool", def: "false", doc: "Security context of the container; takes all its fields."},
	{path: "securityContext.capabilities", kind: "object", def: "{drop: [ALL]}", doc: "The same."},
	{path: "securityContext.readOnlyRootFilesystem", kind: "bool", def: "true", doc: "The same."},
	{path: "resources", kind: "object", def: "{requests: {cpu: 100m, memory: 100Mi}}", doc: "Requests and limits of the container."},
	{path: "nodeSelector", kind: "object", def: "{}", doc: "Labels of the nodes that the Pods may run on."},
	{path: "tolerations", kind: "objects", def: "[]", doc: "Taints of nodes that the Pods tolerate."},
	{path: "affinity", kind: "object", def: "{}", doc: "Affinity of the Pods."},
	{path: "identity", kind: "any", doc: "Has no effect; landscaper-service sets it. See deployer.identity."},
	{path: "useOCMLib", kind: "any", doc: "Has no effect; landscaper-service sets it."},
}

// ownValues are about the program.
var ownValues = []value{
	{path: "deployer.watchNamespace", kind: "string", doc: "Namespace of the deploy items to care for; the rights are given in this one only. Default: all."},
	{path: "deployer.itemSelector", kind: "string", doc: "Label selector of the deploy items to care for."},
	{path: "deployer.gracePeriodSeconds", kind: "positive", def: "30", doc: "How long a running call may go on when the Pod ends. The Pod gets twice as long and 20 seconds."},
	{path: "deployer.updateStrategy", kind: "strategy", def: "apply", manifest: true, doc: "Update strategy of deploy items that name none. Landscaper's own deployer has update."},
	{path: "deployer.recreate", kind: "bool", def: "false", manifest: true, doc: "Deletes and creates objects whose immutable fields changed, instead of an error."},
	{path: "deployer.targets.allowInsecureTLS", kind: "bool", def: "false", manifest: true, doc: "Accepts targets with insecure-skip-tls-verify."},
	{path: "deployer.targets.allowHTTP", kind: "bool", def: "false", manifest: true, doc: "Accepts targets without TLS."},
	{path: "deployer.targets.allowProxy", kind: "bool", def: "false", manifest: true, doc: "Accepts targets with proxy-url."},
	{path: "deployer.targets.allowPrivateHosts", kind: "bool", def: "false", manifest: true, doc: "Accepts targets at loopback and link-local addresses, cloud metadata services, and the deployer's own API server."},
	{path: "deployer.targets.allowForeignSecrets", kind: "bool", def: "false", manifest: true, doc: "Lets the old form kubeconfig.secretRef name Secrets outside the Target's namespace."},
	{path: "deployer.targets.enableOIDC", kind: "bool", def: "false", manifest: true, doc: "Accepts targets with oidcConfig, and grants the right to create tokens."},
	{path: "deployer.targets.enableSelf", kind: "bool", def: "false", manifest: true, doc: "Accepts targets with selfConfig, and grants the right to create tokens."},
	{path: "deployer.targets.landscaperAudiences", kind: "strings", def: "[]", manifest: true, doc: "Audiences that Landscaper's API server accepts: no token for them is created. Without any, each token is reviewed, and the right to do so is granted."},
	{path: "leaderElection.enabled", kind: "bool", def: "true", doc: "Elects a leader among the replicas. Without it, there can be only one replica."},
	{path: "rbac.create", kind: "bool", doc: "Makes roles and bindings. Default: what serviceAccount.create says."},
	{path: "rbac.landscaperClusterOnly", kind: "bool", def: "false", doc: "Renders only the ServiceAccount and its rights in the cluster with the deploy items, to be installed there."},
	{path: "rbac.tokenNamespaces", kind: "strings", def: "[]", manifest: true, doc: "Namespaces in which tokens may be created. Default: deployer.watchNamespace, or all."},
	{path: "health.port", kind: "port", def: "8081", doc: "Port of the probes."},
	{path: "metrics.enabled", kind: "bool", def: "true", doc: "Serves metrics, without authentication."},
	{path: "metrics.port", kind: "port", def: "8080", doc: "Port of the metrics."},
	{path: "proxy.httpProxy", kind: "string", doc: "HTTP_PROXY of the program."},
	{path: "proxy.httpsProxy", kind: "string", doc: "HTTPS_PROXY of the program; also for targets."},
	{path: "proxy.noProxy", kind: "string", doc: "NO_PROXY of the program. It must name the API servers that are reached directly."},
	{path: "caBundle.configMap", kind: "string", doc: "Name of a ConfigMap with certificates of authorities that the program trusts in addition, such as that of a proxy. Sets SSL_CERT_DIR."},
	{path: "caBundle.secret", kind: "string", doc: "Name of a Secret with such certificates."},
	{path: "networkPolicy.enabled", kind: "bool", def: "false", doc: "Makes a NetworkPolicy: probes and metrics in, name resolution and API servers out."},
	{path: "networkPolicy.apiServerPorts", kind: "ports", def: "[443, 6443]", doc: "Ports of API servers, also those of targets, and of a proxy."},
	{path: "podDisruptionBudget.enabled", kind: "bool", def: "true", doc: "Makes a PodDisruptionBudget if there can be more than one replica."},
	{path: "podDisruptionBudget.maxUnavailable", kind: "any", def: "1", doc: "Number or part of the replicas that may be missing."},
	{path: "extraArgs", kind: "strings", def: "[]", doc: "Further arguments of the program; --help lists them. Those that a value sets are refused."},
}

// podValues are passed on to the objects.
var podValues = []value{
	{path: "extraEnv", kind: "objects", def: "[]", doc: "Further environment variables of the container."},
	{path: "extraVolumes", kind: "objects", def: "[]", doc: "Further volumes of the Pods."},
	{path: "extraVolumeMounts", kind: "objects", def: "[]", doc: "Further mounts of the container."},
	{path: "extraObjects", kind: "list", def: "[]", doc: "Further objects of the release, each an object or a template of one as text."},
	{path: "podLabels", kind: "object", def: "{}", doc: "Further labels of the Pods."},
	{path: "commonLabels", kind: "object", def: "{}", doc: "Further labels of all objects and of the Pods."},
	{path: "topologySpreadConstraints", kind: "objects", doc: "How the Pods are spread. Default: over zones and nodes, if possible, as in Landscaper's charts."},
	{path: "priorityClassName", kind: "string", doc: "Priority class of the Pods."},
	{path: "revisionHistoryLimit", kind: "count", doc: "Number of old ReplicaSets that are kept."},
	{path: "hostUsers", kind: "bool", doc: "Whether the Pods share the user namespace of the node."},
	{path: "runtimeClassName", kind: "string", doc: "Runtime class of the Pods."},
	{path: "dnsPolicy", kind: "string", doc: "DNS policy of the Pods."},
	{path: "automountServiceAccountToken", kind: "bool", def: "true", doc: "Mounts a token of the ServiceAccount. Without it, the program needs another access to the host cluster, such as --kubeconfig in extraArgs."},
}

// defaults is the file values.yaml.
func (c *Chart) defaults() string {
	var b strings.Builder
	b.WriteString("# Values of " + c.Name + ". README.md has them as a table. Those without a default are not set.\n")
	var open []string
	for _, v := range c.ordered() {
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
		def := v.def
		if def == "" {
			def = "null"
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, parts[len(parts)-1], strings.ReplaceAll(def, "REPOSITORY", c.Repository))
	}
	return b.String()
}

// ordered returns the values with those of a group beside each other.
func (c *Chart) ordered() []value {
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

// group is the first part of the path.
func (v *value) group() string {
	first, _, _ := strings.Cut(v.path, ".")
	return first
}
