// What points look like: every kind has a colour and a shape of its own.

const outlines = {
  circle: (pen, r) => pen.arc(0, 0, r, 0, 2 * Math.PI),
  square: (pen, r) => pen.rect(-0.88 * r, -0.88 * r, 1.76 * r, 1.76 * r),
  triangle: (pen, r) => polygon(pen, [[0, -1.2 * r], [1.1 * r, 0.8 * r], [-1.1 * r, 0.8 * r]]),
  wedge: (pen, r) => polygon(pen, [[0, 1.2 * r], [1.1 * r, -0.8 * r], [-1.1 * r, -0.8 * r]]),
  diamond: (pen, r) => polygon(pen, [[0, -1.25 * r], [1.25 * r, 0], [0, 1.25 * r], [-1.25 * r, 0]]),
  plus: (pen, r) => polygon(pen, bars(r, 0)),
  cross: (pen, r) => polygon(pen, bars(r, Math.PI / 4)),
};
const WIDEST = 1.5; // half the width of any shape, outline included, in units of its radius

function polygon(pen, corners) {
  corners.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
}

function bars(r, turn) {
  const a = 0.42 * r, b = 1.2 * r, cos = Math.cos(turn), sin = Math.sin(turn);
  const quarter = [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a]];
  const corners = [...quarter, ...quarter.map(([x, y]) => [-x, -y])];
  return corners.map(([x, y]) => [x * cos - y * sin, x * sin + y * cos]);
}

function drawSign(pen, shape, color, rim, radius) {
  pen.beginPath();
  outlines[shape](pen, radius);
  pen.fillStyle = color;
  pen.fill();
  pen.strokeStyle = rim;
  pen.lineWidth = Math.max(0.5, 0.16 * radius);
  pen.stroke();
}
