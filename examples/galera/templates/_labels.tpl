{{- define "labels" }}{app: {{ .Item.Name }}-{{ .Component }}}{{ end }}
