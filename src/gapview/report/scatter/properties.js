// What is known of the points, as colours and as texts.

class Properties {
  constructor(data, n) {
    Object.assign(this, { all: data.properties, signs: data.signs, nGroups: data.marks.length });
    for (const one of this.all) one.codes = unpack(one.codes, n);
    this.groups = this.by = this.all[0]; // by: what the colours show
    this.told = this.all.slice(0, data.told); // in tooltips and tables
  }

  get listed() { return this.told.includes(this.by) ? this.told : [...this.told, this.by]; }

  sign(code) { return this.signs[code % this.signs.length]; }

  text(property, i) {
    const { names, codes, first, step, missing } = property;
    if (names) return names[codes[i]];
    return codes[i] === missing ? "unknown" : this.number(first + step * codes[i], property);
  }

  number(value, { decimals }) { return value.toFixed(decimals).replace("-", "−"); }

  // The shape is that of the group; other names than those of groups have other colours as long as there are enough
  look(i) {
    const { names, codes, first, step, missing, low, high } = this.by, code = codes[i];
    const shape = this.sign(this.groups.codes[i])[2];
    if (this.by === this.groups) return this.sign(code);
    if (names && names[code] === "unknown" && code === names.length - 1) return [...UNKNOWN, shape];
    if (names) return [...this.sign(code + this.nGroups).slice(0, 2), shape];
    if (code === missing) return [...UNKNOWN, "cross"];
    const share = (first + step * code - low) / (high - low || 1);
    return [...levelColors(Math.round(Math.min(Math.max(share, 0), 1) * (LEVELS - 1))), shape];
  }

  // All looks that occur, and the place of that of every point among them; what is not selected is faded
  looks(selected) {
    const looks = [], places = new Map(), known = new Map(), any = selected.some(Boolean), n = this.signs.length;
    const placeOf = (look, key) => {
      if (!places.has(key)) { places.set(key, looks.length); looks.push(look); }
      return places.get(key);
    };
    const codes = Uint16Array.from(this.by.codes, (code, i) => {
      const faded = any && !selected[i], group = this.groups.codes[i] % n, key = faded ? -1 - group : code * n + group;
      if (!known.has(key)) {
        const look = faded ? [...FADED, this.sign(group)[2]] : this.look(i);
        known.set(key, placeOf(look, look.join()));
      }
      return known.get(key);
    });
    return [looks, codes, any ? selected.map((one) => 1 - one) : null];
  }

  // Pairs of a text and a look; none for titles
  legend() {
    const { title, names, low, high, codes, missing } = this.by, shape = (look) => [...look.slice(0, 2), "circle"];
    if (names) {
      const seen = new Set(codes), listed = [...names.keys()].filter((code) => seen.has(code));
      const looks = listed.slice(0, MOST_NAMED).map((code) => this.look(codes.indexOf(code)));
      const rows = looks.map((look, k) => [names[listed[k]], this.by === this.groups ? look : shape(look)]);
      const more = listed.length > MOST_NAMED ? [[`and ${listed.length - MOST_NAMED} more`, null]] : [];
      return [[title, null], ...rows, ...more];
    }
    const rows = [0, 0.25, 0.5, 0.75, 1].map((share) => {
      const colors = levelColors(Math.round(share * (LEVELS - 1)));
      return [this.number(low + share * (high - low), this.by), shape(colors)];
    });
    return [[title, null], ...rows, ...(codes.includes(missing) ? [["unknown", [...UNKNOWN, "cross"]]] : [])];
  }
}
