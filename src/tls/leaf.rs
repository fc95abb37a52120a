//! The TLS configurations that agents meet: one leaf for each host, kept while it is fresh.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use quick_cache::sync::Cache;
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;

use super::authority::{Authority, Leaf, MintError};
use super::{PROVIDER, VERSIONS};
use crate::name::host::Host;
use crate::rate::Rate;

/// A bounded cache of leaves. It mints for whatever host it is asked: callers ask only for hosts that a rule names.
#[derive(Debug)]
pub struct Leaves {
    authority: Arc<Authority>,
    capacity: usize,
    cache: Cache<Host, Arc<CachedLeaf>>,
    minted: Arc<AtomicU64>,
    /// The rates of leaves that show a refusal alone, one for each reason.
    unserved: Arc<[Mutex<Rate>; 2]>,
}

/// Why a leaf shows a refusal, and no answer of an upstream. Each reason has a bound of its own, so that an agent in a flood of refusals is
/// still told why an allowed host fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// The host is denied.
    Denied,
    /// A rule inspects the host, and its upstream is not reached or not verified.
    Failed,
}

/// How many leaves are minted a second for hosts of which nothing but a refusal is shown. The names of the provider
/// tables have wildcards, and an agent can invent as many as it likes.
const REFUSALS_A_SECOND: u32 = 16;
/// So many may come at once: more than agents dial at their start.
const REFUSALS_AT_ONCE: u32 = 96;

/// One host's leaf behind both offers of protocols.
#[derive(Debug)]
struct CachedLeaf {
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
    not_before: SystemTime,
    /// When nine tenths of the leaf's time have passed.
    stale: SystemTime,
}

impl Leaves {
    /// A cache of at most about `capacity` hosts.
    pub fn new(authority: Arc<Authority>, capacity: usize) -> Self {
        let rate = || Mutex::new(Rate::new(Duration::from_secs(1) / REFUSALS_A_SECOND, REFUSALS_AT_ONCE));
        let unserved = Arc::new([rate(), rate()]);
        Self { authority, capacity, cache: Cache::new(capacity), minted: Arc::default(), unserved }
    }

    /// An empty cache for another CA, which goes on counting where this one is.
    #[must_use]
    pub fn succeeded_by(&self, authority: Arc<Authority>) -> Self {
        let (minted, unserved) = (Arc::clone(&self.minted), Arc::clone(&self.unserved));
        Self { minted, unserved, ..Self::new(authority, self.capacity) }
    }

    /// The CA behind the leaves.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The agent-facing TLS configuration for one host: TLS 1.2 and 1.3, no tickets, no resumption, no early data, so
    /// that every connection is decided anew. `h2` offers `h2` and `http/1.1`, else `http/1.1` alone.
    ///
    /// Concurrent first calls for one host mint once; the others wait for it, some 50 µs.
    pub fn server_config(&self, host: &Host, h2: bool) -> Result<Arc<ServerConfig>, MintError> {
        self.server_config_at(host, h2, SystemTime::now())
    }

    /// The same where nothing but a refusal is to be shown: `http/1.1` alone, and of each kind no more new hosts a second
    /// than a bound.
    ///
    /// # Errors
    /// [`MintError::TooMany`] beyond the bound.
    pub fn refusing_config(&self, host: &Host, why: Unserved) -> Result<Arc<ServerConfig>, MintError> {
        let now = SystemTime::now();
        let is_there = self.cache.get(host).is_some_and(|entry| entry.is_fresh(now));
        if !is_there && !self.may_refuse_another(why) {
            return Err(MintError::TooMany(REFUSALS_A_SECOND));
        }
        self.server_config_at(host, false, now)
    }

    fn may_refuse_another(&self, why: Unserved) -> bool {
        let [denied, failed] = &*self.unserved;
        let rate = match why {
            Unserved::Denied => denied,
            Unserved::Failed => failed,
        };
        // After a panic elsewhere the rate still stands for what was taken.
        rate.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now())
    }

    /// How many leaves were minted so far, predecessors' included.
    pub fn minted(&self) -> u64 {
        self.minted.load(Ordering::Relaxed)
    }

    fn server_config_at(
        &self,
        host: &Host,
        h2: bool,
        now: SystemTime,
    ) -> Result<Arc<ServerConfig>, MintError> {
        let mut entry = self.entry(host, now)?;
        if !entry.is_fresh(now) {
            entry = self.entry_anew(host, now)?;
        }
        Ok(Arc::clone(if h2 { &entry.http2 } else { &entry.http1 }))
    }

    /// Of callers that saw the same stale entry, one removes it, and none its successor.
    fn entry_anew(&self, host: &Host, now: SystemTime) -> Result<Arc<CachedLeaf>, MintError> {
        self.cache.remove_if(host, |entry| !entry.is_fresh(now));
        self.entry(host, now)
    }

    fn entry(&self, host: &Host, now: SystemTime) -> Result<Arc<CachedLeaf>, MintError> {
        self.cache.get_or_insert_with(host, || {
            let leaf = self.authority.mint(host, now)?;
            self.minted.fetch_add(1, Ordering::Relaxed);
            CachedLeaf::new(&leaf, now).map(Arc::new)
        })
    }
}

impl CachedLeaf {
    fn new(leaf: &Leaf, now: SystemTime) -> Result<Self, MintError> {
        let remaining = leaf.not_after.duration_since(now).unwrap_or_default();
        Ok(Self {
            http1: Arc::new(server_config(leaf, &["http/1.1"])?),
            http2: Arc::new(server_config(leaf, &["h2", "http/1.1"])?),
            not_before: leaf.not_before,
            stale: now + remaining * 9 / 10,
        })
    }

    /// Also false when the clock was set back to before the leaf.
    fn is_fresh(&self, now: SystemTime) -> bool {
        self.not_before <= now && now <= self.stale
    }
}

fn server_config(leaf: &Leaf, protocols: &[&str]) -> Result<ServerConfig, MintError> {
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_protocol_versions(VERSIONS)
        .map_err(MintError::Configuration)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&leaf.certified))));
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use rustls::client::Resumption;
    use rustls::{CertificateError, HandshakeKind, ProtocolVersion};

    use super::*;
    use crate::tls::testing::{TestCa, client, client_speaking, handshake};

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    fn leaves(ca: &TestCa) -> Leaves {
        Leaves::new(Arc::new(Authority::load(&ca.chain_pem(), &ca.key_pem(), SystemTime::now()).unwrap()), 16)
    }

    #[test]
    fn a_client_that_trusts_the_root_alone_accepts_a_leaf_for_a_name_and_an_address() {
        let root = TestCa::root("Root");
        let leaves = leaves(&root.intermediate("Issuing", |_| {}));
        let client = Arc::new(client(root.der(), &["h2", "http/1.1"]));
        for (name, h2, protocol) in [("api.example.com", true, "h2"), ("192.0.2.1", false, "http/1.1")] {
            let config = leaves.server_config(&host(name), h2).unwrap();
            let (connection, _) = handshake(Arc::clone(&client), config, name).unwrap();
            assert_eq!(connection.alpn_protocol(), Some(protocol.as_bytes()));
            assert_eq!(connection.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        }
    }

    #[test]
    fn a_client_without_alpn_is_served_and_one_with_another_protocol_is_refused() {
        let root = TestCa::root("Root");
        let leaves = leaves(&root);
        let config = leaves.server_config(&host("a.test"), true).unwrap();
        let plain = Arc::new(client(root.der(), &[]));
        assert!(handshake(plain, Arc::clone(&config), "a.test").unwrap().0.alpn_protocol().is_none());
        let other = Arc::new(client(root.der(), &["imap"]));
        let refused = handshake(other, config, "a.test").unwrap_err();
        assert_eq!(refused, rustls::Error::NoApplicationProtocol);
    }

    #[test]
    fn a_client_that_does_not_trust_the_root_or_asks_another_name_refuses() {
        let (root, other) = (TestCa::root("Root"), TestCa::root("Other"));
        let leaves = leaves(&root);
        let config = leaves.server_config(&host("a.test"), false).unwrap();
        let stranger =
            handshake(Arc::new(client(other.der(), &[])), Arc::clone(&config), "a.test").unwrap_err();
        assert_eq!(stranger, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        let refused = handshake(Arc::new(client(root.der(), &[])), config, "b.test").unwrap_err();
        assert!(matches!(refused, rustls::Error::InvalidCertificate(_)), "{refused}");
    }

    #[test]
    fn no_session_is_resumed_and_no_early_data_is_taken() {
        let root = TestCa::root("Root");
        let leaves = leaves(&root);
        let config = leaves.server_config(&host("a.test"), false).unwrap();
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let mut client = client_speaking(root.der(), &[version]);
            client.resumption = Resumption::in_memory_sessions(16);
            client.enable_early_data = true;
            let client = Arc::new(client);
            for _ in 0..2 {
                let (client, _) = handshake(Arc::clone(&client), Arc::clone(&config), "a.test").unwrap();
                assert!(matches!(client.handshake_kind(), Some(kind) if kind != HandshakeKind::Resumed));
                assert_eq!(client.protocol_version(), Some(version.version));
                assert_eq!(client.tls13_tickets_received(), 0);
                assert!(!client.is_early_data_accepted());
            }
        }
    }

    #[test]
    fn a_leaf_is_minted_once_for_both_offers_and_however_many_ask_at_once() {
        let leaves = leaves(&TestCa::root("Root"));
        let together = Barrier::new(8);
        std::thread::scope(|scope| {
            for index in 0..8 {
                let (leaves, together) = (&leaves, &together);
                scope.spawn(move || {
                    together.wait();
                    leaves.server_config(&host("a.test"), index % 2 == 0).unwrap();
                });
            }
        });
        assert_eq!(leaves.minted(), 1);
        leaves.server_config(&host("b.test"), true).unwrap();
        assert_eq!(leaves.minted(), 2);
    }

    #[test]
    fn a_leaf_near_its_end_or_from_the_future_is_minted_again_once() {
        let leaves = leaves(&TestCa::root("Root"));
        let now = SystemTime::now();
        let ask = |at| leaves.server_config_at(&host("a.test"), true, at).unwrap();
        let first = ask(now);
        assert!(Arc::ptr_eq(&first, &ask(now + 21 * HOUR)));
        let second = ask(now + 22 * HOUR);
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &ask(now + 22 * HOUR)));
        assert_eq!(leaves.minted(), 2);
        ask(now);
        assert_eq!(leaves.minted(), 3, "the clock was set back");
    }

    #[test]
    fn a_stale_leaf_is_minted_again_once_for_all_who_saw_it() {
        let leaves = leaves(&TestCa::root("Root"));
        let later = SystemTime::now() + 22 * HOUR;
        leaves.server_config(&host("a.test"), true).unwrap();
        let successors = [(); 2].map(|()| leaves.entry_anew(&host("a.test"), later).unwrap());
        assert!(Arc::ptr_eq(&successors[0], &successors[1]));
        assert_eq!(leaves.minted(), 2);
    }

    #[test]
    fn another_ca_begins_with_nothing_cached_and_goes_on_counting() {
        let (first, second) = (TestCa::root("First"), TestCa::root("Second"));
        let leaves = leaves(&first);
        leaves.server_config(&host("a.test"), true).unwrap();
        let authority = Authority::load(&second.pem(), &second.key_pem(), SystemTime::now()).unwrap();
        let next = leaves.succeeded_by(Arc::new(authority));
        let config = next.server_config(&host("a.test"), true).unwrap();
        assert!(handshake(Arc::new(client(second.der(), &[])), config, "a.test").is_ok());
        assert_eq!((leaves.minted(), next.minted()), (2, 2));
    }

    #[test]
    fn without_room_every_leaf_is_minted_anew() {
        let ca = TestCa::root("Root");
        let authority = Authority::load(&ca.pem(), &ca.key_pem(), SystemTime::now()).unwrap();
        let leaves = Leaves::new(Arc::new(authority), 0);
        for _ in 0..3 {
            leaves.server_config(&host("a.test"), true).unwrap();
        }
        assert_eq!(leaves.minted(), 3);
    }

    #[test]
    fn a_failure_to_mint_is_told_and_not_kept() {
        let now = SystemTime::now();
        let ca = TestCa::root_with("Root", rcgen::KeyPair::generate().unwrap(), |params| {
            params.not_after = (now + HOUR).into();
        });
        let leaves = leaves(&ca);
        assert!(matches!(
            leaves.server_config_at(&host("a.test"), true, now + 2 * HOUR),
            Err(MintError::Expired(_))
        ));
        assert!(leaves.server_config_at(&host("a.test"), true, now).is_ok());
        assert_eq!(leaves.minted(), 1);
    }

    #[test]
    fn leaves_for_refusals_are_bounded_per_second_and_others_are_not() {
        let leaves = leaves(&TestCa::root("Root"));
        let denied = |leaves: &Leaves, host: &Host| leaves.refusing_config(host, Unserved::Denied);
        let names = || (0..3 * REFUSALS_AT_ONCE).map(|index| host(&format!("h{index}.test")));
        let minted = names().filter(|host| denied(&leaves, host).is_ok()).count();
        assert!(
            (REFUSALS_AT_ONCE..3 * REFUSALS_AT_ONCE).contains(&u32::try_from(minted).unwrap()),
            "{minted}"
        );
        let refused = denied(&leaves, &host("one.more.test"));
        assert!(matches!(refused, Err(MintError::TooMany(_))));
        assert!(
            leaves.server_config(&host("one.more.test"), false).is_ok(),
            "what was verified is not held up"
        );
        assert!(denied(&leaves, &host("one.more.test")).is_ok(), "and what is there is shown");
        let failed = leaves.refusing_config(&host("allowed.test"), Unserved::Failed);
        assert!(failed.is_ok(), "nor is what an allowed host fails of");
        let next = leaves.succeeded_by(Arc::clone(leaves.authority()));
        assert!(denied(&next, &host("another.test")).is_err(), "another CA is no way around it");
    }

    #[test]
    fn a_flood_of_names_leaves_no_more_than_the_capacity() {
        let leaves = leaves(&TestCa::root("Root"));
        for index in 0..200 {
            leaves.server_config(&host(&format!("h{index}.test")), false).unwrap();
        }
        assert_eq!(leaves.minted(), 200);
        assert!(leaves.cache.len() <= 32, "{}", leaves.cache.len());
    }
}
