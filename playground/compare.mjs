// Runs the scenarios of scenarios.json in the module and in the native program, and compares their digests.
//
//   node compare.mjs DIRECTORY PROGRAM
//
// DIRECTORY has the page with its module and its worker, which runs here as it does in a browser.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";

const [directory, program] = process.argv.slice(2);
const module = await WebAssembly.compile(readFileSync(join(directory, "playground.wasm")));
const worker = readFileSync(join(directory, "worker.js"), "utf8");

/** The answer of the worker, and how often it reported progress. */
function call(name, scenario) {
  return new Promise((resolve) => {
    let reports = 0;
    const scope = {
      WebAssembly, TextEncoder, TextDecoder, performance, Uint8Array,
      postMessage: (message) => ("answer" in message ? resolve({ ...message, reports }) : reports++),
    };
    runInNewContext(worker, scope);
    scope.onmessage({ data: { module, call: name, scenario } });
  });
}

function fail(why) {
  console.error(why);
  process.exitCode = 1;
}

for (const scenario of JSON.parse(readFileSync(new URL("scenarios.json", import.meta.url)))) {
  const text = JSON.stringify(scenario);
  const native = spawnSync(program, [text], { encoding: "utf8", maxBuffer: 1 << 26 });
  const [digest] = native.stdout.split("\n");
  const { answer, took, reports } = await call("run", scenario);
  const what = `${scenario.system}, ${JSON.stringify(scenario.content)}, ${scenario.links.join(" and ")}`;
  if (native.status !== 0) fail(`${what}: the native program failed: ${native.stderr}`);
  else if (answer.error) fail(`${what}: the module failed: ${answer.error}`);
  else if (answer.digest !== digest) fail(`${what}: the module has ${answer.digest}, the native program ${digest}`);
  else if (answer.outcome.finished_ns === null) fail(`${what}: not complete`);
  else if (reports === 0) fail(`${what}: no progress was reported`);
  else console.log(`${digest.slice(0, 16)}  ${(answer.outcome.finished_ns / 1e9).toFixed(3)} s, computed in ${(took / 1e3).toFixed(2)} s  ${what}`);
}

const wrong = { links: ["rate=fast"], content: "page", system: "default", seed: 1 };
const { answer } = await call("run", wrong);
if (!answer.error?.includes("fast")) fail(`a wrong link: ${JSON.stringify(answer)}`);
const presets = await call("presets");
if (!presets.answer.some(({ name }) => name === "lte-a")) fail("the list of links with names lacks lte-a");
