#!/usr/bin/env bash
# Builds the images with buildah, and writes each to target/images/NAME.tar (docker-archive), with its compressed size.
#
#   scripts/images.sh [--debug] [--only gateway|operator] [--tag TAG] [--in-container]
#
# By default the host compiles the executables, and the Dockerfile only puts them together, which needs no base image.
# --in-container has the Dockerfile compile them on RUST_IMAGE (default: its own), with crates from CARGO_REGISTRY, a
# directory as ~/.cargo/registry is, where that is set.
set -euo pipefail
cd "$(dirname "$0")/.."

images="gateway operator" tag=dev binaries=prebuilt compile=()
while [ $# -gt 0 ]; do
    case $1 in
    --debug) compile+=(--debug) ;;
    --only) images=$2 && compile+=(--only "$2") && shift ;;
    --tag) tag=$2 && shift ;;
    --in-container) binaries=compiled ;;
    *) echo "unknown argument: $1" >&2 && exit 2 ;;
    esac
    shift
done

repository=ghcr.io/postern-dev
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
# The gateway is in every agent's pod.
most=$((15 * 1024 * 1024))

arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision" --build-arg "BINARIES=$binaries" --build-arg "COMPILE=${compile[*]-}")
# The same sources make the same image: https://reproducible-builds.org/specs/source-date-epoch/
[ -z "${SOURCE_DATE_EPOCH:-}" ] || arguments+=(--timestamp "$SOURCE_DATE_EPOCH")
[ -z "${RUST_IMAGE:-}" ] || arguments+=(--build-arg "RUST_IMAGE=$RUST_IMAGE")
[ -z "${CARGO_REGISTRY:-}" ] || arguments+=(--volume "$CARGO_REGISTRY:/usr/local/cargo/registry")
[ $binaries = compiled ] || scripts/static.sh ${compile[@]+"${compile[@]}"}

mkdir -p target/images
for image in $images; do
    name=$repository/postern-$image:$tag
    archive=target/images/$image.tar
    rm -f "$archive"
    # Nothing is run in the image but to compile, so a runtime is wanted for that alone, and chroot does.
    buildah build --quiet --isolation chroot --format docker --target "$image" --tag "$name" "${arguments[@]}" . >/dev/null
    buildah push --quiet "$name" "docker-archive:$archive:$name"
    size=$(gzip --stdout "$archive" | wc -c)
    echo "$name $archive $size bytes compressed"
    if [ "$image" = gateway ] && [ "$size" -gt $most ] && [[ " ${compile[*]-} " != *" --debug "* ]]; then
        echo "the gateway's image is larger than $most bytes" >&2
        exit 1
    fi
done
