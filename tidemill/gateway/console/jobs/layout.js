// Places for the nodes of a plan: in layers by their longest way from a source, within a layer near to what they
// read.

const WIDTH = 190;
const HEIGHT = 84;
const GAP_ACROSS = 56;
const GAP_ALONG = 18;

/** `{nodes: [{node, x, y}], edges: [path], width, height}` of nodes with `id` and `inputs`, inputs first. */
export function laidOut(plan) {
  const layers = layered(plan);
  arrange(layers);
  const tall = Math.max(...layers.map((layer) => layer.length)) * (HEIGHT + GAP_ALONG) - GAP_ALONG;
  const places = new Map();
  layers.forEach((layer, depth) => {
    const top = (tall - (layer.length * (HEIGHT + GAP_ALONG) - GAP_ALONG)) / 2;
    layer.forEach((node, index) => places.set(node.id, { node, x: depth * (WIDTH + GAP_ACROSS), y: top + index * (HEIGHT + GAP_ALONG) }));
  });
  return {
    nodes: [...places.values()],
    edges: plan.flatMap((node) => node.inputs.filter((id) => places.has(id)).map((id) => edge(places.get(id), places.get(node.id)))),
    width: layers.length * (WIDTH + GAP_ACROSS) - GAP_ACROSS,
    height: tall,
  };
}

export const NODE = { width: WIDTH, height: HEIGHT };

function layered(plan) {
  const depths = new Map();
  for (const { id, inputs } of plan) depths.set(id, Math.max(-1, ...inputs.map((input) => depths.get(input) ?? -1)) + 1);
  const deepest = Math.max(...depths.values());
  for (const { id, role } of plan) if (role === "sink") depths.set(id, deepest);
  const layers = Array.from({ length: deepest + 1 }, () => []);
  for (const node of plan) layers[depths.get(node.id)].push(node);
  return layers;
}

function arrange(layers) {
  const place = new Map();
  for (const layer of layers) {
    const middle = (node) => {
      const found = node.inputs.map((id) => place.get(id)).filter((at) => at !== undefined);
      return found.length ? found.reduce((sum, at) => sum + at, 0) / found.length : 0;
    };
    layer.sort((a, b) => middle(a) - middle(b));
    layer.forEach((node, index) => place.set(node.id, (index + 0.5) / layer.length));
  }
}

function edge(from, to) {
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const bend = Math.max(20, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
