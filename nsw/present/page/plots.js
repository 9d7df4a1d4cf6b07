/* What a plot can do with JavaScript: it is zoomed and moved by buttons, keys, wheel and pointer, and saved as PNG. */
const LARGEST = 64; // times a picture's own size
const SHARES = [1, 2, 5, 10, 20, 50]; // of the time, %
const [PALEST, DARKEST] = [0.08, 0.65]; // fields of a heat map
const NAMES = 12; // of points
const LETTERS = 28; // of such a name
const DOTS = 2; // of a PNG for each px
const KEPT = ["fill", "stroke", "display"]; // what the page's style sets of a plot's parts

class Plot {
  /* `node` is where the pointer and the keys act, `whole` all that can be seen: left, top, width, height. */
  constructor(figure, svg, node, whole, deepest) {
    Object.assign(this, { figure, svg, node, whole, deepest, view: [...whole] });
    this.bar = element("div", null, { className: "tools" });
    this.button("+", "larger", () => this.zoom(1.5));
    this.button("\u2212", "smaller", () => this.zoom(1 / 1.5));
    this.button("\u27f2", "whole", () => this.show(this.whole));
    this.button("PNG", "save as PNG", () => this.save());
    figure.querySelector("figcaption").prepend(this.bar);
    node.tabIndex = 0;
    node.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    node.addEventListener("keydown", (event) => this.key(event));
    node.addEventListener("pointermove", (event) => {
      if (event.buttons !== 1 || !this.isZoomed()) return;
      const { width, height } = this.area();
      this.move(-event.movementX / width, -event.movementY / height);
    });
  }

  /* Where on the screen it is. */
  area() {
    return this.node.getBoundingClientRect();
  }

  name() {
    return (this.svg.querySelector("title") || this.svg).textContent;
  }

  button(text, name, act) {
    const button = element("button", text, { type: "button", title: name, ariaLabel: name + ": " + this.name() });
    button.addEventListener("click", act);
    this.bar.append(button);
  }

  isZoomed() {
    return this.view[2] < this.whole[2];
  }

  wheel(event) {
    if (!event.ctrlKey && document.activeElement !== this.node) return; // or the page could not be scrolled
    event.preventDefault();
    const { x, y, width, height } = this.area();
    this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, (event.clientX - x) / width, (event.clientY - y) / height);
  }

  key(event) {
    const step = 0.1; // of what is seen
    const act = {
      "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.show(this.whole),
      ArrowLeft: () => this.move(-step, 0), ArrowRight: () => this.move(step, 0),
      ArrowUp: () => this.move(0, -step), ArrowDown: () => this.move(0, step),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow") && !this.isZoomed()) return; // they scroll the page
    event.preventDefault();
    act();
  }

  /* By a factor, about a point of what is seen (shares of its width and height). */
  zoom(factor, x = 0.5, y = 0.5) {
    const [left, top, width, height] = this.view;
    const by = Math.min(1, Math.max(1 / this.deepest, width / factor / this.whole[2]));
    const [wide, high] = this.sizes(by);
    this.show([left + (width - wide) * x, top + (height - high) * y, wide, high]);
  }

  sizes(by) {
    return [this.whole[2] * by, this.whole[3] * by];
  }

  /* By shares of what is seen. */
  move(x, y) {
    const [left, top, width, height] = this.view;
    this.show([left + x * width, top + y * height, width, height]);
  }

  show([left, top, width, height]) {
    const within = (at, size, from, whole) => Math.min(Math.max(at, from), from + whole - size);
    const [x, y, wide, high] = this.whole;
    this.view = [within(left, width, x, wide), within(top, height, y, high), width, height];
    this.node.classList.toggle("zoomed", this.isZoomed());
    this.draw();
  }

  draw() {
    this.svg.setAttribute("viewBox", this.view.join(" "));
  }

  /* What is seen as a file: an SVG with the page's colours, drawn as an image. */
  async save() {
    const copy = this.svg.cloneNode(true);
    const parts = [...this.svg.querySelectorAll("*")].map((part) => getComputedStyle(part));
    [...copy.querySelectorAll("*")].forEach((part, at) => KEPT.forEach((name) => part.setAttribute(name, parts[at][name])));
    const [width, height] = ["width", "height"].map((side) => this.svg[side].baseVal.value * DOTS);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    const image = new Image();
    image.src = address;
    await image.decode();
    URL.revokeObjectURL(address);
    const canvas = element("canvas", null, { width, height });
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    context.fillRect(0, 0, width, height);
    context.drawImage(image, 0, 0, width, height);
    this.over(context);
    const blob = await new Promise((done) => { canvas.toBlob(done); });
    const link = element("a", null, { href: URL.createObjectURL(blob), download: this.name().replace(/[^\w.-]+/g, "-") + ".png" });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  /* What is drawn over the SVG of a PNG. */
  over() {}
}

/* A roofline: its points are chosen by memory level and precision, and by the share of the time that a kernel takes. */
class Points extends Plot {
  constructor(figure, svg, whole, table) {
    super(figure, svg, svg, whole, LARGEST);
    this.table = table;
    this.marks = [...svg.querySelectorAll("[data-row]")];
    this.choices = table.points.series.map((at) => this.choice(at, "all", this.values(at))).filter(Boolean);
    this.least = table.points.size.map((at) => this.choice(at, "any", SHARES))[0];
    this.count = element("span", "", { className: "aside" });
    this.count.setAttribute("role", "status");
    this.bar.append(this.count);
    this.names = svg.appendChild(document.createElementNS(svg.namespaceURI, "g"));
  }

  values(at) {
    return [...new Set(this.marks.map((mark) => textOf(this.table.d[at], mark.dataset.row)))];
  }

  /* A list of a column's values, or of the least ones. */
  choice(at, every, values) {
    if (values.length < 2) return null;
    const list = element("select", null, {});
    const title = this.table.c[at][0];
    list.ariaLabel = title + ": " + this.name();
    const says = (value) => (typeof value === "number" ? title + " \u2265 " + value : value);
    list.append(new Option(title + ": " + every, ""), ...values.map((value) => new Option(says(value), value)));
    list.addEventListener("change", () => this.choose());
    this.bar.append(list);
    return { at, list, values };
  }

  choose() {
    const chosen = this.choices.filter(({ list }) => list.value);
    const least = this.least && this.least.list.value ? this.least : null;
    const holds = (row) => chosen.every(({ at, list }) => textOf(this.table.d[at], row) === list.value)
      && (!least || this.table.d[least.at].v[row] >= Number(least.list.value));
    const shown = this.marks.filter((mark) => holds(mark.dataset.row));
    const all = shown.length === this.marks.length;
    const see = (part, is) => (is ? part.removeAttribute("display") : part.setAttribute("display", "none"));
    this.marks.forEach((mark) => see(mark, shown.includes(mark)));
    for (const roof of this.svg.querySelectorAll("[data-roof]")) {
      see(roof, chosen.every(({ list, values }) => !values.includes(roof.dataset.roof) || list.value === roof.dataset.roof));
    }
    this.meet();
    this.svg.querySelectorAll("[data-name]").forEach((name) => see(name, all));
    this.names.replaceChildren();
    if (!all) this.label(shown);
    this.count.textContent = all ? "" : shown.length + " of " + this.marks.length + " points";
  }

  /* Flat roofs begin where the steepest slope that is seen reaches them. */
  meet() {
    const ends = (path) => [0, path.getTotalLength()].map((at) => path.getPointAtLength(at));
    const slopes = [...this.svg.querySelectorAll("[data-roof]:not([display]) path")].map(ends);
    const left = this.svg.querySelector("line.axis").x1.baseVal.value;
    for (const roof of this.svg.querySelectorAll("[data-roof] line")) {
      const up = roof.y1.baseVal.value;
      const begins = slopes.map(([a, b]) => a.x + ((up - a.y) * (b.x - a.x)) / (b.y - a.y));
      roof.setAttribute("x1", Math.max(left, slopes.length ? Math.min(...begins) : left));
    }
  }

  /* The names of the largest points, where they have room: right of a point, left of it, or above it. */
  label(marks) {
    const taken = marks.map((mark) => mark.getBBox());
    const apart = (a, b) => a.x > b.x + b.width || b.x > a.x + a.width || a.y > b.y + b.height || b.y > a.y + a.height;
    const seen = new Set();
    for (const mark of marks.sort((a, b) => b.getBBox().width - a.getBBox().width)) {
      const name = textOf(this.table.d[this.table.points.label[0]], mark.dataset.row);
      if (seen.has(name) || seen.size === NAMES) continue;
      const label = this.names.appendChild(document.createElementNS(this.svg.namespaceURI, "text"));
      label.textContent = name.length > LETTERS ? name.slice(0, LETTERS - 1) + "\u2026" : name;
      Object.entries({ class: "label", "font-size": 11 }).forEach(([key, value]) => label.setAttribute(key, value));
      const { x, y, width, height } = mark.getBBox();
      const wide = label.getBBox().width;
      const places = [[x + width + 5, y + height / 2 + 4], [x - wide - 5, y + height / 2 + 4], [x + width / 2 - wide / 2, y - 5]];
      const free = places.find(([left, base]) => {
        label.setAttribute("x", left);
        label.setAttribute("y", base);
        const box = label.getBBox();
        return box.x > 0 && box.x + box.width < this.whole[2] && taken.every((other) => apart(box, other));
      });
      if (free) taken.push(label.getBBox());
      else label.remove();
      if (free) seen.add(name);
    }
  }
}

/* A heat map: which figure or metric it shows. */
class Fields extends Plot {
  constructor(figure, svg, whole, table) {
    super(figure, svg, svg, whole, LARGEST);
    this.table = table;
    this.list = element("select", null, {});
    this.list.ariaLabel = "shown: " + this.name();
    this.list.append(...table.values.map(([at], n) => new Option(table.c[at][0], n)));
    this.list.addEventListener("change", () => this.choose(...table.values[this.list.value]));
    this.bar.append(this.list);
  }

  choose(at, places) {
    const { c: heads, d: columns } = this.table;
    const values = columns[at].v;
    const known = [...values.keys()].filter((row) => values[row] !== null).sort((a, b) => values[a] - values[b]);
    const [low, high] = [known[0], known[known.length - 1]];
    for (const mark of this.svg.querySelectorAll("[data-row]")) {
      const row = Number(mark.dataset.row);
      const share = values[high] > values[low] ? (values[row] - values[low]) / (values[high] - values[low]) : 1;
      mark.setAttribute("fill-opacity", values[row] === null ? 0 : (PALEST + (DARKEST - PALEST) * share).toFixed(2));
      const tip = mark.querySelector("title");
      const source = tip.textContent.split("\n").filter((line) => line.startsWith("source: "));
      tip.textContent = [...places.map((n) => [heads[n][0], textOf(columns[n], row)]).filter(([, text]) => text !== "-")
        .map((pair) => pair.join(": ")), ...source].join("\n");
      const label = this.svg.querySelector('[data-text="' + row + '"] text');
      label.textContent = textOf(columns[at], row);
      const fits = label.getComputedTextLength() < mark.width.baseVal.value;
      label.setAttribute("visibility", fits ? "visible" : "hidden");
    }
    this.svg.querySelector("[data-note] text").textContent = heads[at][0] + ": from " + textOf(columns[at], low) + " to " + textOf(columns[at], high);
  }
}
