{{- /* Values that the chart refuses, in words. Included by `operator/deployment.yaml`, which every release has. */ -}}

{{- define "postern.checks" -}}
{{- $server := .Capabilities.KubeVersion.Version -}}
{{- if semverCompare "<1.33.0-0" $server -}}
{{- fail (printf "Postern needs Kubernetes 1.33 or later, where native sidecars are stable; this server is %s. Upgrade the cluster first." $server) -}}
{{- end -}}
{{- if eq .Release.Namespace "kube-system" -}}
{{- fail "Postern does not belong into kube-system, whose pods are never injected: install it with `--namespace postern-system --create-namespace`." -}}
{{- end -}}
{{- if has .Release.Namespace .Values.networkPolicy.agents.namespaces -}}
{{- fail (printf "networkPolicy.agents.namespaces holds %s, where Postern itself runs: agents do not run there; remove it." .Release.Namespace) -}}
{{- end -}}
{{- if has .Release.Namespace .Values.rbac.sourceNamespaces -}}
{{- fail (printf "rbac.sourceNamespaces holds %s, where Postern itself runs and the root's key is: keep keys in another namespace." .Release.Namespace) -}}
{{- end -}}
{{- if eq (include "postern.testNamespace" .) .Release.Namespace -}}
{{- fail "tests.namespace is the release's own, whose pods are not injected: leave it empty, or name another." -}}
{{- end -}}
{{- end }}
