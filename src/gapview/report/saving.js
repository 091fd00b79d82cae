// Figures as PNG and SVG, tables as CSV: files are made in the page and given to the browser to save.

const SVG = "http://www.w3.org/2000/svg";

function svgNode(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function give(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function fileName(title, kind) {
  return `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "figure"}.${kind}`;
}

// In the colours of paper: every colour of a figure is var(--name, colour on paper)
function saveFigure(svg, title, kind) {
  const copy = svg.cloneNode(true), { width, height } = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("font-family", "sans-serif");
  const text = new XMLSerializer().serializeToString(copy).replace(/var\(--[\w-]+, (#\w+)\)/g, "$1").replaceAll("font-family: inherit", "font-family: sans-serif");
  const file = new Blob([text], { type: "image/svg+xml" });
  if (kind === "svg") return give(file, fileName(title, kind));
  const image = new Image(), canvas = document.createElement("canvas"), scale = 2400 / Math.max(width, height);
  image.onload = () => {
    Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#ffffff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    canvas.toBlob((blob) => give(blob, fileName(title, kind)));
  };
  image.src = URL.createObjectURL(file);
  return image;
}

// Numbers as programs read them. A text that a spreadsheet would take for a formula begins with an apostrophe.
function csvCell(text) {
  const plain = text.trim().replace(/\s+/g, " "), number = plain.replace(/^−/, "-").replace(/(\d),(?=\d{3}(\D|$))/g, "$1");
  if (/^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(number)) return number;
  const safe = /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain;
  return /[",\n;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function saveRows(rows, title) {
  const text = rows.map((row) => row.map(csvCell).join(",")).join("\r\n");
  give(new Blob(["\ufeff", text, "\r\n"], { type: "text/csv;charset=utf-8" }), fileName(title, "csv"));
}

// Titles of parts and headers that hold for several rows are repeated in each of them
function rowsOf(table) {
  const [columns] = [...table.tHead.rows].reverse();
  const rows = [["part", ...[...columns.cells].map((cell) => cell.textContent)]];
  for (const body of table.tBodies) {
    const lasting = [];
    let part = "";
    for (const row of body.rows) {
      if (row.classList.contains("group")) { part = row.textContent; continue; }
      const cells = [...row.cells], texts = [];
      while (cells.length || lasting[texts.length]?.rows > 0) {
        const place = texts.length, above = lasting[place];
        if (above?.rows > 0) { above.rows -= 1; texts.push(above.text); continue; }
        const cell = cells.shift(), text = cell.textContent.replace("★best: ", "");
        if (cell.rowSpan > 1) lasting[place] = { rows: cell.rowSpan - 1, text };
        texts.push(text);
      }
      rows.push([part, ...texts]);
    }
  }
  return rows.some((row, k) => k && row[0]) ? rows : rows.map((row) => row.slice(1));
}

document.documentElement.classList.add("scripted");
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-save]"), kind = button?.dataset.save;
  if (!button) return;
  const { title } = button.closest("[data-title]").dataset;
  if (kind === "csv") saveRows(rowsOf(button.closest(".table").querySelector("table")), title);
  else saveFigure(button.closest("figure").querySelector("svg"), title, kind);
});
