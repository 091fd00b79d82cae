// What points look like: SVG paths of radius 1, drawn on canvases and written into files alike.

const WIDEST = 1.5; // half the width of any shape, outline included, in units of its radius
const SHAPES = {
  circle: "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
  square: "M-.88-.88H.88V.88H-.88Z",
  triangle: "M0-1.2L1.1 .8H-1.1Z",
  wedge: "M0 1.2L1.1-.8H-1.1Z",
  diamond: "M0-1.25L1.25 0L0 1.25L-1.25 0Z",
  plus: "M-.42-1.2H.42V-.42H1.2V.42H.42V1.2H-.42V.42H-1.2V-.42H-.42Z",
  cross: "M.55-1.15L1.15-.55L.59 0L1.15 .55L.55 1.15L0 .59L-.55 1.15L-1.15 .55L-.59 0L-1.15-.55L-.55-1.15L0-.59Z",
};
// Of numbers, from low to high: at least 3 : 1 against the page, light and dark
const SCALE = [["#0b5fa5", "#767f88", "#c4400b"], ["#7ab4f5", "#a3aebb", "#ff8f63"]];
const LEVELS = 12, MOST_NAMED = 24;
const FADED = ["#ccd3da", "#3a424b"], UNKNOWN = ["#767f88", "#a3aebb"];

function levelColors(level) {
  const place = (2 * level) / (LEVELS - 1), side = place >= 1 ? 1 : 0, share = place - side;
  const part = (color, k) => parseInt(color.slice(1 + 2 * k, 3 + 2 * k), 16);
  return SCALE.map(({ [side]: a, [side + 1]: b }) => "#" + [0, 1, 2].map((k) =>
    Math.round(part(a, k) * (1 - share) + part(b, k) * share).toString(16).padStart(2, "0")).join(""));
}

function drawSign(pen, [light, dark, shape], isDark, rim, radius) {
  const path = new Path2D(SHAPES[shape]);
  pen.scale(radius, radius);
  pen.fillStyle = isDark ? dark : light;
  pen.fill(path);
  pen.strokeStyle = rim;
  pen.lineWidth = Math.max(0.5 / radius, 0.16);
  pen.stroke(path);
}

// Whole numbers from base64: of 16 bits, or of 8 if there are as many bytes as numbers
function unpack(text, n) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return bytes.length === n ? bytes : new Uint16Array(bytes.buffer);
}
