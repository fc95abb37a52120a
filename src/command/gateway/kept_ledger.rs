//! The part of the ledger's settings that a reload changes: how much is kept. The rest is of the file, which is opened once.

use crate::config::ledger::LedgerSettings;
use crate::problem::Problem;

/// The ledger's settings after a reload. In Kubernetes a change of the rest waits for the next start of the container: all
/// pods of a namespace share one settings file, and no pod is to fail over it.
///
/// # Errors
/// The change needs a restart.
pub(super) fn carry_over(
    kept: Option<&LedgerSettings>,
    new: Option<&LedgerSettings>,
    in_kubernetes: bool,
) -> Result<Option<LedgerSettings>, Problem> {
    let place = match (kept, new) {
        (None, None) => return Ok(None),
        (Some(kept), Some(new)) if kept.path == new.path && kept.on_pressure == new.on_pressure => {
            return Ok(Some(new.clone()));
        }
        (Some(kept), Some(new)) if kept.path == new.path => "ledger.onPressure",
        (Some(_), Some(_)) => "ledger.path",
        (None, Some(_)) | (Some(_), None) => "ledger",
    };
    if !in_kubernetes {
        let message = "cannot change while the gateway runs: restart it, or take the change back";
        return Err(Problem::at(place, message));
    }
    tracing::warn!("{place} has changed, which holds once the gateway is restarted");
    Ok(kept.map(|kept| {
        let (max_age, max_bytes) =
            new.map_or((kept.max_age, kept.max_bytes), |new| (new.max_age, new.max_bytes));
        LedgerSettings { max_age, max_bytes, ..kept.clone() }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ledger::OnPressure;

    fn in_file(path: &str) -> LedgerSettings {
        LedgerSettings { path: path.into(), ..LedgerSettings::default() }
    }

    fn small() -> LedgerSettings {
        LedgerSettings { max_bytes: 8 << 20, ..in_file("/a") }
    }

    #[test]
    fn how_much_is_kept_changes_at_once() {
        assert_eq!(carry_over(Some(&in_file("/a")), Some(&small()), false).unwrap(), Some(small()));
    }

    #[test]
    fn what_is_of_the_file_needs_a_restart() {
        let kept = in_file("/a");
        let dropping = LedgerSettings { on_pressure: OnPressure::Drop, ..in_file("/a") };
        for (new, place) in
            [(Some(in_file("/b")), "ledger.path"), (Some(dropping), "ledger.onPressure"), (None, "ledger")]
        {
            let problem = carry_over(Some(&kept), new.as_ref(), false).unwrap_err();
            assert_eq!(problem.path, place);
            assert!(problem.message.contains("restart"), "{problem}");
        }
        assert!(carry_over(None, Some(&kept), false).is_err());
    }

    #[test]
    fn in_kubernetes_it_waits_for_the_restart_and_the_rest_holds() {
        let kept = in_file("/a");
        let new = LedgerSettings { path: "/b".into(), on_pressure: OnPressure::Drop, ..small() };
        assert_eq!(carry_over(Some(&kept), Some(&new), true).unwrap(), Some(small()));
        assert_eq!(carry_over(Some(&kept), None, true).unwrap(), Some(kept.clone()));
        assert_eq!(carry_over(None, Some(&kept), true).unwrap(), None);
    }
}
