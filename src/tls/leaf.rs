//! The TLS configurations that agents meet: one leaf for each host, kept while it is fresh.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use quick_cache::sync::Cache;
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;

use super::authority::{Authority, Leaf, MintError};
use super::{PROVIDER, VERSIONS};
use crate::policy::name::Host;

/// A bounded cache of leaves. It mints for whatever host it is asked: callers ask only for hosts that a rule names.
#[derive(Debug)]
pub struct Leaves {
    authority: Arc<Authority>,
    cache: Cache<Host, Arc<Entry>>,
    minted: AtomicU64,
}

/// One host's leaf behind both offers of protocols.
#[derive(Debug)]
struct Entry {
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
    not_before: SystemTime,
    /// When nine tenths of the leaf's time have passed.
    stale: SystemTime,
}

impl Leaves {
    /// A cache of at most about `capacity` hosts.
    pub fn new(authority: Arc<Authority>, capacity: usize) -> Self {
        Self { authority, cache: Cache::new(capacity), minted: AtomicU64::new(0) }
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

    /// How many leaves were minted so far.
    pub fn minted(&self) -> u64 {
        self.minted.load(Ordering::Relaxed)
    }

    fn server_config_at(&self, host: &Host, h2: bool, now: SystemTime) -> Result<Arc<ServerConfig>, MintError> {
        let mut entry = self.entry(host, now)?;
        if !entry.is_fresh(now) {
            // Of callers that see the same stale entry, one removes it; none removes its successor.
            self.cache.remove_if(host, |entry| !entry.is_fresh(now));
            entry = self.entry(host, now)?;
        }
        Ok(Arc::clone(if h2 { &entry.http2 } else { &entry.http1 }))
    }

    fn entry(&self, host: &Host, now: SystemTime) -> Result<Arc<Entry>, MintError> {
        self.cache.get_or_insert_with(host, || {
            let leaf = self.authority.mint(host, now)?;
            self.minted.fetch_add(1, Ordering::Relaxed);
            Entry::new(&leaf, now).map(Arc::new)
        })
    }
}

impl Entry {
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
