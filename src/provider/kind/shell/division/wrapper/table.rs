//! Programs that run another command, as data.

use std::sync::LazyLock;

use super::super::super::Table;
use super::builtin;

/// A program that runs what its operands say.
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// Its options, by [`OptionKind`]: `v u: chdir@`; under `/` a word in front of them, or its operands: `/>`.
    pub(super) options: &'static str,
    /// Operands before the command.
    pub(super) operands: usize,
    pub(super) runs: Runs,
}

/// What the operands of a wrapper are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// A command.
    Command,
    /// A command of the shell that reads the text: it may change the directory.
    Here,
    /// Assignments, then a command.
    Assigned,
    /// Assignments, then a command; without one, a shell.
    Elevated,
    /// A command that gets more operands from the input.
    Input,
    /// A text for a shell, in pieces.
    Pieces,
    /// Texts for a shell, each for itself.
    Texts,
    /// A shell's own: a script and its operands.
    Shell,
    /// A command that sees another tree of files.
    Elsewhere,
    /// Options alone, in any place.
    Options,
}

/// What an option is, by the sign behind its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionKind {
    Flag,
    /// `:` The next word is its value.
    Valued,
    /// `?` It may have a value, attached.
    Attached,
    /// `@` Its value is the directory of the command.
    Directory,
    /// `~` The command runs in a directory that is not told.
    Home,
    /// `>` Its value is a file that is written.
    Written,
    /// `<` Its value is a file that is read.
    ReadFrom,
    /// `,` Its value is a file whose code runs before the command.
    Sourced,
    /// `+` Its value sets a variable for the command.
    Set,
    /// `!` Its value is a text for a shell.
    Text,
    /// `*` The first operand is a text for a shell.
    FirstIsText,
    /// `0` A shell reads its input.
    Input,
    /// `^` The operands are no text.
    Exact,
    /// `%` Its value stands for each line of the input.
    Replaced,
    /// `=` Nothing is run.
    Stays,
    /// `.` What it does is not read.
    Unread,
}

const fn wrapper(
    names: &'static [&'static str],
    options: &'static str,
    operands: usize,
    runs: Runs,
) -> Wrapper {
    Wrapper { names, options, operands, runs }
}

/// Sources: the manuals of GNU coreutils 9.5, findutils 4.10, bash 5.3, zsh 5.9, sudo 1.9.16, OpenDoas 6.8, procps-ng 4,
/// util-linux 2.40, hyperfine 1.19, entr 5.6, direnv 2.35, OpenSSH 9.9, glibc 2.40, nix 2.24, shadow 4.16, GNU time 1.9, busybox 1.37, strace 6, expect 5.45.
const WRAPPERS: &[Wrapper] = &[
    wrapper(
        &["env"],
        "i ignore-environment 0 null u: unset: C@ chdir@ S. split-string. v debug a: argv0: block-signal? default-signal? ignore-signal? list-signal-handling help= version=",
        0,
        Runs::Assigned,
    ),
    wrapper(
        &["sudo"],
        "A askpass a: auth-type: B bell b background C: close-from: c: login-class: D@ chdir@ E preserve-env? e= edit= g: group: H set-home h= help= host: i~ login~ K= remove-timestamp= k reset-timestamp l= list= N no-update n non-interactive P preserve-groups p: prompt: R. chroot. r: role: S stdin s shell T: command-timeout: t: type: U: other-user: u: user: V= version= v= validate=",
        0,
        Runs::Elevated,
    ),
    wrapper(&["doas"], "C= a: L= n s u:", 0, Runs::Elevated),
    wrapper(&["pkexec"], "user: u: keep-cwd disable-internal-agent version= help=", 0, Runs::Elevated),
    wrapper(&["command"], "p v= V=", 0, Runs::Here),
    wrapper(&["builtin", "noglob", "nocorrect", "-"], "", 0, Runs::Here),
    wrapper(&["exec"], "a: c l", 0, Runs::Command),
    wrapper(&["choom"], "n: adjust: p= pid= h= help= V= version=", 0, Runs::Command),
    wrapper(&["logsave"], "a s v />", 1, Runs::Command),
    wrapper(&["nohup", "fakeroot", "dbus-run-session", "chronic"], "help= version=", 0, Runs::Command),
    wrapper(
        &["time", "gtime"],
        "a append f: format: o> output> p portability v verbose q quiet l h help= V= version=",
        0,
        Runs::Command,
    ),
    wrapper(
        &["timeout", "gtimeout"],
        "k: kill-after: s: signal: f foreground p preserve-status v verbose help= version=",
        1,
        Runs::Command,
    ),
    wrapper(&["nice"], "# n: adjustment: help= version=", 0, Runs::Command),
    wrapper(
        &["ionice"],
        "c: class: n: classdata: p= pid= P= pgid= u= uid= t ignore h= help= V= version=",
        0,
        Runs::Command,
    ),
    wrapper(
        &["chrt"],
        "b batch d deadline f fifo i idle o other r rr R reset-on-fork v verbose T: sched-runtime: P: sched-period: D: sched-deadline: p= pid= a= all-tasks= m= max= h= help= V= version=",
        1,
        Runs::Command,
    ),
    wrapper(&["taskset"], "c cpu-list p= pid= a= all-tasks= h= help= V= version=", 1, Runs::Command),
    wrapper(&["setsid"], "c ctty f fork w wait h= help= V= version=", 0, Runs::Command),
    wrapper(&["stdbuf", "gstdbuf"], "i: input: o: output: e: error: help= version=", 0, Runs::Command),
    wrapper(&["unbuffer"], "p", 0, Runs::Command),
    wrapper(&["caffeinate"], "d i m s u t: w:", 0, Runs::Command),
    wrapper(&["setarch"], "/ R addr-no-randomize v verbose h= help= V= version=", 0, Runs::Command),
    wrapper(
        &["linux32", "linux64", "i386", "i486", "i586", "i686", "x86_64", "uname26"],
        "R addr-no-randomize v verbose h= help= V= version=",
        0,
        Runs::Command,
    ),
    wrapper(
        &["strace", "ltrace"],
        "f F ff c C d i k n q qq r t tt ttt T v x xx y yy a: e: o> p= s: S: u: P: E+ h= V=",
        0,
        Runs::Command,
    ),
    wrapper(&["busybox", "toybox"], "list= list-full= help=", 0, Runs::Command),
    wrapper(
        &["flock"],
        "s shared x e exclusive u unlock n nb nonblock w: wait: timeout: E: conflict-exit-code: o close F no-fork verbose c! command! h= help= V= version= />",
        1,
        Runs::Command,
    ),
    wrapper(&["chroot"], "groups: userspec: skip-chdir help= version=", 1, Runs::Elsewhere),
    wrapper(
        &["xargs", "gxargs"],
        "0 null a< arg-file< d: delimiter: E: e? eof? I% i. replace. L: l? max-lines? n: max-args: o open-tty P: max-procs: p interactive r no-run-if-empty s: max-chars: show-limits t verbose x exit process-slot-var: help= version=",
        0,
        Runs::Input,
    ),
    wrapper(
        &["watch"],
        "b beep c color C no-color d? differences? e errexit f follow g chgexit n: interval: p precise q: equexit: r no-rerun t no-title w no-wrap x^ exec^ h= help= v= version=",
        0,
        Runs::Pieces,
    ),
    wrapper(&["eval"], "", 0, Runs::Pieces),
    wrapper(&["sg"], "c!", 1, Runs::Pieces),
    wrapper(
        &["hyperfine"],
        "w: warmup: m: min-runs: M: max-runs: r: runs: N S: shell: i ignore-failure style: sort: show-output output: u: time-unit: n: command-name: export-json> export-csv> export-markdown> export-asciidoc> export-orgmode> input< s. setup. p. prepare. c. cleanup. conclude. P. parameter-scan. L. parameter-list. D. h= help= V= version=",
        0,
        Runs::Texts,
    ),
    wrapper(&["entr"], "a c d n p r s. z x", 0, Runs::Command),
    wrapper(&["direnv"], "help= version=", 2, Runs::Command),
    wrapper(&["ssh-agent"], "a: c s d D E: k= O: P: t: T", 0, Runs::Command),
    wrapper(
        &["prlimit"],
        "p= pid= o: output: noheadings raw verbose c? core? d? data? e? nice? f? fsize? i? sigpending? l? memlock? m? rss? n? nofile? q? msgqueue? r? rtprio? s? stack? t? cpu? u? nproc? v? as? x? locks? y? rttime? h= help= V= version=",
        0,
        Runs::Command,
    ),
    wrapper(
        &["setpriv"],
        "d= dump= nnp no-new-privs ambient-caps: inh-caps: bounding-set: ruid: euid: rgid: egid: reuid: regid: clear-groups keep-groups init-groups groups: list-caps= securebits: pdeathsig: ptracer: selinux-label: apparmor-profile: landlock-access: landlock-rule: seccomp-filter: reset-env h= help= V= version=",
        0,
        Runs::Elevated,
    ),
    wrapper(
        &[
            "ld-linux-x86-64.so.2",
            "ld-linux-aarch64.so.1",
            "ld-linux-armhf.so.3",
            "ld-linux.so.2",
            "ld.so",
            "ld-musl-x86_64.so.1",
            "ld-musl-aarch64.so.1",
        ],
        "list verify inhibit-cache library-path, inhibit-rpath: audit, preload, argv0: glibc-hwcaps-prepend: glibc-hwcaps-mask: list-tunables= list-diagnostics= help= version=",
        0,
        Runs::Command,
    ),
    wrapper(
        &["nix-shell"],
        "run! command! p packages pure impure keep: i. interpreter? A: attr: I: E. expr. arg. argstr. v verbose q quiet j: max-jobs: cores: help= version=",
        0,
        Runs::Options,
    ),
    wrapper(
        &["su", "runuser"],
        "c! command! l~ login~ f fast g: group: G: supp-group: m p preserve-environment P pty T no-pty s: shell: w: whitelist-environment: u. user. h= help= V= version=",
        0,
        Runs::Options,
    ),
    wrapper(
        &["script"],
        "a append c! command! e return E: echo: f flush force I> log-in> O> log-out> B> log-io> T> log-timing> m: logging-format: o: output-limit: q quiet t? timing? h= help= V= version= />",
        0,
        Runs::Options,
    ),
    wrapper(
        &["sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "rbash", "yash", "posh"],
        "a b c* e f h i k l login m n o: p posix r restricted s0 t u v x B C D E H I O: P T X norc noprofile rcfile, init-file, noediting debugger dump-strings verbose version= help=",
        0,
        Runs::Shell,
    ),
];

/// Commands whose text no reader here reads, or that run what they do not name.
const UNREAD: &[&str] = &[
    "pwsh",
    "powershell",
    "cmd",
    "fish",
    "nu",
    "csh",
    "tcsh",
    "elvish",
    "xonsh",
    "parallel",
    "coproc",
    "fc",
    "start-stop-daemon",
    "run-parts",
    "editor",
    "sensible-editor",
    "sensible-pager",
    "sensible-browser",
];

/// What a command is to this reader beside a program.
#[derive(Clone, Copy)]
pub(super) enum Known {
    Wrapper(&'static Wrapper),
    Unread,
    Find,
    Ip,
    Cmake,
    /// A command of the shell, by its name.
    Builtin(&'static str),
}

static BY_NAME: LazyLock<Table<Known>> = LazyLock::new(|| {
    let wrappers =
        WRAPPERS.iter().flat_map(|wrapper| wrapper.names.iter().map(|name| (*name, Known::Wrapper(wrapper))));
    let builtins = builtin::NAMES.iter().map(|name| (*name, Known::Builtin(name)));
    let unread = UNREAD.iter().map(|name| (*name, Known::Unread));
    let others = [("find", Known::Find), ("ip", Known::Ip), ("cmake", Known::Cmake)];
    builtins.chain(others).chain(unread).chain(wrappers).collect()
});

/// What the command of this name is.
pub(super) fn find(name: &str) -> Option<Known> {
    BY_NAME.get(name).copied()
}

/// What an option of this name is.
pub(super) fn kind(wrapper: &Wrapper, name: &str) -> Option<OptionKind> {
    let sign = wrapper.options.split(' ').find_map(|option| {
        let sign = option.strip_prefix(name)?;
        (sign.len() <= 1 && !sign.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(sign)
    })?;
    Some(match sign {
        ":" => OptionKind::Valued,
        "?" => OptionKind::Attached,
        "@" => OptionKind::Directory,
        "~" => OptionKind::Home,
        ">" => OptionKind::Written,
        "<" => OptionKind::ReadFrom,
        "," => OptionKind::Sourced,
        "+" => OptionKind::Set,
        "!" => OptionKind::Text,
        "*" => OptionKind::FirstIsText,
        "0" => OptionKind::Input,
        "^" => OptionKind::Exact,
        "%" => OptionKind::Replaced,
        "=" => OptionKind::Stays,
        "." => OptionKind::Unread,
        _ => OptionKind::Flag,
    })
}
