//! Commands and values where nobody looks for them: each beside what everybody writes.

use super::*;

/// Asserts that nothing of these texts is opaque, and that no variable counts that a program looks at.
#[track_caller]
fn assert_plain(texts: &[&str]) {
    for text in texts {
        let division = divide(text, &WorkingDirectory::Unsaid);
        assert!(!division.is_opaque && !division.has_assignments, "{text}: {division:?}");
    }
}

#[track_caller]
fn assert_assigning(texts: &[&str]) {
    for text in texts {
        assert!(divide(text, &WorkingDirectory::Unsaid).has_assignments, "{text}");
    }
}

#[test]
fn arithmetic_that_may_run_a_text_is_opaque() {
    assert_opaque(&[
        "[[ 'a[$(rm x)]' -eq 1 ]]",
        "[[ 1 -lt a\\[\\`rm\\ x\\`\\] ]]",
        "[[ 'a[$(rm x)]'$y -eq 1 ]]",
        "[[ -v 'a[$(rm x)]' ]]",
        "test -v 'a[$(rm x)]'",
        "[ -v 'a[$(rm x)]' ]",
        "let 'a[$(rm x)]=1'",
        "printf -v 'a[$(rm x)]' x",
        "read 'a[$(rm x)]' <<< x",
        "unset 'a[$(rm x)]'",
        "declare -i q='a[$(rm x)]'",
        "x='a[$(rm x)]'; ((x))",
        "read x <<< 'a[$(rm x)]'; ((x))",
        "read x <<'E'; ((x))\na[$(rm x)]\nE",
        "for x in 'a[$(rm x)]'; do ((x)); done",
        "echo ${HOME:'a[$(rm x)]'}",
        "echo ${a['$'\"(rm x)\"]}",
        "echo $(( \"a[\\$(rm x)]\" ))",
        "unset 'a[$''(rm x)]'$y",
        "echo 'a[$(rm x)]'$y | while read x; do ((x)); done",
        "x='$(rm x)'; echo \"${x@P}\"",
    ]);
    assert_plain(&[
        "[[ $x -eq 1 && \"$#\" -lt 2 && -v HOME ]]",
        "[[ $(grep -c 'a[b]' f) -gt 0 && ${#a[@]} -gt 0 ]]",
        "[ \"$(grep -c '[a]' f)\" = 1 ]",
        "printf '%s `a`' x",
        "let i=i+1; ((i++)); echo $((i + 1)) ${a[$i]}",
        "bash -lc 'echo $(date); ((i++)); echo `a`'",
        "echo \"${x:-a} ${y##*/} ${z%.*}\"",
        "echo \"$(grep -c 'x' f)\"; ((i++))",
        "git commit -m 'see `x`' && echo ${x:-a} \"${y##*:}\" ${z%%[a-z]*}",
        "local x=\"$(grep -o '[0-9]*' f)\"; ((x))",
    ]);
    assert!(!read("x='see `a`'; echo \"$x\"").1);
}

#[test]
fn variables_that_programs_look_at_are_assigned_in_loops_and_arithmetic_too() {
    assert_assigning(&[
        "for PATH in ./a; do b; done",
        "select NODE_OPTIONS in ./a; do b; done",
        "((PATH=1)); a",
        "((i = PATH++)); a",
        "((--PATH)); a",
        "(($x=1)); a",
        "((PATH <<= 1)); a",
        "for ((PATH=0;;)); do a; done",
        "echo $((PATH=1))",
        ": ${PATH:=a}",
        "[[ PATH=1 -eq 1 ]] && a",
        "strace -E PATH=. a",
    ]);
    assert_plain(&[
        "for file in a b; do c; done",
        "for ((i=0;i<3;i++)); do a; done",
        "((X == 2 || Y <= 3 || Z >= 4 || Z != 5)); a",
        ": ${X:-a} ${x:=a}",
    ]);
}

#[test]
fn variables_and_commands_of_the_shell_that_run_texts_are_opaque() {
    assert_opaque(&[
        "PS4='$(rm x)'; set -x; a",
        "BASH_CMDS[ls]=/bin/rm; ls x",
        "env GIT_SSH_COMMAND='rm x' git fetch",
        "export PAGER=./x; git log",
        "jobs -x rm x",
        "compgen -C 'rm x'",
        "mapfile -C 'rm x #' -c 1 <<< a",
        "strace -o '|rm x' a",
        "bash --rcfile ./x -ic a",
        "bash --init-file ./x -ic a",
    ]);
    for text in ["GIT_PAGER=cat git log", "ENV=prod npm start", "export PATH=$PATH:a; b", "mapfile -t a < b"]
    {
        assert!(!read(text).1, "{text}");
    }
}

#[test]
fn a_program_in_a_directory_of_somebody_is_none_of_the_shell_or_the_system() {
    assert_divided(&[
        ("./timeout 5 a", &["./timeout 5 a", "a"]),
        ("TIMEOUT 5 a", &["TIMEOUT 5 a", "a"]),
        ("/usr/bin/timeout 5 a", &["a"]),
        ("./bash -c a", &["./bash -c a", "a"]),
        ("env /x=y rm a", &["rm a"]),
        ("env ./a=b cat c", &["cat c"]),
        ("sudo a/b=c rm x", &["sudo a/b=c rm x", "rm x"]),
    ]);
    let division = divide("cd /etc; ./cd /workspace; /tmp/pushd x; cat y", &WorkingDirectory::Unsaid);
    assert_eq!(division.commands[3].directories[0], WorkingDirectory::At("/etc".into()));
}

#[test]
fn a_shell_reads_its_own_input_alone() {
    assert_divided(&[
        ("bash <<< 'rm x' 3<<< ls", &["", "rm x"]),
        ("bash 0<<< 'rm x' 03<<< ls", &["", "rm x"]),
        ("bash <<'A' 3<<'B'\nrm x\nA\nls\nB", &["bash", "rm x"]),
        ("bash //dev/stdin <<< 'rm x'", &["", "rm x"]),
        ("cd /dev && bash stdin <<< 'rm x'", &["cd /dev", "", "rm x"]),
        ("bash /a/../dev/./stdin <<< 'rm x'", &["", "rm x"]),
        ("bash a 3< b", &["bash a"]),
        ("bash < a", &["bash"]),
        ("rm {}>x", &["rm {}"]),
    ]);
    assert_opaque(&[
        "bash 3<<< ls",
        "bash 3< a",
        "bash <<< ls 3<<< 'rm x' <&3",
        "bash <<< ls 0>&3",
        "bash <<< ls < a",
        "bash < /dev/tcp/a/80",
        ". //dev/stdin <<< ls",
    ]);
}

#[test]
fn programs_that_run_another_are_wrappers_whatever_they_are_called_for() {
    let inner: &[&str] = &["rm x"];
    for text in [
        "setarch x86_64 rm x",
        "setarch -R rm x",
        "setarch x86_64 -R rm x",
        "i386 rm x",
        "ssh-agent rm x",
        "prlimit --nofile=10 rm x",
        "sg root -c 'rm x'",
        "direnv exec . rm x",
        "nix-shell -p git --run 'rm x'",
        "entr -r rm x",
        "hyperfine -w 3 'rm x'",
    ] {
        assert_divided(&[(text, inner)]);
    }
    assert_divided(&[
        ("/lib64/ld-linux-x86-64.so.2 /bin/cat a", &["/lib64/ld-linux-x86-64.so.2 /bin/cat a", "/bin/cat a"]),
        ("setpriv --reuid 1 rm x", &["setpriv --reuid 1 rm x", "rm x"]),
        ("hyperfine 'rm x' 'ls y'", &["rm x", "ls y"]),
        ("direnv allow .", &["direnv allow ."]),
        ("ip addr show eth0", &["ip addr show eth0"]),
    ]);
    assert_opaque(&["ip netns exec a rm x", "ip net e a rm x", "tcsh <<< 'rm x'", "fish"]);
}

#[test]
fn files_that_wrappers_write_are_told() {
    for (text, file) in [
        ("script -c 'npm test' /etc/x", Some("/etc/x")),
        ("flock /etc/x npm test", Some("/etc/x")),
        ("flock 9 npm test", None),
        ("time -o /etc/x npm test", Some("/etc/x")),
    ] {
        let division = divide(text, &WorkingDirectory::Unsaid);
        let mut written = division.commands.iter().flat_map(|command| &command.redirections);
        assert_eq!(written.next().map(|to| to.target.text.as_str()), file, "{text}");
        assert!(division.commands.iter().any(|command| joined(command) == "npm test"), "{text}");
    }
}

#[test]
fn a_text_that_any_command_is_given_may_reach_arithmetic() {
    assert_opaque(&[
        "f() { (($1)); }; f 'a[$(rm x)]'",
        "f() { [[ $1 -gt 3 ]]; }; f 'a[$(rm x)]'",
        "f() { echo ${HOME:$1}; }; f 'a[$(rm x)]'",
        "f() { local y=$1; ((y)); }; f 'a[$(rm x)]'",
        "f() { (($1)); }; f \"$y\"'a[$(rm x)]'",
        "f() { (($1$2)); }; f {'a[$',}'(rm x)]'",
        "f() { (($1$2)); }; f 'a[$' '(rm x)]'",
        "x='a[$' y='(rm x)]'; (($x$y))",
        "for x in 'a[$' '(rm x)]'; do y=$y$x; ((y)); done",
        "a=(); declare a='($(rm x))'",
        "f() { local a=(1); local a=$1; }; f '($(rm x))'",
        "f() { local a=(1); local \"a=$1\"; }; f '($(rm x))'",
        "x=$(sed 's/.*/a[$(rm x)]/' a); ((x > 1))",
        "[[ $(sed 's/.*/a[$(rm x)]/' a) -eq 1 ]]",
        "x=$(awk '{print \"a[`rm x`]\"}' b); ((x))",
        "x=$(grep -o '.*' <<< 'a[$(rm x)]'); ((x))",
        "read -u 3 x 3<<< 'a[$(rm x)]'; ((x))",
        "env x='a[$(rm x)]' bash -c '((x))'",
        "exec -a 'a[$(rm x)]' bash -c '(($0))'",
        "cat > g <<'E'\na[$(rm x)]\nE\nx=$(cat g); ((x))",
        "cat > g <<E\na[\\$(rm x)] $y\nE\nx=$(cat g); ((x))",
        "while read x; do ((x)); done <<< 'a[$(rm x)]'",
        "y='a[$(rm x)]'; z=([y]=1)",
        "find . -name 'a[$(rm x)]' | while read x; do ((x)); done",
        "[[ 'a[$(rm x)]' =~ .* ]]; ((BASH_REMATCH))",
        "x=$(printf 'a[\\x24(rm x)]'); ((x))",
        "x=$(printf 'a[\\044(rm x)]'); ((x))",
        "git commit -m 'see `x`' && ((i++))",
    ]);
    assert_plain(&[
        "f() { (($1)); }; f 3",
        "git commit -m 'see `x`' && echo ${x:-a}",
        "grep '^a$' b && ((i++))",
        "find . \\( -name a -o -name b \\) | grep 'c$'; ((i++))",
        "f() { local a=(1) b=$1; }; f '(a)'",
        "cat > g <<'E'\nsee `a` and $(b)\nE",
        "bash <<'E'\necho $(date); ((i++))\nE",
        "bash <<< 'echo $(date); ((i++))'",
        "sudo -u a ls; trap 'echo $(date)' EXIT; ((i++))",
        "eval 'echo $(date)' 'a'; ((i++))",
        "[[ $(wc -l < a) -gt 3 ]] && b",
    ]);
}

#[test]
fn operands_of_a_shell_are_texts_that_its_script_may_evaluate() {
    assert_opaque(&[
        "bash -c '[[ $1 -eq 1 ]] || npm test' _ 'a[$(rm x)]'",
        "bash -c '(($0))' 'a[$(rm x)]'",
        "bash -s 'a[$(rm x)]' <<< '(($1)); npm test'",
        "bash -s 'a[$(rm x)]' <<'E'\n(($1)); npm test\nE",
        "su -c '(($1))' a -- 'a[$(rm x)]'",
        "bash -c '(($1)) # a[$(rm x)]' _ 'a[$(rm x)]'",
        "sudo bash -c '(($1))' _ 'a[$(rm x)]'",
    ]);
    assert_assigning(&["bash -c '(($1)); npm test' _ PATH=1"]);
    assert_plain(&["bash -c '(($1)); echo $(date)' _ 3", "bash -s a <<< '(($1)); npm test'"]);
}

#[test]
fn arithmetic_anywhere_in_an_expansion_sets_variables() {
    assert_assigning(&[
        "[[ -n \"${a[PATH=1]}\" ]]; npm test",
        "[[ -n ${HOME:PATH=1} ]]; npm test",
        "[[ -n ${HOME:0:PATH=1} ]]; npm test",
        "[[ -n ${@:PATH=1} ]]; npm test",
        "[[ -n ${#a[PATH=1]} ]]; npm test",
        "[[ -n ${a[PATH++]:-b} ]]; npm test",
        "[[ ${PATH[0]:=a} ]]; npm test",
        "[[ ${PATH::=a} ]]; npm test",
        "cd . {PATH}</dev/null && npm test",
        "pushd . {PATH}</dev/null && npm test",
        "command cd . {PATH[0]}</dev/null && npm test",
        "cd . {a[PATH=1]}</dev/null && npm test",
    ]);
    assert_plain(&[
        "echo ${HOME:1:3} ${a[i]} ${a[$i]} ${#a[@]}",
        "echo ${x:-A=b} ${x#*A=} ${x/A=/b} ${x%%:*}",
        "a {fd}< b",
    ]);
}

#[test]
fn words_of_a_loop_that_arithmetic_evaluates_set_variables() {
    assert_assigning(&[
        "for x in PATH=1; do ((x)); npm test; done",
        "for x in PATH=1; do [[ x -eq 1 ]]; npm test; done",
        "for x in PATH=1; do [[ $x -eq 1 ]]; npm test; done",
        "for x in PATH{=,}1; do ((x)); npm test; done",
        "for x in 'b=PATH=1'; do ((x)); npm test; done",
        "for x in PATH++; do npm ${y[x]}; done",
        "for x in --PATH; do npm $((x)); done",
        "[[ ${x:=PATH=1} ]]; ((x)); npm test",
        "[[ PATH=1 =~ .* ]]; ((BASH_REMATCH)); npm test",
    ]);
    assert_plain(&[
        "for x in 1 2 A; do ((x)); npm test; done",
        "for x in A=1; do npm test; done",
        "for x in a --verbose; do ((i++)); done",
    ]);
}

#[test]
fn a_shell_that_reads_a_descriptor_reads_what_is_not_told() {
    assert_opaque(&[
        "bash /dev/fd/3 3<<< 'rm x' <<< ls",
        "bash /proc/self/fd/3 3<<< 'rm x' <<< ls",
        "sh /dev/fd/7 7<<A <<B\nrm x\nA\nls\nB",
        "exec 3<<< 'rm x'; bash /dev/fd/3 <<< ls",
        "cd /dev/fd && bash 3 3<<< 'rm x' <<< ls",
        "bash /proc/thread-self/fd/3 <<< ls",
        "bash < /dev/fd/3",
        ". /dev/fd/3",
    ]);
    assert_divided(&[
        ("bash /dev/fd/0 <<< 'rm x'", &["", "rm x"]),
        ("bash /proc/self/fd/0 <<< 'rm x'", &["", "rm x"]),
        ("bash - <<< 'rm x'", &["", "rm x"]),
        ("bash /dev/null", &["bash /dev/null"]),
    ]);
}

#[test]
fn a_name_that_stands_for_another_variable_is_looked_through() {
    assert_opaque(&[
        "declare -n r='a[$(rm x)]'; r=1",
        "typeset -n r='a[$(rm x)]'; echo $r",
        "f() { local -n r='a[$(rm x)]'; r=1; }",
        "declare -n r=PAGER; r=./a; git log",
        "x=PAGER; declare $x=./a; git log",
        "export \"$x\"",
        "read -r $x <<< ./a",
        "printf -v \"$x\" ./a",
        "printf -v$x ./a",
        "[[ ${!x:=./a} ]]; git log",
        "[[ ${PAGER[0]:=./a} ]]; git log",
        "export \"PAGER=$x\"",
        "declare 'BASH_CMDS[ls]=./a'; ls",
        "env A=1 \"PAGER=$x\" git log",
        "env A=1 \"$x=./a\" git log",
    ]);
    for text in [
        "x=CDPATH; declare $x=/r; cd a && cat x",
        "export \"$y\"; cd a && cat x",
        "declare -n r=CDPATH; r=/r; cd a && cat x",
        "read $y <<< /r; cd a && cat x",
        "export \"CDPATH=$y\"; cd a && cat x",
        "((CDPATH=1)); cd a && cat x",
        "printf -v CDPATH[0] /r; cd a && cat x",
        "export \"CDPATH+=/r\"; cd a && cat x",
        "declare 'CDPATH[0]=/r'; cd a && cat x",
    ] {
        assert_eq!(places(text), ["?"], "{text}");
    }
    assert_plain(&[
        "declare -n r=a; echo $r",
        "export A=$b \"C=$d\"; e",
        "read -rp \"$a\" b; read -d '' -n $c d",
        "wait $!; unset $a GIT_DIR GIT_TRACE PAGER",
    ]);
    for text in ["declare a=$b; cd a && cat x", "wait $!; [ -v $y ]; cd a && cat x"] {
        assert_eq!(places(text), ["/w/a"], "{text}");
    }
}

#[test]
fn variables_whose_names_begin_or_end_as_those_that_run_do_are_opaque() {
    assert_opaque(&[
        "env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls",
        "TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=./a' tar cf g f",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm y' git x",
        "GIT_CONFIG_PARAMETERS=\"'alias.x=!rm y'\" git x",
        "GIT_TRACE=/etc/x git status",
        "GIT_TRACE2_EVENT=/etc/x git status",
        "GIT_WORK_TREE=../a git checkout -f",
        "SHELL=./a script -c x /dev/null",
        "ENV=a sh -ic :",
        "export ENV=a; sh -i -c :",
        "ENV=a sh -o interactive -c :",
        "KUBE_EDITOR=./a kubectl edit b",
        "SUDO_EDITOR=./a sudoedit b",
        "AWS_PAGER=./a aws s3 ls",
        "RIPGREP_CONFIG_PATH=a rg b",
        "SUDO_ASKPASS=./a sudo -A b",
    ]);
    for text in [
        "GIT_TRACE=1 git status",
        "GIT_TRACE2=true git status",
        "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git status",
        "SHELL=/bin/bash make",
        "ENV=prod npm start",
        "ENV=prod sh -c 'npm start'",
        "AWS_PAGER= aws s3 ls",
        "GH_PAGER=cat gh pr list",
        "KUBE_EDITOR=nano kubectl edit b",
    ] {
        assert!(!read(text).1, "{text}");
    }
}

#[test]
fn what_was_typed_before_is_not_told() {
    assert_opaque(&["history -s 'rm x'; a", "history -p '!!'", "fc -s rm", "fc", "r rm", "histchars=@^#"]);
    assert_divided(&[("history", &["history"]), ("history 20", &["history 20"])]);
}

#[test]
fn tools_of_other_programs_that_run_a_command_are_taken_off() {
    let inner: &[&str] = &["rm x"];
    for text in [
        "choom -n 0 rm x",
        "choom -n 0 -- rm x",
        "logsave a rm x",
        "logsave -a a rm x",
        "cmake -E env rm x",
        "cmake -E env --unset=B -- rm x",
        "cmake -E env A=1 rm x",
        "cmake -E chdir a rm x",
        "cmake -E time rm x",
        "/usr/bin/cmake -E env rm x",
    ] {
        assert_divided(&[(text, inner)]);
    }
    assert_eq!(places("cmake -E chdir a cat x"), ["/w/a"]);
    assert_assigning(&["cmake -E env PATH=. a"]);
    assert_opaque(&[
        "start-stop-daemon -S -x /bin/rm",
        "run-parts .",
        "editor '+!rm x' a",
        "cmake -E $x rm",
        "cmake -E __run_co_compile --launcher=a -- b",
    ]);
    assert_divided(&[
        ("cmake -S . -B build", &["cmake -S . -B build"]),
        ("cmake -E touch a", &["cmake -E touch a"]),
        ("cmake --build build", &["cmake --build build"]),
        ("choom -p 3", &["choom -p 3"]),
    ]);
}

#[test]
fn comparisons_with_blanks_around_them_are_arithmetic() {
    assert_plain(&[
        "(( n > 3 )) && a",
        "if (( i > 5 )); then a; fi",
        "while (( i < 5 )); do (( i++ )); done",
        "(( (a) < 5 && b == 2 ))",
    ]);
    assert_opaque(&["(( rm x ))", "((rm x) )"]);
}
