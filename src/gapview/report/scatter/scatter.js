// Points that can be pointed at, filtered and zoomed into. Every text reaches the page through textContent: what it
// holds is never read as markup.

const STEP = 1.5;
const STILL = 4; // pixels that a pointer may travel and still only click

class Scatter {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector("script").textContent);
    this.canvas = figure.querySelector(".scatter-stage canvas");
    this.tip = figure.querySelector(".scatter-tip");
    this.state = figure.querySelector(".scatter-state");
    this.plane = new Plane(this.data.x, this.data.y);
    this.picture = new Picture(this.canvas, this.plane, this.data);
    this.ticked = this.data.facets.map((facet) => new Uint8Array(facet.listed + 1).fill(1));
    this.picture.allowed = (kind) => this.ticked[0][Math.min(kind, this.data.facets[0].listed)];
    this.picture.painted = () => this.placeTip();
    this.pinned = false; // chosen on purpose, not in passing
    figure.querySelector(".scatter-live").hidden = false;
    figure.querySelector(".scatter-without").remove();
    this.picture.measure();
    this.recolor();
    this.filter();
    this.listen();
    this.listenToPointers();
    figure.dataset.ready = "yes";
  }

  recolor() { this.picture.recolor(this.figure.querySelectorAll(".scatter-sign")); }
  say(text) { this.state.textContent = text; }

  // One point ----------------------------------------------------------------------------------------------------

  facts(i) {
    const { names, facets, values } = this.data;
    const [kind, ...others] = facets.map((facet) => [facet.title, facet.names[facet.codes[i]]]);
    return [...(names ? [[names[0], names[1][i]]] : []), kind, ...values.map(([title, texts]) => [title, texts[i]]), ...others];
  }

  choose(i, pinned) {
    this.pinned = pinned;
    if (i !== this.picture.chosen) {
      this.picture.chosen = i;
      this.tip.hidden = i < 0;
      this.tip.replaceChildren(...(i < 0 ? [] : this.facts(i).map(([title, text]) => this.line(title, text))));
    }
    this.picture.draw();
  }

  line(title, text) {
    const line = document.createElement("div"), term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = title;
    value.textContent = text;
    line.append(term, value);
    return line;
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
    for (let i = (this.pinned ? chosen : by > 0 ? -1 : this.plane.n) + by; i >= 0 && i < this.plane.n; i += by) {
      if (shown[i]) return this.goTo(i);
    }
    return this.say(`There is no ${by > 0 ? "further" : "earlier"} ${this.data.noun} among those shown.`);
  }

  find(words) {
    const wanted = words.trim().toLowerCase(), [, names] = this.data.names;
    if (!wanted) return this.letGo();
    const ways = [(name) => name === wanted, (name) => name.startsWith(wanted), (name) => name.includes(wanted)];
    const found = ways.map((fits) => names.findIndex((name) => fits(name.toLowerCase()))).find((i) => i >= 0);
    if (found !== undefined && this.picture.shown[found]) return this.goTo(found);
    this.choose(-1, false);
    return this.say(found === undefined
      ? `No ${this.data.noun} on the map is called “${words.trim()}”.`
      : `“${names[found]}” is not among those shown: the filters hide it.`);
  }

  // Filters ------------------------------------------------------------------------------------------------------

  summary() {
    const count = this.picture.shown.reduce((sum, one) => sum + one, 0), all = this.plane.n;
    this.figure.dataset.shown = String(count);
    const [some, many] = [count.toLocaleString("en"), all.toLocaleString("en")];
    const noun = this.data.noun;
    return count === all ? `All ${many} ${noun}s of the map are shown.` : `${some} of ${many} ${noun}s are shown.`;
  }

  filter() {
    this.figure.querySelectorAll("fieldset").forEach((fieldset, place) => {
      for (const box of fieldset.querySelectorAll("input")) this.ticked[place][Number(box.value)] = Number(box.checked);
    });
    const { shown } = this.picture;
    shown.fill(1);
    this.data.facets.forEach(({ codes, listed }, place) => {
      for (let i = 0; i < shown.length; i++) shown[i] &= this.ticked[place][Math.min(codes[i], listed)];
    });
    if (this.picture.chosen >= 0 && !shown[this.picture.chosen]) this.choose(-1, false);
    this.say(this.summary());
    this.picture.draw();
  }

  tickAll(button, checked) {
    for (const box of button.closest("fieldset").querySelectorAll("input")) box.checked = checked;
    this.filter();
  }

  // What the reader does -----------------------------------------------------------------------------------------

  move(across, up) { this.plane.move(across * this.plane.width / 8, up * this.plane.height / 8); this.picture.draw(); }
  zoomBy(factor, x = this.plane.width / 2, y = this.plane.height / 2) { this.plane.zoomAt(factor, x, y); this.picture.draw(); }
  reset() { this.plane.reset(); this.letGo(); }

  listen() {
    const actions = {
      in: () => this.zoomBy(STEP), out: () => this.zoomBy(1 / STEP), reset: () => this.reset(),
      next: () => this.step(1), previous: () => this.step(-1),
      all: (button) => this.tickAll(button, true), none: (button) => this.tickAll(button, false),
    };
    const keys = {
      arrowleft: () => this.move(1, 0), arrowright: () => this.move(-1, 0),
      arrowup: () => this.move(0, 1), arrowdown: () => this.move(0, -1),
      "+": actions.in, "=": actions.in, "-": actions.out, "0": actions.reset, home: actions.reset,
      n: actions.next, p: actions.previous, escape: () => this.letGo(),
    };
    this.figure.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-do]");
      if (button) actions[button.dataset.do](button);
    });
    this.figure.addEventListener("change", (event) => {
      if (event.target.type === "checkbox") this.filter();
      if (event.target.type === "search") this.find(event.target.value);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const action = keys[event.key.toLowerCase()];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
    new ResizeObserver(() => this.picture.measure()).observe(this.canvas);
    this.picture.darkPage.addEventListener("change", () => this.recolor());
    const print = (printing) => { this.picture.printing = printing; this.recolor(); this.picture.paint(); };
    addEventListener("beforeprint", () => print(true)); // paper is always light
    addEventListener("afterprint", () => print(false));
  }

  // The mouse or one finger moves, two fingers zoom; what hardly moves is a click
  listenToPointers() {
    const down = new Map(), { canvas, plane } = this;
    const place = (event) => ({ x: event.offsetX, y: event.offsetY });
    const span = ([a, b]) => Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1);
    let travelled = 0;
    canvas.addEventListener("pointerdown", (event) => {
      travelled = down.size ? Infinity : 0;
      down.set(event.pointerId, place(event));
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = place(event), before = down.get(event.pointerId), fingers = [...down.values()];
      if (!before) {
        if (!this.pinned) this.choose(plane.nearest(now.x, now.y, this.picture.shown), false);
        return;
      }
      down.set(event.pointerId, now);
      travelled += Math.hypot(now.x - before.x, now.y - before.y);
      if (down.size === 1 && travelled > STILL) plane.move(now.x - before.x, now.y - before.y);
      if (down.size === 2) {
        const [a, b] = [...down.values()];
        plane.move((now.x - before.x) / 2, (now.y - before.y) / 2); // as far as the middle between the fingers
        plane.zoomAt(span([a, b]) / span(fingers), (a.x + b.x) / 2, (a.y + b.y) / 2);
      }
      this.picture.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      down.delete(event.pointerId);
      if (travelled > STILL) return;
      const i = plane.nearest(event.offsetX, event.offsetY, this.picture.shown);
      if (i < 0) this.letGo(); else this.goTo(i);
    });
    canvas.addEventListener("pointercancel", (event) => down.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => { if (!this.pinned) this.choose(-1, false); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      this.zoomBy(Math.exp(-Math.max(-50, Math.min(event.deltaY, 50)) / 100), event.offsetX, event.offsetY);
    }, { passive: false });
  }
}

for (const figure of document.querySelectorAll("figure.scatter")) new Scatter(figure);
