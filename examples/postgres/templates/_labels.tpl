{{- define "labels" }}{app: {{ .Item.Name }}-postgres}{{ end }}
