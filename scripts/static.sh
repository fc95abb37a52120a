#!/usr/bin/env bash
# Compiles the static executables, and lays out the root file system of each image: DIR/gateway and DIR/operator.
#
#   scripts/static.sh [--output DIR] [--debug] [--only gateway|operator]
#
# With --debug both have the feature `operator`, so that one build of the library serves both and the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

output=target/images/roots profile=release images="gateway operator" gateway=""
while [ $# -gt 0 ]; do
    case $1 in
    --output) output=$2 && shift ;;
    --debug) profile=dev gateway=operator ;;
    --only) images=$2 && shift ;;
    *) echo "unknown argument: $1" >&2 && exit 2 ;;
    esac
    shift
done

certificates=/etc/ssl/certs/ca-certificates.crt
[ -s $certificates ] || { echo "$certificates is missing: install ca-certificates" >&2; exit 1; }

# Only the executable itself is told to be static: its crates are the same either way, and procedural macros stay what
# they are.
target=$(rustc -vV | sed -n 's/^host: //p')
directory=${CARGO_TARGET_DIR:-target}/$([ $profile = dev ] && echo debug || echo $profile)

lay_out() { # image executable uid features
    local root=$output/$1
    cargo rustc --locked --profile "$profile" --features "$4" --bin "$2" -- -C target-feature=+crt-static
    if readelf --program-headers "$directory/$2" | grep -q INTERP; then
        echo "$2 is not static" >&2
        exit 1
    fi
    rm -rf "$root"
    mkdir -p "$root/etc/ssl/certs" "$root/usr/share/sbom"
    strip --strip-all -o "$root/$2" "$directory/$2"
    chmod 0755 "$root/$2"
    install -m 0644 $certificates "$root/etc/ssl/certs/ca-certificates.crt"
    printf 'root:x:0:0:root:/:/sbin/nologin\npostern:x:%s:%s:Postern:/:/sbin/nologin\n' "$3" "$3" >"$root/etc/passwd"
    printf 'root:x:0:\npostern:x:%s:\n' "$3" >"$root/etc/group"
    python3 scripts/sbom.py "$2" --features "$4" --target "$target" >"$root/usr/share/sbom/$2.spdx.json"
}

for image in $images; do
    case $image in
    gateway) lay_out gateway postern 65351 "$gateway" ;;
    operator) lay_out operator postern-operator 65532 operator ;;
    *) echo "no such image: $image" >&2 && exit 2 ;;
    esac
done
