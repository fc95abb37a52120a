//! What the schemas require beyond the types: bounds, required fields, and CEL rules between fields.
//!
//! The API server also estimates the cost of rules by the bounds of lists and texts. A policy that outgrows one is written
//! as two.

use serde_json::{Map, Value, json};

use super::schema::MOST_NESTED;
use crate::policy::routing::{MOST_FALLBACK, MOST_LABELS, TRANSFORMS};

const MOST_RULES: u32 = 500;
const MOST_ENTRIES: u32 = 256;
const MOST_CONDITIONS: u32 = 100;
/// A name, with the longest wildcard before it.
const MOST_HOST: u32 = 256;

/// The names of rules and credentials.
const NAME: &str = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$";

/// The names of namespaces.
const LABEL: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";

/// A field by its path from the spec, and what is added to its schema.
pub(super) type Constraint = (String, Value);

/// The constraints of a policy's spec.
pub(super) fn of_spec() -> Vec<Constraint> {
    [
        whole(),
        destinations(),
        tools(),
        conditions(),
        rules(),
        credentials(),
        data_loss(),
        model_providers(),
        models(),
        routes(),
    ]
    .concat()
}

/// The constraints of a selector.
pub(super) fn of_selector(selector: &str) -> Vec<Constraint> {
    let expression = json!({
        "required": ["key", "operator"],
        "x-kubernetes-validations": [
            rule("(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)", "",
                "In and NotIn need at least one value; Exists and DoesNotExist take none"),
        ],
    });
    let fields = [
        ("matchLabels", json!({"maxProperties": 64})),
        ("matchExpressions", json!({"maxItems": 64})),
        ("matchExpressions[]", expression),
        ("matchExpressions[].key", json!({"minLength": 1, "maxLength": 317})),
        ("matchExpressions[].values", json!({"maxItems": MOST_ENTRIES})),
        ("matchExpressions[].values[]", json!({"maxLength": 63})),
    ];
    let mut constraints = vec![(selector.to_owned(), json!({"x-kubernetes-map-type": "atomic"}))];
    constraints.extend(under(selector, fields));
    constraints
}

/// The constraints of a status.
pub(super) fn of_status() -> Vec<Constraint> {
    let conditions =
        json!({"maxItems": 16, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]});
    of_strings([
        ("conditions", conditions),
        ("conditions[].status", json!({"enum": ["True", "False", "Unknown"]})),
    ])
}

fn whole() -> Vec<Constraint> {
    let taken = "!has(self.destinations) || !has(self.tools) || \
                 !sets.intersects(self.destinations.map(d, d.name), self.tools.map(t, t.name))";
    let names = rule(
        taken,
        "",
        "a destination and a tool rule have the same name: a rule's name is unique in its policy",
    );
    let allow = "!has(self.action) || self.action != 'Allow' || !has(self.allow) || size(self.allow) == 0";
    let allow = rule(allow, ".allow", "belongs to Strip and Deny: the action Allow keeps every hosted tool");
    let limit = || json!({"minimum": 1});
    of_strings([
        ("", json!({"x-kubernetes-validations": [names]})),
        // The only default that the API server writes: any other absent field takes no part when policies are combined
        // (design section 5.4).
        ("enforcement", json!({"default": "Enforce"})),
        ("hostedTools", json!({"x-kubernetes-validations": [allow]})),
        ("hostedTools.allow", json!({"maxItems": MOST_ENTRIES})),
        ("hostedTools.allow[]", json!({"minLength": 1, "maxLength": 256})),
        ("shell.directory", json!({"maxLength": 4096, "pattern": "^/"})),
        ("limits.requestBodyBytes", limit()),
        ("limits.toolInputBytes", limit()),
        ("limits.tokensPerDay", limit()),
        ("limits.requestsPerMinute", limit()),
        ("limits.consecutiveDenials", limit()),
    ])
}

fn destinations() -> Vec<Constraint> {
    let belongs = |field: &str, action: &str| {
        let expression = format!("self.action == '{action}' || !has(self.{field})");
        let message = format!("belongs to {action} rules: leave it out, or change the action");
        rule(&expression, &format!(".{field}"), &message)
    };
    let rules = json!([
        rule("has(self.hosts) != has(self.cidrs)", "", "a rule has `hosts` or `cidrs`: write one of them"),
        belongs("endpoints", "Inspect"),
        belongs("provider", "Inspect"),
        belongs("upgrade", "Inspect"),
        belongs("reach", "Inspect"),
        belongs("allowEch", "Tunnel"),
        belongs("protocol", "Tunnel"),
        rule(
            "self.action != 'Inspect' || !has(self.cidrs)",
            ".action",
            "a rule with `cidrs` is Tunnel or Deny: only a host can be inspected"
        ),
        rule(
            "self.action != 'Tunnel' || has(self.ports) || !(has(self.cidrs) || has(self.protocol))",
            "",
            "a Tunnel that passes any bytes (`cidrs`, or `protocol: Opaque`) names its `ports`"
        ),
    ]);
    let fields = [
        ("", json!({"required": ["name", "action"], "x-kubernetes-validations": rules})),
        ("name", name()),
        ("hosts", some(MOST_ENTRIES)),
        ("hosts[]", json!({"minLength": 1, "maxLength": MOST_HOST})),
        ("cidrs", some(MOST_ENTRIES)),
        (
            "cidrs[]",
            json!({"maxLength": 43, "x-kubernetes-validations": [rule(
                "isCIDR(self) && cidr(self).masked() == cidr(self)", "",
                "expected a range without bits behind its prefix, as 10.20.0.0/16; one address is /32 or /128",
            )]}),
        ),
        ("ports", some(MOST_ENTRIES)),
        ("ports[]", port()),
        ("endpoints", some(MOST_ENTRIES)),
        (
            "endpoints[]",
            json!({"x-kubernetes-validations": [
                rule("has(self.methods) || has(self.path)", "", "an endpoint has `methods`, `path` or both"),
            ]}),
        ),
        ("endpoints[].methods", some(32)),
        // Patterns, not CEL rules: multiplied by the lists around them, a rule's estimated cost would be too high.
        ("endpoints[].methods[]", json!({"maxLength": 32, "pattern": "^[A-Z-]+$"})),
        ("endpoints[].path", json!({"maxLength": 2048, "pattern": "^/[^?#]*$"})),
    ];
    let mut constraints = vec![("destinations".to_owned(), named())];
    constraints.extend(under("destinations[]", fields));
    constraints
}

fn tools() -> Vec<Constraint> {
    let about = rule("has(self.kind) || has(self.tools)", "", "a tool rule has `kind`, `tools` or both");
    let fields = [
        ("", json!({"required": ["name", "action"], "x-kubernetes-validations": [about]})),
        ("name", name()),
        ("tools", some(MOST_ENTRIES)),
        ("tools[]", json!({"minLength": 1, "maxLength": 256})),
        ("reason", json!({"maxLength": 256})),
    ];
    let mut constraints = vec![("tools".to_owned(), named())];
    constraints.extend(under("tools[]", fields));
    constraints
}

/// What expressions say is the webhook's to judge.
fn rules() -> Vec<Constraint> {
    let fields = [
        ("", json!({"required": ["name", "when", "action"]})),
        ("name", name()),
        ("when", json!({"minLength": 1, "maxLength": 1024})),
        ("reason", json!({"maxLength": 256})),
    ];
    let mut constraints = vec![("rules".to_owned(), unique(64))];
    constraints.extend(under("rules[]", fields));
    constraints
}

/// The constraints of every condition that the schema unrolls. Only the outer ones have CEL rules: further in, the
/// estimated cost is multiplied by the lists around them.
fn conditions() -> Vec<Constraint> {
    let exactly_one = "[has(self.any), has(self.all), has(self.not), has(self.param) || has(self.operator)].exists_one(w, w)";
    let rules = json!([
        rule(
            exactly_one,
            "",
            "a condition is one of {param, operator, values}, `any`, `all` and `not`; nest them in `all` or `any`"
        ),
        rule("has(self.param) == has(self.operator)", "", "a test has `param` and `operator`"),
    ]);
    let mut constraints = Vec::new();
    let mut level = vec!["tools[].when".to_owned()];
    for depth in 0..MOST_NESTED {
        for path in &level {
            if depth < 2 {
                constraints.push((path.clone(), json!({"x-kubernetes-validations": rules})));
            }
            constraints.extend(under(
                path,
                [
                    ("any", some(MOST_CONDITIONS)),
                    ("all", some(MOST_CONDITIONS)),
                    ("param", json!({"minLength": 1, "maxLength": 256})),
                    ("values", json!({"maxItems": MOST_ENTRIES})),
                    // A text, a number or a boolean: the bounds exclude lists and mappings with content.
                    ("values[]", json!({"maxLength": 4096, "maxItems": 0, "maxProperties": 0})),
                ],
            ));
        }
        level = level
            .iter()
            .flat_map(|path| ["any[]", "all[]", "not"].map(|word| format!("{path}.{word}")))
            .collect();
    }
    constraints
}

fn credentials() -> Vec<Constraint> {
    let rules = json!([
        rule(
            "has(self.secretKeyRef)",
            "",
            "in a cluster a credential has `secretKeyRef: {name, key}`; `fromEnv` and `fromFile` are for files on a laptop"
        ),
        rule(
            "!has(self.sigV4) || !has(self.placeholder) || !self.placeholder.matches('[/,=]')",
            ".placeholder",
            "with `sigV4` it stands for an access key id, which has no `/`, `,` and `=`"
        ),
    ]);
    let word = || json!({"minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9-]+$"});
    let fields = [
        ("", json!({"required": ["name", "hosts"], "x-kubernetes-validations": rules})),
        ("name", name()),
        ("hosts", some(64)),
        (
            "hosts[]",
            json!({"minLength": 1, "maxLength": MOST_HOST, "x-kubernetes-validations": [
                rule("!self.contains('*')", "", "a credential belongs to exact names, never to a pattern"),
                rule("!isIP(self)", "", "a credential belongs to names, never to an address"),
            ]}),
        ),
        ("ports", some(64)),
        ("ports[]", port()),
        ("placeholder", json!({"minLength": 8, "maxLength": 256, "pattern": "^[!-~]*$"})),
        ("sigV4", json!({"required": ["service", "region"]})),
        ("sigV4.service", word()),
        ("sigV4.region", word()),
    ];
    let mut constraints = vec![("credentials".to_owned(), named())];
    constraints.extend(under("credentials[]", fields));
    constraints.extend(under("credentials[]", secret()));
    constraints
}

/// Of a reference to a Secret.
fn secret() -> [(&'static str, Value); 4] {
    [
        ("secretKeyRef", json!({"required": ["name", "key"], "x-kubernetes-map-type": "atomic"})),
        ("secretKeyRef.name", json!({"minLength": 1, "maxLength": 253})),
        ("secretKeyRef.key", json!({"minLength": 1, "maxLength": 253})),
        ("secretKeyRef.namespace", json!({"minLength": 1, "maxLength": 63, "pattern": LABEL})),
    ]
}

fn data_loss() -> Vec<Constraint> {
    let rules = json!([rule(
        "has(self.secretKeyRef)",
        "",
        "in a cluster a value has `secretKeyRef: {name, key}`; `fromEnv` and `fromFile` are for files on a laptop"
    )]);
    let mut constraints = of_strings([
        ("dataLoss.allow", json!({"maxItems": MOST_ENTRIES})),
        ("dataLoss.allow[]", json!({"required": ["detector", "sha256"]})),
        ("dataLoss.allow[].sha256", json!({"pattern": "^[0-9a-fA-F]{64}$"})),
        ("dataLoss.home", json!({"maxItems": 64})),
        ("dataLoss.home[]", json!({"required": ["detector", "hosts"]})),
        ("dataLoss.home[].hosts", some(64)),
        ("dataLoss.patterns", unique(32)),
        ("dataLoss.patterns[]", json!({"required": ["name", "regex"]})),
        ("dataLoss.patterns[].name", name()),
        ("dataLoss.patterns[].regex", json!({"minLength": 3, "maxLength": 1024})),
        ("dataLoss.values", unique(32)),
        ("dataLoss.values[]", json!({"required": ["name"], "x-kubernetes-validations": rules})),
        ("dataLoss.values[].name", name()),
    ]);
    constraints.extend(under("dataLoss.values[]", secret()));
    constraints
}

fn model_providers() -> Vec<Constraint> {
    let rules = json!([
        rule(
            "!has(self.credential) || self.endpoint.startsWith('https://')",
            ".endpoint",
            "a key is sent by verified TLS alone: write https://, or leave `credential` out"
        ),
        rule("!has(self.keyIn) || has(self.credential)", ".keyIn", "belongs to a provider with `credential`"),
        rule(
            "!has(self.transforms) || self.dialect == 'OpenAIChat'",
            ".transforms",
            "belongs to providers of the dialect OpenAIChat"
        ),
    ]);
    let fields = [
        ("", json!({"required": ["name", "endpoint", "dialect"], "x-kubernetes-validations": rules})),
        ("name", name()),
        ("endpoint", json!({"minLength": 1, "maxLength": 2048, "pattern": "^https?://[^/?#@]+(/[^?#]*)?$"})),
        ("credential", name()),
        ("allowAddresses", some(16)),
        (
            "allowAddresses[]",
            json!({"maxLength": 43, "x-kubernetes-validations": [rule(
                "isCIDR(self) && cidr(self).masked() == cidr(self)", "",
                "expected a range without bits behind its prefix, as 10.96.0.0/12; one address is /32 or /128",
            )]}),
        ),
        ("firstEvent", json!({"maxLength": 16, "pattern": "^([0-9]+[sm])+$"})),
    ];
    let mut constraints = vec![("modelProviders".to_owned(), unique(32))];
    constraints.extend(under("modelProviders[]", fields));
    constraints.extend(under("modelProviders[]", of_models()));
    constraints
}

fn models() -> Vec<Constraint> {
    let fields = [
        ("", json!({"required": ["name", "provider"]})),
        (
            "name",
            json!({
                "maxLength": 63, "pattern": "^[A-Za-z0-9._-]+$",
                "x-kubernetes-validations": [rule(
                    "self != 'origin'", "", "`origin` is where the agent sent the request; choose another label",
                )],
            }),
        ),
        ("provider", name()),
        ("model", json!({"minLength": 1, "maxLength": 256})),
        ("maxTokens", json!({"minimum": 1})),
    ];
    let mut constraints = vec![("models".to_owned(), unique(64))];
    constraints.extend(under("models[]", fields));
    constraints.extend(under("models[]", of_models()));
    constraints
}

/// What providers and models have alike. Which fields `params` may have is the webhook's to judge.
fn of_models() -> [(&'static str, Value); 3] {
    [
        ("transforms", json!({"maxItems": TRANSFORMS.len()})),
        ("transforms[]", json!({"enum": TRANSFORMS})),
        ("params", json!({"maxProperties": 64, "x-kubernetes-preserve-unknown-fields": true})),
    ]
}

fn routes() -> Vec<Constraint> {
    let rules = json!([
        rule(
            "!has(self.match) || has(self.match.marker) || size(self.to) == 1",
            ".to",
            "without a marker a route has one label, and what is asked next stands in `fallback`"
        ),
        rule("!has(self.on) || has(self.fallback)", ".on", "belongs to a route with `fallback`"),
    ]);
    let about = rule(
        "has(self.marker) != has(self.models)",
        "",
        "a match has `marker` or `models`: write one of them",
    );
    let label = || json!({"minLength": 1, "maxLength": 63});
    let fields = [
        ("", json!({"required": ["name", "match", "to"], "x-kubernetes-validations": rules})),
        ("name", name()),
        ("match", json!({"x-kubernetes-validations": [about]})),
        ("match.marker", json!({"pattern": "^[a-z0-9]{4,32}$", "maxLength": 32})),
        ("match.models", some(MOST_ENTRIES)),
        ("match.models[]", json!({"minLength": 1, "maxLength": 256})),
        ("match.hosts", some(MOST_ENTRIES)),
        ("match.hosts[]", json!({"minLength": 1, "maxLength": MOST_HOST, "pattern": "^[^*]+$"})),
        ("to", json!({"minItems": 1, "maxItems": MOST_LABELS})),
        ("to[]", label()),
        ("fallback", json!({"minItems": 1, "maxItems": MOST_FALLBACK})),
        ("fallback[]", label()),
        ("on", some(8)),
    ];
    let mut constraints = vec![("routes".to_owned(), unique(64))];
    constraints.extend(under("routes[]", fields));
    constraints
}

/// A CEL rule. Its message points to `field`, or to the value itself if that is empty.
fn rule(expression: &str, field: &str, message: &str) -> Value {
    let mut rule = Map::new();
    rule.insert("rule".into(), expression.into());
    rule.insert("message".into(), message.into());
    if !field.is_empty() {
        rule.insert("fieldPath".into(), field.into());
    }
    Value::Object(rule)
}

/// A list of named entries: the API server refuses a name that occurs twice.
fn named() -> Value {
    unique(MOST_RULES)
}

/// The same, with at most so many.
fn unique(most: u32) -> Value {
    json!({"maxItems": most, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
}

/// A list that must not be empty: it is left out instead.
fn some(most: u32) -> Value {
    json!({"minItems": 1, "maxItems": most})
}

fn name() -> Value {
    json!({"maxLength": 63, "pattern": NAME})
}

fn port() -> Value {
    json!({"format": "int32", "minimum": 1, "maximum": 65535})
}

fn of_strings<const N: usize>(fields: [(&str, Value); N]) -> Vec<Constraint> {
    fields.map(|(path, value)| (path.to_owned(), value)).into()
}

fn under<const N: usize>(parent: &str, fields: [(&str, Value); N]) -> Vec<Constraint> {
    let join = |path: &str| if path.is_empty() { parent.to_owned() } else { format!("{parent}.{path}") };
    fields.map(|(path, value)| (join(path), value)).into()
}
