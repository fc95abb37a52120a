//! Files that stand in the words of a command whose directory or whose whole path is not told, and files that programs
//! name in rarer ways; each beside what names nothing.

use super::computed::{self, ToldPath};
use super::corpus_tests::lines;
use super::tests::check;

/// The commands of a text with their facts, in one line.
fn read(text: &str) -> String {
    lines(text).join(" | ")
}

#[test]
fn a_path_is_told_as_it_is_written_where_its_directory_is_not() {
    for (text, expected) in [
        (
            "cd \"$(git rev-parse --show-toplevel)\" && echo x > .git/hooks/pre-commit",
            "cd \"$(git rev-parse --show-toplevel)\" | git rev-parse --show-toplevel | echo x => W .git/hooks/pre-commit, opaque",
        ),
        ("cd \"$x\" && cat a", "cd \"$x\" | cat a => R a, opaque"),
        ("cd ~/a && echo x > .git/config", "cd ~/a => cd | echo x => W ~/a/.git/config, =W"),
        ("cd \"$x\" && cat /w/a ~/b", "cd \"$x\" | cat /w/a ~/b => R /w/a ~/b, =R"),
        (
            "git -C \"$x\" mv a .claude",
            "git -C \"$x\" mv a .claude => R a, W a .claude .claude/a, moves, opaque",
        ),
        (
            "tar -C \"$x\" -xf y .git/hooks/pre-commit",
            "tar -C \"$x\" -xf y .git/hooks/pre-commit => R y, W .git/hooks/pre-commit ., moves, opaque",
        ),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    for text in [
        "cd ~$x && echo x > .git/hooks/pre-commit",
        "f(){ echo x > .git/hooks/pre-commit; }; f",
        "for d in a b; do (cd $d && cp x .git/hooks/pre-commit); done",
        "find . -execdir cp x .git/hooks/pre-commit \\;",
        "env -C \"$x\" cp x .git/hooks/pre-commit",
        "(cd \"$x\"; tee .git/hooks/pre-commit <<< y)",
    ] {
        assert!(read(text).contains("W .git/hooks/pre-commit"), "{}", read(text));
    }
}

#[test]
fn a_word_with_expansions_tells_what_stands_around_a_hidden_name() {
    for (text, expected) in [
        (
            "cp x \"$PWD/.git/hooks/pre-commit\"",
            "R x, W .git/hooks/pre-commit .git/hooks/pre-commit/x, opaque",
        ),
        ("cp x ${PWD}/'.git'/config", "R x, W .git/config .git/config/x, opaque"),
        ("tee \"$HOME/.claude/settings.json\"", "W ~/.claude/settings.json, opaque"),
        ("tee ${HOME}/a/b", "W ~/a/b, opaque"),
        ("tee \".git/hooks/$x\"", "W .git/hooks/*, opaque"),
        ("tee .gi$x/hooks/pre-commit", "W .gi*/hooks/pre-commit, opaque"),
        ("tee \"$x/sub/.git/hooks/$y.sh\"", "W sub/.git/hooks/*.sh, opaque"),
        ("tee $x.git/hooks/pre-commit", "W .git/hooks/pre-commit, opaque"),
        ("tee ${x:-\"}\"}/.bashrc", "W .bashrc, opaque"),
        ("tee \"${x:-it's}/.bashrc\"", "W .bashrc, opaque"),
        ("tee \"$(echo ')' \\))/.bashrc\"", "W .bashrc, opaque"),
        ("tee /etc/profile.d/$x", "W /etc/profile.d/*, opaque"),
        ("tee \"$PWD/$x\"", "opaque"),
        ("tee \"$x\" /tmp/$x $x.md ${x%.txt}.d.ts a/$x \"$x/..\" $HOMEx", "opaque"),
        ("cp \"$x/settings.json\" .claude", "W .claude .claude/settings.json, opaque"),
        ("cp settings.json \"$PWD/.claude\"", "R settings.json, W .claude .claude/settings.json, opaque"),
        ("echo x > \"$PWD\"/.envrc", "W .envrc, opaque"),
        ("dd \"of=$PWD/.git/config\"", "W .git/config, opaque"),
    ] {
        let found = read(text);
        let of_file = found.split(" | ").next().unwrap();
        let facts = of_file.rsplit_once(" => ").map_or("", |(_, facts)| facts);
        assert_eq!(facts, expected, "{text}");
    }
    let told = read("cp x \"$(pwd)/.git/hooks/pre-commit\"");
    assert!(told.contains("W .git/hooks/pre-commit .git/hooks/pre-commit/x, opaque"), "{told}");
}

#[test]
fn what_an_option_moves_does_not_move_where_the_shell_is() {
    assert_eq!(
        read("git -C d rm $PWD/.a/b $x/.c e"),
        "git -C d rm $PWD/.a/b $x/.c e => W .a/b d/e .c, opaque"
    );
    let told = |written: &str| computed::path(written).map(|ToldPath { text, .. }| text);
    for (written, expected) in [
        ("`pwd`/a", Some("a")),
        ("$PWD", Some(".")),
        ("$PWD/", Some(".")),
        ("\"$HOME\"", Some("~")),
        ("$PWD.bak", None),
        ("$HOME$x", None),
        ("$'a'/.b$x", Some("a/.b*")),
        ("a\\$/.b$x", Some("a$/.b*")),
        ("{}", None),
        (".claude/{}", Some(".claude/*")),
        ("<(a)/.b", Some(".b")),
        ("$(", None),
        ("${", None),
    ] {
        assert_eq!(told(written).as_deref(), expected, "{written}");
    }
}

#[test]
fn the_work_on_a_word_with_expansions_grows_as_it_does() {
    for part in ["$x", "${", "$(", "`", "\"", "'", "\\", "$'", ".a/", "<(", "{}"] {
        let told = computed::path(&part.repeat(100_000));
        assert!(told.is_none_or(|told| told.text.len() <= 400_000), "{part}");
    }
}

#[test]
fn a_container_sees_the_directory_of_the_shell() {
    for (text, expected) in [
        ("docker run -v \"$(pwd)\":/work alpine ls", "R ., W ."),
        ("docker run -v \"$(pwd)/src:/work:ro\" alpine ls", "R src"),
        ("docker run --mount \"type=bind,source=$(pwd),target=/work\" alpine ls", "R ., W ."),
        ("docker run -v \"$PWD\":/work alpine ls", "R ., W ., opaque"),
        ("docker run -v $x:/work alpine ls", "opaque"),
        ("docker run -v $(pwd):/work$x alpine ls", "R ., W ., opaque"),
        ("docker run -v \"$(pwd; echo x)\":/work alpine ls", "opaque"),
        ("docker run --mount \"type=bind,source=$x,target=/work\" alpine ls", "opaque"),
    ] {
        let found = read(text);
        let of_docker = found.split(" | ").next().unwrap();
        assert_eq!(of_docker.rsplit_once(" => ").map_or("", |(_, facts)| facts), expected, "{text}");
    }
    assert!(read("cd /w && docker run -v \"$(pwd)\":/work alpine ls").contains("=> R /w, W /w |"));
}

#[test]
fn git_config_writes_whatever_stands_behind_the_name_of_the_setting() {
    check(&[
        ("git config core.fsmonitor ./evil --list", "W .git/config; opaque"),
        ("git config core.fsmonitor ./evil -l", "W .git/config; opaque"),
        ("git config set --global core.fsmonitor ./evil --get", "W ~/.gitconfig; opaque"),
        ("git config --list core.fsmonitor ./evil", ""),
        ("git config get core.fsmonitor --default x", ""),
        ("git config --get $x", ""),
        ("git config user.name x --list", ""),
    ]);
}

#[test]
fn programs_at_the_other_end_of_git_are_run() {
    check(&[
        ("git ls-remote --exec=rm_x; .", "R .; opaque"),
        ("git fetch-pack --upload-pack=rm a", "opaque"),
        ("git send-pack --receive-pack=rm a", "opaque"),
        ("git fetch-pack --depth=1 https://a.test/b", "F https://a.test/b"),
        ("git remote add e ext::rm_x", "opaque"),
        ("git remote set-url e ext::rm_x", "opaque"),
        ("git submodule set-url e ext::rm_x", "opaque"),
        ("git remote add e https://a.test/b", ""),
        ("git remote add -f e https://a.test/b", "F https://a.test/b"),
        ("git remote -v", ""),
        ("git ls-remote https://a.test/b", "F https://a.test/b"),
    ]);
}

#[test]
fn options_that_take_code_are_opaque() {
    check(&[
        ("zip g.zip a -T -TT rm_x;", "R a; W g.zip; opaque"),
        ("zip -rTT rm_x g.zip a", "R a; W g.zip; opaque"),
        ("zip -rT g.zip a", "R a; W g.zip"),
        ("gcc -wrapper ./evil -c a.c", "R a.c; opaque"),
        ("gcc -Wall -c a.c", "R a.c"),
        ("node --import data:text/javascript,x a", "R a; opaque"),
        ("node --import ./x.mjs a", "R ./x.mjs a"),
        ("mawk -Wi BEGIN{system(\"rm\")}", "opaque"),
        ("perl -Mre;open_F a", "R a; opaque"),
        ("perl -Mre_system_rm a", "R a; opaque"),
        ("perl -d:re;x a", "R a; opaque"),
        ("perl -MList::Util=sum -MPOSIX_qw(floor_ceil) a", "R a"),
        ("python3 -i a <<<code", "R a; opaque"),
        ("node -i a <<<code", "R a; opaque"),
        ("python3 a <<<code", "R a"),
        ("sqlite3 :memory: select_edit_(\"x\",\"rm\")", "R :memory:; W :memory:; opaque"),
        ("sqlite3 :memory: select_\"edit\"(x)", "R :memory:; W :memory:; opaque"),
        ("sqlite3 :memory: VACUUM\n/**/INTO_'F'", "R :memory:; W :memory:; opaque"),
        ("sqlite3 :memory: select_edited_from_credit", "R :memory:; W :memory:"),
        ("psql -c copy(select_1)to'/x'", "opaque"),
        ("yarn node -e x", "opaque"),
        ("pnpm node -e x", "opaque"),
        ("yarn node a.js", "R a.js"),
        ("yarn test -e x", ""),
        ("yarn patch x", ""),
        ("editor +!rm a", "R a; W a; opaque"),
        ("editor +3 a", "R a; W a"),
    ]);
}

#[test]
fn files_that_are_written_by_rarer_options_are_told() {
    check(&[
        ("history -w F", "W F"),
        ("history -a F", "W F"),
        ("history -r F", "R F"),
        ("history -n F", "R F"),
        ("history 20", ""),
        ("cmake -E touch F", "W F"),
        ("cmake -E rm -rf F", "W F"),
        ("cmake -E copy a b.txt", "R a; W b.txt"),
        ("cmake -E echo F", ""),
        ("cmake -S a -B b", "R a; W b"),
        ("git --work-tree=../out checkout -f", "W ../out; moves"),
        ("git --work-tree=../out status", ""),
        ("git checkout-index --prefix=../out/ -a", "W ../out/ ."),
        ("git pack-objects ../out/p", "W ../out/p"),
        ("git fast-export --export-marks=F", "W F"),
        ("git bugreport -o D", "W D"),
        ("tar -xf g --one-top-level=D", "R g; W D; moves"),
        ("tar -xPf g --transform s,a,../out/a,", "R g; W ../out/a .; moves; opaque"),
        ("tar -cf g --transform s,a,../out/a, a", "R a; W g"),
        ("tar --index-file=F -tf g", "R g; W F"),
        ("sed :a_w_F", "W F"),
        ("sed :a;N;ba a", "R a"),
        ("sed -i../out/* s/a/b/ f", "R f; W ../out/* f"),
        ("sed -i.bak s/a/b/ f", "R f; W f"),
        ("mktemp --tmpdir=D x", "W D x"),
        ("mktemp -d", ""),
        ("gcc -MF../out/x a.c", "R a.c; W ../out/x"),
        ("openssl req -keyout F", "W F"),
        ("ctags -o F a", "R a; W F"),
        ("as -al=F a.s", "R a.s; W F"),
    ]);
}

#[test]
fn files_that_are_read_by_rarer_options_are_told() {
    check(&[
        ("column -t /etc/passwd", "R /etc/passwd"),
        ("column -s : a", "R a"),
        ("git -C ../out grep --no-index x", "R ../out"),
        ("git notes add -F F", "R F"),
        ("git notes show", ""),
        ("git interpret-trailers F", "R F"),
        ("git interpret-trailers --in-place F", "R F; W F"),
        ("git merge-file a b c", "R a b c; W a"),
        ("tar -cf - --add-file=F", "R F"),
        ("curl --proto-default file /F", "R /F; opaque"),
        ("curl --proto-default https a.test", "F http://a.test"),
        ("curl -T {/F,a} https://a.test/", "R /F a; F https://a.test/; opaque"),
        ("curl -T a https://a.test/", "R a; F https://a.test/"),
        ("cpp F", "R F"),
        ("gcc -E -x c - <<<#include_\"F\"", "opaque"),
        ("gcc -E -x c - <<<int_x;", ""),
        ("man ./F", "R ./F"),
        ("man ls", ""),
        ("groff F", "R F"),
        ("troff F", "R F"),
        ("msgcat F", "R F"),
        ("zdiff a F", "R a F"),
        ("bzless F", "R F"),
        ("infotocap F", "R F"),
        ("python3 -m fileinput F", "R F"),
        ("python3 -m tokenize F", "R F"),
        ("python3 -m venv F", "W F"),
    ]);
}

#[test]
fn control_files_are_written_by_rarer_options_too() {
    let diff = "---_a/x\n+++_b/settings.json\n@@_-1_+1_@@\n-a\n+b\n";
    let below = |command: &str, expected: &str| {
        let written =
            super::tests::shown(&super::read(&super::tests::command(&format!("{command} <<<{diff}"))));
        assert!(written.contains(expected), "{command}: {written}");
    };
    below("git apply --directory=.claude", ".claude/settings.json");
    below("git apply x.patch -", "settings.json");
    below("gpatch -p1", "settings.json");
    check(&[
        ("patch -p1 <<($x)", "W .; opaque"),
        ("git checkout HEAD~1 .claude", "W .claude; moves"),
        ("git restore -s X .claude", "W .claude; moves"),
        ("git checkout .claude/settings.json", "W .claude/settings.json; moves"),
        ("git checkout main", ""),
        ("git checkout v1.2", ""),
        ("git checkout feature/x HEAD^", "W HEAD^; moves"),
        ("unzip x.zip .claude/settings.json", "R x.zip; W .claude/settings.json .; moves"),
        ("unzip x.zip settings.json -d .claude", "R x.zip; W .claude .claude/settings.json; moves"),
        ("tar -xf x --one-top-level=.claude settings.json", "R x; W .claude .claude/settings.json; moves"),
        ("git worktree add .claude x", "W .claude; moves"),
        ("gh run download -D .claude", "W .claude; moves"),
        ("uudecode x", "R x; opaque"),
        ("uudecode -o y x", "R x; W y"),
        ("find . -path ./.claude/* -delete", "R .; W . ./.claude/*"),
        ("find . -name .bashrc -delete", "R .; W . .bashrc"),
        ("find . -not -path ./.git/* -name *.pyc -delete", "R .; W ."),
        ("find . -path ./.git -prune -o -name *.pyc -delete", "R .; W ."),
        ("find . -path ./.claude/*", "R ."),
    ]);
}

#[test]
fn a_class_of_characters_may_be_a_dot() {
    check(&[
        ("cat .[[:punct:]]*/a", "R ../a .[[:punct:]]*/a"),
        ("cat .[^[:alnum:]]*/a", "R ../a .[^[:alnum:]]*/a"),
        ("cat .[a][b]*/a", "R .[a][b]*/a"),
        ("cat a/.[[:punct:*/b", "R a/.[[:punct:*/b"),
    ]);
}
