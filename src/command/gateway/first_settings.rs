//! Waits at the first start in a pod for settings that know of the volumes which the pod was given: right after an upgrade
//! the webhook may know of them before the settings in the pod's namespace do, and a gateway opens them at its start alone.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use crate::command::check::{self, Checked};
use crate::command::environment;
use crate::config::settings::Settings;
use crate::config::watch::Watched;
use crate::pod::{BUNDLE_FILE, EVIDENCE_BYTES_VARIABLE, LEDGER_BYTES_VARIABLE, TRUST_DIRECTORY};
use crate::problem::Problem;

/// How long they are awaited: kubelet shows settings that changed within 90 seconds, and at once where the operator could stamp
/// the pod. The startup probe is more patient.
const PATIENCE: Duration = Duration::from_secs(100);

/// How often they are looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Reads what a gateway starts from, as [`check::read`] does.
pub(super) async fn read(config: &Path) -> (Watched, Result<Checked, Vec<Problem>>) {
    let surroundings = environment::read();
    // Its first gateway has not written the roots for agents yet; a later one shall serve at once.
    let is_first = surroundings.kubernetes && !Path::new(TRUST_DIRECTORY).join(BUNDLE_FILE).exists();
    let until = Instant::now() + PATIENCE;
    loop {
        let (watched, checked) = check::read(config, surroundings, SystemTime::now());
        let settings = checked.as_ref().ok().map(|checked| &checked.settings);
        let unnamed = settings.filter(|_| is_first).and_then(|it| unnamed(it, &environment::variable));
        match unnamed {
            Some(_) if Instant::now() < until => sleep(LOOK).await,
            Some(what) => {
                tracing::warn!(
                    "this pod has a volume for {what}, and the settings name none: none is kept until the gateway is restarted"
                );
                return (watched, checked);
            }
            None => return (watched, checked),
        }
    }
}

/// What the pod has a volume for, as its variables say, that settings do not name.
fn unnamed(settings: &Settings, variable: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is_given = |name| variable(name).is_some();
    match (&settings.ledger, &settings.evidence) {
        (None, _) if is_given(LEDGER_BYTES_VARIABLE) => Some("a ledger"),
        (_, None) if is_given(EVIDENCE_BYTES_VARIABLE) => Some("tool results"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::evidence::EvidenceSettings;
    use crate::config::ledger::LedgerSettings;

    #[test]
    fn a_volume_that_the_settings_do_not_name_is_missed() {
        let none = |_: &str| None;
        let both = |_: &str| Some("1".to_owned());
        let ledger = |name: &str| (name == LEDGER_BYTES_VARIABLE).then(|| "1".to_owned());
        let mut settings = Settings::default();
        assert_eq!(unnamed(&settings, &none), None);
        assert_eq!(unnamed(&settings, &both), Some("a ledger"));
        settings.ledger = Some(LedgerSettings::default());
        assert_eq!(unnamed(&settings, &ledger), None);
        assert_eq!(unnamed(&settings, &both), Some("tool results"));
        settings.evidence = Some(EvidenceSettings::default());
        assert_eq!(unnamed(&settings, &both), None);
    }
}
