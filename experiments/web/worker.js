// Answers the page: {id, width, height, rgba, sigma or null} in, {id, rgba, sigma, milliseconds} out.
import { Network, measureNoise } from "./network.js";

const network = Network.load(new URL("./model.onnx", import.meta.url));
network.then(
  ({ bytes }) => postMessage({ ready: true, bytes }),
  (error) => postMessage({ failed: error.message }),
);

onmessage = async ({ data }) => {
  const { id, width, height, rgba } = data;
  try {
    const ready = await network;
    const began = performance.now();
    const sigma = data.sigma ?? measureNoise(rgba, width, height);
    const out = await ready.restore(rgba, width, height, sigma);
    const milliseconds = performance.now() - began;
    postMessage({ id, rgba: out, sigma, milliseconds }, [out.buffer]);
  } catch (error) {
    postMessage({ id, failed: error.message });
  }
};
