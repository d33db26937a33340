// The network and its arithmetic: pixels in, pixels out. Runs in a worker, so the page stays alive.
import * as ort from "./ort/ort.wasm.min.mjs";

const MARGIN = 72; // more than the network sees to each side
const MULTIPLE = 8;
const TILE = 1024; // larger pictures are restored in tiles, which gives the same result

ort.env.wasm.wasmPaths = new URL("./ort/", import.meta.url).href;
ort.env.wasm.numThreads = self.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency) : 1;

/** Measure the noise of a picture: for R, G and B, σ in 0 to 255 units.
 *
 * The median of the diagonal details of 2x2 pixels over 0.6745, as Donoho and Johnstone,
 * Ideal spatial adaptation by wavelet shrinkage, Biometrika 81 (1994), section 4.2.
 */
export function measureNoise(rgba, width, height) {
  return [0, 1, 2].map((channel) => {
    const counts = new Uint32Array(1021);
    let total = 0;
    for (let y = 0; y + 1 < height; y += 2) {
      for (let x = 0; x + 1 < width; x += 2) {
        const at = 4 * (y * width + x) + channel;
        const below = at + 4 * width;
        counts[Math.abs(rgba[at] - rgba[at + 4] - rgba[below] + rgba[below + 4])]++;
        total++;
      }
    }
    let seen = 0;
    for (let value = 0; value < counts.length; value++) {
      if (counts[value] && seen + counts[value] >= total / 2) {
        // Where in the step of width 1 around this value the median lies.
        const inside = (total / 2 - seen) / counts[value];
        return Math.max(0, value ? value - 0.5 + inside : inside / 2) / 2 / 0.6745;
      }
      seen += counts[value];
    }
    return 0;
  });
}

/** Lay a part of a picture out as the network wants it: R, G, B and their σ, in [0, 1]. */
function pack(rgba, width, part, sigma) {
  const { left, top, columns, rows } = part;
  const plane = columns * rows;
  const out = new Float32Array(6 * plane);
  for (let y = 0; y < rows; y++) {
    let from = 4 * ((top + y) * width + left);
    for (let to = y * columns; to < (y + 1) * columns; to++, from += 4) {
      out[to] = rgba[from] / 255;
      out[plane + to] = rgba[from + 1] / 255;
      out[2 * plane + to] = rgba[from + 2] / 255;
    }
  }
  sigma.forEach((value, channel) => {
    out.fill(value / 255, (3 + channel) * plane, (4 + channel) * plane);
  });
  return out;
}

/** Cut a picture into tiles: what is kept of each, and what is read for it. */
function* tiles(width, height) {
  const side = width * height <= 2.5e6 ? Math.max(width, height) : TILE;
  const margin = Math.ceil(MARGIN / MULTIPLE) * MULTIPLE;
  for (let y = 0; y < height; y += side) {
    for (let x = 0; x < width; x += side) {
      const left = Math.max(0, x - margin);
      const top = Math.max(0, y - margin);
      const right = Math.min(width, x + side + margin);
      const bottom = Math.min(height, y + side + margin);
      const keep = { x, y, right: Math.min(width, x + side), bottom: Math.min(height, y + side) };
      yield { left, top, columns: right - left, rows: bottom - top, keep };
    }
  }
}

export class Network {
  /** Load a model; resolves to a Network. */
  static async load(url) {
    const reply = await fetch(url);
    if (!reply.ok) throw new Error(`the model cannot be loaded (${reply.status})`);
    const content = await reply.arrayBuffer();
    const session = await ort.InferenceSession.create(content, { executionProviders: ["wasm"] });
    return new Network(session, content.byteLength);
  }

  constructor(session, bytes) {
    this.session = session;
    this.bytes = bytes;
  }

  /** Restore a picture of 8-bit RGBA; σ in 0 to 255 units. Alpha stays. */
  async restore(rgba, width, height, sigma) {
    const out = new Uint8ClampedArray(rgba);
    for (const part of tiles(width, height)) {
      const { left, top, columns, rows, keep } = part;
      const input = pack(rgba, width, part, sigma);
      const noisy = new ort.Tensor("float32", input, [1, 6, rows, columns]);
      const { clean } = await this.session.run({ noisy });
      const plane = columns * rows;
      for (let y = keep.y; y < keep.bottom; y++) {
        let to = 4 * (y * width + keep.x);
        let from = (y - top) * columns + keep.x - left;
        for (let x = keep.x; x < keep.right; x++, to += 4, from++) {
          out[to] = 255 * clean.data[from];
          out[to + 1] = 255 * clean.data[plane + from];
          out[to + 2] = 255 * clean.data[2 * plane + from];
        }
      }
      clean.dispose();
    }
    return out;
  }
}
