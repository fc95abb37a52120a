"""Policies that the definitions take or refuse, each refusal with a part of its message."""

NAMESPACE = "postern-crds"


def policy(name="tried", **spec):
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "postern.dev/v1alpha1", "kind": "EgressPolicy", "metadata": metadata, "spec": spec}


def cluster(**spec):
    return {"apiVersion": "postern.dev/v1alpha1", "kind": "ClusterEgressPolicy", "metadata": {"name": "tried"}, "spec": spec}


def destination(**fields):
    return policy(destinations=[{"name": "a", "hosts": ["a.example"], "action": "Inspect"} | fields])


def ranges(**fields):
    return policy(destinations=[{"name": "a", "cidrs": ["10.0.0.0/8"], "ports": [22], "action": "Tunnel"} | fields])


def tool(**fields):
    return policy(tools=[{"name": "a", "kind": "Shell", "action": "Deny"} | fields])


def credential(**fields):
    key = {"name": "a", "hosts": ["a.example"], "secretKeyRef": {"name": "s", "key": "k"}}
    return policy(credentials=[{field: value for field, value in (key | fields).items() if value is not None}])


def test(**fields):
    return {"param": "command", "operator": "Equals", "values": ["x"]} | fields


def nested(depth):
    return test() if depth == 0 else {"all": [{"not": nested(depth - 1)}]}


EVERYTHING = {
    "podSelector": {"matchLabels": {"app": "coder"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]},
    "enforcement": "Audit",
    "failurePolicy": "Closed",
    "destinations": [
        {"name": "anthropic", "hosts": ["api.anthropic.com"], "action": "Inspect"},
        {"name": "model", "hosts": ["llm.corp.example"], "ports": [8443], "action": "Inspect", "provider": "OpenAIChat"},
        {
            "name": "packages",
            "hosts": ["packages.example.com", "*.files.example", "**.deep.example", "**", "bücher.example", "192.0.2.1", "2001:db8::5"],
            "action": "Inspect",
            "upgrade": "Allow",
            "endpoints": [{"methods": ["GET", "M-SEARCH"], "path": "/**"}, {"path": "/v1/models/*:predict"}, {"methods": ["POST"]}],
        },
        {"name": "registry", "hosts": ["*.registry.example"], "action": "Tunnel", "allowEch": True},
        {"name": "database", "cidrs": ["10.20.0.0/16", "2001:db8::/32", "192.0.2.7/32"], "ports": [5432], "action": "Tunnel"},
        {"name": "ssh", "hosts": ["git.example"], "ports": [22], "action": "Tunnel", "protocol": "Opaque"},
        {"name": "nowhere", "cidrs": ["0.0.0.0/0"], "action": "Deny"},
    ],
    "hostedTools": {"action": "Strip", "allow": ["web_search_*"], "urlSources": "Deny"},
    "providerState": "Deny",
    "toolDefault": "Allow",
    "tools": [
        {
            "name": "no-force-remove",
            "kind": "Shell",
            "tools": ["mcp__shell__*", "%"],
            "action": "Deny",
            "when": {
                "any": [
                    {"param": "command", "operator": "Matches", "values": [r"rm\s+-rf\s+/", "x" * 4096]},
                    {"param": "options.recursive", "operator": "In", "values": ["text", 1, -2.5, True, "true"]},
                    {"not": {"param": "$", "operator": "Exists"}},
                ]
            },
            "reason": "Dangerous shell command",
        },
        {"name": "by-kind", "kind": "Fetch", "action": "Audit"},
    ],
    "credentials": [
        {
            "name": "anthropic",
            "hosts": ["api.anthropic.com"],
            "ports": [443],
            "secretKeyRef": {"name": "anthropic", "key": "api-key"},
            "placeholder": "sk-ant-postern-anthropic",
            "require": True,
        },
        {
            "name": "aws",
            "hosts": ["bedrock-runtime.us-east-1.amazonaws.com"],
            "secretKeyRef": {"name": "aws", "key": "key"},
            "sigV4": {"service": "bedrock", "region": "us-east-1"},
        },
    ],
    "limits": {"requestBodyBytes": 33554432, "toolInputBytes": 1048576, "tokensPerDay": 5000000, "requestsPerMinute": 120, "consecutiveDenials": 20},
    "audit": {"toolInputs": "Hash"},
}

MANY = {
    "destinations": [{"name": f"d{number}", "hosts": [f"{number}.example"], "action": "Inspect"} for number in range(500)],
    "tools": [{"name": f"t{number}", "tools": ["a"], "action": "Deny"} for number in range(500)],
}

KEYS = [{"name": "a", "hosts": ["a.example"], "secretKeyRef": {"name": "s", "key": "k", "namespace": "keys"}}]

GOOD = [
    ("an empty one", policy()),
    ("every field", policy(**EVERYTHING)),
    ("every field, of the cluster", cluster(namespaceSelector={"matchLabels": {"team": "a"}}, **EVERYTHING)),
    ("a namespace of keys, of the cluster", cluster(credentials=KEYS)),
    ("conditions nested ten deep", tool(when=nested(4))),
    ("as many rules as fit", policy(**MANY)),
    ("a null as if it were not written", destination(ports=None)),
    ("a text that looks like a document", tool(reason="a: ${b} '\"", when=test(values=["\n---\nkind: x\n", "\u2028", "{{ .V }}"]))),
]

BAD = [
    # Shapes and words.
    ("no spec", {key: value for key, value in policy().items() if key != "spec"}, "spec: Required value"),
    ("an action that is none", destination(action="Inspekt"), 'supported values: "Inspect", "Tunnel", "Deny"'),
    ("a rule without a name", policy(tools=[{"kind": "Shell", "action": "Deny"}]), "name: Required value"),
    ("a rule without an action", policy(destinations=[{"name": "a", "hosts": ["a.example"]}]), "action: Required value"),
    ("a name in upper case", destination(name="A"), "should match '^[a-z0-9]"),
    ("a name of 64 characters", destination(name="a" * 64), "Too long: may not be more than 63"),
    ("a port that is none", destination(ports=[0]), "should be greater than or equal to 1"),
    ("a port beyond the last", destination(ports=[65536]), "should be less than or equal to 65535"),
    ("a port as a text", destination(ports=["443"]), "must be of type integer"),
    ("no hosts at all", destination(hosts=[]), "should have at least 1 items"),
    ("a limit that allows nothing", policy(limits={"tokensPerDay": 0}), "should be greater than or equal to 1"),
    ("a reason over its bound", tool(reason="x" * 257), "Too long: may not be more than 256"),
    ("too many rules", policy(tools=[{"name": f"t{n}", "kind": "Shell", "action": "Deny"} for n in range(501)]), "must have at most 500 items"),
    ("a method in lower case", destination(endpoints=[{"methods": ["get"]}]), "should match '^[A-Z-]+$'"),
    # Names that are taken.
    ("two destinations of one name", policy(destinations=2 * [{"name": "a", "hosts": ["a.example"], "action": "Deny"}]), "Duplicate value"),
    ("two tool rules of one name", policy(tools=2 * [{"name": "a", "kind": "Shell", "action": "Deny"}]), "Duplicate value"),
    ("two credentials of one name", policy(credentials=2 * credential()["spec"]["credentials"]), "Duplicate value"),
    (
        "a destination and a tool rule of one name",
        policy(destinations=destination()["spec"]["destinations"], tools=tool()["spec"]["tools"]),
        "a rule's name is unique in its policy",
    ),
    # Fields that belong to some rules alone.
    ("hosts and cidrs", destination(cidrs=["10.0.0.0/8"], action="Deny"), "a rule has `hosts` or `cidrs`: write one of them"),
    ("neither hosts nor cidrs", policy(destinations=[{"name": "a", "action": "Deny"}]), "a rule has `hosts` or `cidrs`: write one of them"),
    ("cidrs that are inspected", ranges(action="Inspect"), "only a host can be inspected"),
    ("a tunnel to a range without ports", policy(destinations=[{"name": "a", "cidrs": ["10.0.0.0/8"], "action": "Tunnel"}]), "names its `ports`"),
    ("an opaque tunnel without ports", destination(action="Tunnel", protocol="Opaque"), "names its `ports`"),
    ("endpoints of a tunnel", destination(action="Tunnel", endpoints=[{"path": "/"}]), "destinations[0].endpoints: Invalid value"),
    ("a provider of a tunnel", destination(action="Tunnel", provider="Gemini"), "destinations[0].provider: Invalid value"),
    ("an upgrade that is denied anyway", destination(action="Deny", upgrade="Allow"), "belongs to Inspect rules"),
    ("ECH where TLS is ended", destination(allowEch=True), "belongs to Tunnel rules"),
    ("opaque bytes that are inspected", destination(protocol="Opaque", ports=[22]), "belongs to Tunnel rules"),
    ("an endpoint that says nothing", destination(endpoints=[{}]), "an endpoint has `methods`, `path` or both"),
    ("a path without a slash", destination(endpoints=[{"path": "v1"}]), "should match '^/[^?#]*$'"),
    ("a path with its query", destination(endpoints=[{"path": "/v1?a=b"}]), "should match '^/[^?#]*$'"),
    ("a range with bits behind its prefix", ranges(cidrs=["10.0.0.1/8"]), "without bits behind its prefix"),
    ("a range that is none", ranges(cidrs=["ten"]), "without bits behind its prefix"),
    ("IPv4 written as IPv6", ranges(cidrs=["::ffff:10.0.0.0/104"]), "without bits behind its prefix"),
    ("hosted tools that are all allowed, and some", policy(hostedTools={"action": "Allow", "allow": ["x"]}), "belongs to Strip and Deny"),
    ("an expression without values", policy(podSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}), "need at least one value"),
    (
        "an expression with values that it does not take",
        policy(podSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
        "Exists and DoesNotExist take none",
    ),
    # Tools and conditions.
    ("a tool rule about nothing", policy(tools=[{"name": "a", "action": "Deny"}]), "a tool rule has `kind`, `tools` or both"),
    ("a condition that says two things", tool(when={"any": [test()], "all": [test()]}), "a condition is one of"),
    ("a condition that says nothing", tool(when={}), "a condition is one of"),
    ("a test beside a list", tool(when=test() | {"any": [test()]}), "a condition is one of"),
    ("a test without an operator", tool(when={"param": "command"}), "a test has `param` and `operator`"),
    ("a list of conditions with an empty one", tool(when={"any": [{}]}), "a condition is one of"),
    ("a negated empty condition", tool(when={"not": {}}), "a condition is one of"),
    ("an operator that is none", tool(when=test(operator="Like")), "Unsupported value"),
    ("an operator that is none, deeper", tool(when={"any": [{"not": test(operator="Like")}]}), "Unsupported value"),
    ("a regular expression over its bound", tool(when=test(operator="Matches", values=["x" * 4097])), "may not be more than 4096"),
    ("a list for a value", tool(when=test(values=[["x"]])), "must have at most 0 items"),
    ("a mapping for a value", tool(when=test(values=[{"x": 1}])), "must have at most 0"),
    # Credentials.
    ("a key of the environment", credential(secretKeyRef=None, fromEnv="KEY"), "`fromEnv` and `fromFile` are for files on a laptop"),
    ("a key of a file", credential(secretKeyRef=None, fromFile="key"), "`fromEnv` and `fromFile` are for files on a laptop"),
    ("a credential without a source", credential(secretKeyRef=None), "in a cluster a credential has `secretKeyRef: {name, key}`"),
    (
        "a namespace of keys that is none",
        cluster(credentials=[KEYS[0] | {"secretKeyRef": {"name": "s", "key": "k", "namespace": "A.b"}}]),
        "should match '^[a-z0-9]",
    ),
    ("a Secret without a key", credential(secretKeyRef={"name": "s"}), "key: Required value"),
    ("a key for a pattern", credential(hosts=["*.example"]), "exact names, never to a pattern"),
    ("a key for an address", credential(hosts=["192.0.2.1"]), "to names, never to an address"),
    ("a short placeholder", credential(placeholder="short"), "should be at least 8 chars long"),
    ("a placeholder with a space", credential(placeholder="two words here"), "should match '^[!-~]*$'"),
    (
        "a placeholder that no signature has",
        credential(placeholder="with/slash", sigV4={"service": "a", "region": "b"}),
        "which has no `/`, `,` and `=`",
    ),
]
