{{- /* The common parts of the webhooks. */ -}}

{{- /* The fields of a webhook other than its name and rules: (dict "root" $ "path" "/…"). */ -}}
{{- define "postern.webhook" -}}
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: Fail
matchPolicy: Equivalent
timeoutSeconds: {{ .root.Values.webhook.timeoutSeconds }}
clientConfig:
  service: {name: postern-webhook, namespace: {{ .root.Release.Namespace }}, path: {{ .path }}, port: 443}
{{- end }}

{{- /* Selects the namespaces whose pods are all injected. */ -}}
{{- define "postern.labelledNamespaces" -}}
matchExpressions:
  - {key: postern.dev/injection, operator: In, values: [enabled]}
  - {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ include "postern.excludedNamespaces" . }}}
{{- end }}

{{- /* Selects all other namespaces, in which a single pod may ask to be injected. */ -}}
{{- define "postern.otherNamespaces" -}}
matchExpressions:
  - {key: postern.dev/injection, operator: NotIn, values: [enabled]}
  - {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ include "postern.excludedNamespaces" . }}}
{{- end }}

{{- /* Matches a label or an annotation of the pod: an objectSelector only sees labels. */ -}}
{{- define "postern.asks" -}}
object.metadata.?labels[?'postern.dev/inject'].orValue('') == 'true' || object.metadata.?annotations[?'postern.dev/inject'].orValue('') == 'true'
{{- end }}

{{- define "postern.injected" -}}
object.metadata.?labels[?'postern.dev/injected'].orValue('') == 'true'
{{- end }}

{{- define "postern.injectFromCertManager" -}}
{{- if eq .Values.webhook.certificate.source "CertManager" }}
  annotations:
    cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/postern-webhook
{{- end }}
{{- end }}

{{- /* Conditions of every webhook: what leaves an object as far as it is judged is not asked about, so that nothing waits for an
operator that is away. Of an object that is being deleted only containers can change what runs. */ -}}
{{- define "postern.changes" -}}
- name: changes-what-is-judged
  expression: >-
    request.operation != 'UPDATE' || (has(object.metadata.deletionTimestamp) ?
    ['containers', 'initContainers', 'ephemeralContainers'].exists(k, object.?spec[?k] != oldObject.?spec[?k]) :
    object.?spec != oldObject.?spec || [object, oldObject].exists(o, [o.metadata.?labels, o.metadata.?annotations].exists(m,
    m.orValue({}).exists(k, k.startsWith('postern.dev/') && (
    object.metadata.?labels[?k] != oldObject.metadata.?labels[?k] ||
    object.metadata.?annotations[?k] != oldObject.metadata.?annotations[?k])))))
{{- end }}
