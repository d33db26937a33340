// The page: takes a file, has its frames restored one by one, and shows them side by side.
import { framesOf } from "./reading.js";

const $ = (id) => document.getElementById(id);
const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
const state = { frames: [], shown: 0, run: 0, spent: 0, rate: 25, sigma: null, timer: 0 };
let asked = 0;

worker.onmessage = ({ data }) => {
  if (data.ready) {
    $("about").textContent = `The model is ${Math.round(data.bytes / 1024)} KB and runs in ONNX Runtime.`;
    document.body.dataset.model = "ready";
    return;
  }
  if (data.id === undefined) {
    $("about").textContent = "";
    complain(`The model does not start: ${data.failed}`);
    return;
  }
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.failed) reject(new Error(data.failed));
  else resolve(data);
};

function restore(image) {
  const id = asked++;
  const { width, height, data } = image;
  worker.postMessage({ id, width, height, rgba: data, sigma: state.sigma });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function complain(message) {
  $("error").textContent = message;
  $("error").hidden = !message;
}

function draw(canvas, image) {
  if (canvas.width !== image.width || canvas.height !== image.height) {
    canvas.width = image.width;
    canvas.height = image.height;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function show(number) {
  state.shown = number;
  const { before, after } = state.frames[number];
  draw($("after"), after);
  draw($("before"), before);
  $("frame").value = number;
}

function tell(of) {
  const done = state.frames.filter((frame) => frame.fresh === state.run).length;
  const mean = state.spent / Math.max(done, 1);
  const { width, height } = state.frames[0].before;
  const what = of > 1 ? `${done} of ${of} frames` : `${width} × ${height} pixels`;
  $("progress").value = done / of;
  $("status").textContent = `${what}, ${Math.round(mean)} ms a frame`;
}

function tellNoise(sigma) {
  const mean = (sigma[0] + sigma[1] + sigma[2]) / 3;
  if (state.sigma === null) $("sigma").value = Math.round(mean);
  $("level").textContent = Math.round(mean);
  $("stage").dataset.sigma = JSON.stringify(sigma);
}

/** Take in one restored frame. */
function take(number, before, answer, of) {
  const after = new ImageData(answer.rgba, before.width, before.height);
  state.frames[number] = { before, after, fresh: state.run };
  state.spent += answer.milliseconds;
  $("frame").max = state.frames.length - 1;
  if (number === state.shown || state.frames.length === number + 1) show(number);
  if (number === 0 || state.sigma !== null) tellNoise(answer.sigma);
  tell(of);
}

function begin() {
  stopPlaying();
  state.run++;
  state.spent = 0;
  complain("");
  $("result").dataset.state = "busy";
  $("progress").hidden = false;
  $("progress").value = 0;
  $("stop").hidden = false;
  return state.run;
}

function end(run) {
  if (run !== state.run) return;
  $("result").dataset.state = "done";
  $("progress").hidden = true;
  $("stop").hidden = true;
  $("save").disabled = state.frames.length === 0;
  $("frames").hidden = state.frames.length < 2;
}

async function open(file) {
  const run = begin();
  Object.assign(state, { frames: [], shown: 0, sigma: null, name: file.name });
  $("auto").setAttribute("aria-pressed", "true");
  $("drop").hidden = $("offer").hidden = true;
  $("frames").hidden = true;
  $("save").disabled = true;
  $("status").textContent = "Reading …";
  try {
    let number = 0;
    for await (const { image, of, rate } of framesOf(file)) {
      if (run !== state.run) return;
      $("result").hidden = false;
      state.rate = rate || 25;
      if (number === 0) { draw($("before"), image); draw($("after"), image); }
      const answer = await restore(image);
      if (run !== state.run) return;
      take(number++, image, answer, of);
    }
    if (number > 1) show(0);
  } catch (error) {
    if (run !== state.run) return;
    complain(error.message);
    if (!state.frames.length) reset();
  }
  end(run);
}

/** Restore all frames again, with another level of noise. */
async function again() {
  if (!state.frames.length) return;
  const run = begin();
  const of = state.frames.length;
  const order = [...state.frames.keys()].sort((a, b) => (b === state.shown) - (a === state.shown));
  try {
    for (const number of order) {
      const { before } = state.frames[number];
      const answer = await restore(before);
      if (run !== state.run) return;
      take(number, before, answer, of);
    }
  } catch (error) {
    complain(error.message);
  }
  end(run);
}

function reset() {
  state.run++;
  stopPlaying();
  state.frames = [];
  $("result").hidden = true;
  $("drop").hidden = $("offer").hidden = false;
  $("file").value = "";
}

function stopPlaying() {
  clearInterval(state.timer);
  state.timer = 0;
  $("play").textContent = "Play";
  $("play").setAttribute("aria-pressed", "false");
}

$("play").onclick = () => {
  if (state.timer) return stopPlaying();
  $("play").textContent = "Pause";
  $("play").setAttribute("aria-pressed", "true");
  state.timer = setInterval(() => show((state.shown + 1) % state.frames.length), 1000 / state.rate);
};
$("frame").oninput = () => { stopPlaying(); show(Number($("frame").value)); };
$("another").onclick = () => { reset(); complain(""); };
$("stop").onclick = () => { const run = ++state.run; end(run); };

let patience = 0;
$("sigma").oninput = () => {
  const level = Number($("sigma").value);
  state.sigma = [level, level, level];
  $("level").textContent = level;
  $("auto").setAttribute("aria-pressed", "false");
  clearTimeout(patience);
  patience = setTimeout(again, 200);
};
$("auto").onclick = () => {
  state.sigma = null;
  $("auto").setAttribute("aria-pressed", "true");
  again();
};

function split(share) {
  $("split").value = share;
  $("stage").style.setProperty("--split", `${share}%`);
}
$("split").oninput = () => split(Number($("split").value));
$("stage").onpointerdown = $("stage").onpointermove = (event) => {
  if (event.type === "pointermove" && !event.buttons) return;
  const box = $("stage").getBoundingClientRect();
  split(Math.min(100, Math.max(0, (100 * (event.clientX - box.left)) / box.width)));
};

$("save").onclick = () => $("after").toBlob((blob) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  const number = state.frames.length > 1 ? `-${state.shown + 1}` : "";
  link.download = `${state.name.replace(/\.[^.]*$/, "")}-restored${number}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

$("file").onchange = () => { if ($("file").files[0]) open($("file").files[0]); };
$("sample").onclick = async () => {
  const reply = await fetch("sample.png");
  open(new File([await reply.blob()], "sample.png", { type: "image/png" }));
};
addEventListener("dragover", (event) => { event.preventDefault(); $("drop").classList.add("over"); });
addEventListener("dragleave", () => $("drop").classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (file) open(file);
});
