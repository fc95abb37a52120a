#!/bin/sh
# Renders deploy/postern.yaml from the chart with its defaults, for those who do not use Helm. `deploy.sh FILE [CHART]` writes
# elsewhere, and renders another chart than this checkout's.
set -eu
cd "$(dirname "$0")/.."
target=${1:-deploy/postern.yaml}
chart=${2:-charts/postern}
helm=$(command -v helm || echo "${XDG_CACHE_HOME:-$HOME/.cache}/postern-e2e/bin/helm")
[ -x "$helm" ] || python3 e2e/run.py cluster/servers --clients
{
  cat <<HEAD
# Postern without Helm: what the chart renders with its defaults (scripts/deploy.sh writes this file).
#   kubectl apply --server-side --filename charts/postern/crds --filename deploy/postern.yaml
apiVersion: v1
kind: Namespace
metadata:
  name: postern-system
HEAD
  "$helm" template postern "$chart" --namespace postern-system --kube-version 1.33 --skip-tests |
    sed "s/managed-by: Helm/managed-by: kubectl/"
} >"$target"
