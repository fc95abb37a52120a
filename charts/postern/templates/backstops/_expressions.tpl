{{- /* CEL that more than one admission policy needs. */ -}}

{{- /* A binding that denies: (list root name). */ -}}
{{- define "postern.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ index . 1 }}
  labels: {{- include "postern.labels" (index . 0) | nindent 4 }}
spec: {policyName: {{ index . 1 }}, validationActions: [Deny]}
{{- end }}

{{- /* Where pods are injected at all. */ -}}
{{- define "postern.guardedNamespaces" -}}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ include "postern.excludedNamespaces" . }}}
{{- end }}

{{- /* Variables: the pod's lists, whether it must be guarded, and the UID that its redirect exempts. */ -}}
{{- define "postern.podVariables" -}}
- name: inits
  expression: object.spec.?initContainers.orValue([])
- name: ephemerals
  expression: object.spec.?ephemeralContainers.orValue([])
- name: wanted
  expression: >-
    namespaceObject.metadata.?labels[?'postern.dev/injection'].orValue('') == 'enabled' ||
    {{ include "postern.asks" . }}
# kubectl debug --copy-to drops labels and keeps containers.
- name: named
  expression: >-
    (variables.inits + object.spec.containers).exists(c, c.name.startsWith('postern-')) ||
    variables.ephemerals.exists(c, c.name.startsWith('postern-')) || {{ include "postern.injected" . }}
- name: guarded
  expression: variables.wanted || variables.named
- name: others
  expression: >-
    variables.inits.filter(c, !(c.name in ['postern-redirect', 'postern-gateway'])) + object.spec.containers
- name: redirect
  expression: variables.inits[?0].?args.orValue([])
- name: uid
  expression: "variables.redirect.size() > 2 ? variables.redirect[2] : ''"
{{- end }}

{{- /* The images that Postern's containers may have: a list of CEL. */ -}}
{{- define "postern.gatewayImages" -}}
{{- prepend (concat .Values.gateway.formerImages .Values.gateway.canaryImages) (include "postern.gatewayImage" .) | uniq | toJson -}}
{{- end }}

{{- /* Drivers of inline volumes, those that the operator knows first: a list of CEL. */ -}}
{{- define "postern.inlineDrivers" -}}
{{- concat (list "secrets-store.csi.k8s.io" "csi.cert-manager.io" "csi.spiffe.io") .Values.injection.csiDrivers | toJson -}}
{{- end }}

{{- /* Resources that Postern's containers may have: those of limits, and what the chart gives them. A list of CEL. */ -}}
{{- define "postern.ownResources" -}}
{{- $names := list "cpu" "memory" "ephemeral-storage" -}}
{{- range list .Values.gateway.resources .Values.redirect.resources -}}
{{- range $kind, $part := . -}}{{- $names = concat $names (keys ($part | default dict)) -}}{{- end -}}
{{- end -}}
{{- $names | uniq | sortAlpha | toJson -}}
{{- end }}

{{- /* What every other container is held to, of one list of containers: a list of validations. */ -}}
{{- define "postern.containerRules" -}}
{{- $list := printf "variables.%s" . -}}
- expression: >-
    !variables.guarded || {{ $list }}.all(c, !c.?securityContext.?privileged.orValue(false) &&
    c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false)
  message: >-
    containers beside the gateway may not be privileged or gain privileges: set securityContext.privileged and
    securityContext.allowPrivilegeEscalation to false (Postern's webhook does; is it installed and not bypassed?)
- expression: >-
    !variables.guarded || {{ $list }}.all(c,
    c.?securityContext.?capabilities.?drop.orValue([]).exists(a, a == 'ALL') &&
    c.?securityContext.?capabilities.?add.orValue([]).all(a,
    a in ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE']))
  message: >-
    containers beside the gateway drop ALL capabilities and add back CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL and
    NET_BIND_SERVICE at most: remove the others from securityContext.capabilities.add
- expression: >-
    !variables.guarded || {{ $list }}.all(c, c.?securityContext.?seccompProfile.?type.orValue(
    object.spec.?securityContext.?seccompProfile.?type.orValue('Unconfined')) in ['RuntimeDefault', 'Localhost'])
  message: >-
    containers beside the gateway run under seccomp: set securityContext.seccompProfile.type to RuntimeDefault
- expression: >-
    !variables.guarded || {{ $list }}.all(c, c.?securityContext.?procMount.orValue('Default') == 'Default' &&
    c.?securityContext.?appArmorProfile.?type.orValue('RuntimeDefault') != 'Unconfined' &&
    (c.?securityContext.?seLinuxOptions.?type.orValue('') in
    ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']) &&
    c.?securityContext.?seLinuxOptions.?user.orValue('') == '' && c.?securityContext.?seLinuxOptions.?role.orValue('') == '' &&
    !c.?securityContext.?windowsOptions.hasValue())
  message: >-
    containers beside the gateway keep the default procMount, an AppArmor profile, an SELinux type of containers without user and
    role, and have no windowsOptions: remove what says otherwise from their securityContext
- expression: >-
    !variables.guarded || {{ $list }}.all(c,
    string(c.?securityContext.?runAsUser.orValue(-1)) != variables.uid)
  message: >-
    a container has the gateway's UID, which the redirect lets out: choose another runAsUser
- expression: >-
    !variables.guarded || {{ $list }}.all(c, c.?volumeMounts.orValue([]).all(m, !m.name.startsWith('postern-') ||
    (m.name == 'postern-trust' && m.mountPath == '/run/postern-trust' && m.?readOnly.orValue(false) &&
    !has(m.subPath) && !has(m.subPathExpr))) &&
    c.?volumeDevices.orValue([]).all(d, !d.name.startsWith('postern-')))
  message: >-
    of Postern's volumes, containers beside the gateway mount postern-trust alone, read-only at /run/postern-trust: remove the
    other mounts
{{- end }}

{{- /* Secrets by which a container of one list would read what is the gateway's. */ -}}
{{- define "postern.readsSecret" -}}
c.?env.orValue([]).exists(e, e.?valueFrom.?secretKeyRef.?name.orValue('') in variables.secrets) ||
c.?envFrom.orValue([]).exists(e, e.?secretRef.?name.orValue('') in variables.secrets)
{{- end }}
{{- define "postern.mountsSecret" -}}
c.?volumeMounts.orValue([]).exists(m, m.name in variables.volumes) ||
c.?volumeDevices.orValue([]).exists(d, d.name in variables.volumes)
{{- end }}
