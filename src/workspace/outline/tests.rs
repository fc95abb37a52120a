//! What looks like a declaration in each language, and what does not.

use super::*;

/// For each language a file's name, lines that are of its outline, and lines that are not.
const SAMPLES: &[(&str, &[&str], &[&str])] = &[
    (
        "a.rs",
        &[
            "pub(crate) async fn run(x: &str) -> Result<()> {",
            "    pub const unsafe extern \"C\" fn f() {",
            "pub struct A<'a>;",
            "unsafe impl<T> Send for A<T> {}",
            "impl A {",
            "mod tests {",
            "pub(in crate::x) trait T {",
            "macro_rules! m {",
            "    const LIMIT: usize = 1;",
            "type X = Y;",
        ],
        &["    let fn_ = 1;", "use a::b;", "    return x;", "// fn a()", "    fnord();", "    implement(x);"],
    ),
    (
        "a.go",
        &[
            "package main",
            "func (s *S) Run(ctx context.Context) error {",
            "type S struct {",
            "var x = 1",
            "\tT struct {",
        ],
        &["\tvar x = 1", "\treturn nil", "import \"fmt\"", "// func a", "\tfunc() {}()"],
    ),
    (
        "a.py",
        &[
            "class A(B):",
            "    async def run(self):",
            "def f():",
            "LIMIT = 3",
            "LIMIT: int = 3",
            "type X = int",
        ],
        &["import os", "    return defined", "x = 1", "    LIMIT = 3", "if LIMIT == 3:", "LIMIT == 3"],
    ),
    (
        "a.mjs",
        &[
            "export default class A extends B {",
            "async function* f() {",
            "export const f = async (a, b) => {",
            "const g = x => x;",
            "module.exports = {",
            "  async run(a) {",
            "  get #x() {",
        ],
        &[
            "  if (a) {",
            "  for (const x of y) {",
            "const a = 1;",
            "  return f(x)",
            "import a from 'b'",
            "  run(a);",
        ],
    ),
    (
        "a.tsx",
        &[
            "export interface A<T> {",
            "type A<T> = B;",
            "declare module 'x' {",
            "const enum E {",
            "  private readonly x: number;",
            "  async run<T>(a: T): Promise<T> {",
            "export const f = (a: A): B => {",
            "abstract class A {",
        ],
        &["  if (a) {", "import { a } from 'b';", "const a: number = 1;", "  return f(x);", "  while (x) {"],
    ),
    (
        "A.java",
        &[
            "package a.b;",
            "public sealed class A<T> permits B {",
            "    private static final Map<String, List<A>> X = new HashMap<>();",
            "    public <T> T run(T a) throws IOException {",
            "    void run(int a);",
            "record P(int x, int y) {}",
            "public @interface X {",
        ],
        &[
            "import a.b;",
            "        return run(a);",
            "        if (a) {",
            "        run(a);",
            "    } else if (x) {",
            "@Override",
        ],
    ),
    (
        "a.c",
        &[
            "static int run(const char *a,",
            "int main(int argc, char **argv)",
            "struct a {",
            "typedef struct a a;",
            "#define LIMIT 3",
            "int run(void);",
        ],
        &["\treturn run(a);", "#include <a.h>", "    run(a);", "if (a) {", "MODULE_LICENSE(\"GPL\")", "}"],
    ),
    (
        "a.cpp",
        &[
            "namespace a::b {",
            "template <typename T>",
            "class A final : public B {",
            "void A::run(int a) const {",
            "  virtual void run() = 0;",
            "using X = Y;",
            "enum class E {",
            "public:",
            "std::vector<int> f(const A& a) {",
        ],
        &["  return run(a);", "#include <a>", "  run(a);", "using namespace std;", "class A;", "  if (a) {"],
    ),
    (
        "A.cs",
        &[
            "namespace A.B;",
            "public sealed partial class A : B",
            "    public async Task<int> Run(int a)",
            "    private readonly int x;",
            "    public string Name { get; set; }",
            "internal record struct P(int X);",
        ],
        &[
            "using System;",
            "        return Run(a);",
            "        await Run(a);",
            "        if (a)",
            "        Run(a);",
        ],
    ),
    (
        "a.rb",
        &[
            "class A < B",
            "  def self.run(a)",
            "module A",
            "  attr_reader :a",
            "  LIMIT = 3",
            "  private def run",
        ],
        &["require 'a'", "    run(a)", "  return define(x)", "  end", "x = 1"],
    ),
];

#[test]
fn every_pattern_compiles_and_no_two_languages_claim_a_file() {
    let mut extensions: Vec<_> = LANGUAGES.iter().flat_map(|language| language.extensions).collect();
    let count = extensions.len();
    extensions.sort_unstable();
    extensions.dedup();
    assert_eq!(extensions.len(), count);
    for (index, language) in LANGUAGES.iter().enumerate() {
        assert!(patterns(index).is_some(), "{}", language.name);
    }
}

#[test]
fn lines_that_declare_are_found_in_every_language_and_others_are_not() {
    let mut seen = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for (file, declare, others) in SAMPLES {
        seen.insert(language(file).unwrap());
        let is_found = |line: &str| outline(file, line).next().is_some();
        wrong.extend(
            declare.iter().filter(|line| !is_found(line)).map(|line| format!("{file} misses: {line}")),
        );
        wrong.extend(others.iter().filter(|line| is_found(line)).map(|line| format!("{file} has: {line}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(seen.len(), LANGUAGES.len(), "a language has no sample");
}

#[test]
fn lines_stand_as_in_the_file_with_their_numbers() {
    let text = "use a;\r\n\r\npub fn größe() {}  \r\n    fn inner() {}\n";
    let lines: Vec<_> = outline("x/a.RS", text).collect();
    assert_eq!(
        lines,
        [
            OutlineLine { number: 3, text: "pub fn größe() {}" },
            OutlineLine { number: 4, text: "    fn inner() {}" }
        ]
    );
    let long = format!("fn {}() {{}}", "a".repeat(MOST_LINE));
    assert_eq!(outline("a.rs", &long).count(), 0);
    for other in ["a.txt", ".rs", "rs", "", "a.rs.bak"] {
        assert_eq!(outline(other, "fn a() {}").count(), 0, "{other}");
    }
}
