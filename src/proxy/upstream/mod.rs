//! The far side: connections to upstreams, dialled by name, verified, pooled.

mod dial;
mod h1;
mod h2;
mod places;
mod pool;
mod socket;
mod through_proxy;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::drain::Drain;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::proxy::body::request::RequestBody;
use crate::proxy::error::{Class, Failure, Stop};
use crate::proxy::exchange::head;
use crate::proxy::readahead::ReadAhead;
use crate::proxy::window::{self, Windows};
use crate::tls::roots::Alpn;
use dial::Route;
use h1::Unsent;
use socket::Socket;

pub(crate) use dial::{AddressCheck, Dialer, Dialled};
pub(crate) use h1::ResponseBody as H1Body;
pub(crate) use places::{LOOKUPS, Places};
pub(crate) use pool::{Key, Pool, User};
pub(crate) use through_proxy::CorporateProxy;

/// Where requests go: what a pooled connection is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// Whether TLS is spoken there.
    pub(crate) tls: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Origin {
    /// The authority as `Host` and `:authority` say it: without the scheme's own port.
    pub(crate) fn authority(&self) -> String {
        let default = if self.tls { 443 } else { 80 };
        match (&self.host, self.port == default) {
            (Host::Ip(std::net::IpAddr::V6(ip)), true) => format!("[{ip}]"),
            (Host::Ip(std::net::IpAddr::V6(ip)), false) => format!("[{ip}]:{}", self.port),
            (host, true) => host.to_string(),
            (host, false) => format!("{host}:{}", self.port),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// The HTTP that an exchange speaks upstream: the one that its agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    H1,
    H2,
}

/// What bounds an exchange upstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeBounds {
    pub(crate) header_bytes: usize,
    pub(crate) header_count: usize,
    /// From the request's last byte to the head of its answer.
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
}

/// Every upstream of one snapshot.
pub(crate) struct Upstreams {
    dialer: Arc<Dialer>,
    pool: Pool,
    /// What an origin speaks; an entry also says that the origin has been verified.
    spoken: quick_cache::sync::Cache<Origin, Spoken>,
    bounds: ExchangeBounds,
    drain: Drain,
    windows: Windows,
}

/// What is known of an origin, once it has been verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    /// It takes h1; h2 was never offered.
    H1,
    /// It takes h1 alone.
    OnlyH1,
    /// It prefers h2.
    H2,
    /// It takes h2 alone.
    OnlyH2,
}

/// An answer with the body still to come.
pub(crate) enum Answer {
    H1(Response<H1Body>),
    H2(Response<Incoming>),
    /// To a request that asked for another protocol, on a connection of its own.
    Upgrade(Response<Incoming>),
}

/// How many origins are remembered.
const REMEMBERED: usize = 4_096;

impl Upstreams {
    pub(crate) fn new(dialer: Dialer, bounds: ExchangeBounds, drain: Drain) -> Self {
        Self::of(Arc::new(dialer), bounds, drain)
    }

    /// The same upstreams, without any connection: nothing that is pooled outlives the policy that allowed it.
    pub(crate) fn anew(&self) -> Self {
        Self::of(Arc::clone(&self.dialer), self.bounds, self.drain.clone())
    }

    fn of(dialer: Arc<Dialer>, bounds: ExchangeBounds, drain: Drain) -> Self {
        let pool = Pool::new(bounds.idle);
        Self {
            dialer,
            pool,
            spoken: quick_cache::sync::Cache::new(REMEMBERED),
            bounds,
            drain,
            windows: Windows::default(),
        }
    }

    /// Makes sure that an origin is there and is who it says, before anything vouches for it. Answers whether it
    /// speaks h2, which is asked only if the agent does. A warm origin costs nothing.
    pub(crate) async fn prepare(
        &self,
        check: &AddressCheck<'_>,
        origin: &Origin,
        h2: bool,
    ) -> Result<bool, Stop> {
        match self.spoken.get(origin) {
            Some(Spoken::H2 | Spoken::OnlyH2) => return Ok(h2),
            Some(Spoken::OnlyH1) => return Ok(false),
            Some(Spoken::H1) if !h2 => return Ok(false),
            Some(Spoken::H1) | None => {}
        }
        let (stream, speaks) = Box::pin(self.connect(check, origin, h2)).await?;
        let key = Key { origin: origin.clone(), user: User::Nobody };
        match speaks {
            Speaks::H2 => self.pool.share(key, self.h2(stream).await?),
            Speaks::H1 => self.pool.give_back(key, self.h1(stream).await?),
        }
        Ok(h2 && speaks == Speaks::H2)
    }

    /// Sends a request and answers with the response's head. Only a request of which nothing was sent is sent again.
    pub(crate) async fn send(
        &self,
        check: &AddressCheck<'_>,
        key: Key,
        speaks: Speaks,
        request: Request<RequestBody>,
    ) -> Result<Answer, Stop> {
        let progress = request.body().progress();
        let exchange = async {
            match (self.spoken.get(&key.origin), speaks) {
                (Some(Spoken::OnlyH2), _) | (Some(Spoken::H1 | Spoken::H2) | None, Speaks::H2) => {
                    self.send_h2(check, key, request).await
                }
                (Some(Spoken::OnlyH1), _) | (Some(Spoken::H1 | Spoken::H2) | None, Speaks::H1) => {
                    self.send_h1(check, key, request).await
                }
            }
        };
        tokio::select! {
            answer = exchange => answer.map_err(|stop| progress.stop().unwrap_or(stop)),
            () = progress.finished_for(self.bounds.head) => {
                Err(Failure::new(Class::HeadTimeout, "the upstream did not answer in time").into())
            }
        }
    }

    async fn send_h1(
        &self,
        check: &AddressCheck<'_>,
        key: Key,
        mut request: Request<RequestBody>,
    ) -> Result<Answer, Stop> {
        head::address(&mut request, &key.origin, Speaks::H1);
        while let Some(mut connection) = self.pool.take(&key) {
            if !connection.is_usable().await {
                continue;
            }
            match connection.send(request).await {
                Ok(answer) => return Ok(self.h1_answer(answer, key)),
                Err(Unsent { request: Some(unsent), .. }) => request = *unsent,
                Err(Unsent { error, request: None }) => return Err(Failure::exchange(&error).into()),
            }
        }
        Box::pin(self.send_first(check, key, Speaks::H1, request)).await
    }

    async fn send_h2(
        &self,
        check: &AddressCheck<'_>,
        key: Key,
        mut request: Request<RequestBody>,
    ) -> Result<Answer, Stop> {
        head::address(&mut request, &key.origin, Speaks::H2);
        if let Some(mut connection) = self.pool.shared(&key) {
            match connection.send(request).await {
                Ok(response) => return Ok(Answer::H2(response)),
                Err(Unsent { request: Some(unsent), .. }) => request = *unsent,
                Err(Unsent { error, request: None }) => return Err(Failure::exchange(&error).into()),
            }
        }
        Box::pin(self.send_first(check, key, Speaks::H2, request)).await
    }

    /// Sends a request on a connection that is made for it, in what the upstream turns out to speak. Callers box it, so
    /// that an exchange on a kept connection does not carry the room for a handshake.
    async fn send_first(
        &self,
        check: &AddressCheck<'_>,
        key: Key,
        wished: Speaks,
        mut request: Request<RequestBody>,
    ) -> Result<Answer, Stop> {
        let (stream, speaks) = self.connect(check, &key.origin, wished == Speaks::H2).await?;
        head::address(&mut request, &key.origin, speaks);
        let sent = match speaks {
            Speaks::H1 => {
                self.h1(stream).await?.send(request).await.map(|answer| self.h1_answer(answer, key))
            }
            Speaks::H2 => {
                let mut connection = self.h2(stream).await?;
                self.pool.share(key, connection.clone());
                connection.send(request).await.map(Answer::H2)
            }
        };
        sent.map_err(|unsent| Failure::exchange(&unsent.error).into())
    }

    fn h1_answer(&self, (response, connection): (Response<Incoming>, h1::Connection), key: Key) -> Answer {
        Answer::H1(response.map(|body| H1Body::new(body, connection, self.pool.clone(), key)))
    }

    /// Sends a request that asks for another protocol on a connection of its own.
    pub(crate) async fn send_upgrade(
        &self,
        check: &AddressCheck<'_>,
        origin: &Origin,
        mut request: Request<RequestBody>,
    ) -> Result<Answer, Stop> {
        head::address(&mut request, origin, Speaks::H1);
        let progress = request.body().progress();
        let exchange = async {
            let (stream, speaks) = self.connect(check, origin, false).await?;
            if speaks == Speaks::H2 {
                return Err(Failure::new(Class::NoProtocol, "the upstream takes no upgrades").into());
            }
            let sent = self.h1(stream).await?.send_upgrade(request, &self.drain).await;
            sent.map(Answer::Upgrade).map_err(|error| Failure::exchange(&error).into())
        };
        match tokio::time::timeout(self.bounds.head, exchange).await {
            Ok(answer) => answer.map_err(|stop| progress.stop().unwrap_or(stop)),
            Err(_) => Err(Failure::new(Class::HeadTimeout, "the upstream did not answer in time").into()),
        }
    }

    /// Dials a connection whose bytes are passed unread.
    pub(crate) async fn tunnel(
        &self,
        check: &AddressCheck<'_>,
        host: &Host,
        port: u16,
    ) -> Result<Dialled, Stop> {
        self.dial(check, Route { host, port }).await
    }

    async fn dial(&self, check: &AddressCheck<'_>, route: Route<'_>) -> Result<Dialled, Stop> {
        let place = self.dialer.places.take(self.dialer.timeout, || self.pool.make_room()).await?;
        self.dialer.tcp(check, route, place).await
    }

    /// Where the gateway itself listens.
    pub(crate) fn listeners(&self) -> &[SocketAddr] {
        self.dialer.reserved.listeners()
    }

    /// The places for connections, which all snapshots share.
    pub(crate) fn places(&self) -> &Places {
        &self.dialer.places
    }

    /// Whether the address of an open tunnel is still allowed.
    pub(crate) fn keeps(&self, policy: &Policy, host: &Host, peer: SocketAddr) -> bool {
        self.dialer.keeps(policy, host, peer)
    }

    /// Drops idle connections that have waited too long.
    pub(crate) fn sweep(&self) {
        self.pool.sweep();
    }

    /// Drops all idle connections and keeps none from now on: another snapshot is in force.
    pub(crate) fn retire(&self) {
        self.pool.close();
    }

    /// Makes a new connection. `h2`: offers h2. An upstream that takes h2 alone is offered it in any case.
    async fn connect(
        &self,
        check: &AddressCheck<'_>,
        origin: &Origin,
        h2: bool,
    ) -> Result<(Stream, Speaks), Stop> {
        let tcp = self.dial(check, Route::to(origin)).await?;
        if !origin.tls {
            let speaks = if h2 { Speaks::H2 } else { Speaks::H1 };
            return Ok((Stream::Left(Socket::new(tcp)), speaks));
        }
        let alpn = if h2 { Alpn::H2OrH1 } else { Alpn::H1 };
        let (tls, only_h2) = match self.dialer.tls(origin, alpn, tcp).await {
            Err(Stop::Failed(Failure { class: Class::NoProtocol, .. })) if !h2 => {
                let tcp = self.dial(check, Route::to(origin)).await?;
                (self.dialer.tls(origin, Alpn::H2OrH1, tcp).await?, true)
            }
            tls => (tls?, false),
        };
        let speaks = match tls.get_ref().1.alpn_protocol() {
            Some(b"h2") => Speaks::H2,
            Some(_) | None => Speaks::H1,
        };
        let spoken = match speaks {
            Speaks::H2 if only_h2 => Spoken::OnlyH2,
            Speaks::H2 => Spoken::H2,
            Speaks::H1 if h2 => Spoken::OnlyH1,
            Speaks::H1 => Spoken::H1,
        };
        if h2 || only_h2 || self.spoken.get(origin).is_none() {
            self.spoken.insert(origin.clone(), spoken);
        }
        Ok((Stream::Right(Box::new(tls)), speaks))
    }

    async fn h1(&self, stream: Stream) -> Result<h1::Connection, Failure> {
        h1::Connection::handshake(stream, self.bounds.header_count)
            .await
            .map_err(|error| Failure::exchange(&error))
    }

    async fn h2(&self, stream: Stream) -> Result<h2::Connection, Failure> {
        let header_bytes = u32::try_from(self.bounds.header_bytes).unwrap_or(u32::MAX);
        h2::Connection::handshake(stream, header_bytes, self.windows.open(window::UPSTREAM), &self.drain)
            .await
            .map_err(|error| Failure::exchange(&error))
    }
}

/// A connection to an upstream, in the clear or inside verified TLS.
pub(crate) type Stream = Either<Socket, Box<TlsStream<ReadAhead<Socket>>>>;

/// The rule id under which a connection that carried a credential is pooled.
pub(crate) fn user_of(credential: Option<&Arc<crate::policy::credential::Credential>>) -> User {
    credential.map_or(User::Agent, |credential| User::Credential(credential.id.as_str().into()))
}
