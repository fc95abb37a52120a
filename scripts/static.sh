#!/usr/bin/env bash
# Compiles the static executables, and lays out the root file system of each image: DIR/gateway and DIR/operator.
#
#   scripts/static.sh [--output DIR] [--debug] [--only gateway|operator]
#
# With --debug they are linked to what the tests are made of, so that nothing is compiled for them alone: both have the
# feature `operator` then.
set -euo pipefail
cd "$(dirname "$0")/.."

output=target/images/roots debug=no images="gateway operator" gateway=""
while [ $# -gt 0 ]; do
    case $1 in
    --output) output=$2 && shift ;;
    --debug) debug=yes gateway=operator ;;
    --only) images=$2 && shift ;;
    *) echo "unknown argument: $1" >&2 && exit 2 ;;
    esac
    shift
done

certificates=/etc/ssl/certs/ca-certificates.crt
[ -s $certificates ] || { echo "$certificates is missing: install ca-certificates" >&2; exit 1; }

target=$(rustc -vV | sed -n 's/^host: //p')
directory=${CARGO_TARGET_DIR:-target}/release

link() { # executable features file
    if [ $debug = yes ]; then
        python3 scripts/relink.py "$1" "$3"
    else
        # Only the executable itself is told to be static: its crates are the same either way, and procedural macros stay
        # what they are.
        cargo rustc --locked --release --features "$2" --bin "$1" -- -C target-feature=+crt-static
        strip --strip-all -o "$3" "$directory/$1"
    fi
    if readelf --program-headers "$3" | grep -q INTERP; then
        echo "$1 is not static" >&2
        exit 1
    fi
}

lay_out() { # image executable uid features
    local root=$output/$1
    rm -rf "$root"
    mkdir -p "$root/etc/ssl/certs" "$root/usr/share/sbom"
    link "$2" "$4" "$root/$2"
    chmod 0755 "$root/$2"
    install -m 0644 $certificates "$root/etc/ssl/certs/ca-certificates.crt"
    printf 'root:x:0:0:root:/:/sbin/nologin\npostern:x:%s:%s:Postern:/:/sbin/nologin\n' "$3" "$3" >"$root/etc/passwd"
    printf 'root:x:0:\npostern:x:%s:\n' "$3" >"$root/etc/group"
    # Names of a pod's hosts file come before DNS, as everywhere else.
    echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
    python3 scripts/sbom.py "$2" --features "$4" --target "$target" >"$root/usr/share/sbom/$2.spdx.json"
}

for image in $images; do
    case $image in
    gateway) lay_out gateway postern 65351 "$gateway" ;;
    operator) lay_out operator postern-operator 65532 operator ;;
    *) echo "no such image: $image" >&2 && exit 2 ;;
    esac
done
