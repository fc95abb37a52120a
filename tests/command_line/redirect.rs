//! `postern redirect`: what it refuses, what it prints, and, as root, what stands in a namespace of its own.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};

use super::{Place, Said};

const PLAN: &[&str] = &["redirect", "--uid", "61234", "--inbound-ports", "8080,9090"];

/// Begins a flow inside of the namespace with an address from outside as its source, or as its destination, and then
/// sends what looks like its answer. Says what the kernel did.
const FORGED_FLOWS: &str = r#"
import socket
FREEBIND, OURS, OUTSIDE = 78, "2001:db8:1::2", "2001:db8:1::9"

def sends(sender, to):
    try:
        return sender.sendto(b"x", (to, 4444)) == 1
    except PermissionError:
        return False

answering = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
answering.bind((OURS, 4444))
forged = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
forged.setsockopt(socket.IPPROTO_IPV6, FREEBIND, 1)
forged.bind((OUTSIDE, 4444))
print("from outside:", sends(forged, OURS), sends(answering, OUTSIDE))
bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
print("to outside by lo:", sends(bound, "203.0.113.9"))
plain = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
print("inside:", sends(plain, OURS), sends(plain, "::1"))
"#;

/// A network namespace that ends with this value.
struct Namespace {
    place: Place,
    holder: Child,
}

impl Namespace {
    /// Nothing where this process may not make one, which a note says.
    fn new() -> Option<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo made; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            holder.wait().unwrap();
            note("this needs root, to make a network namespace");
            return None;
        }
        Some(Self { place: Place::new(), holder })
    }

    /// The same, where these programs are there to tamper with.
    fn with(programs: &[&str]) -> Option<Self> {
        let there = |program: &&str| {
            ["/usr/sbin", "/sbin"].iter().any(|d| fs::exists(format!("{d}/{program}")).unwrap())
        };
        if let Some(absent) = programs.iter().find(|program| !there(program)) {
            note(&format!("{absent} is not installed"));
            return None;
        }
        Self::new()
    }

    /// Runs a command inside to its end.
    fn run(&self, command: &[&str]) -> Said {
        let output = Command::new("nsenter")
            .args([&format!("--net=/proc/{}/ns/net", self.holder.id()), "--"])
            .args(command)
            .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.place.path().display()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command of the shell that must succeed, and answers what it prints.
    #[track_caller]
    fn shell(&self, line: &str) -> String {
        let said = self.run(&["sh", "-c", line]);
        assert_eq!(said.code, Some(0), "{line}: {said:?}");
        said.stdout
    }

    fn postern(&self, arguments: &[&str]) -> Said {
        self.run(&[&[env!("CARGO_BIN_EXE_postern")], arguments].concat())
    }

    /// Runs `postern redirect` for the plan that these tests have.
    fn redirect(&self, arguments: &[&str]) -> Said {
        self.postern(&[PLAN, arguments].concat())
    }

    #[track_caller]
    fn program(&self, arguments: &[&str]) {
        let said = self.redirect(arguments);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    }

    /// What `--verify` says of rules that are not the plan.
    #[track_caller]
    fn deviation(&self) -> String {
        let said = self.redirect(&["--verify"]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        said.stderr
    }

    /// Puts a script in the place of each of these programs.
    fn replace(&self, programs: &[&str], script: &str) {
        for program in programs {
            self.place.write(program, &format!("#!/bin/sh\n{script}\n"));
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(self.place.path().join(program), executable).unwrap();
        }
    }

    /// Gives the namespace a device with an IPv6 address of its own.
    fn speak_ipv6(&self) {
        self.shell("ip link add rd-0 type veth peer name rd-1 && ip link set rd-1 up && ip link set rd-0 up");
        self.shell("ip -6 address add 2001:db8:1::2/64 dev rd-0 nodad");
    }

    /// Puts the legacy programs where they are found before the others.
    fn prefer_legacy(&self) {
        for program in ["iptables-restore", "iptables-save", "ip6tables-restore", "ip6tables-save"] {
            symlink("/usr/sbin/xtables-legacy-multi", self.place.path().join(program)).unwrap();
        }
    }
}

/// Says what is left out, and why.
fn note(reason: &str) {
    let _ = writeln!(io::stderr(), "left out: {reason}");
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

#[test]
fn what_names_are_resolved_by_is_kept_where_agents_do_not_write() {
    let Some(namespace) = Namespace::new() else { return };
    let kept = namespace.place.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let arguments = ["--keep-names", kept.to_str().unwrap()];
    assert_eq!(namespace.redirect(&[&arguments[..], &["--dry-run"]].concat()).code, Some(0));
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0, "a dry run writes nothing");
    namespace.program(&arguments);
    let servers = fs::read("/etc/resolv.conf").unwrap_or_default();
    assert_eq!(fs::read(kept.join("resolv.conf")).unwrap(), servers);
    let hosts = fs::read_to_string(kept.join("hosts")).unwrap();
    assert_eq!(hosts, "127.0.0.1 localhost\n::1 localhost\n", "no alias of the pod's");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 2);
    // As after `RestartAllContainers` (KEP-5532): the same sandbox, in which agents have written by then.
    for name in ["hosts", "resolv.conf"] {
        fs::write(kept.join(name), "from the first start").unwrap();
    }
    namespace.program(&arguments);
    for name in ["hosts", "resolv.conf"] {
        assert_eq!(fs::read_to_string(kept.join(name)).unwrap(), "from the first start");
    }
    let said = namespace.redirect(&["--keep-names", "/nowhere"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("/nowhere/hosts cannot be written"), "{said:?}");
}

#[test]
fn arguments_that_make_no_plan_are_refused_in_one_sentence() {
    let place = Place::new();
    for (arguments, sentence) in [
        (&["--uid", "0"][..], "--uid 0 would let root out of the namespace"),
        (&["--uid", "4294967295"], "--uid 4294967295 is no user's"),
        (&["--uid", "7", "--inbound-ports", "8080,8080"], "--inbound-ports lists 8080 twice"),
        (&["--uid", "7", "--inbound-ports", "15001"], "the gateway's transparent port"),
        (&["--uid", "7", "--inbound-ports", "15090"], "the gateway's admin port, which is open already"),
        (&["--uid", "7", "--inbound-ports", "0"], "port 0"),
    ] {
        let said = place.run(&[&["redirect"], arguments].concat());
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(sentence), "{arguments:?}: {said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{arguments:?}: {said:?}");
    }
}

#[test]
fn wrong_usage_of_the_redirect_exits_with_2() {
    let place = Place::new();
    for arguments in [
        &[][..],
        &["--uid", "root"],
        &["--uid", "7", "--inbound-ports", "65536"],
        &["--uid", "7", "--backend", "Ebtables"],
        &["--uid", "7", "--dry-run", "--verify"],
    ] {
        let said = place.run(&[&["redirect"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_dry_run_prints_the_rules_in_either_syntax_and_needs_no_privilege() {
    let place = Place::new();
    let nft = place.run(&[PLAN, &["--dry-run"]].concat());
    assert_eq!((nft.code, nft.stderr.as_str()), (Some(0), ""));
    assert!(nft.stdout.contains("\ntable inet postern {\n"), "{}", nft.stdout);
    assert!(nft.stdout.contains("tcp dport { 8080, 9090, 15090 } accept"), "{}", nft.stdout);
    let iptables = place.run(&[PLAN, &["--dry-run", "--backend", "iptables"]].concat());
    assert_eq!((iptables.code, iptables.stderr.as_str()), (Some(0), ""));
    assert_eq!(iptables.stdout.matches("\n*nat\n").count(), 2, "{}", iptables.stdout);
    let json = place.run(&[PLAN, &["--dry-run", "-o", "json"]].concat()).json();
    assert_eq!(json["rules"], nft.stdout);
}

#[test]
fn the_gateways_ports_come_from_its_settings() {
    let place = Place::new();
    let settings = |listeners: &str| {
        place.write("policy.yaml", "");
        place.write("postern.yaml", &format!("policy: {{path: policy.yaml}}\nlisteners: {{{listeners}}}\n"));
        place.run(&["redirect", "--uid", "7", "--config", "postern.yaml", "--dry-run"])
    };
    let said =
        settings("transparent: {port: 1501}, dns: {port: 1553}, explicit: {address: \"127.0.0.1:1502\"}");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("meta l4proto tcp redirect to :1501\n"), "{}", said.stdout);
    assert!(said.stdout.contains("udp dport 53 redirect to :1553\n"), "{}", said.stdout);
    assert!(said.stdout.contains("tcp sport { 1501, 1502, 1553, 15090 }"), "{}", said.stdout);
    let said = settings("explicit: {}");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("listeners.transparent: is not listed"), "{said:?}");
}

#[test]
fn nf_tables_is_programmed_verified_programmed_again_and_removed() {
    let Some(namespace) = Namespace::new() else { return };
    assert!(namespace.deviation().contains("nothing is programmed here"));
    for _ in 0..2 {
        let said = namespace.redirect(&["-o", "json"]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
        let report = said.json();
        assert_eq!((&report["backend"], &report["ipv6"]), (&"Nftables".into(), &"Redirected".into()));
        assert_eq!(report["chains"][0]["table"], "inet postern");
    }
    assert_eq!(namespace.redirect(&["--verify"]).code, Some(0));
    let other = namespace.postern(&["redirect", "--uid", "61235", "--verify"]);
    assert_eq!(other.code, Some(1), "another UID is another plan: {other:?}");
    assert_eq!(namespace.postern(&["redirect", "--remove"]).stdout, "removed from nf_tables\n");
    assert_eq!(namespace.postern(&["redirect", "--remove"]).stdout, "nothing was programmed\n");
}

#[test]
fn the_text_for_nft_makes_the_rules_that_netlink_makes() {
    let Some(namespace) = Namespace::with(&["nft"]) else { return };
    namespace.program(&[]);
    let by_netlink = namespace.shell("nft list ruleset");
    namespace.place.write("plan.nft", &namespace.redirect(&["--dry-run"]).stdout);
    namespace.shell(&format!("nft -f {}", namespace.place.path().join("plan.nft").display()));
    assert_eq!(namespace.shell("nft list ruleset"), by_netlink);
    assert_eq!(namespace.redirect(&["--verify"]).code, Some(0), "and is verified as such");
}

#[test]
fn whatever_is_changed_in_nf_tables_is_seen_and_mended_by_programming_again() {
    let Some(namespace) = Namespace::with(&["nft"]) else { return };
    let last_rule = "nft -a list chain inet postern filter_output | sed -n 's/.*counter.*reject.*handle //p'";
    for (tampering, said) in [
        (
            format!("nft delete rule inet postern filter_output handle $({last_rule})"),
            "rule 17 of chain filter_output is missing: counter reject",
        ),
        ("nft flush chain inet postern filter_input".to_owned(), "rule 1 of chain filter_input is missing"),
        (
            "nft insert rule inet postern nat_output accept".to_owned(),
            "rule 1 in chain nat_output is not of the plan",
        ),
        (
            "nft add chain inet postern other".to_owned(),
            "chain other of table inet postern is not of the plan",
        ),
        ("nft add table inet postern '{ flags dormant; }'".to_owned(), "table inet postern is dormant"),
        (
            "nft add chain inet postern filter_output '{ policy drop; }'".to_owned(),
            "chain filter_output is not a filter chain at hook output with priority 0 and policy accept",
        ),
        ("nft delete table inet postern".to_owned(), "nothing is programmed here"),
    ] {
        namespace.program(&[]);
        namespace.shell(&tampering);
        let deviation = namespace.deviation();
        assert!(deviation.contains(said), "{tampering}: {deviation}");
    }
    namespace.program(&[]);
}

#[test]
fn a_sidecar_that_exempts_a_uid_is_refused_whatever_it_used() {
    let Some(namespace) = Namespace::with(&["nft", "iptables-nft", "iptables-legacy"]) else { return };
    let native =
        "nft 'table inet mesh { chain o { type nat hook output priority -150; meta skuid 1337 accept; }; }'";
    let istio =
        "-t nat -N ISTIO_OUTPUT && PROGRAM -t nat -A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN";
    for (program, table) in [("nft", "inet mesh"), ("iptables-nft", "ip nat"), ("iptables-legacy", "nat")] {
        let add = match program {
            "nft" => native.to_owned(),
            _ => format!("PROGRAM {istio} && PROGRAM -t nat -A OUTPUT -j ISTIO_OUTPUT")
                .replace("PROGRAM", program),
        };
        namespace.shell(&add);
        for arguments in [&[][..], &["--verify"], &["--backend", "Iptables"]] {
            let said = namespace.redirect(arguments);
            assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{program}: {said:?}");
            let sentence = format!("of table {table} asks whether UID 1337 owns a socket");
            assert!(said.stderr.contains(&sentence), "{program}: {said:?}");
            assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        }
        assert!(!namespace.shell("nft list ruleset").contains("postern"), "nothing was programmed");
        match program {
            "nft" => namespace.shell("nft delete table inet mesh"),
            _ => namespace.shell(&format!("{program} -t nat -F && {program} -t nat -X")),
        };
    }
    namespace.program(&[]);
}

#[test]
fn iptables_is_programmed_verified_programmed_again_and_removed_in_both_variants() {
    for legacy in [false, true] {
        let programs = ["iptables-nft-restore", "xtables-legacy-multi", "ip6tables-save"];
        let Some(namespace) = Namespace::with(&programs) else { return };
        if legacy {
            namespace.prefer_legacy();
        }
        for _ in 0..2 {
            let said = namespace.redirect(&["--backend", "Iptables", "-o", "json"]);
            assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
            assert_eq!(said.json()["ipv6"], "Redirected", "{said:?}");
        }
        let tables = fs::read_to_string(format!("/proc/{}/net/ip_tables_names", namespace.holder.id()));
        assert_eq!(tables.unwrap_or_default().contains("nat"), legacy, "the variant that was preferred");
        let jumps = namespace.shell("iptables-save").matches("-A OUTPUT -j POSTERN_OUTPUT").count();
        assert_eq!(jumps, 3, "one each in filter, raw and nat, however often it is programmed");
        assert_eq!(namespace.redirect(&["--verify"]).code, Some(0));
        assert_eq!(namespace.postern(&["redirect", "--remove"]).stdout, "removed from iptables\n");
        assert!(!namespace.shell("iptables-save && ip6tables-save").contains("POSTERN"));
    }
}

#[test]
fn whatever_is_changed_in_iptables_is_seen_and_mended_by_programming_again() {
    let Some(namespace) = Namespace::with(&["iptables", "ip6tables-restore"]) else { return };
    for (tampering, said) in [
        ("iptables -I OUTPUT -p udp -j ACCEPT", "the first rule of OUTPUT is not the jump to POSTERN_OUTPUT"),
        ("ip6tables -t nat -D OUTPUT 1", "the first rule of OUTPUT is not the jump to POSTERN_OUTPUT"),
        ("ip6tables -F POSTERN_INPUT", "rule 1 of POSTERN_INPUT in table filter of ip6tables is missing"),
        ("iptables -t nat -D POSTERN_OUTPUT 5", "is missing: -p tcp -j REDIRECT --to-ports 15001"),
        (
            "iptables -A POSTERN_OUTPUT -j ACCEPT",
            "in POSTERN_OUTPUT in table filter of iptables is not of the plan",
        ),
    ] {
        namespace.program(&["--backend", "Iptables"]);
        namespace.shell(tampering);
        let deviation = namespace.deviation();
        assert!(deviation.contains(said), "{tampering}: {deviation}");
    }
    namespace.program(&["--backend", "Iptables"]);
}

#[test]
fn where_ip6tables_has_no_nat_ipv6_is_rejected_whole() {
    let Some(namespace) = Namespace::with(&["iptables", "ip6tables-nft-restore"]) else { return };
    namespace.speak_ipv6();
    let without_nat = "input=$(cat); case $input in *'*nat'*) echo 'no nat' >&2; exit 1;; esac\n\
                       printf '%s\\n' \"$input\" | /usr/sbin/ip6tables-nft-restore \"$@\"";
    namespace.replace(&["ip6tables-restore"], without_nat);
    namespace.replace(&["ip6tables-save"], "exec /usr/sbin/ip6tables-nft-save");
    for program in ["iptables-restore", "iptables-save"] {
        symlink("/usr/sbin/xtables-nft-multi", namespace.place.path().join(program)).unwrap();
    }
    let said = namespace.redirect(&["--backend", "Iptables", "-o", "json"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert_eq!(said.json()["ipv6"], "Rejected");
    let verified = namespace.redirect(&["--verify", "-o", "json"]);
    assert_eq!(verified.json()["ipv6"], "Rejected", "{verified:?}");
    let sent = namespace.run(&["bash", "-c", "echo > /dev/udp/2001:db8:1::3/9"]);
    assert!(sent.stderr.contains("Operation not permitted"), "{sent:?}");
}

#[test]
fn ipv6_that_can_be_neither_redirected_nor_rejected_is_refused_and_nothing_is_left() {
    let Some(namespace) = Namespace::with(&["iptables", "ip6tables-restore"]) else { return };
    let programs = ["", "-nft", "-legacy"].map(|variant| format!("ip6tables{variant}-restore"));
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    namespace.replace(&programs, "echo 'no filter either' >&2; exit 1");
    for variant in ["-nft", "-legacy"] {
        for (program, target) in [("iptables", "restore"), ("iptables", "save"), ("ip6tables", "save")] {
            let name = format!("{program}{variant}-{target}");
            symlink(format!("/usr/sbin/{name}"), namespace.place.path().join(&name)).unwrap();
        }
    }
    let said = namespace.redirect(&["--backend", "Iptables", "-o", "json"]);
    assert_eq!(said.json()["ipv6"], "Absent", "without a device that speaks it: {said:?}");
    namespace.speak_ipv6();
    let said = namespace.redirect(&["--backend", "Iptables"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.contains("IPv6 would stay open"), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    assert!(!namespace.shell("iptables-nft-save; iptables-legacy-save; ip6tables-save").contains("POSTERN"));
}

#[test]
fn a_flow_forged_on_the_loopback_opens_no_way_for_its_answers() {
    const PYTHON: &str = "/usr/bin/python3";
    for backend in ["Nftables", "Iptables"] {
        let Some(namespace) = Namespace::with(&["iptables", "ip6tables-restore"]) else { return };
        if !fs::exists(PYTHON).unwrap() {
            return note("there is no python3");
        }
        namespace.shell("ip link set lo up");
        namespace.speak_ipv6();
        let anybody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];
        let forge = [&anybody[..], &[PYTHON, "-c", FORGED_FLOWS]].concat();
        let open = namespace.run(&forge);
        let all = "from outside: True True\nto outside by lo: True\ninside: True True\n";
        assert_eq!(open.stdout, all, "without the redirect: {open:?}");
        namespace.program(&["--backend", backend]);
        let closed = namespace.run(&forge);
        let inside = "from outside: False False\nto outside by lo: False\ninside: True True\n";
        assert_eq!(closed.stdout, inside, "{backend}: {closed:?}");
    }
}

#[test]
fn two_at_a_time_in_one_namespace_are_not_let_undo_each_other() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.program(&[]);
    let beside = ["flock", "/proc/self/ns/net", env!("CARGO_BIN_EXE_postern")];
    for arguments in [PLAN, &["redirect", "--remove"]] {
        let said = namespace.run(&[&beside[..], arguments].concat());
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.stderr.contains("another `postern redirect` is at work"), "{said:?}");
    }
    assert_eq!(namespace.redirect(&["--verify"]).code, Some(0), "what stood stands");
}

#[test]
fn one_backend_takes_the_place_of_the_other() {
    let Some(namespace) = Namespace::with(&["iptables", "ip6tables-restore", "nft"]) else { return };
    namespace.program(&["--backend", "Iptables"]);
    namespace.program(&["--backend", "Nftables"]);
    assert!(!namespace.shell("nft list ruleset").contains("POSTERN"));
    namespace.program(&["--backend", "Iptables"]);
    assert!(!namespace.shell("nft list ruleset").contains("table inet postern"));
    assert_eq!(namespace.redirect(&["--verify"]).code, Some(0));
}

#[test]
fn without_the_capability_one_sentence_says_so_and_nothing_is_left() {
    let Some(namespace) = Namespace::with(&["iptables", "nft"]) else { return };
    // Others than root must be able to read the executable.
    let copy = namespace.place.path().join("postern");
    fs::copy(env!("CARGO_BIN_EXE_postern"), &copy).unwrap();
    namespace.shell(&format!("chmod 755 {} {}", namespace.place.path().display(), copy.display()));
    let drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];
    for arguments in [&[][..], &["--backend", "Iptables"], &["--verify"]] {
        let said = namespace.run(&[&drop[..], &[copy.to_str().unwrap()], PLAN, arguments].concat());
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains("with the capability NET_ADMIN"), "{arguments:?}: {said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{arguments:?}: {said:?}");
    }
    assert_eq!(namespace.shell("nft list ruleset"), "");
}
