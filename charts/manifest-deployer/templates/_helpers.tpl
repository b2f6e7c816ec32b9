{{- define "manifest-deployer.fullname" -}}
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
{{- define "manifest-deployer.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The entries of a map. Numbers and booleans are converted to strings. */ -}}
{{- define "manifest-deployer.texts" -}}
{{- range $key, $value := . }}
{{ $key | quote }}: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{- define "manifest-deployer.labels" -}}
{{- $labels := fromYaml (include "manifest-deployer.selectorLabels" .) -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service -}}
{{- include "manifest-deployer.texts" (merge $labels (.Values.commonLabels | default dict)) -}}
{{- end -}}

{{- define "manifest-deployer.topologyLabels" -}}
landscaper.gardener.cloud/topology: {{ .Chart.Name }}
landscaper.gardener.cloud/topology-ns: {{ .Release.Namespace }}
{{- end -}}

{{- define "manifest-deployer.podLabels" -}}
{{- $labels := merge (fromYaml (include "manifest-deployer.selectorLabels" .)) (fromYaml (include "manifest-deployer.topologyLabels" .)) -}}
{{- include "manifest-deployer.texts" (merge $labels (.Values.podLabels | default dict) (.Values.commonLabels | default dict)) -}}
{{- end -}}

{{- define "manifest-deployer.serviceAccount" -}}
{{- $account := .Values.serviceAccount | default dict -}}
{{- $name := ternary (include "manifest-deployer.fullname" .) "default" (ne $account.create false) -}}
{{- default $name $account.name }}{{ if $account.tmpSuffix }}-tmp{{ end }}
{{- end -}}

{{- /* The following templates are conditions. The result is empty if the condition is false. */ -}}
{{- define "manifest-deployer.hasRights" -}}
{{- $create := (.Values.rbac | default dict).create -}}
{{- if kindIs "invalid" $create -}}{{- $create = ne (.Values.serviceAccount | default dict).create false -}}{{- end -}}
{{- if $create }}true{{ end -}}
{{- end -}}

{{- define "manifest-deployer.isWorkload" -}}
{{- if not (.Values.rbac | default dict).landscaperClusterOnly }}true{{ end -}}
{{- end -}}

{{- define "manifest-deployer.elects" -}}
{{- if ne (.Values.leaderElection | default dict).enabled false }}true{{ end -}}
{{- end -}}

{{- define "manifest-deployer.hasOtherCluster" -}}
{{- $access := (.Values.deployer | default dict).landscaperClusterKubeconfig | default dict -}}
{{- if or $access.kubeconfig $access.secretRef }}true{{ end -}}
{{- end -}}

{{- define "manifest-deployer.scales" -}}
{{- if gt (int ((.Values.hpa | default dict).maxReplicas | default 1)) 1 }}true{{ end -}}
{{- end -}}

{{- /* The number of shards. */ -}}
{{- define "manifest-deployer.shards" -}}
{{ (.Values.deployer | default dict).shards | default 1 | int }}
{{- end -}}

{{- define "manifest-deployer.isSharded" -}}
{{- if gt (int (include "manifest-deployer.shards" .)) 1 }}true{{ end -}}
{{- end -}}

{{- /* The name of a StatefulSet contains the number of shards, so that a change of the number replaces all Pods at once. */ -}}
{{- define "manifest-deployer.workload" -}}
{{- if include "manifest-deployer.isSharded" . -}}
{{ include "manifest-deployer.fullname" . | trunc 41 | trimSuffix "-" }}-{{ include "manifest-deployer.shards" . }}-shards
{{- else -}}
{{ include "manifest-deployer.fullname" . }}
{{- end -}}
{{- end -}}

{{- define "manifest-deployer.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $tag := $image.tag | default .Chart.AppVersion -}}
{{ $image.repository }}{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}
{{- end -}}

{{- define "manifest-deployer.configuration" -}}
{{- $deployer := .Values.deployer | default dict -}}
{{- $controller := $deployer.controller | default dict -}}
apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
kind: Configuration
{{- with $deployer.identity }}
identity: {{ . | quote }}
{{- end }}
{{- with $deployer.targetSelector }}
targetSelector:
{{ toYaml . }}
{{- end }}
controller:
  workers: {{ $controller.workers | default 30 | int }}
  {{- with $controller.cacheSyncTimeout }}
  cacheSyncTimeout: {{ . | quote }}
  {{- end }}
{{- end -}}

{{- define "manifest-deployer.args" -}}
{{- $deployer := .Values.deployer | default dict -}}
{{- $metrics := .Values.metrics | default dict -}}
- --config=/app/ls/config/config.yaml
{{- if include "manifest-deployer.hasOtherCluster" . }}
- --landscaper-kubeconfig=/app/ls/landscaper-cluster-kubeconfig/kubeconfig
{{- end }}
{{- if not (or (kindIs "invalid" $deployer.verbosityLevel) (eq (toString $deployer.verbosityLevel) "")) }}
- -v={{ $deployer.verbosityLevel }}
{{- end }}
- --health-probe-bind-address=:{{ (.Values.health | default dict).port | default 8081 | int }}
- --metrics-bind-address={{ if eq $metrics.enabled false }}0{{ else }}:{{ $metrics.port | default 8080 | int }}{{ end }}
- --grace-period={{ $deployer.gracePeriodSeconds | default 30 | int }}s
{{- if not (include "manifest-deployer.elects" .) }}
- --leader-elect=false
{{- end }}
{{- if include "manifest-deployer.isSharded" . }}
- --shards={{ include "manifest-deployer.shards" . }}
{{- end }}
{{- with $deployer.watchNamespace }}
- --namespace={{ . }}
{{- end }}
{{- with $deployer.itemSelector }}
- {{ printf "--item-selector=%s" . | quote }}
{{- end }}
- --default-strategy={{ $deployer.updateStrategy | default "apply" }}
{{- if $deployer.recreate }}
- --recreate
{{- end }}
{{- $targets := $deployer.targets | default dict }}
{{- range $value, $flag := dict "allowInsecureTLS" "allow-insecure-tls" "allowHTTP" "allow-http" "allowProxy" "allow-proxy" "allowPrivateHosts" "allow-private-hosts" "allowForeignSecrets" "allow-foreign-secrets" "enableOIDC" "enable-oidc-targets" "enableSelf" "enable-self-targets" }}
{{- if get $targets $value }}
- --{{ $flag }}
{{- end }}
{{- end }}
{{- with $targets.landscaperAudiences }}
- {{ printf "--landscaper-audiences=%s" (join "," .) | quote }}
{{- end }}
{{- range .Values.extraArgs }}
{{- if regexMatch "^--?(config|landscaper-kubeconfig|health-probe-bind-address|metrics-bind-address|grace-period|leader-elect|leader-election-namespace|namespace|shards?|enable-oidc-targets|enable-self-targets|landscaper-audiences)(=|$)" . }}
{{- fail (printf "extraArgs: %s cannot be set here, because other objects of the chart depend on it; use the corresponding value instead" .) }}
{{- end }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "manifest-deployer.env" -}}
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
{{- if include "manifest-deployer.caVolume" . }}
- name: SSL_CERT_DIR
  value: /app/ls/ca-bundle
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "manifest-deployer.caVolume" -}}
{{- $bundle := .Values.caBundle | default dict -}}
{{- if $bundle.configMap -}}
configMap: {name: {{ $bundle.configMap | quote }}}
{{- else if $bundle.secret -}}
secret: {secretName: {{ $bundle.secret | quote }}}
{{- end -}}
{{- end -}}

{{- /* The rules in one part of rbac.yaml: main, tokens, token-reviews or election. */ -}}
{{- define "manifest-deployer.rules" -}}
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
