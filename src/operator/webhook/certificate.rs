//! Decides which certificate the webhook serves next, from the data of its Secret. Pure but for the keys that it generates.
//!
//! A renewal takes two steps, since API servers learn of a new CA only from the webhook configurations: first the next
//! certificate is stored beside the one that is served, and its CA is published; then it is promoted. CAs stay published
//! until they expire.

use std::time::{Duration, SystemTime};

use crate::operator::objects::SecretData as Data;
use crate::tls::serving::{BACKDATED, Serving, issue, still_valid};

/// Keys of the Secret: those of `kubernetes.io/tls`, all CAs that API servers shall trust, and the next certificate
/// during a renewal.
pub const CERTIFICATE: &str = "tls.crt";
pub const KEY: &str = "tls.key";
pub const CAS: &str = "ca.crt";
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_KEY: &str = "next.key";

/// How long a certificate lives, and after which part of it the next one is made.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// How long a CA is published before a certificate under it is served.
const SETTLING: Duration = Duration::from_secs(10 * 60);

/// The data that the Secret should hold instead.
#[derive(Debug)]
pub struct SecretChange {
    pub data: Data,
    /// What is done and why, for the log.
    pub why: String,
}

/// The DNS names of a Service; API servers use the first.
pub fn names(service: &str, namespace: &str) -> [String; 2] {
    [format!("{service}.{namespace}.svc"), format!("{service}.{namespace}.svc.cluster.local")]
}

/// The change that the Secret needs now; none if it is good. Any replica may create it, only the leader changes it.
///
/// # Errors
/// Fails if the system has no randomness.
pub fn due(
    data: Option<&Data>,
    names: &[String],
    leads: bool,
    now: SystemTime,
) -> Result<Option<SecretChange>, rcgen::Error> {
    let Some(data) = data else {
        return made(&Data::new(), names, now, "there is none yet").map(Some);
    };
    if !leads {
        return Ok(None);
    }
    let next = usable(data, [NEXT_CERTIFICATE, NEXT_KEY], names, now);
    // The one that is served (usable or not), and the next one: a next one is promoted once API servers know its CA, or at
    // once if the served one is useless anyway.
    match (usable(data, [CERTIFICATE, KEY], names, now), next) {
        (Err(why), Ok(_)) => {
            Ok(Some(promoted(data, now, &format!("the one that was served is unusable: {why}"))))
        }
        (Err(why), Err(_)) => made(data, names, now, &why).map(Some),
        (Ok(_), Ok(next)) if now >= next.not_before + BACKDATED + SETTLING => {
            Ok(Some(promoted(data, now, "its CA has been published")))
        }
        (Ok(_), Ok(_)) => Ok(None),
        (Ok(served), Err(_)) if now >= renewal(&served) => prepared(data, names, now).map(Some),
        (Ok(_), Err(_)) => Ok(None),
    }
}

/// Reads the certificate to serve.
///
/// # Errors
/// Returns why the certificate cannot be served.
pub fn served(data: &Data) -> Result<Serving, String> {
    read(data, [CERTIFICATE, KEY])
}

/// The time when two thirds of a certificate's life have passed.
fn renewal(served: &Serving) -> SystemTime {
    served.not_before + served.not_after.duration_since(served.not_before).unwrap_or_default() * 2 / 3
}

fn read(data: &Data, [certificate, key]: [&str; 2]) -> Result<Serving, String> {
    let field = |name: &str| data.get(name).map(Vec::as_slice).unwrap_or_default();
    Serving::read(field(certificate), field(key)).map_err(|error| format!("{certificate}: {error}"))
}

/// Reads a certificate that API servers accept by every name; fails with the reason why they would not.
fn usable(data: &Data, keys: [&str; 2], names: &[String], now: SystemTime) -> Result<Serving, String> {
    let serving = read(data, keys)?;
    let cas = data.get(CAS).map(Vec::as_slice).unwrap_or_default();
    for name in names {
        serving.is_accepted(cas, name, now).map_err(|error| format!("{}: {error}", keys[0]))?;
    }
    Ok(serving)
}

fn made(data: &Data, names: &[String], now: SystemTime, why: &str) -> Result<SecretChange, rcgen::Error> {
    let issued = issue(names, now, LIFETIME)?;
    let data = Data::from([
        (CERTIFICATE.to_owned(), issued.certificate.into_bytes()),
        (KEY.to_owned(), issued.key.as_bytes().to_vec()),
        (CAS.to_owned(), published(data, &issued.ca, now)),
    ]);
    Ok(SecretChange { data, why: format!("a certificate is made: {why}") })
}

fn prepared(data: &Data, names: &[String], now: SystemTime) -> Result<SecretChange, rcgen::Error> {
    let issued = issue(names, now, LIFETIME)?;
    let mut changed = data.clone();
    changed.insert(NEXT_CERTIFICATE.to_owned(), issued.certificate.into_bytes());
    changed.insert(NEXT_KEY.to_owned(), issued.key.as_bytes().to_vec());
    changed.insert(CAS.to_owned(), published(data, &issued.ca, now));
    Ok(SecretChange {
        data: changed,
        why: "the next certificate is made: two thirds of this one's life have passed".into(),
    })
}

fn promoted(data: &Data, now: SystemTime, why: &str) -> SecretChange {
    let mut changed = data.clone();
    for (next, served) in [(NEXT_CERTIFICATE, CERTIFICATE), (NEXT_KEY, KEY)] {
        if let Some(value) = changed.remove(next) {
            changed.insert(served.to_owned(), value);
        }
    }
    changed.insert(CAS.to_owned(), published(data, "", now));
    SecretChange { data: changed, why: format!("the next certificate is served: {why}") }
}

/// The published CAs that have not expired, and this one.
fn published(data: &Data, ca: &str, now: SystemTime) -> Vec<u8> {
    let mut bundle = data.get(CAS).cloned().unwrap_or_default();
    bundle.push(b'\n');
    bundle.extend_from_slice(ca.as_bytes());
    still_valid(&bundle, now).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn ours() -> [String; 2] {
        names("postern-webhook", "postern-system")
    }

    fn first(now: SystemTime) -> Data {
        due(None, &ours(), false, now).unwrap().unwrap().data
    }

    fn cas(data: &Data) -> usize {
        String::from_utf8_lossy(&data[CAS]).matches("BEGIN CERTIFICATE").count()
    }

    fn fingerprint(data: &Data) -> String {
        served(data).unwrap().fingerprint().to_owned()
    }

    /// The change of a leader.
    fn changed(data: &Data, now: SystemTime) -> Option<SecretChange> {
        due(Some(data), &ours(), true, now).unwrap()
    }

    #[test]
    fn whoever_comes_first_makes_a_certificate_that_api_servers_accept_by_both_names() {
        let now = SystemTime::now();
        let data = first(now);
        assert_eq!(data.keys().collect::<Vec<_>>(), [CAS, CERTIFICATE, KEY]);
        for name in ["postern-webhook.postern-system.svc", "postern-webhook.postern-system.svc.cluster.local"]
        {
            assert!(served(&data).unwrap().is_accepted(&data[CAS], name, now).is_ok(), "{name}");
        }
        assert!(changed(&data, now).is_none(), "and it stays");
    }

    #[test]
    fn a_renewal_publishes_the_new_ca_first_and_serves_under_it_later() {
        let now = SystemTime::now();
        let data = first(now);
        assert!(changed(&data, now + 59 * DAY).is_none());

        let renewal = now + 61 * DAY;
        let prepared = changed(&data, renewal).unwrap().data;
        assert_eq!(fingerprint(&prepared), fingerprint(&data), "the old one is served on");
        assert_eq!(cas(&prepared), 2);
        assert!(changed(&prepared, renewal + SETTLING / 2).is_none());

        let promoted = changed(&prepared, renewal + SETTLING).unwrap().data;
        assert_ne!(fingerprint(&promoted), fingerprint(&data));
        assert_eq!(promoted.keys().collect::<Vec<_>>(), [CAS, CERTIFICATE, KEY]);
        let name = &ours()[0];
        for (data, what) in [(&data, "what another replica still serves"), (&promoted, "the new one")] {
            assert!(
                served(data).unwrap().is_accepted(&promoted[CAS], name, renewal + SETTLING).is_ok(),
                "{what}"
            );
        }
        assert!(changed(&promoted, renewal + 2 * SETTLING).is_none());

        let again = changed(&promoted, renewal + 61 * DAY).unwrap().data;
        assert_eq!(cas(&again), 2, "the first CA has expired and is published no more");
    }

    #[test]
    fn what_is_unusable_is_replaced_by_the_leader_alone_and_says_why() {
        let now = SystemTime::now();
        let (good, other) = (first(now), first(now));
        let with = |key: &str, value: &[u8]| {
            let mut data = good.clone();
            data.insert(key.to_owned(), value.to_vec());
            data
        };
        let mut keyless = good.clone();
        keyless.remove(KEY);
        let elsewhere = due(None, &names("other", "postern-system"), false, now).unwrap().unwrap().data;
        for (data, why) in [
            (Data::new(), "no certificate"),
            (with(CERTIFICATE, b""), "no certificate"),
            (keyless, "no private key"),
            (with(KEY, &other[KEY]), "cannot be used with its certificate"),
            (with(CAS, &other[CAS]), "refused by those who trust its CA"),
            (with(CAS, b""), "no certificate"),
            (elsewhere, "refused by those who trust its CA"),
        ] {
            assert!(due(Some(&data), &ours(), false, now).unwrap().is_none(), "{why}: others leave it");
            let change = changed(&data, now).unwrap();
            assert!(change.why.contains(why), "{} is not for {why}", change.why);
            assert!(changed(&change.data, now).is_none(), "{why}: what replaces it is good");
        }
        let expired = changed(&good, now + 91 * DAY).unwrap();
        assert!(expired.why.contains("refused"), "{}", expired.why);
    }

    #[test]
    fn what_is_replaced_stays_trusted_while_others_may_serve_it() {
        let now = SystemTime::now();
        let mut data = first(now);
        data.insert(KEY.to_owned(), b"lost".to_vec());
        assert_eq!(cas(&changed(&data, now).unwrap().data), 2);
    }

    #[test]
    fn where_the_served_one_became_unusable_the_next_one_takes_its_place_at_once() {
        let now = SystemTime::now();
        let mut prepared = changed(&first(now), now + 61 * DAY).unwrap().data;
        prepared.insert(CERTIFICATE.to_owned(), Vec::new());
        let change = changed(&prepared, now + 61 * DAY).unwrap();
        assert!(change.why.starts_with("the next certificate is served"), "{}", change.why);
        assert!(changed(&change.data, now + 61 * DAY).is_none());
    }

    #[test]
    fn a_next_certificate_that_is_broken_is_made_anew() {
        let now = SystemTime::now() + 61 * DAY;
        let mut prepared = changed(&first(now - 61 * DAY), now).unwrap().data;
        prepared.insert(NEXT_KEY.to_owned(), b"lost".to_vec());
        let change = changed(&prepared, now + 2 * SETTLING).unwrap();
        assert!(change.why.starts_with("the next certificate is made"), "{}", change.why);
    }
}
