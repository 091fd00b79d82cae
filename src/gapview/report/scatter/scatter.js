// Points that can be pointed at, coloured, filtered, selected and zoomed into. Every text reaches the page through
// textContent: what it holds is never read as markup.

const STEP = 1.5;
const STILL = 4; // pixels that a pointer may travel and still only click

class Scatter {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector("script").textContent);
    this.canvas = figure.querySelector(".scatter-stage canvas");
    this.tip = figure.querySelector(".scatter-tip");
    this.state = figure.querySelector(".scatter-state");
    this.n = this.data.x.length && atob(this.data.x).length / 2;
    this.plane = new Plane(unpack(this.data.x, this.n), unpack(this.data.y, this.n));
    this.properties = new Properties(this.data, this.n);
    this.filters = [...figure.querySelectorAll("fieldset")].map((set) => [set, this.data.properties[set.dataset.property]]);
    this.ticked = this.filters.map(([, { listed }]) => new Uint8Array(listed + 1).fill(1));
    this.picture = new Picture(this.canvas, this.plane, this.data);
    this.picture.allowed = (kind) => this.ticked[0][Math.min(kind, this.properties.groups.listed)];
    this.picture.painted = () => this.placeTip();
    this.pinned = this.selecting = false; // pinned: chosen on purpose, not in passing
    this.selected = new Uint8Array(this.n);
    this.rows = new Rows(this);
    figure.querySelector(".scatter-live").hidden = false;
    figure.querySelector(".scatter-without").remove();
    this.cards = [...document.querySelectorAll("button[data-group]")];
    this.picture.measure();
    this.recolor();
    this.filter();
    this.listen();
    this.listenToPointers();
    figure.dataset.ready = "yes";
  }

  say(text) { this.state.textContent = text; }
  heading() { return this.data.noun.replace(/^./, (letter) => letter.toUpperCase()); }

  recolor() {
    this.picture.show(...this.properties.looks(this.selected));
    for (const key of document.querySelectorAll(".scatter-sign")) this.picture.drawKey(key, this.properties.sign(key.dataset.sign));
    const list = this.figure.querySelector(".scatter-legend"), { by, groups } = this.properties;
    list.hidden = by === groups; // whose signs are on the cards
    list.replaceChildren(...(list.hidden ? [] : this.properties.legend()).map(([words, look]) => {
      const line = node("li", "");
      if (look) {
        const key = node("canvas", "", "scatter-key");
        this.picture.drawKey(key, look);
        line.append(key);
      }
      line.append(node(look ? "span" : "strong", words));
      return line;
    }));
  }

  // One point ------------------------------------------------------------------------------------------------------

  facts(i) {
    const { names } = this.data, known = this.properties.listed.map((one) => [one.title, this.properties.text(one, i)]);
    return names ? [[this.heading(), names[i]], ...known] : known;
  }

  choose(i, pinned) {
    this.pinned = pinned;
    if (i !== this.picture.chosen) {
      this.picture.chosen = i;
      this.tip.hidden = i < 0;
      this.tip.replaceChildren(...(i < 0 ? [] : this.facts(i).map(([title, text]) => {
        const line = node("div", "");
        line.append(node("dt", title), node("dd", text));
        return line;
      })));
    }
    this.picture.draw();
  }

  placeTip() {
    if (this.picture.chosen < 0) { delete this.canvas.dataset.at; return; }
    const [x, y] = this.plane.place(this.picture.chosen), { width, height } = this.plane, gap = 14;
    const [across, up] = [this.tip.offsetWidth, this.tip.offsetHeight];
    const left = x + gap + across > width ? x - gap - across : x + gap;
    const top = y + gap + up > height ? y - gap - up : y + gap;
    this.tip.style.visibility = x < 0 || y < 0 || x > width || y > height ? "hidden" : "visible";
    this.tip.style.left = `${Math.max(0, Math.min(left, width - across))}px`;
    this.tip.style.top = `${Math.max(0, Math.min(top, height - up))}px`;
    this.canvas.dataset.at = `${x.toFixed(1)} ${y.toFixed(1)}`;
  }

  letGo() {
    this.choose(-1, false);
    this.say(this.summary());
  }

  goTo(i) {
    this.plane.bringIntoSight(i);
    this.choose(i, true);
    this.say(this.facts(i).map(([title, text]) => `${title}: ${text}`).join("; ") + ".");
  }

  step(by) {
    const { shown, chosen } = this.picture;
    for (let i = (this.pinned ? chosen : by > 0 ? -1 : this.n) + by; i >= 0 && i < this.n; i += by) {
      if (shown[i]) return this.goTo(i);
    }
    return this.say(`There is no ${by > 0 ? "further" : "earlier"} ${this.data.noun} among those shown.`);
  }

  find(words) {
    const wanted = words.trim().toLowerCase(), { names } = this.data;
    if (!wanted) return this.letGo();
    const ways = [(name) => name === wanted, (name) => name.startsWith(wanted), (name) => name.includes(wanted)];
    const found = ways.map((fits) => names.findIndex((name) => fits(name.toLowerCase()))).find((i) => i >= 0);
    if (found !== undefined && this.picture.shown[found]) return this.goTo(found);
    this.choose(-1, false);
    return this.say(found === undefined
      ? `No ${this.data.noun} on the map is called “${words.trim()}”.`
      : `“${names[found]}” is not among those shown: the filters hide it.`);
  }

  // Filters and selection ------------------------------------------------------------------------------------------

  counted(n, kind = "") { return `${n.toLocaleString("en")} ${kind}${this.data.noun}${n === 1 ? "" : "s"}`; }

  summary() {
    const [shown, selected] = [this.picture.shown, this.selected].map((flags) => flags.reduce((sum, one) => sum + one, 0));
    Object.assign(this.figure.dataset, { shown, selected });
    const all = shown === this.n ? `All ${this.counted(shown)} of the map are shown` : `${shown.toLocaleString("en")} of ${this.counted(this.n)} are shown`;
    return selected ? `${all}; ${selected.toLocaleString("en")} selected.` : `${all}.`;
  }

  filter() {
    const { shown } = this.picture;
    shown.fill(1);
    this.filters.forEach(([set, { codes, listed }], place) => {
      for (const box of set.querySelectorAll("input")) this.ticked[place][Number(box.value)] = Number(box.checked);
      for (let i = 0; i < this.n; i++) shown[i] &= this.ticked[place][Math.min(codes[i], listed)];
    });
    if (this.picture.chosen >= 0 && !shown[this.picture.chosen]) this.choose(-1, false);
    this.select(this.selected.map((one, i) => one & shown[i]));
  }

  tickAll(button, checked) {
    for (const box of button.closest("fieldset").querySelectorAll("input")) box.checked = checked;
    this.filter();
  }

  // The others fade, the table has the rows, and the card of a group is pressed that is selected as a whole
  select(flags, group = null) {
    this.selected = flags;
    for (const card of this.cards) card.setAttribute("aria-pressed", String(card.dataset.group === group));
    this.recolor();
    this.say(this.summary());
    this.rows.turn(-this.rows.first);
  }

  selectGroup(card) {
    if (card.getAttribute("aria-pressed") === "true") return this.select(new Uint8Array(this.n));
    for (const box of this.figure.querySelectorAll("fieldset input")) box.checked = true;
    this.filter();
    return this.select(Uint8Array.from(this.properties.groups.codes, (code) => Number(code === Number(card.dataset.group))), card.dataset.group);
  }

  selectOne(i) {
    if (i >= 0) this.select(this.selected.map((one, k) => (k === i ? 1 - one : one)));
  }

  selectFrame(frame, added) {
    this.figure.querySelector(".scatter-rows").open = true;
    const inside = this.plane.within(frame);
    this.select(inside.map((one, i) => (one & this.picture.shown[i]) | (added ? this.selected[i] : 0)));
  }

  // What the reader does -------------------------------------------------------------------------------------------

  move(across, up) { this.plane.move(across * this.plane.width / 8, up * this.plane.height / 8); this.picture.draw(); }
  zoomBy(factor, x = this.plane.width / 2, y = this.plane.height / 2) { this.plane.zoomAt(factor, x, y); this.picture.draw(); }
  reset() { this.plane.reset(); this.select(new Uint8Array(this.n)); this.letGo(); }

  toggleSelecting(button) {
    this.selecting = !this.selecting;
    button.setAttribute("aria-pressed", String(this.selecting));
    this.canvas.classList.toggle("selecting", this.selecting);
  }

  colorBy(place) {
    this.properties.by = this.properties.all[place];
    this.recolor();
    this.rows.turn(0);
    this.say(`Coloured by ${this.properties.by.title}.`);
  }

  listen() {
    const svg = () => this.picture.svg(this.properties.legend());
    const save = (kind) => saveFigure(svg(), `map by ${this.properties.by.title}`, kind);
    const actions = {
      in: () => this.zoomBy(STEP), out: () => this.zoomBy(1 / STEP), reset: () => this.reset(),
      next: () => this.step(1), previous: () => this.step(-1), select: (button) => this.toggleSelecting(button),
      shown: () => this.select(this.picture.shown.slice()), clear: () => this.select(new Uint8Array(this.n)),
      all: (button) => this.tickAll(button, true), none: (button) => this.tickAll(button, false),
      back: () => this.rows.turn(-PAGE), on: () => this.rows.turn(PAGE),
      png: () => save("png"), svg: () => save("svg"), csv: () => this.rows.save(),
    };
    const keys = {
      arrowleft: () => this.move(1, 0), arrowright: () => this.move(-1, 0),
      arrowup: () => this.move(0, 1), arrowdown: () => this.move(0, -1),
      "+": actions.in, "=": actions.in, "-": actions.out, "0": actions.reset, home: actions.reset,
      n: actions.next, p: actions.previous, s: () => this.selectOne(this.picture.chosen), escape: () => this.letGo(),
    };
    this.figure.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-do]");
      if (button) actions[button.dataset.do](button);
    });
    for (const card of this.cards) card.addEventListener("click", () => this.selectGroup(card));
    this.figure.addEventListener("change", ({ target }) => {
      if (target.type === "checkbox") this.filter();
      if (target.type === "search") this.find(target.value);
      if (target.dataset.do === "color") this.colorBy(target.value);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const action = keys[event.key.toLowerCase()];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
    new ResizeObserver(() => this.picture.measure()).observe(this.canvas);
    this.picture.darkPage.addEventListener("change", () => this.recolor());
    let printed = null; // browsers do not print the pixels of a canvas
    addEventListener("beforeprint", () => {
      printed ||= svg();
      this.canvas.before(printed);
      this.canvas.hidden = true;
    });
    addEventListener("afterprint", () => {
      printed?.remove();
      printed = null;
      this.canvas.hidden = false;
    });
  }

  // The mouse or one finger moves, or draws the frame of a selection; two fingers zoom; what hardly moves is a click
  listenToPointers() {
    const down = new Map(), { canvas, plane, picture } = this;
    const place = (event) => ({ x: event.offsetX, y: event.offsetY });
    const span = ([a, b]) => Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1);
    let travelled = 0;
    canvas.addEventListener("pointerdown", (event) => {
      travelled = down.size ? Infinity : 0;
      down.set(event.pointerId, place(event));
      canvas.setPointerCapture(event.pointerId);
      const corner = [event.offsetX, event.offsetY];
      picture.frame = down.size === 1 && (this.selecting || event.shiftKey) ? [corner, corner] : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = place(event), before = down.get(event.pointerId), fingers = [...down.values()];
      if (!before) {
        if (!this.pinned) this.choose(plane.nearest(now.x, now.y, picture.shown), false);
        return;
      }
      down.set(event.pointerId, now);
      travelled += Math.hypot(now.x - before.x, now.y - before.y);
      if (picture.frame) picture.frame = [picture.frame[0], [now.x, now.y]];
      else if (down.size === 1 && travelled > STILL) plane.move(now.x - before.x, now.y - before.y);
      if (down.size === 2) {
        const [a, b] = [...down.values()];
        plane.move((now.x - before.x) / 2, (now.y - before.y) / 2); // as far as the middle between the fingers
        plane.zoomAt(span([a, b]) / span(fingers), (a.x + b.x) / 2, (a.y + b.y) / 2);
      }
      picture.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const { frame } = picture;
      down.delete(event.pointerId);
      picture.frame = null;
      if (travelled > STILL) {
        if (frame) this.selectFrame(frame, event.shiftKey);
        return;
      }
      const i = plane.nearest(event.offsetX, event.offsetY, picture.shown);
      if (i < 0) this.letGo(); else this.goTo(i);
    });
    canvas.addEventListener("pointercancel", (event) => { down.delete(event.pointerId); picture.frame = null; });
    canvas.addEventListener("pointerleave", () => { if (!this.pinned) this.choose(-1, false); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      this.zoomBy(Math.exp(-Math.max(-50, Math.min(event.deltaY, 50)) / 100), event.offsetX, event.offsetY);
    }, { passive: false });
  }
}

for (const figure of document.querySelectorAll("figure.scatter")) new Scatter(figure);
