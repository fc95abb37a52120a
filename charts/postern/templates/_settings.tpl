{{- /* The settings files of the gateway (the same in every pod) and of the operator. */ -}}

{{- /* The ranges that only a rule as narrow as the range opens: those of the values, or else those that the cluster reports. */ -}}
{{- define "postern.denyAddresses" -}}
{{- $ranges := .Values.gateway.upstream.denyAddresses -}}
{{- if not $ranges -}}
{{- if .Capabilities.APIVersions.Has "networking.k8s.io/v1/ServiceCIDR" -}}
{{- range (lookup "networking.k8s.io/v1" "ServiceCIDR" "" "").items }}{{ $ranges = concat $ranges .spec.cidrs }}{{ end -}}
{{- end -}}
{{- $api := lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" -}}
{{- range dig "endpoints" list $api }}{{ $ranges = concat $ranges .addresses }}{{ end -}}
{{- range (lookup "v1" "Node" "" "").items -}}
{{- $ranges = concat $ranges (dig "spec" "podCIDRs" list .) -}}
{{- range dig "status" "addresses" list . -}}
{{- if has .type (list "InternalIP" "ExternalIP") }}{{ $ranges = append $ranges .address }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $ranges = $ranges | uniq | sortAlpha -}}
{{- end -}}
{{- $ranges | toJson -}}
{{- end }}

{{ define "postern.gatewaySettings" -}}
{{- $gateway := .Values.gateway -}}
{{- $dns := dict "port" (int $gateway.listeners.dnsPort) -}}
{{- with $gateway.listeners.dnsPool }}{{ $_ := set $dns "pool" . }}{{ end -}}
{{- $listeners := dict
    "transparent" (dict "port" (int $gateway.listeners.transparentPort))
    "explicit" (dict "address" (printf "127.0.0.1:%d" (int $gateway.listeners.explicitPort)))
    "dns" $dns -}}
{{- with $gateway.listeners.reverse }}{{ $_ := set $listeners "reverse" . }}{{ end -}}
{{- $nodeAddresses := dict "fromEnv" "POSTERN_NODE_ADDRESSES" -}}
{{- $ranges := include "postern.denyAddresses" . | fromJsonArray -}}
{{- $upstream := dict "denyAddresses" (append $ranges $nodeAddresses) -}}
{{- range $key := list "allowAddresses" "proxy" "hosts" -}}
{{- with index $gateway.upstream $key }}{{ $_ := set $upstream $key . }}{{ end -}}
{{- end -}}
{{- with $gateway.upstream.roots }}{{ $_ := set $upstream "roots" (list "/etc/postern/policy/upstream-roots.pem") }}{{ end -}}
{{- $workload := dict
    "namespace" (dict "fromEnv" "POSTERN_NAMESPACE")
    "pod" (dict "fromEnv" "POSTERN_POD")
    "serviceAccount" (dict "fromEnv" "POSTERN_SERVICE_ACCOUNT")
    "node" (dict "fromEnv" "POSTERN_NODE") -}}
{{- $settings := dict
    "listeners" $listeners
    "admin" (dict "address" (ternary "[::]:15090" "0.0.0.0:15090" $gateway.dualStack))
    "interception" (dict
      "mode" "Required" "caCertificate" "/etc/postern/ca/ca-cert.pem" "caKey" "/etc/postern/ca/ca-key.pem")
    "policy" (dict
      "path" "/etc/postern/policy" "labels" "/etc/podinfo/labels" "annotations" "/etc/podinfo/annotations"
      "workload" $workload)
    "upstream" $upstream
    "credentials" (dict "directory" "/etc/postern/credentials")
    "trust" (dict
      "directory" "/run/postern-trust" "roots" "/etc/postern/ca/roots.pem" "ownRoots" "/etc/postern/own-roots")
    "events" (dict "stdout" $gateway.eventsToStdout)
    "shutdown" (dict "grace" $gateway.shutdownGrace) -}}
{{- /* Only written if it is set: an older gateway, which does not know this key, would refuse the whole file. */ -}}
{{- if ne .Values.log.format "Text" }}{{ $_ := set $settings "log" .Values.log }}{{ end -}}
{{- with $gateway.ledger }}{{ if .enabled -}}
{{- $_ := set $settings "ledger" (dict
    "path" "/var/lib/postern/ledger.db" "maxAge" .maxAge "maxBytes" .maxBytes "onPressure" .onPressure) -}}
{{- end }}{{ end -}}
{{- with $gateway.evidence }}{{ if .enabled -}}
{{- $_ := set $settings "evidence" (dict
    "directory" "/var/lib/postern-evidence" "agentPath" "/run/postern/evidence"
    "maxAge" .maxAge "maxBytes" .maxBytes "mcp" .mcp) -}}
{{- end }}{{ end -}}
{{- with $gateway.limits }}{{ $_ := set $settings "limits" . }}{{ end -}}
{{- with $gateway.timeouts }}{{ $_ := set $settings "timeouts" . }}{{ end -}}
{{- mergeOverwrite $settings (deepCopy $gateway.settings) | toYaml -}}
{{- end }}

{{- /* Amounts by resource, each as text, also those that YAML reads as numbers (`cpu: 2`). JSON. */ -}}
{{- define "postern.amounts" -}}
{{- $texts := dict -}}
{{- range $name, $amount := . -}}
{{- if kindIs "string" $amount -}}
{{- $_ := set $texts $name $amount -}}
{{- else if eq (floor $amount) (float64 $amount) -}}
{{- $_ := set $texts $name (int64 $amount | toString) -}}
{{- else -}}
{{- $_ := set $texts $name ($amount | toString) -}}
{{- end -}}
{{- end -}}
{{- $texts | toJson -}}
{{- end }}

{{- /* A container's resources, or their bounds, with the amounts as text: (list values kinds). JSON. */ -}}
{{- define "postern.texts" -}}
{{- $texts := deepCopy (index . 0) -}}
{{- range $kind := index . 1 -}}
{{- with index $texts $kind -}}
{{- $_ := set $texts $kind (include "postern.amounts" . | fromJson) -}}
{{- end -}}
{{- end -}}
{{- $texts | toJson -}}
{{- end }}

{{- define "postern.operatorSettings" -}}
{{- $parts := list "requests" "limits" -}}
{{- $bounds := list "least" "most" -}}
{{- $gateway := dict
    "image" (include "postern.gatewayImage" .) "imagePullPolicy" .Values.gateway.image.pullPolicy
    "canaryImages" .Values.gateway.canaryImages "formerImages" .Values.gateway.formerImages
    "resources" (include "postern.texts" (list .Values.gateway.resources $parts) | fromJson)
    "resourceBounds" (include "postern.texts" (list .Values.gateway.resourceBounds $bounds) | fromJson)
    "env" .Values.gateway.env "settings" (include "postern.gatewaySettings" .) -}}
{{- with .Values.gateway.upstream.roots }}{{ $_ := set $gateway "upstreamRoots" . }}{{ end -}}
{{- $root := ternary "Generated" "Given" (eq .Values.ca.source "Generated") -}}
{{- dict
    "namespace" .Release.Namespace
    "serviceAccount" .Values.serviceAccount.name
    "lease" "postern-operator"
    "webhook" (dict
      "port" (int .Values.webhook.port) "service" "postern-webhook" "certificate" .Values.webhook.certificate.secret
      "source" .Values.webhook.certificate.source "mutating" "postern" "validating" "postern"
      "drain" .Values.webhook.drain)
    "admin" (dict "port" 8080)
    "root" (dict "secret" .Values.ca.secret "source" $root "distribution" .Values.ca.distribution)
    "log" (dict "format" .Values.log.format)
    "gateway" $gateway
    "redirect" (dict
      "resources" (include "postern.texts" (list .Values.redirect.resources $parts) | fromJson)
      "resourceBounds" (include "postern.texts" (list .Values.redirect.resourceBounds $bounds) | fromJson))
    "injection" (dict "hostPaths" .Values.injection.hostPaths "csiDrivers" .Values.injection.csiDrivers
      "nameservers" .Values.injection.nameservers "excludedNamespaces" .Values.webhook.excludedNamespaces
      "logLevels" .Values.injection.logLevels)
    "credentials" (dict "sourceNamespaces" .Values.rbac.sourceNamespaces)
  | toYaml -}}
{{- end }}
