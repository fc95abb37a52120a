//! The policy that would be in force, what it leaves open, and the gateway that runs here.

use std::path::Path;

use super::Finding;
use crate::command::run::policy::FILE;
use crate::command::{check, directories, gateways};
use crate::config::Settings;
use crate::config::ledger::LedgerSettings;
use crate::config::listeners::STATUS_SOCKET;
use crate::config::settings::WorkspaceSettings;
use crate::lint;
use crate::policy::Policy;
use crate::policy::compile::Labels;
use crate::policy::document::{Action, Document, WrittenEdits};

/// The policy of the settings, else that of the user.
pub(super) fn look(settings: Option<&Settings>) -> Vec<Finding> {
    let mut findings = match settings {
        // Its mistakes were reported with the settings.
        Some(settings) => check::documents(&settings.policy.path)
            .map(|documents| {
                let mut findings = read(&settings.policy.path, &documents);
                findings.extend(limits(&documents, settings.ledger.as_ref()));
                findings.extend(edits(&documents, settings.workspace.as_ref()));
                findings
            })
            .unwrap_or_default(),
        None => of_user(),
    };
    findings.extend(running(settings.and_then(|settings| settings.admin.socket.as_deref())));
    findings
}

fn of_user() -> Vec<Finding> {
    let Ok(path) = directories::config().map(|directory| directory.join(FILE)) else { return Vec::new() };
    if path.symlink_metadata().is_err() {
        return vec![built_in(&path)];
    }
    let judged = check::documents(&path)
        .and_then(|documents| Policy::compile(&documents, &Labels::new()).map(|_| documents));
    match judged {
        Ok(documents) => read(&path, &documents)
            .into_iter()
            .chain(limits(&documents, None))
            .chain(edits(&documents, None))
            .collect(),
        Err(problems) => problems
            .iter()
            .map(|problem| {
                Finding::warn("policy", problem.to_string()).remedy("mend it: `postern run` would not start")
            })
            .collect(),
    }
}

fn built_in(path: &Path) -> Finding {
    Finding::not_enforced(
        "policy",
        "none of yours: `postern run` uses the built-in one in Audit mode, which records and refuses next to nothing",
    )
    .remedy(format!("write {}, or name one with --policy", path.display()))
}

/// Warns of what a policy without mistakes leaves open.
fn read(path: &Path, documents: &[Document]) -> Vec<Finding> {
    let labels = Labels::new();
    let policy = Policy::compile(documents, &labels);
    let selecting = policy.as_ref().map_or(0, Policy::count);
    let audit = policy.is_ok_and(|policy| policy.audit_only());
    let found = format!("{}: {selecting} of {} select a run without labels", path.display(), documents.len());
    let mut findings = vec![match (selecting, audit) {
        (0, _) => Finding::warn("policy", format!("{found}, and without any, everything is denied"))
            .remedy("leave podSelector empty, or name labels in the settings"),
        (_, true) => {
            Finding::not_enforced("policy", format!("{found}, all in Audit mode: nothing is refused"))
                .remedy("write enforcement: Enforce")
        }
        (_, false) => Finding::ok("policy", found),
    }];
    findings.extend(
        lint::warnings(documents)
            .iter()
            .map(|warning| Finding::warn("policy", warning.to_string()).remedy("see `postern policy check`")),
    );
    let tunnels: Vec<_> = documents
        .iter()
        .flat_map(|document| &document.spec.destinations)
        .filter(|destination| destination.action == Some(Action::Tunnel))
        .map(|destination| destination.name.as_str())
        .collect();
    if !tunnels.is_empty() {
        let found = format!(
            "Tunnel is a grant: only the name and the byte counts are seen of {}",
            tunnels.join(", ")
        );
        findings.push(
            Finding::not_enforced("tunnels", found)
                .remedy("write action: Inspect where it matters what is sent"),
        );
    }
    findings
}

/// Whether what limits count outlives the gateway; none where no policy has such limits.
fn limits(documents: &[Document], ledger: Option<&LedgerSettings>) -> Option<Finding> {
    let mut limits = documents.iter().filter_map(|document| document.spec.limits.as_ref());
    let is_counted = limits.any(|limits| {
        limits.tokens_per_day.or(limits.requests_per_minute).or(limits.consecutive_denials).is_some()
    });
    is_counted.then(|| match ledger {
        Some(ledger) => {
            Finding::ok("limits", format!("{} keeps what they have counted", ledger.path.display()))
        }
        None => Finding::not_enforced(
            "limits",
            "no ledger: what they have counted is forgotten when the gateway ends",
        )
        .remedy("write ledger: {path: FILE} in the gateway's settings; `postern run` keeps none"),
    })
}

/// Whether edits that a policy denies are judged; none where no policy denies any.
fn edits(documents: &[Document], workspace: Option<&WorkspaceSettings>) -> Option<Finding> {
    let mut edits = documents.iter().filter_map(|document| document.spec.edits.as_ref());
    edits.any(WrittenEdits::denies_some).then(|| match workspace {
        Some(workspace) => Finding::ok("edits", format!("asked of the workspace at {}", workspace.socket.display())),
        None => Finding::not_enforced("edits", "no workspace: no edit is judged, and spec.edits denies none")
            .remedy("write workspace: {socket: FILE} in the gateway's settings, or start `postern run --workspace DIR`"),
    })
}

/// The gateways and runs that answer here, and whether that of the settings does.
fn running(socket: Option<&Path>) -> Vec<Finding> {
    let found = gateways::find();
    let mut findings: Vec<_> = found
        .iter()
        .map(|gateway| {
            let socket = gateway.socket.display();
            Finding::ok(
                "gateway",
                format!("{}: ask it with `postern status --socket {socket}`", gateway.title()),
            )
        })
        .collect();
    let own = socket.unwrap_or(Path::new(STATUS_SOCKET));
    if found.is_empty() || (socket.is_some() && gateways::connect(own).is_err()) {
        findings.push(Finding::ok("gateway", format!("none runs at {}", own.display())));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::FindingState;
    use super::*;
    use crate::policy::document;

    fn found(spec: &str) -> Vec<Finding> {
        let text = format!(
            "{{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {{name: p, namespace: n}}, spec: {spec}}}"
        );
        read(Path::new("p.yaml"), &document::parse("p.yaml", &text).unwrap())
    }

    #[test]
    fn a_tunnel_and_an_audit_are_called_what_they_are() {
        let findings =
            found("{enforcement: Audit, destinations: [{name: reg, hosts: [r.example], action: Tunnel}]}");
        assert_eq!(findings.len(), 2);
        assert!(findings.iter().all(|finding| finding.state == FindingState::NotEnforced), "{findings:?}");
        assert!(findings[1].found.ends_with(" reg"), "{findings:?}");
        let findings = found("{destinations: [{name: reg, hosts: [r.example], action: Inspect}]}");
        assert_eq!((findings.len(), findings[0].state), (1, FindingState::Ok));
    }

    #[test]
    fn a_policy_that_selects_nothing_is_a_warning() {
        let findings = found(
            "{podSelector: {matchLabels: {app: coder}}, destinations: [{name: a, hosts: [a.example], action: Inspect}]}",
        );
        assert_eq!(findings[0].state, FindingState::Warn);
    }
}
