// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

// full contains values with which a chart renders all of its objects and fields.
const full = `{serviceAccount: {annotations: {n: 1}}, podAnnotations: {a: 1, b: true}, nodeSelector: {a: b}, tolerations: [{key: k, operator: Exists}],
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}},
hpa: {maxReplicas: 3}, networkPolicy: {enabled: true}, proxy: {httpsProxy: 'http://p.example'}, caBundle: {configMap: cas}, extraArgs: [--target-share=0.5],
extraEnv: [{name: X, value: z}], extraVolumes: [{name: v, emptyDir: {}}], extraVolumeMounts: [{name: v, mountPath: /v}], podLabels: {a: b}, commonLabels: {c: d},
revisionHistoryLimit: 3, hostUsers: false, dnsPolicy: Default, priorityClassName: p, runtimeClassName: r, automountServiceAccountToken: false, imagePullSecrets: [{name: s}],
extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}`

var _ = Describe("Upgrade of a chart", func() {
	for _, clientSide := range []bool{false, true} {
		how := map[bool]string{false: "server-side", true: "client-side"}[clientSide]

		It("succeeds between all kinds of values, "+how+" [O12, O14, O16, O19, O55, O60, O62]", func(ctx SpecContext) {
			for _, chart := range []string{"helm-deployer", "manifest-deployer", "mock-deployer"} {
				r := newRelease(ctx, "rel", helm.FindChart(chart))
				r.cluster.ClientSide = clientSide
				r.install(ctx, "")
				for _, values := range []string{
					"leaderElection: {enabled: false}", "replicaCount: 2", full, "leaderElection: {enabled: false}", "hpa: {maxReplicas: 2}", "", "deployer: {watchNamespace: default}", "",
				} {
					r.upgrade(ctx, values)
					want := appsv1.RollingUpdateDeploymentStrategyType
					if strings.HasPrefix(values, "leader") {
						want = appsv1.RecreateDeploymentStrategyType
					}
					Expect(r.deployment(ctx).Spec.Strategy.Type).To(Equal(want), values)
				}
				Expect(r.remove()).To(Succeed())
			}
		})

		It("causes no conflict with the number of replicas that an autoscaler has set, "+how+" [O12]", func(ctx SpecContext) {
			r := newRelease(ctx, "rel", helm.FindChart("manifest-deployer"))
			r.cluster.ClientSide = clientSide
			r.install(ctx, "hpa: {maxReplicas: 4}")
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
			Expect(c.SubResource("scale").Update(ctx, r.deployment(ctx), client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager"))).To(Succeed())
			r.upgrade(ctx, "{hpa: {maxReplicas: 4}, deployer: {identity: me}}")
			Expect(*r.deployment(ctx).Spec.Replicas).To(BeEquivalentTo(3))
		})

		for _, version := range []string{"v0.20", "v0.76", "v0.152", "v1.4"} {
			It("succeeds from Landscaper's chart "+version+" and back, "+how+" [O49]", func(ctx SpecContext) {
				r := newRelease(ctx, "rel", "")
				r.cluster.ClientSide = clientSide
				theirs := writeLandscaperChart(version)
				values := "{replicaCount: 1, hpa: {maxReplicas: 1}, deployer: {identity: me, namespace: '', controller: {workers: 4}}}"
				r.dir = theirs
				r.install(ctx, values)
				before := r.deployment(ctx).DeepCopy()
				r.dir = helm.FindChart("manifest-deployer")
				r.upgrade(ctx, r.values(values))
				after := r.deployment(ctx)
				Expect(after.UID).To(Equal(before.UID), "the object is not recreated")
				Expect(after.Spec.Template.Spec.Containers).To(HaveLen(1))
				p := r.start(ctx)
				p.waitUntilReady()
				p.stop()
				r.dir = theirs
				r.upgrade(ctx, values)
				back := r.deployment(ctx)
				Expect(back.UID).To(Equal(before.UID))
				Expect(back.Spec).To(Equal(before.Spec), "the change back to Landscaper's chart restores the spec")
			})
		}
	}

	It("succeeds for the manifests with kubectl and kustomize as an apply [O62]", func(ctx SpecContext) {
		kubeconfig, err := cp.WriteKubeconfig(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		Expect(client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ls-system"}}))).To(Succeed())
		for _, name := range []string{"helm-deployer", "manifest-deployer", "mock-deployer"} {
			for _, verb := range [][]string{{"apply", "--server-side"}, {"apply", "--server-side"}, {"delete"}} {
				args := slices.Concat(verb, []string{"--kubeconfig=" + kubeconfig, "--kustomize=" + filepath.Join(helm.Root(), "manifests", name)})
				out, err := exec.CommandContext(ctx, cp.Kubectl(), args...).CombinedOutput() //nolint:gosec // of the control plane
				Expect(err).NotTo(HaveOccurred(), "output: %s", out)
			}
		}
	})
})

// writeLandscaperChart writes a chart and returns its directory. The chart has the objects, names and immutable fields
// of the given version of Landscaper's chart for the manifest deployer.
func writeLandscaperChart(version string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	autoscaler, strategy, replicas := "", "", "  replicas: {{ .Values.replicaCount }}\n"
	if version != "v0.20" {
		autoscaler = autoscalerTemplate
	}
	if version == "v0.152" || version == "v1.4" {
		strategy = "  strategy: {type: Recreate}\n"
	}
	files := map[string]string{
		"Chart.yaml":              fmt.Sprintf("{apiVersion: v2, name: manifest-deployer, version: %s.0, appVersion: %s.0}", version, version),
		"values.yaml":             "{}",
		"templates/objects.yaml":  landscaperTemplate + autoscaler,
		"templates/workload.yaml": workloadTemplate + replicas + strategy + podTemplate,
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	return dir
}

const (
	landscaperTemplate = `apiVersion: v1
kind: ServiceAccount
metadata: {name: rel-manifest-deployer-tmp}
---
apiVersion: v1
kind: Secret
metadata: {name: rel-manifest-deployer-config}
data: {config.yaml: e30=}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Namespace }}-rel-manifest-deployer"}
rules: [{apiGroups: [landscaper.gardener.cloud], resources: [deployitems], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "{{ .Release.Namespace }}-rel-manifest-deployer-tmp"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{{ .Release.Namespace }}-rel-manifest-deployer"}
subjects: [{kind: ServiceAccount, name: rel-manifest-deployer-tmp, namespace: "{{ .Release.Namespace }}"}]
`
	autoscalerTemplate = `---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: rel-manifest-deployer}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: rel-manifest-deployer}
  minReplicas: 1
  maxReplicas: 1
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`
	workloadTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: rel-manifest-deployer
  labels: {app.kubernetes.io/name: manifest-deployer, app.kubernetes.io/instance: rel}
spec:
`
	podTemplate = `  selector:
    matchLabels: {app.kubernetes.io/name: manifest-deployer, app.kubernetes.io/instance: rel}
  template:
    metadata:
      labels: {app.kubernetes.io/name: manifest-deployer, app.kubernetes.io/instance: rel, landscaper.gardener.cloud/topology: manifest-deployer}
    spec:
      serviceAccountName: rel-manifest-deployer-tmp
      containers:
        - name: manifest-deployer
          image: r.example/theirs:v0
          args: [--config=/app/ls/config/config.yaml]
          volumeMounts: [{name: config, mountPath: /app/ls/config/}]
      volumes: [{name: config, secret: {secretName: rel-manifest-deployer-config}}]
`
)
