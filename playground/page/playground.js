// The page: reads the form, has a worker for each of the two systems run the simulator, and draws what they answer.

const SYSTEMS = [
  ["rfc", "CUBIC, as in the RFCs", "QUIC as its RFCs describe it: 10 packets at first, HyStart\u2060+\u2060+, CUBIC, fixed thresholds of loss."],
  ["default", "marline", "As it comes: the controller “wireless”, which does not take every loss for congestion."],
  ["default-cubic", "marline with CUBIC", "marline's start, loss detection and acknowledgments, with CUBIC."],
  ["default-bbr3", "marline with BBRv3", "marline's start, loss detection and acknowledgments, with version 3 of BBR."],
  ["bundle", "marline, a bundle", "Three connections that share what they learn. Objects are dealt to them in turn; a file is cut into three."],
  ["multipath", "marline, several paths", "One connection over both links. Needs a second link to differ."],
];
const DEFAULTS = ["rfc", "default"];
const SIDES = ["a", "b"];
const SVG = "http://www.w3.org/2000/svg";
/** Steps of the slider of time. */
const STEPS = 1000;

const $ = (id) => document.getElementById(id);
const system = (name) => SYSTEMS.find(([known]) => known === name);

/** An element with attributes and children, of SVG if its name is of that. */
function make(name, attributes = {}, ...children) {
  const element = attributes.svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (key !== "svg") element.setAttribute(key, value);
  element.append(...children);
  return element;
}
const draw = (name, attributes, ...children) => make(name, { ...attributes, svg: true }, ...children);

const seconds = (value) => `${value.toFixed(value < 10 ? 2 : 1)}\u00a0s`;
/** Pictures are drawn in the width that they have, so that their text is readable. */
const narrow = () => matchMedia("(max-width: 640px)").matches;
const number = (value) => value.toLocaleString("en");

// The form

/** Rates grow by equal factors: 1 to 200 Mb/s, rounded to two digits. */
const rate = () => Number((200 ** (Number($("rate").value) / 100)).toPrecision(2));

const SLIDERS = {
  rate: () => `${rate()} Mb/s`,
  rtt: () => `${$("rtt").value} ms`,
  loss: () => `${$("loss").value} %`,
  buffer: () => `${$("buffer").value} ms`,
};

function showSliders() {
  for (const [id, text] of Object.entries(SLIDERS)) {
    $(`${id}-shown`).value = text();
    $(id).setAttribute("aria-valuetext", text());
  }
}

let presets = [];

function showLink() {
  const preset = presets.find(({ name }) => name === $("preset").value);
  for (const id of Object.keys(SLIDERS)) $(id).disabled = Boolean(preset);
  $("sliders").hidden = Boolean(preset);
  $("about").hidden = !preset;
  $("about").textContent = preset ? `${preset.source}.` : "";
}

function showHint() {
  const chosen = SIDES.map((_, side) => system($(`system-${side}`).value));
  const hints = [...new Set(chosen)].map(([, name, about]) => `${name}: ${about}`);
  $("hint").replaceChildren(...hints.flatMap((hint, index) => (index ? [make("br"), hint] : [hint])));
}

function links() {
  const preset = presets.find(({ name }) => name === $("preset").value);
  const own = `rate=${rate()}mbps,rtt=${$("rtt").value}ms,loss=${$("loss").value}%,buffer=${$("buffer").value}ms`;
  const second = presets.find(({ name }) => name === $("second").value);
  return [preset?.link ?? own, ...(second ? [second.link] : [])];
}

const scenario = (side) => ({
  links: links(),
  content: $("content").value === "page" ? "page" : { file: { bytes: Number($("content").value) } },
  system: $(`system-${side}`).value,
  seed: Number($("seed").value),
});

const FIELDS = ["preset", "rate", "rtt", "loss", "buffer", "second", "content", "seed", "system-0", "system-1"];

/** The settings are in the address, so that it can be passed on. */
function remember() {
  const settings = new URLSearchParams(FIELDS.map((id) => [id, $(id).value]));
  history.replaceState(null, "", `#${settings}`);
}

function recall() {
  const settings = new URLSearchParams(location.hash.slice(1));
  for (const id of FIELDS) {
    const value = settings.get(id);
    if (value === null) continue;
    const field = $(id);
    const before = field.value;
    field.value = value;
    if (!field.checkValidity() || (field.value === "" && value !== "")) field.value = before;
  }
}

// The simulator

let compiled;

async function compile() {
  const response = await fetch("playground.wasm");
  if (!response.ok) throw new Error(`playground.wasm: status ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

/** One call of the module in a worker of its own. */
async function call(name, scenario, onProgress = () => {}) {
  const module = await (compiled ??= compile());
  const worker = new Worker("worker.js");
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => ("progress" in data ? onProgress(data.progress) : resolve(data));
      worker.onerror = ({ message }) => reject(new Error(message || "the worker does not start"));
      worker.postMessage({ module, call: name, scenario });
    });
  } finally {
    worker.terminate();
  }
}

/** Runs both; the results come into view and are played if they were `asked` for. */
async function run(asked = true) {
  if (asked) remember();
  stop();
  $("run").disabled = true;
  $("results").hidden = true;
  $("work").hidden = false;
  $("status").className = "";
  $("status").textContent = "Computing…";
  try {
    const runs = await Promise.all(SIDES.map(async (_, side) => {
      const settings = scenario(side);
      const [, name] = system(settings.system);
      const bar = $(`progress-${side}`);
      bar.value = 0;
      $(`working-${side}`).textContent = name;
      const { answer, took } = await call("run", settings, (share) => { bar.value = share; });
      if (answer.error) throw new Error(answer.error);
      bar.value = 1;
      return { ...answer, took, name, settings };
    }));
    const took = Math.max(...runs.map(({ took }) => took)) / 1000;
    $("status").textContent = `Computed in ${seconds(took)} on this device.`;
    show(runs, asked);
  } catch (error) {
    $("status").className = "error";
    $("status").textContent = `The load failed: ${error.message}`;
  } finally {
    $("work").hidden = true;
    $("run").disabled = false;
  }
}

// The results

const at = (ns) => (ns === null ? Infinity : ns / 1e9);

/** The end of a run in seconds; `Infinity` if it was not complete. */
const end = ({ outcome }) => at(outcome.finished_ns);

/** The last moment at which anything happened. */
const last = ({ outcome }) => Math.max(...outcome.links.map(({ arrived }) => arrived.length)) * outcome.bin_ns / 1e9;

function headline(runs) {
  const [a, b] = runs.map(end);
  const [one, other] = runs.map(({ name }) => name);
  if (a === Infinity && b === Infinity) return "Neither was complete within two minutes";
  if (a === Infinity || b === Infinity) {
    const [done, not, time] = a === Infinity ? [other, one, b] : [one, other, a];
    return `${done}: complete after ${seconds(time)}. ${not}: not within two minutes`;
  }
  const [fast, slow, less, more] = a <= b ? [one, other, a, b] : [other, one, b, a];
  const factor = more / less;
  if (factor < 1.01) return `Both are complete after ${seconds(less)}`;
  const ratio = factor < 2 ? `${((factor - 1) * 100).toFixed(0)} % longer` : `${factor.toFixed(1)} times as long`;
  return `${fast}: ${seconds(less)}. ${slow}: ${seconds(more)}, ${ratio}`;
}

let frame = null;
let moments = [];
let horizon = 1;
let shown = [];

function show(runs, asked) {
  horizon = Math.max(...runs.map((run) => (end(run) === Infinity ? last(run) : end(run))));
  $("answer").textContent = headline(runs);
  $("draw").textContent = `seed ${runs[0].settings.seed};`;
  shown = runs;
  $("draws").replaceChildren();
  moments = [];
  $("race").replaceChildren(...runs.map(race));
  const isPage = runs[0].settings.content === "page";
  $("objects-title").textContent = isPage ? "When each object was requested and complete" : "When the file was requested and complete";
  $("objects").replaceChildren(...runs.map(waterfall));
  $("rates").replaceChildren(rates(runs));
  $("numbers").replaceChildren(...numbers(runs));
  $("results").hidden = false;
  // Nobody watches for two minutes.
  $("speed").value = horizon > 20 ? "10" : horizon > 8 ? "4" : "1";
  moveTo(horizon);
  if (!asked) return;
  $("results").scrollIntoView({ block: "start" });
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play();
}

const heading = (run, side) => make("h4", {}, make("span", { class: `key ${SIDES[side]}`, "aria-hidden": "true" }), run.name);

/** A square for each object, or for each twentieth of a file, filled with the content that had arrived at a moment. */
function race(run, side) {
  const { objects, bin_ns: bin } = run.outcome;
  const columns = 20;
  const isFile = run.settings.content !== "page";
  const cells = isFile ? columns : objects.length;
  const size = 500 / columns;
  const picture = draw("svg", { viewBox: `0 0 500 ${Math.ceil(cells / columns) * size}`, "aria-hidden": "true" });
  const squares = Array.from({ length: cells }, (_, index) => {
    const [x, y, inner] = [(index % columns) * size + 2, Math.floor(index / columns) * size + 2, size - 4];
    const fill = draw("rect", { x, width: inner, class: `fill-${SIDES[side]}` });
    const back = draw("rect", { x, y, width: inner, height: inner, class: "cell" });
    const border = draw("rect", { x, y, width: inner, height: inner, fill: "none" });
    picture.append(back, fill, border);
    return (share) => {
      const height = share * inner;
      fill.setAttribute("y", y + inner - height);
      fill.setAttribute("height", height);
      border.setAttribute("class", share === 1 ? "complete" : "");
    };
  });
  const state = make("p", { class: "state" });
  const total = objects.reduce((sum, object) => sum + object.size, 0);
  moments.push((now) => {
    const until = Math.floor((now * 1e9) / bin) + 1;
    const bytes = objects.map(({ arrived, finished_ns: ns, size }) =>
      at(ns) <= now ? size : Math.min(arrived.slice(0, until).reduce((sum, one) => sum + one, 0), size * 0.98));
    const all = bytes.reduce((sum, one) => sum + one, 0);
    squares.forEach((square, index) => square(isFile
      ? Math.max(0, Math.min(1, (all / total) * cells - index))
      : bytes[index] / objects[index].size));
    const done = objects.filter(({ finished_ns: ns }) => at(ns) <= now).length;
    const complete = now >= end(run) ? `complete after ${seconds(end(run))}` : isFile ? "not complete" : `${done} of ${objects.length} objects complete`;
    state.textContent = `${complete}, ${number(Math.round(all / 1000))} kB of content`;
  });
  return make("div", { class: "side" }, heading(run, side), state, picture);
}

/** Ticks of an axis of time that ends at `most` seconds. */
function ticks(most) {
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30].find((step) => most / step <= 6) ?? 60;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => Number((index * step).toFixed(1)));
}

function axis(x, top, bottom, most = horizon) {
  return ticks(most).flatMap((tick) => [
    draw("line", { x1: x(tick), x2: x(tick), y1: top, y2: bottom, class: "axis" }),
    draw("text", { x: x(tick), y: bottom + 14, "text-anchor": "middle" }, tick === 0 ? "0 s" : String(tick)),
  ]);
}

/** A line at the moment that is shown. */
function now(x, top, bottom) {
  const line = draw("line", { y1: top, y2: bottom, class: "now" });
  moments.push((time) => {
    line.setAttribute("x1", x(time));
    line.setAttribute("x2", x(time));
  });
  return line;
}

function waterfall(run, side) {
  const { objects } = run.outcome;
  const [width, left, right, row] = [narrow() ? 360 : 560, 12, 12, objects.length > 3 ? 7 : 20];
  const height = objects.length * row + 4;
  const x = (time) => left + (Math.min(time, horizon) / horizon) * (width - left - right);
  const label = `${run.name}: ${objects.filter(({ finished_ns: ns }) => ns !== null).length} of ${objects.length} complete`;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height + 20}`, role: "img", "aria-label": label }, ...axis(x, 0, height));
  objects.forEach((object, index) => {
    const [from, first, to] = [object.requested_ns, object.first_byte_ns, object.finished_ns].map(at);
    if (from === Infinity) return;
    const bar = (begin, until, kind) => draw("rect", {
      x: x(begin), y: 3 + index * row, width: Math.max(x(until) - x(begin), 1), height: row - 2, class: `fill-${SIDES[side]} ${kind}`,
    });
    const name = `${object.path}, ${number(object.size)} bytes: ${to === Infinity ? "not complete" : `complete after ${seconds(to)}`}`;
    picture.append(draw("g", {}, draw("title", {}, name), bar(from, Math.min(first, horizon), "waiting"), ...(first === Infinity ? [] : [bar(first, Math.min(to, horizon), "")])));
  });
  picture.append(now(x, 0, height));
  return make("div", { class: "side" }, heading(run, side), make("p", { class: "state" }, "pale: requested, full: content arrives"), picture);
}

/** The rate of a run in Mb/s, over intervals of `step` seconds. */
function rateOf(run, step) {
  const { links, bin_ns: bin } = run.outcome;
  const wide = Math.max(1, Math.round(step * 1e9 / bin));
  const length = Math.ceil(horizon * 1e9 / bin / wide);
  return Array.from({ length }, (_, index) => {
    const bytes = links.flatMap(({ arrived }) => arrived.slice(index * wide, (index + 1) * wide)).reduce((sum, one) => sum + one, 0);
    return { from: index * wide * bin / 1e9, rate: bytes * 8 / (wide * bin / 1e3) };
  });
}

function rates(runs) {
  const [width, height, left, right] = [narrow() ? 360 : 1160, narrow() ? 200 : 260, 36, 12];
  const step = Math.max(0.04, horizon / (narrow() ? 50 : 90));
  const series = runs.map((run) => rateOf(run, step));
  const most = Math.max(...series.flat().map(({ rate }) => rate), 0.1);
  const x = (time) => left + (Math.min(time, horizon) / horizon) * (width - left - right);
  const y = (rate) => height - (rate / (most * 1.05)) * (height - 8);
  const losses = runs.map(({ outcome }) => outcome.links.flatMap(({ lost }) => lost).filter(({ at_ns: ns }) => at(ns) <= horizon));
  const label = `Rates up to ${most.toFixed(1)} Mb/s. ` + runs.map(({ name }, side) => `${name}: ${losses[side].length} packets lost`).join("; ");
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height + 62}`, role: "img", "aria-label": label }, ...axis(x, 4, height));
  const levels = [0, most / 2, most];
  for (const level of levels) {
    picture.append(draw("text", { x: left - 6, y: y(level) + 4, "text-anchor": "end" }, level.toFixed(most < 10 ? 1 : 0)));
  }
  picture.append(draw("text", { x: left + 4, y: 12 }, "Mb/s"));
  series.forEach((points, side) => {
    const steps = points.map(({ from, rate }) => `${x(from).toFixed(1)},${y(rate).toFixed(1)} ${x(from + step).toFixed(1)},${y(rate).toFixed(1)}`);
    picture.append(draw("polyline", { points: steps.join(" "), class: `line-${SIDES[side]}` }));
    const top = height + 22 + side * 20;
    for (const { at_ns: ns, reason } of losses[side]) {
      picture.append(draw("line", { x1: x(at(ns)), x2: x(at(ns)), y1: top, y2: top + 14, class: `tick-${SIDES[side]}` }, draw("title", {}, `${seconds(at(ns))}: ${reason}`)));
    }
    picture.append(draw("text", { x: left - 6, y: top + 11, "text-anchor": "end" }, "lost"));
  });
  picture.append(now(x, 4, height + 58));
  const legend = make("p", { class: "state" });
  runs.forEach((run, side) => legend.append(side ? " · " : "", make("span", { class: `key ${SIDES[side]}`, "aria-hidden": "true" }), `${run.name}${side ? " (dashed)" : ""}`));
  return make("div", { class: "side" }, legend, picture);
}

function numbers(runs) {
  const reasons = [...new Set(runs.flatMap(({ outcome }) => outcome.links.flatMap(({ lost }) => lost.map(({ reason }) => reason))))].sort();
  const lostBy = (run, reason) => run.outcome.links.flatMap(({ lost }) => lost).filter((one) => one.reason === reason).length;
  const first = (run) => Math.min(...run.outcome.objects.map((object) => at(object.first_byte_ns)));
  const half = (run) => run.outcome.objects.map((object) => at(object.finished_ns)).sort((a, b) => a - b)[Math.ceil(run.outcome.objects.length / 2) - 1];
  const time = (value) => (value === Infinity ? "not within two minutes" : seconds(value));
  const code = (text) => make("code", {}, text);
  const rows = [
    ["first byte of content", (run) => time(first(run))],
    ...(runs[0].settings.content === "page" ? [["half of the objects complete", (run) => time(half(run))]] : []),
    ["all complete", (run) => time(end(run))],
    ["packets that the server sent", (run) => number(run.outcome.packets.sent)],
    ["of these, declared lost by the server", (run) => number(run.outcome.packets.lost)],
    ["of these, wrongly: they had arrived", (run) => number(run.outcome.packets.spurious)],
    ...reasons.map((reason) => [`lost on the link: ${reason}`, (run) => number(lostBy(run, reason))]),
    ...(runs[0].settings.links.length > 1 ? [0, 1].map((link) => [`kB over the ${link ? "second" : "first"} link`, (run) => number(Math.round((run.outcome.links[link]?.arrived ?? []).reduce((sum, one) => sum + one, 0) / 1000))]) : []),
    ["digest of all results", (run) => code(run.digest.slice(0, 16))],
  ];
  const head = make("thead", {}, make("tr", {}, make("td"), ...runs.map((run, side) => make("th", { scope: "col" }, make("span", { class: `key ${SIDES[side]}`, "aria-hidden": "true" }), run.name))));
  const body = make("tbody", {}, ...rows.map(([name, of]) => make("tr", {}, make("th", { scope: "row" }, name), ...runs.map((run) => make("td", {}, of(run))))));
  const caption = make("caption", {}, `Link: `, ...runs[0].settings.links.flatMap((link, index) => [index ? " and " : "", code(link)]));
  return [caption, head, body];
}

// Other draws

const DRAWS = 10;

/** Runs both systems with further seeds, and shows how long each took. */
async function compare() {
  const runs = shown;
  $("more").disabled = true;
  const ends = runs.map((run) => [end(run)]);
  try {
    await Promise.all(runs.map(async ({ settings }, side) => {
      for (let draw = 1; draw < DRAWS; draw++) {
        const { answer } = await call("run", { ...settings, seed: settings.seed + draw });
        if (answer.error) throw new Error(answer.error);
        ends[side].push(end(answer));
        if (shown === runs) $("draws").textContent = `Computing: ${ends.flat().length} of ${DRAWS * runs.length} runs`;
      }
    }));
    // Unless other settings were chosen meanwhile.
    if (shown === runs) $("draws").replaceChildren(strips(runs, ends));
  } catch (error) {
    $("draws").textContent = `A load failed: ${error.message}`;
  } finally {
    $("more").disabled = false;
  }
}

/** A row of dots for each system, with its median. */
function strips(runs, ends) {
  const [width, left, right, row] = [narrow() ? 360 : 1160, 12, 12, 34];
  const complete = ends.flat().filter((time) => time !== Infinity);
  const most = Math.max(...complete, 0.1) * (complete.length < ends.flat().length ? 1.1 : 1);
  const x = (time) => left + (Math.min(time, most) / most) * (width - left - right);
  const time = (value) => (value === Infinity ? "more than two minutes" : seconds(value));
  const picture = draw("svg", { viewBox: `0 0 ${width} ${row * runs.length + 22}`, "aria-hidden": "true" }, ...axis(x, 0, row * runs.length, most));
  const texts = runs.map((run, side) => {
    const sorted = [...ends[side]].sort((a, b) => a - b);
    const [lower, upper] = [sorted[DRAWS / 2 - 1], sorted[DRAWS / 2]];
    const middle = upper === Infinity ? upper : (lower + upper) / 2;
    const y = row * (side + 0.5);
    picture.append(
      ...sorted.map((value) => draw("circle", { cx: x(value), cy: y, r: 5, class: `dot fill-${SIDES[side]}` })),
      draw("line", { x1: x(middle), x2: x(middle), y1: y - 12, y2: y + 12, class: `tick-${SIDES[side]} median` }),
    );
    const span = sorted[0] === Infinity ? `all ${DRAWS} took ${time(sorted[0])}` : `median ${time(middle)}, from ${time(sorted[0])} to ${time(sorted.at(-1))}`;
    return make("p", { class: "state" }, make("span", { class: `key ${SIDES[side]}`, "aria-hidden": "true" }), `${run.name}: ${span}`);
  });
  return make("div", { class: "side" }, ...texts, picture);
}

// The race

function moveTo(time) {
  for (const moment of moments) moment(time);
  $("time").value = String(Math.round((time / horizon) * STEPS));
  $("time").setAttribute("aria-valuetext", seconds(time));
  $("time-shown").value = seconds(time);
}

function stop() {
  cancelAnimationFrame(frame);
  frame = null;
  $("play").textContent = "Play";
}

function play() {
  stop();
  const from = Number($("time").value) / STEPS * horizon;
  let time = from >= horizon ? 0 : from;
  let before = null;
  $("play").textContent = "Pause";
  const step = (stamp) => {
    time = Math.min(horizon, time + ((stamp - (before ?? stamp)) / 1000) * Number($("speed").value));
    before = stamp;
    moveTo(time);
    if (time >= horizon) return stop();
    frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
}

$("more").onclick = compare;
$("play").onclick = () => (frame === null ? play() : stop());
$("time").oninput = () => {
  stop();
  moveTo(Number($("time").value) / STEPS * horizon);
};

// The beginning

async function begin() {
  SIDES.forEach((_, side) => {
    $(`system-${side}`).append(...SYSTEMS.map(([value, name]) => make("option", { value }, name)));
    $(`system-${side}`).value = DEFAULTS[side];
  });
  $("form").onsubmit = (event) => {
    event.preventDefault();
    run();
  };
  $("form").oninput = () => {
    showSliders();
    showLink();
    showHint();
  };
  $("another").onclick = () => {
    $("seed").value = String((Number($("seed").value) + 1) % 1_000_000);
    run();
  };
  try {
    ({ answer: presets } = await call("presets"));
    if (presets.error) throw new Error(presets.error);
  } catch (error) {
    presets = [];
    $("status").className = "error";
    $("status").textContent = `The simulator does not start: ${error.message}. It needs a browser with WebAssembly, and a web server: opened as a file, this page may not load it.`;
    $("run").disabled = true;
  }
  for (const id of ["preset", "second"]) {
    $(id).append(...presets.map(({ name, about }) => make("option", { value: name }, `${name}: ${about}`)));
  }
  recall();
  $("form").oninput();
  if (!$("run").disabled) run(false);
}

begin();
