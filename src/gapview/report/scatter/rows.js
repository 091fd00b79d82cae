// The points as a table, for those who cannot see the map, and for files: those selected, or all that are shown.

const PAGE = 10; // rows in sight

class Rows {
  constructor(scatter) {
    this.scatter = scatter;
    this.part = scatter.figure.querySelector(".scatter-rows");
    this.first = 0;
  }

  get points() {
    const { selected, picture } = this.scatter, flags = selected.some(Boolean) ? selected : picture.shown;
    return [...flags.keys()].filter((i) => flags[i]);
  }

  texts(points, listed) {
    const { data, properties } = this.scatter, { names } = data;
    const head = [names ? this.scatter.heading() : "No.", ...listed.map((one) => one.title)];
    return [head, ...points.map((i) => [names ? names[i] : String(i + 1), ...listed.map((one) => properties.text(one, i))])];
  }

  turn(by) {
    const { scatter } = this, points = this.points, table = this.part.querySelector("table");
    this.first = Math.max(0, Math.min(this.first + by, Math.floor((points.length - 1) / PAGE) * PAGE));
    const inSight = points.slice(this.first, this.first + PAGE), [head, ...rows] = this.texts(inSight, scatter.properties.listed);
    const [from, to] = [this.first + 1, this.first + inSight.length].map((place) => place.toLocaleString("en"));
    const counted = scatter.counted(points.length, scatter.selected.some(Boolean) ? "selected " : "shown ");
    table.caption.textContent = points.length ? `${from} to ${to} of ${counted}` : counted;
    table.tHead.replaceChildren(this.row(head.map((text) => Object.assign(node("th", text), { scope: "col" }))));
    table.tBodies[0].replaceChildren(...rows.map(([name, ...texts], k) => {
      const first = Object.assign(node("th", ""), { scope: "row" });
      first.append(Object.assign(node("button", name), { type: "button", onclick: () => scatter.goTo(inSight[k]) }));
      const cells = texts.map((text) => node("td", text));
      cells.forEach((cell, column) => { cell.dataset.label = head[column + 1]; });
      return this.row([first, ...cells]);
    }));
    this.part.querySelector("[data-do=back]").disabled = !this.first;
    this.part.querySelector("[data-do=on]").disabled = this.first + PAGE >= points.length;
  }

  row(cells) {
    const row = node("tr", "");
    row.append(...cells);
    return row;
  }

  save() { saveRows(this.texts(this.points, this.scatter.properties.all), `${this.scatter.data.noun}s`); }
}

function node(name, text, kind = "") {
  return Object.assign(document.createElement(name), { textContent: text, className: kind });
}
