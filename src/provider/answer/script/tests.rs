//! Scripts as models write them, and scripts that hide a call.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::read;

/// The calls of a script that reaches no others.
#[track_caller]
fn calls(script: &str) -> Vec<(String, Option<Value>)> {
    let read = read(script).unwrap_or_else(|why| panic!("{why}: {script}"));
    assert_eq!(read.reaches, None, "{script}");
    read.calls.into_iter().map(|call| (call.name, call.input)).collect()
}

fn one(name: &str, input: Value) -> Vec<(String, Option<Value>)> {
    vec![(name.to_owned(), Some(input))]
}

fn unknown(names: &[&str]) -> Vec<(String, Option<Value>)> {
    names.iter().map(|name| ((*name).to_owned(), None)).collect()
}

#[test]
fn a_call_with_a_literal_is_read_wherever_it_stands() {
    let ls = |script: &str| assert_eq!(calls(script), one("exec_command", json!({"cmd": "ls"})), "{script}");
    for script in [
        "tools.exec_command({cmd: 'ls'})",
        "const r=await tools.exec_command({cmd:\"ls\"});\ntext(r);",
        "// @exec: {\"yield_time_ms\": 1000}\ntext((await tools.exec_command({cmd: `ls`})).output.slice(0, 100))",
        "text(JSON.stringify(await tools.exec_command({\"cmd\": 'l' + \"s\"},), null, 2))",
        "for (let i = 0; i < 3; i++) { if (i / 2 > 0.5) text(await tools.exec_command({cmd: 'ls'})) }",
        "try { await tools.exec_command({cmd: 'ls'}) } catch (e) { text(`failed: ${e.message}`) }",
        "text(`${(await tools.exec_command({cmd: 'ls'})).output} and ${`more ${1}`}`)",
        "(async () => { const cmd = 'ls'; return tools.exec_command({cmd}) })().then(r => text(r))",
        "const f = async (x) => x ? tools?.exec_command?.({cmd: 'ls'}) : null; f(1)",
        "await Promise.all([1].map(() => tools /* the */ . // tools\n exec_command ({cmd: 'ls'})))",
        "tools['exec_command']({cmd: 'ls'})",
        "tools?.[\"exec_command\"]({cmd: 'ls'})",
        "const c = 'ls'; text(c.length); text(`${c}`); await tools.exec_command({cmd: c})",
        "const input = {cmd: 'ls'}; text(await tools.exec_command(input))",
        "const l = 'l', s = 1; const x = `${l}`; tools.exec_command({cmd: 'ls'})",
        "const parts = ['l', 's'].join(''); { tools.exec_command({cmd: parts}) }",
        "const l = 'l';\nconst c = `${l}s`\nawait tools.exec_command({cmd: c})",
        "const re = /[/'\"`]tools.evil({})/g; text('x'.replace(/'/g, \"\\\"\")); tools.exec_command({cmd: 'ls'})",
        "const a = 4 / 2; const b = (a + 1) / 3; tools.exec_command({cmd: 'ls'}); text(a / b)",
        "if (true) /tools.evil('/.test('x'); tools.exec_command({cmd: 'ls'})",
        "text('tools.evil({})'); /* tools.evil({}) */ tools.exec_command({cmd: 'ls'}) // tools.evil",
    ] {
        ls(script);
    }
    assert_eq!(calls(""), []);
    assert_eq!(calls("tools.update_plan()"), one("update_plan", json!({})));
    let both =
        "const [a, b] = await Promise.all([tools.one({n: 10_000, x: -1.5e3}), tools.two('x')]); text(a.b)";
    assert_eq!(
        calls(both),
        [one("one", json!({"n": 10_000, "x": -1500.0})), one("two", json!("x"))].concat()
    );
    let escaped = "tools.x({cmd: \"\\x72m\\u{20}-rf \\u002f\\\ntmp '\\ud83d\\ude00'\\'\"})";
    assert_eq!(calls(escaped), one("x", json!({"cmd": "rm -rf /tmp '\u{1f600}''"})));
}

#[test]
fn a_patch_is_read_however_it_is_put_together() {
    let patch = "*** Begin Patch\n*** Add File: a\\b\n+x\n*** End Patch";
    for script in [
        "text(await tools.apply_patch(String.raw`*** Begin Patch\n*** Add File: a\\b\n+x\n*** End Patch`))",
        "const patch = `*** Begin Patch\n*** Add File: a\\\\b\n+x\n*** End Patch`;\nconst r = await tools.apply_patch(patch);\ntext(r);",
        "const patch = ['*** Begin Patch', '*** Add File: a\\\\b', '+x', '*** End Patch'].join('\\n');\ntext(await tools.apply_patch(patch))",
        "await tools.apply_patch(\"*** Begin Patch\\n\" +\n  \"*** Add File: a\\\\b\\n\" + '+x\\n*** End Patch')",
    ] {
        assert_eq!(calls(script), one("apply_patch", json!(patch)), "{script}");
    }
}

#[test]
fn a_call_with_anything_else_is_a_tool_whose_input_nobody_knows() {
    for script in [
        "for (const f of files) { text((await tools.x({cmd: `cat ${f}`})).output) }",
        "tools.x({cmd: a + 'b'})",
        "tools.x({...a})",
        "tools.x({[a]: 1})",
        "tools.x({cmd})",
        "tools.x({cmd: 'a', cmd: 'b'})",
        "tools.x({cmd: 'a'}, 2)",
        "tools.x(function () { return {} })",
        "tools.x({get cmd() { return 'a' }})",
        "tools.x({cmd: '\\101'})",
        "tools.x({cmd: '\\ud800'})",
        "const f = tools.x; f({cmd: 'a'})",
        "['a', 'b'].map(tools.x)",
        "tools.x.call(null, {cmd: 'a'})",
        "tools.x = 1",
        "tools.x`a`",
        "typeof tools.x",
        "tools.x({cmd: 1 + 1})",
        "let c = 'a'; c = 'b'; tools.x({cmd: c})",
        "let c = 'a'; tools.x({cmd: c})",
        "const o = {cmd: 'a'}; o.cmd = 'b'; tools.x(o)",
        "const o = {cmd: 'a'}; f(o); tools.x(o)",
        "const o = {cmd: 'a'}; const p = [o]; p[0].cmd = 'b'; tools.x(o)",
        "const c = 'a'; ['b'].map(c => tools.x({cmd: c}))",
        "const c = 'a'; ['b'].map((c) => tools.x({cmd: c}))",
        "const c = 'a'; ['b'].map(([c]) => tools.x({cmd: c}))",
        "const c = 'a'; function f(c) { tools.x({cmd: c}) }",
        "const c = 'a'; try { g() } catch (c) { tools.x({cmd: c}) }",
        "const c = 'a'; for (const c of ['b']) tools.x({cmd: c})",
        "const c = 'a'; { let c; c = 'b'; tools.x({cmd: c}) }",
        "const c = 'a'; { let d, c\nf(c ||= 'b'); tools.x({cmd: c}) }",
        "const c = 'a'; const g = () => { let d, c; [c] = ['b']; tools.x({cmd: c}) }",
        "const c = 'a'; const g = () => { for (;;) { tools.x({cmd: c}); var c = 'b' } }",
        "const c = 'a'; { const {c} = r; tools.x({cmd: c}) }",
        "const c = 'a'; { const {d: c} = r; tools.x({cmd: c}) }",
        "const c = 'a'; function* g() { function* c() {} tools.x({cmd: c}) }",
        "{ const c = 'a' } tools.x({cmd: c})",
        "tools.x({cmd: c}); const c = 'a'",
        "const c = 'a' in b; tools.x({cmd: c})",
        "const c = 'a'\n.concat('b'); tools.x({cmd: c})",
        "const c = 'a'\n+ d; tools.x({cmd: c})",
        "const c = ['a', b].join(); tools.x({cmd: c})",
        "const c = ['a', 1].join(); tools.x({cmd: c})",
        "String.raw = f; tools.x(String.raw`a`)",
        "Object.assign(String, {raw: f}); tools.x(String.raw`a`)",
        "const String = {raw: f}; tools.x(String.raw`a`)",
        "tools.x(String.raw`a${b}`)",
    ] {
        let expected = unknown(&["x"]);
        assert_eq!(calls(script), expected, "{script}");
    }
    let nested = "tools.x({cmd: (await tools.y({n: 1})).output}); tools.x(z); tools.z({})";
    let expected = [unknown(&["x"]), one("y", json!({"n": 1})), one("z", json!({}))];
    assert_eq!(calls(nested), expected.concat());
    assert_eq!(
        calls("for (const a of b) { tools.x({c: a}); tools.x({c: d}); tools.y(a); tools.y(d) }"),
        unknown(&["x", "y"])
    );
}

#[test]
fn the_keys_of_an_input_are_read_where_its_values_are_not() {
    let keys = |script: &str| read(script).unwrap().calls.swap_remove(0).keys;
    for (script, expected) in [
        ("tools.x({owner: o, 'repo': r.name,})", json!({"owner": "", "repo": ""})),
        (
            "tools.x({cmd: `a ${b}`, n: 1, is: true, workdir})",
            json!({"cmd": "", "n": null, "is": null, "workdir": ""}),
        ),
        (
            "tools.x({a: {command: c}, b: [d, {e: f(1, 2)}]})",
            json!({"a": {"command": ""}, "b": ["", {"e": ""}]}),
        ),
        ("const o = {command: 'x'}; tools.x({a: o, b: c})", json!({"a": {"command": "x"}, "b": ""})),
    ] {
        assert_eq!(keys(script), Some(expected), "{script}");
    }
    for script in [
        "tools.x(a)",
        "tools.x({...a})",
        "tools.x({b: c, ...a})",
        "tools.x({[a]: b})",
        "tools.x({get a() { return b }})",
        "tools.x({a() {}})",
        "tools.x({a: {...b}})",
        "tools.x({a: ({command: b})})",
        "tools.x({a: b || {command: c}})",
        "tools.x({__proto__: a})",
        "tools.x({a: b}, c)",
        "tools.x({a: b}.c)",
        "tools.x(f({a: b}))",
        "tools.x",
    ] {
        assert_eq!(keys(script), None, "{script}");
    }
}

#[test]
fn a_script_that_could_reach_any_tool_is_known_as_such() {
    for script in [
        "tools['exec_' + 'command']({cmd: 'ls'})",
        "tools[name]({})",
        "tools[`${a}b`]({})",
        "const t = tools; t.x({})",
        "const {x} = tools; x({})",
        "const {x: y} = tools",
        "f(tools)",
        "({...tools}).x({})",
        "[tools][0].x({})",
        "const tools = {}",
        "Object.values(tools).map(f => f({}))",
        "({tools}).tools.x({})",
        "globalThis.tools.x({})",
        "globalThis['to' + 'ols'].x({})",
        "self.x",
        "(0, eval)('tools.x({})')",
        "new Function('return tools')()",
        "(() => {}).constructor('return tools')()",
        "(() => {})['constructor']('return tools')()",
        "(() => {})['constr' + 'uctor']('return tools')()",
        "(() => {})[`constr${'uctor'}`]('return tools')()",
        "const {constructor: F} = f; F('x')()",
        "const {['constr' + 'uctor']: F} = () => {}; F('x')()",
        "const k = 'constructor'; const F = f[k]; F('return tools')()",
        "const k = 'con\\x73tructor'; const F = f()[k]; F('return tools')()",
        "handlers[i]()",
        "f[k]`x`",
        "import('x')",
        "import x from 'x'",
        "f[`constr${x}`]",
        "f[`${x}or`]",
        "f[`a${x}` && `${x}`]",
        "f[('constr' + 'uctor')]",
        "f[id('constr' + 'uctor')]",
        "f[id('constructor')]",
        "f[['constr', 'uctor'].join('')]",
        "f['constr'.concat('uctor')]",
        "f[(() => { return ('constr' + x) })()]",
        "f['constr' + 'uctor'] == 1",
        "m[g('a')](1)",
        "Reflect.get(f, k)",
        "setTimeout(function () { this.x }, 1)",
        "Object.getPrototypeOf(f)",
        "String.prototype.toJSON = () => 'x'",
        "x.__proto__",
        "Error.prepareStackTrace = f",
        "text(`${tools}`)",
        "tools",
    ] {
        let read = read(script).unwrap_or_else(|why| panic!("{why}: {script}"));
        assert!(read.reaches.is_some(), "{script}");
    }
}

#[test]
fn what_scripts_do_with_results_reaches_nothing() {
    for script in [
        "const rs = await Promise.all(cmds.map(c => g(c))); rs.forEach((r, i) => text(names[i] + r.output))",
        "for (let i = 0; i < lines.length; i++) text(lines[i] ?? lines[lines.length - 1])",
        "const counts = {}; for (const w of ws) counts[w] = (counts[w] || 0) + 1; text(counts)",
        "text(r['exit_code'], o[\"a-b\"], t[`x`]); const {output, exit_code: code = 0} = r",
        "const m = new Map(Object.entries(o)); text([...m.keys()].sort((a, b) => a - b).join('\\n'))",
        "const found = ALL_TOOLS.filter(t => t.name.includes('x')); text(found.map(t => t.name))",
        "store('k', 1); const k = load('k'); notify(k); yield_control(); await new Promise(r => setTimeout(r, 10))",
        "label: for (const [a, b] of Object.entries({x: 1})) { if (a) continue label; else break; }",
        "const o = {self: 1, window: 2, import: 3}; text(o.self, o.window)",
        "const m = {}; for (const l of lines) m[l.split(':')[0]] = 1; text(m)",
        "text(m[l.split(\": \")[0]], j[`a-${i}`], j[`a-${i}-${k}`])",
        "j['a' + i] = 1",
        "text(JSON.parse(r.output).items.filter(({n}) => n > 1).map(({n}) => n ** 2))",
        "class A { #x = 1; get x() { return 1 } }; text(new A().x)",
        "const s = r.output.split(/\\r?\\n/).filter(Boolean).map(String).slice(-20); text(s.length / 2)",
    ] {
        assert_eq!(calls(script), [], "{script}");
    }
}

#[test]
fn what_has_two_readings_is_not_read() {
    for script in [
        "t\\u006fols.x({})",
        "tools.\\u0078({})",
        "<!-- tools.x({})",
        "x\n--> tools.x({})",
        "#!`\ntools.x({}) //`",
        "const f = {}\n/'/; tools.x({}) //'/g",
        "for (const a of /'/g) tools.x({}) //'",
        "let x\n/'/.test(a); tools.x({}); /'/.test(b)",
        "let x /*\n*/ /'/.test(a); tools.x({}); /'/.test(b)",
        "for (;;) { break\n/'/.test(a); tools.x({}); /'/.test(b) }",
        "a: for (;;) { break a\n/'/.test(a); tools.x({}); /'/.test(b) }",
        "debugger\n/'/.test(a); tools.x({}); /'/.test(b)",
        "a\n++/'/.lastIndex; tools.x({}); /'/.test(b)",
        "x = 'a\nb'",
        "'open",
        "`open ${x",
        "`open",
        "/* open",
        "x = /open",
        "tools.x(",
        "tools.x({)}",
        "1tools.x({})",
        "x = 3in tools",
        "a\u{0}b",
    ] {
        assert!(read(script).is_err(), "{script}");
    }
    assert!(read(&"[".repeat(100_000)).is_err());
    assert!(read(&"a,".repeat(100_000)).is_err());
    assert!(
        read(&format!("tools.a({}{})", "[".repeat(200), "]".repeat(200))).unwrap().calls[0].input.is_none()
    );
}

#[test]
fn a_keyword_that_names_a_property_hides_nothing_behind_a_slash() {
    for script in [
        "o.return /tools.x({})/ 2",
        "o?.in /tools.x({})/ 2",
        "o.if(1) /tools.x({})/ 2",
        "class A { #if() { return 1 } static m(o) { return o.#if(1) /tools.x({})/ 2 } }",
        "class A { #in = 1; static m(o) { return o.#in /tools.x({})/ 2 } }",
        "a[0] /tools.x({})/ 2",
        "f(1) /tools.x({})/ 2",
        "`a` /tools.x({})/ 2",
    ] {
        assert_eq!(calls(script), one("x", json!({})), "{script}");
    }
}

#[test]
fn constants_cannot_be_made_to_fill_the_memory() {
    let text = "x".repeat(10_000);
    let mut script = format!("const a = '{text}'; ");
    for (name, last) in ["b", "c", "d", "e", "f", "g"].iter().zip(["a", "b", "c", "d", "e", "f"]) {
        script += &format!(
            "const {name} = {last} + {last} + {last} + {last} + {last} + {last} + {last} + {last}; "
        );
    }
    script += "tools.x(g); tools.y(a)";
    assert_eq!(read(&script).unwrap().calls[0].input, None);
}

#[test]
fn slashes_that_could_be_anything_cost_no_more_than_others() {
    assert!(read(&"a++/'['*".repeat(20_000)).is_err());
    assert!(read(&"a/'['*".repeat(20_000)).is_ok());
}

/// Pieces of a script behind which a statement can begin, whatever came before.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "text('it\\'s \"x\" `y` // no');\n",
        "text(\"a /* b\\\" ' `\");\n",
        "const re = /[/'\"`]\\//g;\n",
        "text(`a ' \" // ${ {a: `b ${1}`}.a } \\` /* }`);\n",
        "// it's a \"comment\" `\n",
        "/* it's `another */\n",
        "if (a) { b() } else { c[0] = 1 / 2; }\n",
        "for (const x of [1, 2]) { x / 3 }\n",
        "const f = (a) => { return /'/.test(a) };\n",
        "a?.b?.[0] ?? .5;\n",
        "x = a / b / c;\n",
        "x = {a: 1, 'b': [2]};\n",
        "while (i-- > 0) /'/.test(i);\n",
        "1..toFixed(); 0x1f; 1e5; 2n;\n",
        "\u{a0}\u{feff}é = '\u{2028}';\n",
    ])
}

proptest! {
    #[test]
    fn no_script_hides_a_call_behind_it(
        before in prop::collection::vec(piece(), 0..6),
        after in prop::collection::vec(piece(), 0..4),
    ) {
        let (before, after) = (before.concat(), after.concat());
        let script = format!("{before}tools.found({{n: 1}});\n{after}");
        let read = read(&script).unwrap();
        prop_assert_eq!(read.calls.len(), 1);
        prop_assert_eq!(read.calls[0].input.clone(), Some(json!({"n": 1})));
        prop_assert_eq!(read.reaches, None);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\n]{0,80}") {
        let _ = read(&text);
    }

    #[test]
    fn a_call_in_plain_sight_is_never_passed_over(
        soup in prop::collection::vec(prop::sample::select(vec![
            "'", "\"", "`", "/", "//", "/*", "*/", "\\", "\n", "${", "}", "{", "(", ")", "[", "]", "a", "1", "=", "if",
        ]), 0..12),
    ) {
        // Where the text in front of it is read as complete statements, the call behind it is code.
        let soup = soup.concat();
        if let (Ok(_), Ok(both)) = (read(&format!("{soup};")), read(&format!("{soup};\ntools.found({{}})"))) {
            let ends_in_comment = soup.rsplit('\n').next().is_some_and(|line| line.contains("//"));
            prop_assert!(ends_in_comment || both.reaches.is_some() || both.calls.iter().any(|call| call.name == "found"), "{soup:?}");
        }
    }
}
