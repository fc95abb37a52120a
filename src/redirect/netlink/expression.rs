//! The expressions of nf_tables that our rules are made of, as the kernel has them.
//!
//! Numbers and names are those of `linux/netfilter/nf_tables.h`.

use std::collections::BTreeSet;

use super::attribute::{AttributeWriter, Attributes};

/// NFT_REG_1. Our rules load into this register and look at it, one value at a time.
const REGISTER: u32 = 1;
/// NFT_REG_VERDICT.
const VERDICT_REGISTER: u32 = 0;

/// NFT_FIB_RESULT_ADDRTYPE.
const ADDRESS_TYPE: u32 = 3;

/// NFTA_EXPR_NAME, NFTA_EXPR_DATA.
const NAME: u16 = 1;
const DATA: u16 = 2;
/// NFTA_DATA_VALUE, NFTA_DATA_VERDICT.
const VALUE: u16 = 1;
const VERDICT: u16 = 2;

/// NF_NAT_RANGE_PROTO_SPECIFIED: the port is given, the address is the kernel's choice.
const PORT_GIVEN: u32 = 2;

/// NFT_CT_ZONE, IP_CT_DIR_ORIGINAL.
const TRACKING_ZONE: u32 = 17;
const DIRECTION_ORIGINAL: u8 = 0;

/// One expression of a rule. Those that our rules never use are `Other`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NftExpression {
    /// Loads a fact about the packet.
    Meta(Meta),
    /// Loads a fact that connection tracking knows.
    Tracking(Tracking),
    /// Loads the type that the routing tables give an address of the packet.
    AddressType(Address),
    /// Loads bytes of a header.
    Payload { header: PayloadBase, offset: u32, length: u32 },
    /// Keeps the bits of what was loaded.
    Mask(Vec<u8>),
    /// Goes on where what was loaded equals this, or does not.
    Compare { equal: bool, with: Vec<u8> },
    /// Goes on where what was loaded is in a set.
    Lookup(Set),
    /// Counts.
    Counter,
    /// Loads two bytes: a port in the network's order, a zone in the machine's.
    Load([u8; 2]),
    /// Rewrites the destination to the loopback address and the port that was loaded.
    Redirect,
    /// Tracks the direction in which a flow begins in the zone that was loaded.
    TrackInZone,
    /// Refuses with this kind of answer and this code.
    Reject { kind: u32, code: u8 },
    /// Ends the chain.
    Verdict(VerdictCode),
    /// The `owner` match of iptables, which asks for these UIDs where it asks for one.
    OwnerMatch { uids: Option<(u32, u32)> },
    /// Anything else, by its name in the kernel.
    Other(String),
}

/// Facts about a packet (`enum nft_meta_keys`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meta {
    InputDevice = 6,
    OutputDevice = 7,
    SocketUid = 10,
    SocketGid = 11,
    NetworkProtocol = 15,
    TransportProtocol = 16,
}

/// Facts about a flow (`enum nft_ct_keys`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracking {
    State = 0,
    Direction = 1,
    Status = 2,
}

/// Which address the routing tables are asked about (NFTA_FIB_F_SADDR, NFTA_FIB_F_DADDR).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Address {
    Source = 1,
    Destination = 2,
}

/// Where a payload's offset counts from (`enum nft_payload_bases`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadBase {
    Network = 1,
    Transport = 2,
}

/// The verdicts without a chain to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerdictCode {
    Drop = 0,
    Accept = 1,
}

/// An anonymous set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Set {
    /// One to be made: its elements, all of one length.
    Elements(BTreeSet<Vec<u8>>),
    /// One in the kernel, by name.
    Named(String),
}

/// The name of a set that is created in the same batch: the kernel chooses the real one, a number tells them apart.
pub(super) const ANONYMOUS: &str = "__set%d";

impl NftExpression {
    /// Writes it as an element of a rule; `set` is the number of the set of a lookup.
    pub(super) fn write(&self, set: u32, list: &mut AttributeWriter) {
        /// NFTA_LIST_ELEM.
        const ELEMENT: u16 = 1;
        list.nest(ELEMENT, |element| {
            element.text(NAME, self.name()).nest(DATA, |data| self.write_data(set, data));
        });
    }

    /// Its name in the kernel.
    fn name(&self) -> &str {
        match self {
            Self::Meta(_) => "meta",
            Self::Tracking(_) | Self::TrackInZone => "ct",
            Self::AddressType(_) => "fib",
            Self::Payload { .. } => "payload",
            Self::Mask(_) => "bitwise",
            Self::Compare { .. } => "cmp",
            Self::Lookup(_) => "lookup",
            Self::Counter => "counter",
            Self::Load(_) | Self::Verdict(_) => "immediate",
            Self::Redirect => "redir",
            Self::Reject { .. } => "reject",
            Self::OwnerMatch { .. } => "match",
            Self::Other(name) => name,
        }
    }

    fn write_data(&self, set: u32, data: &mut AttributeWriter) {
        let value = |data: &mut AttributeWriter, kind, bytes: &[u8]| {
            data.nest(kind, |value| {
                value.bytes(VALUE, bytes);
            });
        };
        match self {
            // NFTA_META_DREG and _KEY.
            Self::Meta(key) => {
                data.number(1, REGISTER).number(2, *key as u32);
            }
            // NFTA_CT_DREG and _KEY.
            Self::Tracking(key) => {
                data.number(1, REGISTER).number(2, *key as u32);
            }
            // NFTA_FIB_DREG, _RESULT and _FLAGS.
            Self::AddressType(address) => {
                data.number(1, REGISTER).number(2, ADDRESS_TYPE).number(3, *address as u32);
            }
            // NFTA_PAYLOAD_DREG, _BASE, _OFFSET and _LEN.
            Self::Payload { header, offset, length } => {
                data.number(1, REGISTER).number(2, *header as u32).number(3, *offset).number(4, *length);
            }
            // NFTA_BITWISE_SREG, _DREG, _LEN, _MASK and _XOR.
            Self::Mask(mask) => {
                let length = u32::try_from(mask.len()).unwrap_or_default();
                data.number(1, REGISTER).number(2, REGISTER).number(3, length);
                value(data, 4, mask);
                value(data, 5, &vec![0; mask.len()]);
            }
            // NFTA_CMP_SREG, _OP (NFT_CMP_EQ is 0, NFT_CMP_NEQ 1) and _DATA.
            Self::Compare { equal, with } => {
                data.number(1, REGISTER).number(2, u32::from(!equal));
                value(data, 3, with);
            }
            // NFTA_LOOKUP_SET, _SREG and _SET_ID.
            Self::Lookup(_) => {
                data.text(1, ANONYMOUS).number(2, REGISTER).number(4, set);
            }
            // NFTA_IMMEDIATE_DREG and _DATA, as for a verdict.
            Self::Load(bytes) => {
                data.number(1, REGISTER);
                value(data, 2, bytes);
            }
            // NFTA_CT_KEY, _DIRECTION and _SREG.
            Self::TrackInZone => {
                data.number(2, TRACKING_ZONE).bytes(3, &[DIRECTION_ORIGINAL]).number(4, REGISTER);
            }
            // NFTA_REDIR_REG_PROTO_MIN, _MAX and _FLAGS.
            Self::Redirect => {
                data.number(1, REGISTER).number(2, REGISTER).number(3, PORT_GIVEN);
            }
            // NFTA_REJECT_TYPE and _ICMP_CODE.
            Self::Reject { kind, code } => {
                data.number(1, *kind).bytes(2, &[*code]);
            }
            Self::Verdict(code) => {
                data.number(1, VERDICT_REGISTER).nest(2, |inner| {
                    inner.nest(VERDICT, |verdict| {
                        verdict.number(1, *code as u32);
                    });
                });
            }
            // A counter has no attributes; the other two are read, never written.
            Self::Counter | Self::OwnerMatch { .. } | Self::Other(_) => {}
        }
    }

    /// Reads an element of a rule. Anything not in exactly the form that is written here is `Other`.
    pub(super) fn read(element: Attributes<'_>) -> Self {
        let name = element.text(NAME).unwrap_or_default();
        let data = element.nest(DATA).unwrap_or(Attributes::new(&[]));
        read_data(name, data).unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

fn read_data(name: &str, data: Attributes<'_>) -> Option<NftExpression> {
    let ours = |kind| data.number(kind).filter(|register| *register == REGISTER);
    let value = |kind| data.nest(kind)?.bytes(VALUE).map(<[u8]>::to_vec);
    match name {
        "meta" => {
            ours(1)?;
            Meta::read(data.number(2)?).map(NftExpression::Meta)
        }
        // With a source register (NFTA_CT_SREG) it writes to the flow, without one it reads.
        "ct" if data.bytes(4).is_some() => {
            ours(4)?;
            let zone = data.number(2)? == TRACKING_ZONE && data.bytes(3)? == [DIRECTION_ORIGINAL];
            zone.then_some(NftExpression::TrackInZone)
        }
        "ct" => {
            ours(1)?;
            Tracking::read(data.number(2)?).map(NftExpression::Tracking)
        }
        "fib" => {
            ours(1)?;
            (data.number(2)? == ADDRESS_TYPE).then_some(())?;
            Address::read(data.number(3)?).map(NftExpression::AddressType)
        }
        "payload" => {
            ours(1)?;
            let header = PayloadBase::read(data.number(2)?)?;
            Some(NftExpression::Payload { header, offset: data.number(3)?, length: data.number(4)? })
        }
        "bitwise" => {
            ours(1)?;
            ours(2)?;
            // NFTA_BITWISE_OP: 0 is mask and xor, the only one in older kernels.
            (data.number(6).unwrap_or(0) == 0).then_some(())?;
            value(5)?.iter().all(|byte| *byte == 0).then_some(())?;
            value(4).map(NftExpression::Mask)
        }
        "cmp" => {
            ours(1)?;
            let equal = [true, false].get(usize::try_from(data.number(2)?).ok()?).copied()?;
            Some(NftExpression::Compare { equal, with: value(3)? })
        }
        "lookup" => {
            ours(2)?;
            // Not a map (NFTA_LOOKUP_DREG), and not inverted (NFTA_LOOKUP_FLAGS).
            let plain = data.bytes(3).is_none() && data.number(5).unwrap_or(0) == 0;
            plain.then(|| data.text(1).map(|set| NftExpression::Lookup(Set::Named(set.to_owned()))))?
        }
        "counter" => Some(NftExpression::Counter),
        "immediate" => read_immediate(data),
        "redir" => {
            ours(1)?;
            // The kernel may leave out the end of the range of ports, or repeat its start.
            let one_port = data.bytes(2).is_none_or(|_| ours(2).is_some());
            (one_port && data.number(3) == Some(PORT_GIVEN)).then_some(NftExpression::Redirect)
        }
        "reject" => {
            let code = data.bytes(2).and_then(|code| code.first().copied()).unwrap_or(0);
            Some(NftExpression::Reject { kind: data.number(1)?, code })
        }
        "match" if data.text(1) == Some("owner") => {
            Some(NftExpression::OwnerMatch { uids: data.bytes(3).and_then(owner_uids) })
        }
        _ => None,
    }
}

fn read_immediate(data: Attributes<'_>) -> Option<NftExpression> {
    let inner = data.nest(2)?;
    match (data.number(1)?, inner.nest(VERDICT)) {
        (VERDICT_REGISTER, Some(verdict)) => match verdict.number(1)? {
            0 => Some(NftExpression::Verdict(VerdictCode::Drop)),
            1 => Some(NftExpression::Verdict(VerdictCode::Accept)),
            _ => None,
        },
        (REGISTER, None) => inner.bytes(VALUE)?.try_into().ok().map(NftExpression::Load),
        _ => None,
    }
}

/// The UIDs of `struct xt_owner_match_info`, where it asks for UIDs: two UIDs, two GIDs, and flags, of which the
/// first is XT_OWNER_UID.
fn owner_uids(info: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| info.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let asks = info.get(16)? & 1 == 1;
    asks.then_some((number(0)?, number(4)?))
}

impl Meta {
    fn read(key: u32) -> Option<Self> {
        let all = [
            Self::InputDevice,
            Self::OutputDevice,
            Self::SocketUid,
            Self::SocketGid,
            Self::NetworkProtocol,
            Self::TransportProtocol,
        ];
        all.into_iter().find(|one| *one as u32 == key)
    }
}

impl Tracking {
    fn read(key: u32) -> Option<Self> {
        [Self::State, Self::Direction, Self::Status].into_iter().find(|one| *one as u32 == key)
    }
}

impl Address {
    fn read(flags: u32) -> Option<Self> {
        [Self::Source, Self::Destination].into_iter().find(|one| *one as u32 == flags)
    }
}

impl PayloadBase {
    fn read(base: u32) -> Option<Self> {
        [Self::Network, Self::Transport].into_iter().find(|one| *one as u32 == base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(expression: &NftExpression) -> NftExpression {
        let mut list = AttributeWriter::default();
        expression.write(7, &mut list);
        let (_, element) = Attributes::new(list.as_bytes()).into_iter().next().unwrap();
        NftExpression::read(Attributes::new(element))
    }

    #[test]
    fn what_is_written_is_read() {
        for expression in [
            NftExpression::Meta(Meta::SocketUid),
            NftExpression::Tracking(Tracking::Status),
            NftExpression::AddressType(Address::Source),
            NftExpression::AddressType(Address::Destination),
            NftExpression::Payload { header: PayloadBase::Transport, offset: 13, length: 1 },
            NftExpression::Mask(vec![0x12]),
            NftExpression::Compare { equal: false, with: vec![1, 2, 3, 4] },
            NftExpression::Counter,
            NftExpression::Load([0x3a, 0x99]),
            NftExpression::TrackInZone,
            NftExpression::Redirect,
            NftExpression::Reject { kind: 2, code: 1 },
            NftExpression::Verdict(VerdictCode::Accept),
            NftExpression::Verdict(VerdictCode::Drop),
        ] {
            assert_eq!(read_back(&expression), expression);
        }
    }

    #[test]
    fn a_lookup_is_read_with_the_name_of_its_set() {
        let lookup = NftExpression::Lookup(Set::Elements([vec![1]].into()));
        assert_eq!(read_back(&lookup), NftExpression::Lookup(Set::Named(ANONYMOUS.to_owned())));
    }

    #[test]
    fn a_step_on_another_register_or_of_another_form_is_not_taken_for_ours() {
        let read = |name: &str, fill: fn(&mut AttributeWriter)| {
            let mut element = AttributeWriter::default();
            element.text(NAME, name).nest(DATA, fill);
            NftExpression::read(Attributes::new(element.as_bytes()))
        };
        let other = |name: &str| NftExpression::Other(name.to_owned());
        assert_eq!(read("meta", |data| _ = data.number(1, 2).number(2, 10)), other("meta"));
        assert_eq!(read("meta", |data| _ = data.number(3, 1).number(2, 3)), other("meta"));
        assert_eq!(read("redir", |data| _ = data.number(1, 1).number(3, 6)), other("redir"));
        assert_eq!(read("lookup", |data| _ = data.text(1, "x").number(2, 1).number(5, 1)), other("lookup"));
        assert_eq!(read("fib", |data| _ = data.number(1, 1).number(2, 1).number(3, 1)), other("fib"));
        assert_eq!(read("fib", |data| _ = data.number(1, 1).number(2, 3).number(3, 9)), other("fib"));
        assert_eq!(read("tproxy", |_| ()), other("tproxy"));
    }

    #[test]
    fn the_owner_match_of_iptables_is_read_with_its_uids() {
        let info = [1337u32, 1337, 0, 0, 1].map(u32::to_ne_bytes).concat();
        assert_eq!(owner_uids(&info), Some((1337, 1337)));
        let of_group = [0u32, 0, 5, 5, 2].map(u32::to_ne_bytes).concat();
        assert_eq!((owner_uids(&of_group), owner_uids(&[1, 2])), (None, None));
    }
}
