# Every command there is; CI calls nothing else.

# Lists the recipes.
_default:
    @{{ just_executable() }} --list --unsorted

# Formats the code.
fmt:
    cargo fmt --all

# Fails where the code is not formatted.
check-fmt:
    cargo fmt --all --check

# Clippy over the library, the executable, tests and benches; a warning is an error.
lint:
    cargo clippy --locked --all-features --all-targets -- -D warnings

# The API documentation; a warning is an error.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --all-features --no-deps --lib

# Unit tests, the architecture's rules and the black-box tests of the built executable.
test *arguments:
    cargo test --locked --all-features {{ arguments }}

# The property tests over new cases, each many times; what fails prints its case.
properties cases="10000":
    #!/usr/bin/env bash
    set -euo pipefail
    export PROPTEST_RNG_SEED=$(date +%s) PROPTEST_CASES={{ cases }}
    cargo test --locked --all-features --lib
    cargo test --locked --all-features --test main reference

# Kills a writer of the ledger under 20,000 events a second, so many times, and looks at what is left.
ledger-kill rounds="20":
    cargo test --locked --all-features --test ledger_kill -- --rounds {{ rounds }}

# No Kubernetes client is in the gateway, which is what is built without features.
check-gateway:
    ! cargo tree --locked --edges normal | grep -E ' (kube|k8s-openapi|schemars) '

# What most recipes share: the executables and the tests.
_build:
    cargo build --locked --all-features --bins --tests

# Writes every generated file: CRDs, deploy/, docs/event.schema.json, docs/events.md, the chart's README and dashboards.
generate: _build
    target/debug/postern-operator crds --directory charts/postern/crds
    target/debug/postern-operator event-schema --file docs/event.schema.json
    python3 scripts/events.py
    python3 scripts/chart_readme.py
    python3 scripts/dashboards.py
    scripts/deploy.sh

# Fails where a generated file is out of date.
check-generated: _build
    #!/usr/bin/env bash
    set -euo pipefail
    directory=$(mktemp -d)
    trap 'rm -r "$directory"' EXIT
    stale() { echo "run \`just generate\`" >&2; exit 1; }
    target/debug/postern-operator crds --directory "$directory/crds"
    diff --recursive --unified charts/postern/crds "$directory/crds" || stale
    target/debug/postern-operator event-schema --file "$directory/event.schema.json"
    diff --unified docs/event.schema.json "$directory/event.schema.json" || stale
    python3 scripts/events.py --check
    scripts/deploy.sh "$directory/postern.yaml"
    diff --unified deploy/postern.yaml "$directory/postern.yaml" || stale
    python3 scripts/chart_readme.py --check
    python3 scripts/dashboards.py --check
    python3 scripts/release.py check

# Both images, each as an archive in target/images (needs buildah); `--debug` compiles faster.
images *arguments:
    scripts/images.sh {{ arguments }}

# What a release publishes, of this machine's architecture, in target/dist; CONTRIBUTING.md has the rest.
release *arguments:
    python3 scripts/release.py {{ arguments }}

# The chart rendered, installed, upgraded, uninstalled, its admission policies attacked; two operators: on an API server alone.
e2e-chart *arguments: _build
    python3 e2e/run.py cluster/alone {{ arguments }}

# The operator with 200 namespaces, 2,000 pods and 400 policies, one namespace noisy, on an API server alone; prints figures.
scale *arguments: _build
    python3 e2e/run.py cluster/scale {{ arguments }}

# Every alert of the chart fires where it means to, and nowhere else (needs promtool).
alerts:
    python3 e2e/run.py cluster/alerts

# The Lua by which Argo CD judges policies (deploy/argo-cd) over statuses as the operator writes them.
argo-health:
    python3 e2e/run.py cluster/argo_health

# Licences, bans and sources of every dependency (installs cargo-deny where it is missing).
deny:
    command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
    cargo deny --locked check bans licenses sources

# The main job on real TLS, without a network.
demo:
    cargo run --locked --release -- demo

# Real clients (curl, Python, Node, Go, Java, git, coding agents) by the proxy, and unconfigured in a namespace (as root).
clients *arguments: _build
    python3 e2e/run.py clients --way both {{ arguments }}

# The official SDKs as judges of recorded answers that went through the gateway, with and without denied calls.
sdks *arguments: _build
    python3 e2e/run.py sdks {{ arguments }}

# The translation between Messages and Chat Completions beside LiteLLM's and @musistudio/llms's: each difference has its reason.
differential *arguments: _build
    python3 e2e/run.py differential {{ arguments }}

# What compression of tool results does to the requests of real agents, each task with it and without: docs/tool-results-measured.md.
tool-results *arguments: _build
    python3 e2e/run.py tool-results {{ arguments }}

# The official schema and Microsoft's SARIF Multitool, with its rules for GitHub, as judges of `postern ledger sarif`.
sarif *arguments: _build
    python3 e2e/run.py sarif {{ arguments }}

# The protocol's conformance suite and the official TypeScript clients as judges of the gateway's tools for agents.
mcp *arguments: _build
    python3 e2e/run.py mcp {{ arguments }}

# The queries of deploy/observability in ClickHouse (chdb), over the records that a collector gets of a real gateway.
logs *arguments: _build
    python3 e2e/run.py logs {{ arguments }}

# The page of `postern ui` in a real Chromium; screenshots of every view are left in target/e2e-ui/pictures.
ui *arguments: _build
    python3 e2e/run.py ui {{ arguments }}

# Real clients (curl, openssl, GnuTLS, Python, Node, Bun, Go, rustls, Java) judge what a namespace's CA vouches for.
constraints *arguments: _build
    python3 e2e/run.py cluster/constraints {{ arguments }}

# Attacks the redirect and the gateway in real network namespaces; root alone can make them.
e2e-netns *arguments: _build
    python3 e2e/run.py netns {{ arguments }}

# The same for whoever runs everything: left out, and said so, where that is not root.
_e2e-netns-as-root:
    @if [ "$(id -u)" = 0 ]; then {{ just_executable() }} e2e-netns; \
    else echo "e2e-netns is left out: network namespaces are made by root alone"; fi

# Kubernetes from nothing (servers built from Go modules, kept in a cache), the chart on it, and attacks on both; as root.
e2e-cluster *arguments:
    python3 e2e/run.py cluster {{ arguments }}

# The same for whoever runs everything: left out, and said so, where that is not root.
_e2e-cluster-as-root:
    @if [ "$(id -u)" = 0 ]; then {{ just_executable() }} e2e-cluster; \
    else echo "e2e-cluster is left out: containers are started by root alone"; fi

# Traces in a real Jaeger, dashboards and alerts in a real Prometheus that scrapes busy gateways and the operator; as root.
e2e-observability *arguments: _build
    python3 e2e/run.py observability {{ arguments }}

# Type-checks the fuzz targets, which no other recipe compiles, and their lock file.
check-fuzz:
    cargo check --locked --manifest-path fuzz/Cargo.toml --bins

# Each fuzz target for 30 seconds (installs cargo-fuzz where it is missing).
fuzz-smoke seconds="30":
    command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
    cd fuzz && for target in $(cargo fuzz list); do \
        RUSTC_BOOTSTRAP=1 cargo fuzz run "$target" -- -max_total_time={{ seconds }} -rss_limit_mb=2048 || exit 1; \
    done

# Microbenchmarks: decide, leaf, canonicalise, sse and others.
bench *arguments:
    cargo bench --locked {{ arguments }}

# The built executable against direct TLS, side by side in one run; prints ratios.
bench-gateway:
    ulimit -n 8192 && cargo bench --locked --bench gateway

# The gateway with a ledger beside without one, the record alone at 20,000 events a second, and its readers; prints ratios.
bench-record:
    ulimit -n 8192 && cargo bench --locked --bench gateway -- --ledger
    cargo bench --locked --bench record
    cargo bench --locked --bench readers
    cargo bench --locked --bench logs

# A gateway that searches for secrets beside one that does not, and the search itself; prints ratios.
bench-detection:
    ulimit -n 8192 && cargo bench --locked --bench gateway -- --detection
    cargo bench --locked --bench detect

# Translated answers beside guarded ones, and routes that match nothing beside none; translation in process; prints ratios.
bench-routes:
    ulimit -n 8192 && cargo bench --locked --bench gateway -- --routes
    cargo bench --locked --bench translate
    cargo bench --locked --bench json

# A gateway that shortens results of tools beside one that does not; prints ratios.
bench-outputs:
    ulimit -n 8192 && cargo bench --locked --bench gateway -- --outputs

# What a request costs by rules, policies, bytes, connections and threads; needs 20,000 open files.
bench-growth:
    ulimit -n 20000 && cargo bench --locked --bench gateway -- --growth

# How often the detectors are wrong, over 1.6 GB of published packages, which it fetches; `--beside` asks gitleaks and detect-secrets too.
dlp-corpus *arguments:
    cargo build --locked --release
    python3 scripts/dlp_corpus.py {{ arguments }}

# What one exchange allocates in the gateway, of each kind; fails where it has grown (`POSTERN_BLESS=1` writes it anew).
costs:
    cargo test --locked --all-features --bench gateway -- --costs

# A flame graph of a gateway that is busy with one kind of exchange, in target/profile (needs perf; installs inferno).
profile exchange="question":
    #!/usr/bin/env bash
    set -euo pipefail
    command -v perf >/dev/null || { echo "perf is missing: apt-get install linux-perf" >&2; exit 1; }
    command -v inferno-flamegraph >/dev/null || cargo install --locked inferno
    export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none CARGO_TARGET_DIR=target/profile
    mkdir -p target/profile
    to=$PWD/target/profile/{{ exchange }}
    cargo bench --locked --bench gateway -- --profile {{ exchange }} perf record --quiet \
        --event cpu-clock --freq 199 --call-graph dwarf,65528 --output "$to.perf"
    perf script --no-inline --input "$to.perf" | inferno-collapse-perf | inferno-flamegraph > "$to.svg"
    echo "$to.svg"

# Instructions of one kind of exchange between its request's head and its answer's, by function (needs valgrind).
instructions exchange="question":
    #!/usr/bin/env bash
    set -euo pipefail
    command -v valgrind >/dev/null || { echo "valgrind is missing: apt-get install valgrind" >&2; exit 1; }
    export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none CARGO_TARGET_DIR=target/profile
    mkdir -p target/profile
    to=$PWD/target/profile/{{ exchange }}.callgrind
    cargo bench --locked --bench gateway -- --profile {{ exchange }} valgrind --quiet --tool=callgrind \
        --callgrind-out-file="$to" --collect-atstart=no '--toggle-collect=postern::proxy::exchange::exchange::*closure*' \
        | tee "$to.txt"
    callgrind_annotate --inclusive=yes "$to" | head -100
    count=$(grep -o '^[0-9]*' "$to.txt")
    total=$(sed -n 's/^totals: //p' "$to")
    echo "$((total / count)) instructions an exchange"

# Redirected beside CONNECT, in a network namespace of its own; as root. Prints ratios.
bench-redirect:
    cargo bench --locked --bench gateway --no-run
    ulimit -n 8192 && unshare --net env PATH="$PATH" cargo bench --locked --offline --bench gateway -- --redirect

# What CI runs: what takes seconds first, what is compiled once for all that follows, and the tests last.
ci: check-fmt check-gateway alerts argo-health lint check-fuzz docs check-generated constraints sdks differential sarif mcp ui logs e2e-chart _e2e-netns-as-root _e2e-cluster-as-root costs test
