# The two images: `gateway`, which runs in agents' pods as redirect and as sidecar, and `operator`, which runs once.
# Each is one static executable, the roots it trusts, its user, and its bill of materials: no shell, no package manager.
#
#   docker build --target gateway --build-arg COMPILE="--only gateway" --tag postern-gateway .
#
# `scripts/images.sh` builds both from executables that the host compiled (BINARIES=prebuilt), or whole.

ARG RUST_IMAGE=docker.io/library/rust:1.95-bookworm
ARG BINARIES=compiled

FROM ${RUST_IMAGE} AS compiled
# What scripts/static.sh is asked for: all of it, as a release, or `--debug`, or `--only gateway`.
ARG COMPILE=""
# What `--version` says: no repository is here.
ARG REVISION=unknown
WORKDIR /postern
COPY . .
# Crates, and what was compiled of them, are kept from build to build; nothing of either is in an image.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/postern/target,sharing=locked \
    POSTERN_COMMIT=${REVISION} scripts/static.sh --output /roots ${COMPILE}

# What scripts/static.sh made on the host.
FROM scratch AS prebuilt
COPY target/images/roots /roots

FROM ${BINARIES} AS roots

FROM scratch AS gateway
ARG VERSION=0.0.0
ARG REVISION=unknown
ARG SOURCE=https://github.com/postern-dev/postern
LABEL org.opencontainers.image.title="postern-gateway" \
      org.opencontainers.image.description="The guarded door through which an AI agent's traffic leaves its pod" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      dev.postern.sbom="/usr/share/sbom/postern.spdx.json"
COPY --from=roots /roots/gateway /
USER 65351:65351
ENTRYPOINT ["/postern"]

FROM scratch AS operator
ARG VERSION=0.0.0
ARG REVISION=unknown
ARG SOURCE=https://github.com/postern-dev/postern
LABEL org.opencontainers.image.title="postern-operator" \
      org.opencontainers.image.description="Postern's controller, injector and webhook" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      dev.postern.sbom="/usr/share/sbom/postern-operator.spdx.json"
COPY --from=roots /roots/operator /
USER 65532:65532
ENTRYPOINT ["/postern-operator"]
