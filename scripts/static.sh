#!/usr/bin/env bash
# Compiles the static executables, and lays out the root file system of each image: DIR/gateway and DIR/operator.
#
#   scripts/static.sh [--output DIR] [--debug] [--only gateway|operator]
set -euo pipefail
cd "$(dirname "$0")/.."

output=target/images/roots profile=release images="gateway operator"
while [ $# -gt 0 ]; do
    case $1 in
    --output) output=$2 && shift ;;
    --debug) profile=dev ;;
    --only) images=$2 && shift ;;
    *) echo "unknown argument: $1" >&2 && exit 2 ;;
    esac
    shift
done

certificates=/etc/ssl/certs/ca-certificates.crt
[ -s $certificates ] || { echo "$certificates is missing: install ca-certificates" >&2; exit 1; }

# crt-static wants the target named, or procedural macros would be linked so too. A static executable finds no symbol at
# run time, so getrandom is told that the kernel has the call, and needs no /dev.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-C target-feature=+crt-static --cfg getrandom_backend=\"linux_getrandom\""
build=(cargo build --locked --profile "$profile" --target "$host")
built=target/$host/$([ $profile = dev ] && echo debug || echo $profile)

lay_out() { # image executable uid features
    local root=$output/$1
    "${build[@]}" --features "$4" --bin "$2"
    rm -rf "$root"
    mkdir -p "$root/etc/ssl/certs" "$root/usr/share/sbom"
    strip --strip-all -o "$root/$2" "$built/$2"
    chmod 0755 "$root/$2"
    install -m 0644 $certificates "$root/etc/ssl/certs/ca-certificates.crt"
    printf 'root:x:0:0:root:/:/sbin/nologin\npostern:x:%s:%s:Postern:/:/sbin/nologin\n' "$3" "$3" >"$root/etc/passwd"
    printf 'root:x:0:\npostern:x:%s:\n' "$3" >"$root/etc/group"
    python3 scripts/sbom.py "$2" --features "$4" --target "$host" >"$root/usr/share/sbom/$2.spdx.json"
}

for image in $images; do
    case $image in
    gateway) lay_out gateway postern 65351 "" ;;
    operator) lay_out operator postern-operator 65532 operator ;;
    *) echo "no such image: $image" >&2 && exit 2 ;;
    esac
done
