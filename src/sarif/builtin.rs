//! What the built-in rules deny, and how much a denial of each weighs.

use super::rule::Weight;

/// Name, what it is about, and its weight.
const RULES: &[(&str, &str, Weight)] = &[
    ("agent-control-files", "An agent would have written a file that is run or obeyed later.", Weight::High),
    ("bound", "Something was larger than a bound of the gateway.", Weight::Low),
    ("ca-missing", "The gateway's CA does not vouch for the host yet.", Weight::Low),
    ("credential", "A key was sent where policy does not let it go.", Weight::High),
    ("default-deny", "No rule allows the destination.", Weight::Medium),
    ("denied-address", "A name led to an address that is never dialled.", Weight::High),
    ("endpoint", "No rule allows this method and path of the host.", Weight::Medium),
    ("expired", "The gateway's policies are older than it may enforce.", Weight::Low),
    ("hosted-tools", "A request asked for tools that run at the provider.", Weight::Medium),
    ("interception-off", "A rule says Inspect, and interception is off.", Weight::Low),
    ("minting", "A request would have made new credentials.", Weight::High),
    ("name-mismatch", "The names that one request gave of its host do not agree.", Weight::High),
    ("no-policy", "No policy selects the pod.", Weight::Low),
    (
        "outbound-exfiltration",
        "A secret would have left where it cannot be replaced, or for a host that it is not for.",
        Weight::High,
    ),
    ("placeholder", "A placeholder of a key was sent where its key does not belong.", Weight::High),
    ("provider-state", "A request would have kept state at the provider.", Weight::Medium),
    (
        "provider-unknown",
        "A request looks like one to a model, at a host that no rule names as one.",
        Weight::Medium,
    ),
    (
        "redacted-value",
        "A call would have written what stands for a secret, and so destroyed the secret.",
        Weight::Medium,
    ),
    ("unparseable", "Something could not be read, or has two readings.", Weight::Medium),
    ("upgrade", "A connection would have changed its protocol.", Weight::Medium),
    ("url-sources", "A request would have made the provider fetch a URL.", Weight::Medium),
];

/// What a built-in rule is about; none of a rule that a later version has.
pub(super) fn describe(name: &str) -> Option<(&'static str, Weight)> {
    let (_, about, weight) = RULES.iter().find(|(known, ..)| *known == name)?;
    Some((about, *weight))
}
