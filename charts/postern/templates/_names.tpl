{{- /* Names, labels and image references that several objects share. */ -}}

{{- define "postern.labels" -}}
app.kubernetes.io/name: postern
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: postern
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "postern.operatorSelector" -}}
app.kubernetes.io/name: postern
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- /* The reference of an image: (list root image). */ -}}
{{- define "postern.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- $image.repository }}{{ if $image.tag }}:{{ $image.tag }}{{ end }}@{{ $image.digest }}
{{- else -}}
{{- $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "postern.gatewayImage" -}}
{{- include "postern.image" (list . .Values.gateway.image) -}}
{{- end }}

{{- /* Namespaces that are never injected: a list in JSON. */ -}}
{{- define "postern.excludedNamespaces" -}}
{{- concat (list "kube-system" .Release.Namespace) .Values.webhook.excludedNamespaces | uniq | toJson -}}
{{- end }}

{{- define "postern.testNamespace" -}}
{{- .Values.tests.namespace | default (printf "%s-test" .Release.Namespace) -}}
{{- end }}
