// Drawing the points. Signs are drawn once and stamped pixel by pixel: drawing 20,000 of them one by one would take
// several times as long, with and without a graphics card.

class Picture {
  constructor(canvas, plane, data) {
    Object.assign(this, { canvas, plane, data });
    this.pen = canvas.getContext("2d");
    this.codes = data.facets[0].codes;
    this.middles = plane.middles(this.codes, data.marks.length);
    this.darkPage = matchMedia("(prefers-color-scheme: dark)");
    this.waiting = this.printing = false;
    this.density = 1;
    this.stamps = [];
    this.stampSize = 0;
    this.chosen = -1;
    this.shown = new Uint8Array(plane.n).fill(1);
    this.allowed = () => true;
    this.painted = () => {};
  }

  measure() {
    this.plane.fit(this.canvas.clientWidth, this.canvas.clientHeight);
    this.density = Math.min(window.devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(this.plane.width * this.density);
    this.canvas.height = Math.round(this.plane.height * this.density);
    this.image = this.pen.createImageData(this.canvas.width, this.canvas.height);
    this.stampSize = 0;
    this.draw();
  }

  get isDark() { return this.darkPage.matches && !this.printing; }
  color(name, onPaper) { return this.printing ? onPaper : getComputedStyle(this.canvas).getPropertyValue(name).trim(); }
  get ink() { return this.color("--ink", "#1f2933"); }
  get paper() { return this.color("--paper", "#ffffff"); }

  get radius() {
    const small = this.plane.n > 5000 ? 2.2 : this.plane.n > 800 ? 3.2 : 4.6;
    return Math.min(small * Math.pow(this.plane.zoom, 0.25), 8);
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    this.makeStamps();
    this.stampPoints();
    this.pen.setTransform(this.density, 0, 0, this.density, 0, 0);
    this.drawMarks();
    if (this.chosen >= 0) this.drawRing();
    this.canvas.dataset.zoom = this.plane.zoom.toFixed(3);
    this.canvas.dataset.middle = `${this.plane.middleX.toFixed(1)} ${this.plane.middleY.toFixed(1)}`;
    this.painted();
  }

  makeStamps() {
    const size = Math.ceil(2 * WIDEST * this.radius * this.density);
    if (size === this.stampSize) return;
    this.stampSize = size;
    const canvas = Object.assign(document.createElement("canvas"), { width: size, height: size });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    this.stamps = this.data.signs.map((sign) => {
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, size, size);
      this.drawOne(pen, sign, size, this.radius * this.density);
      return this.pixelsOf(pen.getImageData(0, 0, size, size), size);
    });
  }

  // What is at least half covered: the rim has the colour of the page, so that nobody sees its steps
  pixelsOf(image, size) {
    const words = new Uint32Array(image.data.buffer), stamp = { across: [], down: [], offsets: [], colors: [] };
    for (let k = 0; k < words.length; k++) {
      if (image.data[4 * k + 3] < 128) continue;
      image.data[4 * k + 3] = 255;
      const across = (k % size) - (size >> 1), down = Math.floor(k / size) - (size >> 1);
      stamp.across.push(across);
      stamp.down.push(down);
      stamp.offsets.push(down * this.canvas.width + across);
      stamp.colors.push(words[k]);
    }
    return stamp;
  }

  stampPoints() {
    const { plane, density, image, stampSize: size } = this, { width, height } = image, scale = plane.scale * density;
    const left = (plane.width / 2) * density - plane.middleX * scale;
    const top = (plane.height / 2) * density + plane.middleY * scale;
    const words = new Uint32Array(image.data.buffer).fill(0);
    for (let i = plane.n - 1; i >= 0; i--) { // the first ones end up on top
      if (!this.shown[i]) continue;
      const x = Math.round(left + plane.x[i] * scale), y = Math.round(top - plane.y[i] * scale);
      if (x < -size || y < -size || x > width + size || y > height + size) continue;
      const { across, down, offsets, colors } = this.stamps[this.codes[i]], start = y * width + x;
      const inside = x >= size && y >= size && x < width - size && y < height - size;
      for (let k = 0; k < offsets.length; k++) {
        const px = x + across[k], py = y + down[k];
        if (inside || (px >= 0 && py >= 0 && px < width && py < height)) words[start + offsets[k]] = colors[k];
      }
    }
    this.pen.putImageData(image, 0, 0);
  }

  drawOne(pen, [light, dark, shape], size, radius) {
    pen.setTransform(1, 0, 0, 1, size / 2, size / 2);
    drawSign(pen, shape, this.isDark ? dark : light, this.paper, radius);
  }

  drawMarks() {
    const { pen, plane } = this;
    Object.assign(pen, { font: "600 13px system-ui, sans-serif", textAlign: "center", textBaseline: "middle" });
    Object.assign(pen, { lineJoin: "round", lineWidth: 4, strokeStyle: this.paper, fillStyle: this.ink });
    this.middles.forEach((middle, kind) => {
      if (!middle || !this.allowed(kind)) return;
      const [x, y] = plane.toScreen(...middle);
      pen.strokeText(this.data.marks[kind], x, y);
      pen.fillText(this.data.marks[kind], x, y);
    });
  }

  drawRing() {
    this.pen.beginPath();
    this.pen.arc(...this.plane.place(this.chosen), this.radius + 5, 0, 2 * Math.PI);
    for (const [width, color] of [[5, this.paper], [2, this.ink]]) {
      Object.assign(this.pen, { lineWidth: width, strokeStyle: color });
      this.pen.stroke();
    }
  }

  recolor(keys) {
    this.stampSize = 0;
    for (const key of keys) {
      key.width = key.height = 32;
      this.drawOne(key.getContext("2d"), this.data.signs[key.dataset.sign], 32, 10);
    }
    this.draw();
  }
}
