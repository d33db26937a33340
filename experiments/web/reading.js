// Pictures and clips as frames: ImageData, 8-bit RGBA in sRGB.

export const MOST_FRAMES = 120;
const MOST_PIXELS = 16e6;

function grab(source, width, height) {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

async function* pictureFrames(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name}: this browser cannot read it as a picture.`);
  }
  const { width, height } = bitmap;
  if (width * height > MOST_PIXELS) {
    throw new Error(`${file.name}: ${width} × ${height} pixels are too many for a browser; `
      + "16 megapixels are the most.");
  }
  yield { image: grab(bitmap, width, height), of: 1, rate: 0 };
  bitmap.close();
}

function once(target, good, bad = "error", seconds = 20) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("it does not answer")), 1000 * seconds);
    const settle = (how) => () => { clearTimeout(timer); how(); };
    target.addEventListener(good, settle(resolve), { once: true });
    target.addEventListener(bad, settle(() => reject(new Error("it cannot be read"))), { once: true });
  });
}

/** Play the start of a clip, unseen, and take the smallest step between two frames. */
async function frameTime(video) {
  if (!("requestVideoFrameCallback" in video)) return 1 / 25;
  const times = [];
  const enough = new Promise((resolve) => {
    const note = (_, { mediaTime }) => {
      times.push(mediaTime);
      if (times.length < 8) video.requestVideoFrameCallback(note);
      else resolve();
    };
    video.requestVideoFrameCallback(note);
    video.addEventListener("ended", resolve, { once: true });
    setTimeout(resolve, 3000);
  });
  video.playbackRate = 0.5;
  await video.play();
  await enough;
  video.pause();
  const steps = times.slice(1).map((time, i) => time - times[i]).filter((step) => step > 1e-3);
  return steps.length ? Math.max(Math.min(...steps), 1 / 120) : 1 / 25;
}

async function* clipFrames(file) {
  const video = document.createElement("video");
  const url = URL.createObjectURL(file);
  try {
    video.muted = true;
    video.playsInline = true;
    video.preload = "auto";
    const loaded = once(video, "loadeddata");
    video.src = url;
    await loaded;
    const step = await frameTime(video);
    const of = Math.max(1, Math.min(MOST_FRAMES, Math.round(video.duration / step) || 1));
    const { videoWidth: width, videoHeight: height } = video;
    for (let number = 0; number < of; number++) {
      const moved = once(video, "seeked");
      video.currentTime = Math.min((number + 0.5) * step, video.duration);
      await moved;
      yield { image: grab(video, width, height), of, rate: 1 / step };
    }
  } catch (error) {
    throw new Error(`${file.name}: this browser cannot play it (${error.message}).`);
  } finally {
    video.removeAttribute("src");
    video.load();
    URL.revokeObjectURL(url);
  }
}

/** Yield the frames of a file as {image, of, rate}: of how many, and frames a second. */
export function framesOf(file) {
  return file.type.startsWith("video/") ? clipFrames(file) : pictureFrames(file);
}
