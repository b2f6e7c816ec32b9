{{- define "mock-deployer.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- /* The selector of a Deployment cannot be changed. These labels are the same as in Landscaper's charts, and must stay the same. */ -}}
{{- define "mock-deployer.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The entries of a map. Numbers and booleans are converted to strings. */ -}}
{{- define "mock-deployer.texts" -}}
{{- range $key, $value := . }}
{{ $key | quote }}: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{- define "mock-deployer.labels" -}}
{{- $labels := fromYaml (include "mock-deployer.selectorLabels" .) -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service -}}
{{- include "mock-deployer.texts" (merge $labels (.Values.commonLabels | default dict)) -}}
{{- end -}}

{{- define "mock-deployer.topologyLabels" -}}
landscaper.gardener.cloud/topology: {{ .Chart.Name }}
landscaper.gardener.cloud/topology-ns: {{ .Release.Namespace }}
{{- end -}}

{{- define "mock-deployer.podLabels" -}}
{{- $labels := merge (fromYaml (include "mock-deployer.selectorLabels" .)) (fromYaml (include "mock-deployer.topologyLabels" .)) -}}
{{- include "mock-deployer.texts" (merge $labels (.Values.podLabels | default dict) (.Values.commonLabels | default dict)) -}}
{{- end -}}

{{- define "mock-deployer.serviceAccount" -}}
{{- $account := .Values.serviceAccount | default dict -}}
{{- $name := ternary (include "mock-deployer.fullname" .) "default" (ne $account.create false) -}}
{{- default $name $account.name }}{{ if $account.tmpSuffix }}-tmp{{ end }}
{{- end -}}

{{- /* The following templates are conditions. The result is empty if the condition is false. */ -}}
{{- define "mock-deployer.hasRights" -}}
{{- $create := (.Values.rbac | default dict).create -}}
{{- if kindIs "invalid" $create -}}{{- $create = ne (.Values.serviceAccount | default dict).create false -}}{{- end -}}
{{- if $create }}true{{ end -}}
{{- end -}}

{{- define "mock-deployer.isWorkload" -}}
{{- if not (.Values.rbac | default dict).landscaperClusterOnly }}true{{ end -}}
{{- end -}}

{{- define "mock-deployer.elects" -}}
{{- if ne (.Values.leaderElection | default dict).enabled false }}true{{ end -}}
{{- end -}}

{{- define "mock-deployer.hasOtherCluster" -}}
{{- $access := (.Values.deployer | default dict).landscaperClusterKubeconfig | default dict -}}
{{- if or $access.kubeconfig $access.secretRef }}true{{ end -}}
{{- end -}}

{{- define "mock-deployer.scales" -}}
{{- if gt (int ((.Values.hpa | default dict).maxReplicas | default 1)) 1 }}true{{ end -}}
{{- end -}}

{{- /* The number of shards. */ -}}
{{- define "mock-deployer.shards" -}}
{{ (.Values.deployer | default dict).shards | default 1 | int }}
{{- end -}}

{{- define "mock-deployer.isSharded" -}}
{{- if gt (int (include "mock-deployer.shards" .)) 1 }}true{{ end -}}
{{- end -}}

{{- /* The name of a StatefulSet contains the number of shards, so that a change of the number replaces all Pods at once. */ -}}
{{- define "mock-deployer.workload" -}}
{{- if include "mock-deployer.isSharded" . -}}
{{ include "mock-deployer.fullname" . | trunc 41 | trimSuffix "-" }}-{{ include "mock-deployer.shards" . }}-shards
{{- else -}}
{{ include "mock-deployer.fullname" . }}
{{- end -}}
{{- end -}}

{{- define "mock-deployer.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $tag := $image.tag | default .Chart.AppVersion -}}
{{ $image.repository }}{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}
{{- end -}}

{{- define "mock-deployer.configuration" -}}
{{- $deployer := .Values.deployer | default dict -}}
{{- $controller := $deployer.controller | default dict -}}
apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1
kind: Configuration
{{- with $deployer.identity }}
identity: {{ . | quote }}
{{- end }}
{{- with $deployer.targetSelector }}
targetSelector:
{{ toYaml . }}
{{- end }}
{{- with $controller.cacheSyncTimeout }}
controller:
  cacheSyncTimeout: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "mock-deployer.args" -}}
{{- $deployer := .Values.deployer | default dict -}}
{{- $metrics := .Values.metrics | default dict -}}
- --config=/app/ls/config/config.yaml
{{- if include "mock-deployer.hasOtherCluster" . }}
- --landscaper-kubeconfig=/app/ls/landscaper-cluster-kubeconfig/kubeconfig
{{- end }}
{{- if not (or (kindIs "invalid" $deployer.verbosityLevel) (eq (toString $deployer.verbosityLevel) "")) }}
- -v={{ $deployer.verbosityLevel }}
{{- end }}
- --health-probe-bind-address=:{{ (.Values.health | default dict).port | default 8081 | int }}
- --metrics-bind-address={{ if eq $metrics.enabled false }}0{{ else }}:{{ $metrics.port | default 8080 | int }}{{ end }}
- --grace-period={{ $deployer.gracePeriodSeconds | default 30 | int }}s
{{- if not (include "mock-deployer.elects" .) }}
- --leader-elect=false
{{- end }}
{{- if include "mock-deployer.isSharded" . }}
- --shards={{ include "mock-deployer.shards" . }}
{{- end }}
- --workers={{ ($deployer.controller | default dict).workers | default 30 | int }}
{{- with $deployer.watchNamespace }}
- --namespace={{ . }}
{{- end }}
{{- with $deployer.itemSelector }}
- {{ printf "--item-selector=%s" . | quote }}
{{- end }}
{{- range .Values.extraArgs }}
{{- if regexMatch "^--?(config|landscaper-kubeconfig|health-probe-bind-address|metrics-bind-address|grace-period|leader-elect|leader-election-namespace|namespace|shards?)(=|$)" . }}
{{- fail (printf "extraArgs: %s cannot be set here, because other objects of the chart depend on it; use the corresponding value instead" .) }}
{{- end }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "mock-deployer.env" -}}
{{- $settings := (.Values.deployer | default dict).k8sClientSettings | default dict -}}
{{- $host := $settings.hostClient | default dict -}}
{{- $resource := $settings.resourceClient | default dict -}}
{{- $proxy := .Values.proxy | default dict -}}
- name: MY_POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: MY_POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: LS_HOST_CLIENT_BURST
  value: {{ $host.burst | default 30 | int | toString | quote }}
- name: LS_HOST_CLIENT_QPS
  value: {{ $host.qps | default 20 | int | toString | quote }}
- name: LS_RESOURCE_CLIENT_BURST
  value: {{ $resource.burst | default 60 | int | toString | quote }}
- name: LS_RESOURCE_CLIENT_QPS
  value: {{ $resource.qps | default 40 | int | toString | quote }}
{{- range $name, $value := dict "HTTP_PROXY" $proxy.httpProxy "HTTPS_PROXY" $proxy.httpsProxy "NO_PROXY" $proxy.noProxy }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if include "mock-deployer.caVolume" . }}
- name: SSL_CERT_DIR
  value: /app/ls/ca-bundle
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mock-deployer.caVolume" -}}
{{- $bundle := .Values.caBundle | default dict -}}
{{- if $bundle.configMap -}}
configMap: {name: {{ $bundle.configMap | quote }}}
{{- else if $bundle.secret -}}
secret: {secretName: {{ $bundle.secret | quote }}}
{{- end -}}
{{- end -}}

{{- /* The rules in one part of rbac.yaml: main, tokens, token-reviews or election. */ -}}
{{- define "mock-deployer.rules" -}}
{{- $rules := list -}}
{{- range splitList "\n---\n" (printf "\n%s" (.root.Files.Get "rbac.yaml")) -}}
{{- $object := fromYaml . -}}
{{- $name := dig "metadata" "name" "" $object -}}
{{- $part := "" -}}
{{- if eq (get $object "kind") "Role" }}{{ $part = "election" }}
{{- else if eq (get $object "kind") "ClusterRole" }}
{{- if hasSuffix "-token-reviews" $name }}{{ $part = "token-reviews" }}
{{- else if hasSuffix "-tokens" $name }}{{ $part = "tokens" }}
{{- else }}{{ $part = "main" }}
{{- end }}
{{- end }}
{{- if eq $part $.part }}{{ $rules = concat $rules $object.rules }}{{ end -}}
{{- end -}}
{{ toYaml $rules }}
{{- end -}}
