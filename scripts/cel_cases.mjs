// Prints the official conformance cases of CEL that need no variables, for src/policy/cel/conformance.json.
//
//     npm install @bufbuild/cel-spec@0.6.1
//     node scripts/cel_cases.mjs > /tmp/cases.json
//     POSTERN_CEL_CASES=/tmp/cases.json cargo test --lib policy::cel::conformance
//
// The last step keeps those that the subset accepts.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const from = createRequire(pathToFileURL(`${process.cwd()}/`));
const { tests } = from("@bufbuild/cel-spec/testdata/conformance.js");

/** The value that a case expects: null for an error, nothing where it is none of a bool, an int or a string. */
function expected({ value, evalError, typedResult, unknown }) {
  if (evalError) return null;
  if (unknown) return undefined;
  const result = typedResult ? typedResult.result : value;
  if (!result) return typedResult ? undefined : true;
  return result.boolValue ?? result.int64Value?.toString().replace(/^/, "int ") ?? result.stringValue?.replace(/^/, "string ");
}

const cases = [];
function walk(suite, path) {
  for (const { original } of suite.tests ?? []) {
    const value = expected(original);
    if (value !== undefined && !original.bindings && !original.typeEnv && !original.container) {
      cases.push({ name: `${path}/${original.name}`, expression: original.expr, value });
    }
  }
  for (const inner of suite.suites ?? []) walk(inner, `${path}/${inner.name}`);
}
for (const suite of tests.suites) walk(suite, suite.name);
console.log(JSON.stringify(cases, null, 1));
