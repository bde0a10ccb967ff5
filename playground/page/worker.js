// One run: instantiates the module that it is given, and posts progress and the answer.

const STEP = 0.01;

onmessage = async ({ data: { module, call, scenario } }) => {
  let shown = -1;
  const progress = (share) => {
    if (share - shown >= STEP || share === 1) {
      shown = share;
      postMessage({ progress: share });
    }
  };
  try {
    const { exports } = await WebAssembly.instantiate(module, { env: { progress } });
    if (scenario) {
      const bytes = new TextEncoder().encode(JSON.stringify(scenario));
      const at = exports.input(bytes.length);
      new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    }
    const began = performance.now();
    const length = exports[call]();
    const took = performance.now() - began;
    // After the call: the memory may have grown, and then is another buffer.
    const text = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, exports.output(), length));
    postMessage({ answer: JSON.parse(text), took });
  } catch (error) {
    postMessage({ answer: { error: `the simulator stopped: ${error.message}` } });
  }
};
