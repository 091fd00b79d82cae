// Where the points are on the screen: which part of the plane is in sight, and how large.

const MOST_ZOOM = 60;
const REACH = 14; // pixels between the pointer and a point that it still means

class Plane {
  constructor(x, y) {
    this.n = x.length;
    this.x = Float64Array.from(x);
    this.y = Float64Array.from(y);
    const range = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
    [this.left, this.right] = this.n ? range(this.x) : [0, 1];
    [this.bottom, this.top] = this.n ? range(this.y) : [0, 1];
    this.width = this.height = this.base = 1;
    this.reset();
  }

  fit(width, height) {
    this.width = Math.max(width, 1);
    this.height = Math.max(height, 1);
    const across = Math.max(this.right - this.left, 1), up = Math.max(this.top - this.bottom, 1);
    this.base = 0.92 * Math.min(this.width / across, this.height / up);
  }

  reset() {
    this.zoom = 1;
    this.middleX = (this.left + this.right) / 2;
    this.middleY = (this.bottom + this.top) / 2;
  }

  get scale() { return this.base * this.zoom; }
  toScreen(x, y) {
    return [this.width / 2 + (x - this.middleX) * this.scale, this.height / 2 - (y - this.middleY) * this.scale];
  }
  place(i) { return this.toScreen(this.x[i], this.y[i]); }

  lookAt(x, y) {
    this.middleX = Math.min(Math.max(x, this.left), this.right);
    this.middleY = Math.min(Math.max(y, this.bottom), this.top);
  }

  move(dx, dy) { this.lookAt(this.middleX - dx / this.scale, this.middleY + dy / this.scale); }

  // What is under the pointer stays under it
  zoomAt(factor, px, py) {
    const dx = px - this.width / 2, dy = py - this.height / 2, before = this.scale;
    this.zoom = Math.min(Math.max(this.zoom * factor, 1), MOST_ZOOM);
    if (this.zoom === 1) this.reset();
    else this.lookAt(this.middleX + dx / before - dx / this.scale, this.middleY - dy / before + dy / this.scale);
  }

  bringIntoSight(i) {
    const [px, py] = this.place(i), rim = 40;
    if (px < rim || py < rim || px > this.width - rim || py > this.height - rim) this.lookAt(this.x[i], this.y[i]);
  }

  nearest(px, py, shown) {
    const x = this.middleX + (px - this.width / 2) / this.scale, y = this.middleY - (py - this.height / 2) / this.scale;
    let best = -1, least = (REACH / this.scale) ** 2;
    for (let i = 0; i < this.n; i++) {
      const away = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
      if (away < least && shown[i]) { least = away; best = i; }
    }
    return best;
  }

  within([[left, top], [right, bottom]]) {
    return Uint8Array.from(this.x, (_, i) => {
      const [x, y] = this.place(i);
      return Number(x >= Math.min(left, right) && x <= Math.max(left, right) && y >= Math.min(top, bottom) && y <= Math.max(top, bottom));
    });
  }

  // For every kind the point nearest to the median of its points, so that it lies among them; null without points
  middles(codes, nKinds) {
    const members = Array.from({ length: nKinds }, () => []);
    for (let i = 0; i < this.n; i++) members[codes[i]].push(i);
    const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    return members.map((rows) => {
      if (!rows.length) return null;
      const mx = median(rows.map((i) => this.x[i])), my = median(rows.map((i) => this.y[i]));
      const away = (i) => (this.x[i] - mx) ** 2 + (this.y[i] - my) ** 2;
      const best = rows.reduce((one, other) => (away(other) < away(one) ? other : one));
      return [this.x[best], this.y[best]];
    });
  }
}
