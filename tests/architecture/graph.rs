//! The graph of the modules below `src/`: which names which, read from the parsed source, so that no circle comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, Macro, Path, UseTree};

use super::{is_test, root, shown, sources};

/// Module to the modules that it names, each with a file that does.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn no_module_names_one_that_leads_back_to_it() {
    let graph = graph();
    assert!(graph["proxy"].contains_key("policy"), "the graph sees what proxy/ names: {graph:?}");
    let circles: Vec<String> = graph.keys().filter_map(|module| circle(&graph, module)).collect();
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

#[test]
fn a_circle_is_found_however_long_it_is() {
    let edge = |to: &str| BTreeMap::from([(to.to_owned(), format!("{to}.rs"))]);
    let graph: Graph =
        [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")].map(|(from, to)| (from.to_owned(), edge(to))).into();
    assert_eq!(circle(&graph, "a").as_deref(), Some("a -> b (b.rs) -> c (c.rs) -> a (a.rs)"));
    assert_eq!(circle(&graph, "d"), None, "d leads to a circle, and is on none");
}

#[test]
fn names_are_seen_in_imports_paths_and_macros_and_not_in_tests() {
    let source = "use crate::{a::B, c}; fn f() { crate::d::g(); assert!(crate::e::h()); } #[cfg(test)] mod tests { use crate::x; }";
    assert_eq!(named(source), ["a", "c", "d", "e"].map(str::to_owned).into());
}

/// The way from a module back to itself, if there is one.
fn circle(graph: &Graph, start: &str) -> Option<String> {
    let mut ways = vec![(start.to_owned(), start.to_owned())];
    let mut seen = BTreeSet::new();
    while let Some((at, way)) = ways.pop() {
        for (next, file) in graph.get(&at).into_iter().flatten() {
            let way = format!("{way} -> {next} ({file})");
            if next == start {
                return Some(way);
            }
            if seen.insert(next.clone()) {
                ways.push((next.clone(), way));
            }
        }
    }
    None
}

/// The modules right below `src/`, without the crate's roots: `command/` and the executables join all others.
fn graph() -> Graph {
    let mut graph = Graph::new();
    for file in sources().into_iter().filter(|file| !is_test(file)) {
        let below = file.strip_prefix(root().join("src")).unwrap().with_extension("");
        let module = below.iter().next().unwrap().to_str().unwrap().to_owned();
        if ["lib", "main", "operator_main"].contains(&module.as_str()) {
            continue;
        }
        let others = graph.entry(module.clone()).or_default();
        for other in named(&fs::read_to_string(&file).unwrap()).into_iter().filter(|other| *other != module) {
            others.entry(other).or_insert_with(|| shown(&file));
        }
    }
    graph
}

/// The first names behind `crate::` in a source, but for what is compiled for tests alone.
fn named(source: &str) -> BTreeSet<String> {
    let mut names = Names::default();
    names.visit_file(&syn::parse_file(source).unwrap());
    names.0
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let mut cfg = attributes.iter().filter_map(|attribute| attribute.meta.require_list().ok());
    cfg.any(|list| list.path.is_ident("cfg") && list.tokens.to_string() == "test")
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if let UseTree::Path(path) = &item.tree
            && path.ident == "crate"
            && !is_for_tests(&item.attrs)
        {
            self.import(&path.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let mut segments = path.segments.iter();
        if let (Some(first), Some(second)) = (segments.next(), segments.next())
            && first.ident == "crate"
        {
            self.0.insert(second.ident.to_string());
        }
        visit::visit_path(self, path);
    }

    /// What a macro is given is no syntax tree: its tokens are read one after the other.
    fn visit_macro(&mut self, invocation: &'ast Macro) {
        let tokens = invocation.tokens.to_string();
        for rest in tokens.split("crate ::").skip(1) {
            let name = rest.trim_start().split(|sign: char| !sign.is_alphanumeric() && sign != '_').next();
            self.0.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
        visit::visit_macro(self, invocation);
    }
}

impl Names {
    fn import(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.0.insert(path.ident.to_string()),
            UseTree::Name(name) => self.0.insert(name.ident.to_string()),
            UseTree::Rename(name) => self.0.insert(name.ident.to_string()),
            UseTree::Glob(_) => false,
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree));
                true
            }
        };
    }
}
