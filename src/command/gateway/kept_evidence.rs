//! The part of the evidence's settings that a reload changes: how much is kept, and the tool. Where texts are is in requests
//! that were sent already, and the next ones of their conversations have to say the same.

use crate::config::evidence::EvidenceSettings;
use crate::problem::Problem;

/// The evidence's settings after a reload. In Kubernetes a change of the rest waits for the next start of the container, as
/// the ledger's does.
///
/// # Errors
/// The change needs a restart.
pub(super) fn carry_over(
    kept: Option<&EvidenceSettings>,
    new: Option<&EvidenceSettings>,
    in_kubernetes: bool,
) -> Result<Option<EvidenceSettings>, Problem> {
    let place = match (kept, new) {
        (None, None) => return Ok(None),
        (Some(kept), Some(new)) if kept.directory != new.directory => "evidence.directory",
        (Some(kept), Some(new)) if kept.agent_path != new.agent_path => "evidence.agentPath",
        (Some(_), Some(new)) => return Ok(Some(new.clone())),
        (None, Some(_)) | (Some(_), None) => "evidence",
    };
    if !in_kubernetes {
        let message = "cannot change while the gateway runs, since requests of conversations under way would change: \
                       restart it, or take the change back";
        return Err(Problem::at(place, message));
    }
    tracing::warn!("{place} has changed, which holds once the gateway is restarted");
    Ok(kept.map(|kept| {
        let changed = new.unwrap_or(kept).clone();
        EvidenceSettings { directory: kept.directory.clone(), agent_path: kept.agent_path.clone(), ..changed }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(directory: &str, agent_path: Option<&str>) -> EvidenceSettings {
        let agent_path = agent_path.map(str::to_owned);
        EvidenceSettings { directory: directory.into(), agent_path, ..EvidenceSettings::default() }
    }

    fn small(settings: EvidenceSettings) -> EvidenceSettings {
        EvidenceSettings { max_bytes: 1 << 20, mcp: true, ..settings }
    }

    #[test]
    fn how_much_is_kept_and_the_tool_change_at_once() {
        let (kept, new) = (at("/a", Some("/e")), small(at("/a", Some("/e"))));
        assert_eq!(carry_over(Some(&kept), Some(&new), false).unwrap(), Some(new));
        assert_eq!(carry_over(None, None, false).unwrap(), None);
    }

    #[test]
    fn where_texts_are_needs_a_restart() {
        let kept = at("/a", Some("/e"));
        for (new, place) in [
            (Some(at("/b", Some("/e"))), "evidence.directory"),
            (Some(at("/a", Some("/f"))), "evidence.agentPath"),
            (Some(at("/a", None)), "evidence.agentPath"),
            (None, "evidence"),
        ] {
            let problem = carry_over(Some(&kept), new.as_ref(), false).unwrap_err();
            assert_eq!(problem.path, place);
            assert!(problem.message.contains("restart"), "{problem}");
        }
        assert_eq!(carry_over(None, Some(&kept), false).unwrap_err().path, "evidence");
    }

    #[test]
    fn in_kubernetes_it_waits_for_the_restart_and_the_rest_holds() {
        let kept = at("/a", Some("/e"));
        let new = small(at("/b", None));
        assert_eq!(carry_over(Some(&kept), Some(&new), true).unwrap(), Some(small(kept.clone())));
        assert_eq!(carry_over(Some(&kept), None, true).unwrap(), Some(kept.clone()));
        assert_eq!(carry_over(None, Some(&kept), true).unwrap(), None);
    }
}
