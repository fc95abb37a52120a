{{- /* CEL that several admission policies share. */ -}}

{{- /* A binding that denies: (list root name). */ -}}
{{- define "postern.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ index . 1 }}
  labels: {{- include "postern.labels" (index . 0) | nindent 4 }}
spec: {policyName: {{ index . 1 }}, validationActions: [Deny]}
{{- end }}

{{- /* Selects the namespaces in which pods may be injected. */ -}}
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
    variables.inits.filter(c, !(c.name in ['postern-redirect', 'postern-gateway', 'postern-workspace'])) + object.spec.containers
# Running ephemeral containers cannot change.
- name: added
  expression: >-
    variables.ephemerals.filter(c, request.operation != 'UPDATE' ||
    !oldObject.spec.?ephemeralContainers.orValue([]).exists(o, o.name == c.name))
- name: redirect
  expression: variables.inits[?0].?args.orValue([])
- name: uid
  expression: "variables.redirect.size() > 2 ? variables.redirect[2] : ''"
- name: user
  expression: "variables.uid.matches('^[1-9][0-9]{4,9}$') ? int(variables.uid) : -1"
- name: userOfAll
  expression: object.spec.?securityContext.?runAsUser.hasValue()
{{- end }}

{{- /* Whether the pod is labelled as one whose gateway's UID the webhook drew. The policy postern-drawn restricts the label. */ -}}
{{- define "postern.drawn" -}}
object.metadata.?labels[?'postern.dev/user-id'].orValue('') == 'drawn'
{{- end }}

{{- /* Whether every container of the namespace must name its user, by a label or an annotation of the namespace. */ -}}
{{- define "postern.requiresUser" -}}
[namespaceObject.metadata.?labels, namespaceObject.metadata.?annotations].exists(m, m[?'postern.dev/require-run-as-user'].orValue('') == 'true')
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

{{- /* SELinux types that confine a container, as the Pod Security Standards list them: a list of CEL. */ -}}
{{- define "postern.selinuxTypes" -}}
['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']
{{- end }}

{{- /* The validations of one list of containers that are not Postern's. */ -}}
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
    c.?securityContext.?seLinuxOptions.?type.orValue('') in {{ include "postern.selinuxTypes" . }} &&
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
    (m.name in ['postern-trust', 'postern-evidence'] &&
    m.mountPath == (m.name == 'postern-trust' ? '/run/postern-trust' : '/run/postern/evidence') &&
    m.?readOnly.orValue(false) && !has(m.subPath) && !has(m.subPathExpr))) &&
    c.?volumeDevices.orValue([]).all(d, !d.name.startsWith('postern-')) &&
    c.?env.orValue([]).all(e, !e.?valueFrom.?fileKeyRef.?volumeName.orValue('').startsWith('postern-')))
  message: >-
    of Postern's volumes, containers beside the gateway mount postern-trust and postern-evidence alone, read-only at
    /run/postern-trust and /run/postern/evidence: remove the other mounts
{{- end }}

{{- /* Whether container c reads one of the gateway's Secrets into a variable. */ -}}
{{- define "postern.readsSecret" -}}
c.?env.orValue([]).exists(e, e.?valueFrom.?secretKeyRef.?name.orValue('') in variables.secrets) ||
c.?envFrom.orValue([]).exists(e, e.?secretRef.?name.orValue('') in variables.secrets)
{{- end }}

{{- /* Whether container c mounts a volume that holds one of the gateway's Secrets. */ -}}
{{- define "postern.mountsSecret" -}}
c.?volumeMounts.orValue([]).exists(m, m.name in variables.volumes) ||
c.?volumeDevices.orValue([]).exists(d, d.name in variables.volumes)
{{- end }}

{{- /* The parts of Postern's that are equal in every pod: variables of the policy postern-shape. */ -}}
{{- define "postern.parts" -}}
mounts:
  postern-redirect:
    - {name: postern-policy, mountPath: /etc/postern/policy, readOnly: true}
    - {name: postern-run, mountPath: /run/postern}
  postern-gateway:
    - {name: postern-policy, mountPath: /etc/postern/policy, readOnly: true}
    - {name: postern-ca, mountPath: /etc/postern/ca, readOnly: true}
    - {name: postern-credentials, mountPath: /etc/postern/credentials, readOnly: true}
    - {name: postern-podinfo, mountPath: /etc/podinfo, readOnly: true}
    - {name: postern-run, mountPath: /run/postern}
    - {name: postern-trust, mountPath: /run/postern-trust}
    - {name: postern-run, mountPath: /etc/hosts, readOnly: true, subPath: hosts}
    - {name: postern-run, mountPath: /etc/resolv.conf, readOnly: true, subPath: resolv.conf}
    {{- if .Values.gateway.ledger.enabled }}
    - {name: postern-ledger, mountPath: /var/lib/postern}
    {{- end }}
    {{- if .Values.gateway.evidence.enabled }}
    - {name: postern-evidence, mountPath: /var/lib/postern-evidence}
    {{- end }}
  # Besides, it reads the one volume that the pod asks for.
  postern-workspace:
    - {name: postern-workspace, mountPath: /run/postern-workspace}
contexts:
  postern-redirect:
    allowPrivilegeEscalation: false
    capabilities: {add: [NET_ADMIN], drop: [ALL]}
    privileged: false
    readOnlyRootFilesystem: true
    runAsGroup: 0
    runAsNonRoot: false
    runAsUser: 0
    seccompProfile: {type: RuntimeDefault}
  # Its user and group are the UID that the redirect exempts.
  postern-gateway:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    privileged: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    seccompProfile: {type: RuntimeDefault}
  # Its user and group are beside the UID that the redirect exempts.
  postern-workspace:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    privileged: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    seccompProfile: {type: RuntimeDefault}
kept:
  postern-policy: {configMap: {name: postern-policy}}
  postern-ca: {secret: {secretName: postern-ca}}
  postern-credentials: {secret: {secretName: postern-credentials}}
  postern-podinfo:
    downwardAPI:
      items:
        - {path: labels, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}
        - {path: annotations, fieldRef: {apiVersion: v1, fieldPath: metadata.annotations}}
  postern-run: {emptyDir: {medium: Memory}}
  postern-trust: {emptyDir: {medium: Memory}}
  {{- if .Values.gateway.ledger.enabled }}
  postern-ledger: {emptyDir: {}}
  {{- end }}
  {{- if .Values.gateway.evidence.enabled }}
  postern-evidence: {emptyDir: {}}
  {{- end }}
ports:
  - {name: postern-metrics, containerPort: {{ include "postern.adminPort" . }}, protocol: TCP}
{{- end }}

{{- /* The port of the gateway's probes, by its settings. */ -}}
{{- define "postern.adminPort" -}}
{{- (include "postern.gatewaySettings" . | fromYaml).admin.address | splitList ":" | last -}}
{{- end }}

{{- /* The chart's variables of the gateway by name, each as the API server stores it: a map of CEL. */ -}}
{{- define "postern.furtherVariables" -}}
{{- $further := dict -}}
{{- range .Values.gateway.env -}}
{{- $entry := deepCopy . -}}
{{- if not $entry.value }}{{ $_ := unset $entry "value" }}{{ end -}}
{{- with dig "valueFrom" "fieldRef" nil $entry }}{{ $_ := set . "apiVersion" (.apiVersion | default "v1") }}{{ end -}}
{{- with dig "valueFrom" "resourceFieldRef" nil $entry }}{{ $_ := set . "divisor" (.divisor | default "0" | toString) }}{{ end -}}
{{- $_ := set $further .name $entry -}}
{{- end -}}
{{- include "postern.literal" $further -}}
{{- end }}

{{- /* A value as CEL, each part as dyn: lists and maps of CEL are of one type. */ -}}
{{- define "postern.literal" -}}
{{- if kindIs "map" . -}}
dyn({ {{- $between := "" }}{{ range $key, $value := . }}{{ $between }}{{ toJson $key }}: {{ include "postern.literal" $value }}{{ $between = ", " }}{{ end -}} })
{{- else if kindIs "slice" . -}}
dyn([ {{- $between := "" }}{{ range . }}{{ $between }}{{ include "postern.literal" . }}{{ $between = ", " }}{{ end -}} ])
{{- else -}}
dyn({{ toJson . }})
{{- end -}}
{{- end }}
