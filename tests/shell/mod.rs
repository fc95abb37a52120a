//! The reader of shell commands beside bash itself.

mod generate;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use generate::Chance;
use postern::provider::kind::shell::division::{
    DividedCommand, Division, RedirectionKind, Word, WordForm, WorkingDirectory, divide,
};

const TEXTS: u64 = 200;

/// Where the programs of the system stand that the tests run.
const SYSTEM: [&str; 4] = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Programs that run another, which are the system's own.
const WRAPPERS: [&str; 6] = ["bash", "env", "find", "nice", "nohup", "timeout"];

/// The programs of the generated texts, none of which does anything but record what it is given.
const STUBS: [&str; 9] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "time"];

/// A program as bash ran it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ran {
    directory: String,
    words: Vec<String>,
}

#[test]
fn generated_commands_are_divided_as_bash_runs_them() {
    let (mut told, mut different) = (0, Vec::new());
    for seed in 0..TEXTS {
        let text = generate::script(&mut Chance::new(seed));
        let division = divide(&text, &WorkingDirectory::Unsaid);
        if division.is_opaque {
            continue;
        }
        told += 1;
        let directory = tempfile::tempdir().unwrap();
        let (ran, written) = run(&text, directory.path());
        different.extend(difference(&division, &ran, &written).map(|how| (text, how)));
    }
    if let Some((text, how)) = different.iter().min_by_key(|(text, _)| text.len()) {
        panic!("{} differ: {text:?}\n{text}\n{how}", different.len());
    }
    assert!(told * 4 > TEXTS * 3, "{told} of {TEXTS} texts were read");
}

#[test]
fn what_bash_does_not_read_is_opaque() {
    let mut refused = 0;
    for seed in 0..300 {
        let mut chance = Chance::new(seed);
        let script = generate::script(&mut chance);
        for text in [generate::soup(&mut chance), generate::broken(&script, &mut chance), script] {
            let mut bash = Command::new(system("bash"));
            let is_read = bash.env_clear().args(["-n", "-c", "--", &text]).stderr(Stdio::null()).status();
            if !is_read.unwrap().success() {
                refused += 1;
                assert!(divide(&text, &WorkingDirectory::Unsaid).is_opaque, "bash refuses {text:?}");
            }
        }
    }
    assert!(refused > 200, "bash refused {refused} texts");
}

/// The file of a program. A machine without it fails the test: what was not compared is not known to be the same.
fn system(name: &str) -> PathBuf {
    let files = SYSTEM.iter().map(|directory| Path::new(directory).join(name));
    files
        .into_iter()
        .find(|file| file.exists())
        .unwrap_or_else(|| panic!("these tests run {name}: install it in {SYSTEM:?}"))
}

/// A directory with the programs that a text may run, and one in which it runs.
fn workshop(root: &Path) {
    let names = ["d0", "d1"];
    for (a, b, c) in names.iter().flat_map(|a| names.iter().flat_map(move |b| names.map(|c| (*a, *b, c)))) {
        fs::create_dir_all(root.join("w").join(a).join(b).join(c)).unwrap();
    }
    // What `time` prints must not end the shell where the program behind the bar is gone.
    fs::write(root.join("start"), "trap '' PIPE").unwrap();
    fs::create_dir(root.join("log")).unwrap();
    fs::create_dir(root.join("bin")).unwrap();
    for name in WRAPPERS {
        symlink(system(name), root.join("bin").join(name)).unwrap();
    }
    let stub = root.join("bin/stub");
    let log = root.join("log");
    let record = format!(
        "#!/bin/sh\nprintf '%s\\0' \"$PWD\" \"$#\" \"${{0##*/}}\" \"$@\" >> '{}'/$$\n",
        log.display()
    );
    // A program that this process writes cannot be run while the child of another test still has the file open.
    let written = Command::new(system("sh"))
        .args(["-c", r#"printf %s "$1" > "$2" && chmod 755 "$2""#, "sh"])
        .args([OsStr::new(&record), stub.as_os_str()])
        .status();
    assert!(written.unwrap().success());
    for name in STUBS {
        symlink(&stub, root.join("bin").join(name)).unwrap();
    }
}

/// Runs a text where there are no programs but these; returns the programs that ran and the files that were written.
fn run(text: &str, below: &Path) -> (Vec<Ran>, BTreeSet<String>) {
    let root = below.canonicalize().unwrap();
    workshop(&root);
    Command::new(system("bash"))
        .args(["--norc", "--noprofile", "-c", text])
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("PATH", root.join("bin"))
        .env("BASH_ENV", root.join("start"))
        .current_dir(root.join("w"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let logs = files(&root.join("log"), "");
    let ran =
        logs.iter().flat_map(|log| recorded(&root, &fs::read_to_string(root.join("log").join(log)).unwrap()));
    (ran.collect(), files(&root.join("w"), ""))
}

/// What one process recorded.
fn recorded(root: &Path, log: &str) -> Vec<Ran> {
    let mut parts = log.split_terminator('\0');
    let mut ran = Vec::new();
    while let Some(directory) = parts.next() {
        let count: usize = parts.next().unwrap().parse().unwrap();
        let words = parts.by_ref().take(count + 1).map(str::to_owned).collect();
        let directory = Path::new(directory).strip_prefix(root.join("w")).unwrap().display().to_string();
        ran.push(Ran { directory, words });
    }
    ran
}

fn files(directory: &Path, shown: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = format!("{shown}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path(), &format!("{name}/")));
        } else {
            found.insert(name);
        }
    }
    found
}

/// How the programs that ran differ from the commands that were read: a word that is computed is any one word.
fn difference(division: &Division, ran: &[Ran], written: &BTreeSet<String>) -> Option<String> {
    let of_shell = ["cd", "pushd", ":", "wait", "find"];
    let program = |command: &DividedCommand| command.words.first().map(|word| word.text.clone());
    let is_run =
        |command: &&DividedCommand| program(command).is_some_and(|name| !of_shell.contains(&name.as_str()));
    let mut taken_by = vec![None; ran.len()];
    let commands: Vec<&DividedCommand> = division.commands.iter().filter(is_run).collect();
    for at in 0..commands.len() {
        if !take(at, &commands, ran, &mut taken_by, &mut vec![false; ran.len()]) {
            return Some(format!("did not run: {:?}\nran: {ran:?}", commands[at]));
        }
    }
    // A brace list beside it repeats a substitution, so that a command may have run twice.
    let unread: Vec<&Ran> =
        ran.iter().filter(|ran| !commands.iter().any(|command| is_same(command, ran))).collect();
    if !unread.is_empty() {
        return Some(format!("not read: {unread:?}"));
    }
    let is_told = division.commands.iter().all(|command| {
        // Where it failed to go there, nothing is written.
        matches!(&*command.directories, [directory] if shown(directory).is_some())
    });
    let read: BTreeSet<String> = division.commands.iter().flat_map(targets).collect();
    (is_told && read != *written).then(|| format!("files {read:?}, written {written:?}"))
}

/// Finds one that ran for a command, and another one for the command that had it: what is computed fits several.
fn take(
    command: usize,
    commands: &[&DividedCommand],
    ran: &[Ran],
    taken_by: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    (0..ran.len()).any(|at| {
        if tried[at] || !is_same(commands[command], &ran[at]) {
            return false;
        }
        tried[at] = true;
        let is_free = taken_by[at].is_none_or(|other| take(other, commands, ran, taken_by, tried));
        if is_free {
            taken_by[at] = Some(command);
        }
        is_free
    })
}

/// The files that a command writes by its redirections, where it is told.
fn targets(command: &DividedCommand) -> Vec<String> {
    let Some(directory) = command.directories.first().and_then(shown) else { return Vec::new() };
    let written = command.redirections.iter().filter(|to| to.kind == RedirectionKind::Write);
    let files = written.map(|to| to.target.text.as_str()).filter(|file| *file != "/dev/null");
    files.map(|file| Path::new(directory).join(file).display().to_string()).collect()
}

fn shown(directory: &WorkingDirectory) -> Option<&str> {
    match directory {
        WorkingDirectory::Unsaid => Some(""),
        WorkingDirectory::At(directory) => Some(directory),
        WorkingDirectory::Computed => None,
    }
}

fn is_same(command: &DividedCommand, ran: &Ran) -> bool {
    // `time` is a program behind `|`.
    let words = ran.words.strip_prefix(["time".to_owned()].as_slice()).unwrap_or(&ran.words);
    let same = |(word, given): (&Word, &String)| word.form != WordForm::Literal || word.text == *given;
    command.directories.iter().any(|place| shown(place).is_none_or(|directory| directory == ran.directory))
        && command.words.len() == words.len()
        && command.words.iter().zip(words).all(same)
}
