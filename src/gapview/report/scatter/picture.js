// Drawing the points. Signs are drawn once and stamped pixel by pixel: drawing 20,000 of them one by one would take
// several times as long, with and without a graphics card.

class Picture {
  constructor(canvas, plane, data) {
    Object.assign(this, { canvas, plane, data });
    this.pen = canvas.getContext("2d");
    this.middles = plane.middles(data.properties[0].codes, data.marks.length);
    this.looks = []; // [light colour, dark colour, shape] of every kind of point
    this.codes = new Uint16Array(plane.n); // the look of every point
    this.faded = null; // which points are not selected, if any is
    this.darkPage = matchMedia("(prefers-color-scheme: dark)");
    this.waiting = false;
    this.density = 1;
    this.stamps = [];
    this.frame = null; // of a selection, while it is drawn
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

  get isDark() { return this.darkPage.matches; }
  color(name) { return getComputedStyle(this.canvas).getPropertyValue(name).trim(); }
  get ink() { return this.color("--ink"); }
  get paper() { return this.color("--paper"); }

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
    if (this.frame) this.drawFrame();
    this.canvas.dataset.zoom = this.plane.zoom.toFixed(3);
    this.canvas.dataset.middle = `${this.plane.middleX.toFixed(1)} ${this.plane.middleY.toFixed(1)}`;
    this.painted();
  }

  show(looks, codes, faded) {
    Object.assign(this, { looks, codes, faded, stampSize: 0 });
    this.draw();
  }

  makeStamps() {
    const size = Math.ceil(2 * WIDEST * this.radius * this.density);
    if (size === this.stampSize) return;
    this.stampSize = size;
    const canvas = Object.assign(document.createElement("canvas"), { width: size, height: size });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    this.stamps = this.looks.map((look) => {
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, size, size);
      this.drawOne(pen, look, size, this.radius * this.density);
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
    const { plane, density, image, stampSize: size, faded } = this, { width, height } = image, scale = plane.scale * density;
    const left = (plane.width / 2) * density - plane.middleX * scale;
    const top = (plane.height / 2) * density + plane.middleY * scale;
    const words = new Uint32Array(image.data.buffer).fill(0);
    for (const layer of faded ? [1, 0] : [0]) { // what is selected ends up on top
      for (let i = plane.n - 1; i >= 0; i--) { // and then the first ones
        if (!this.shown[i] || (faded && faded[i] !== layer)) continue;
        const x = Math.round(left + plane.x[i] * scale), y = Math.round(top - plane.y[i] * scale);
        if (x < -size || y < -size || x > width + size || y > height + size) continue;
        const { across, down, offsets, colors } = this.stamps[this.codes[i]], start = y * width + x;
        const inside = x >= size && y >= size && x < width - size && y < height - size;
        for (let k = 0; k < offsets.length; k++) {
          const px = x + across[k], py = y + down[k];
          if (inside || (px >= 0 && py >= 0 && px < width && py < height)) words[start + offsets[k]] = colors[k];
        }
      }
    }
    this.pen.putImageData(image, 0, 0);
  }

  drawOne(pen, look, size, radius) {
    pen.setTransform(1, 0, 0, 1, size / 2, size / 2);
    drawSign(pen, look, this.isDark, this.paper, radius);
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

  drawFrame() {
    const [[x, y], [right, bottom]] = this.frame;
    Object.assign(this.pen, { lineWidth: 1.5, strokeStyle: this.ink });
    this.pen.setLineDash([5, 3]);
    this.pen.strokeRect(x, y, right - x, bottom - y);
    this.pen.setLineDash([]);
  }

  drawKey(key, look) {
    key.width = key.height = 32;
    this.drawOne(key.getContext("2d"), look, 32, 10);
  }

  // The part in sight as an SVG element on white paper, as large as on the screen
  svg(legend) {
    const { plane, radius } = this, right = legend.length ? 190 : 0;
    const svg = svgNode("svg", { viewBox: `0 0 ${plane.width + right} ${plane.height}`, width: plane.width + right, height: plane.height });
    svg.append(svgNode("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
    const sign = ([color, , shape], x, y) => svgNode("path", { d: SHAPES[shape], fill: color, stroke: "#ffffff", "stroke-width": 0.16, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${radius})` });
    const text = (x, y, words, more) => svg.append(Object.assign(svgNode("text", { x, y, fill: "#1f2933", "font-family": "sans-serif", "font-size": 13, ...more }), { textContent: words }));
    for (const layer of [1, 0]) {
      for (let i = plane.n - 1; i >= 0; i--) {
        if (!this.shown[i] || (this.faded ? this.faded[i] : 0) !== layer) continue;
        const [x, y] = plane.place(i);
        if (x > 0 && y > 0 && x < plane.width && y < plane.height) svg.append(sign(this.looks[this.codes[i]], x, y));
      }
    }
    this.middles.forEach((middle, kind) => {
      if (!middle || !this.allowed(kind)) return;
      const [x, y] = plane.toScreen(...middle), rim = { stroke: "#ffffff", "stroke-width": 4, "paint-order": "stroke" };
      text(x, y + 4, this.data.marks[kind], { "text-anchor": "middle", "font-weight": 600, ...rim });
    });
    legend.forEach(([words, look], k) => {
      if (look) svg.append(sign(look, plane.width + 14, 20 + 19 * k));
      text(plane.width + (look ? 28 : 4), 25 + 19 * k, words.length > 24 ? words.slice(0, 23) + "…" : words, look ? {} : { "font-weight": 600 });
    });
    return svg;
  }
}
