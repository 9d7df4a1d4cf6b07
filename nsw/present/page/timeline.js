/* The timeline of an iteration: a canvas over its picture, with all boxes instead of the merged ones. */
const BOX = 15; // height of a box, px of the picture
const NAMED = 44; // width from which a box has its name
const NEAR = 2; // px from a box, where the pointer is still upon it
const MARGIN = 8; // of the canvas beside the field
const BELOW = 40; // for the axis
const TIMES = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];

const unitOf = (ns) => TIMES.find(([, size]) => Math.abs(ns) >= size) || TIMES[3];
const duration = (ns) => {
  const [unit, size] = unitOf(ns);
  const value = ns / size;
  return value.toFixed(size === 1 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3) + " " + unit;
};

class Timeline extends Plot {
  constructor(figure, svg, boxes) {
    const field = svg.querySelector("[data-lanes]");
    const end = Number(field.dataset.end);
    const canvas = element("canvas", null, {});
    super(figure, svg, canvas, [0, 0, end, 1], Math.max(64, end / 100));
    const [left, top, width, height] = ["x", "y", "width", "height"].map((part) => field[part].baseVal.value);
    this.field = { left, top, width, height };
    this.unpack(boxes, field.dataset.lanes.split(" ").map(Number));
    this.stage = element("div", null, { className: "stage" });
    this.tip = element("div", "", { className: "tip", hidden: true });
    figure.prepend(this.stage);
    this.stage.append(svg, canvas, this.tip);
    const { width: wide, height: high } = svg.viewBox.baseVal;
    this.place = [left - MARGIN, top, width + 2 * MARGIN, height + BELOW];
    ["left", "top", "width", "height"].forEach((side, at) => {
      canvas.style[side] = (100 * this.place[at]) / [wide, high][at % 2] + "%";
    });
    canvas.setAttribute("role", "img");
    canvas.ariaLabel = this.name() + ": zoom with + and -, move with arrows, 0 shows all; the table has its rows";
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  unpack(boxes, heights) {
    let first = 0;
    let from = 0;
    this.boxes = boxes;
    this.starts = boxes.from.map((step) => (from += step));
    this.lanes = boxes.lanes.map(([process, lane, count], at) => {
      const made = { process, lane, top: heights[at], first, end: first + count };
      first = made.end;
      return made;
    });
  }

  area() {
    const { x, y, width, height } = this.node.getBoundingClientRect();
    const beside = (MARGIN / this.place[2]) * width;
    return { x: x + beside, y, width: width - 2 * beside, height };
  }

  /* Only along the time. */
  sizes(by) {
    return [this.whole[2] * by, 1];
  }

  draw() {
    const scale = (this.node.clientWidth * devicePixelRatio) / this.place[2];
    this.node.width = Math.round(this.place[2] * scale);
    this.node.height = Math.round(this.place[3] * scale);
    const context = this.node.getContext("2d");
    context.setTransform(scale, 0, 0, scale, -this.place[0] * scale, -this.place[1] * scale);
    this.paint(context);
  }

  over(context) {
    context.setTransform(DOTS, 0, 0, DOTS, 0, 0);
    this.paint(context);
  }

  /* In px of the picture. */
  paint(context) {
    const { left, top, width, height } = this.field;
    context.font = "10px " + getComputedStyle(this.svg).fontFamily;
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    context.fillRect(...this.place);
    this.axis(context);
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    const colours = this.boxes.classes.map(([, name]) => getComputedStyle(this.svg.querySelector("." + name)).fill);
    for (const lane of this.lanes) this.paintLane(context, lane, colours);
    context.restore();
  }

  paintLane(context, lane, colours) {
    const [from, , span] = this.view;
    const { left, width } = this.field;
    for (let n = lane.first; n < lane.end; n++) {
      const start = this.starts[n];
      const length = this.boxes.length[n];
      if (start + length < from || start > from + span) continue;
      const [name, group] = this.boxes.names[this.boxes.name[n]];
      const begin = Math.max(left, left + ((start - from) / span) * width);
      const end = Math.min(left + width, left + ((start + length - from) / span) * width);
      const level = this.boxes.level?.[n] ?? null; // of a sample: the share of the lane's height
      const height = level === null ? BOX : (BOX * level) / 100;
      context.fillStyle = colours[group];
      context.fillRect(begin, lane.top + BOX - height, Math.max(end - begin - (end - begin > 3 ? 0.5 : 0), 0.4), height);
      if (end - begin < NAMED || level !== null) continue;
      const letters = Math.floor((end - begin - 6) / 5.5);
      context.fillStyle = "#111";
      context.fillText(name.length > letters ? name.slice(0, letters - 1) + "\u2026" : name, begin + 3, lane.top + 11);
    }
  }

  axis(context) {
    const [from, , span] = this.view;
    const { left, top, width, height } = this.field;
    const [unit, size] = unitOf(from + span);
    const power = 10 ** Math.floor(Math.log10(span / size / 4));
    const step = power * Math.max(...[1, 2, 5].filter((times) => times * power <= span / size / 4));
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    const part = (name, of) => getComputedStyle(this.svg.querySelector(of))[name];
    const [grid, ink] = [part("stroke", ".grid"), part("fill", ".label")];
    context.textAlign = "center";
    for (let n = Math.ceil(from / size / step); n * step * size <= from + span; n++) {
      const x = left + ((n * step * size - from) / span) * width;
      context.fillStyle = grid;
      context.fillRect(x - 0.5, top, 1, height);
      context.fillStyle = ink;
      context.fillText((n * step).toFixed(digits), x, top + height + 14);
    }
    context.fillText("time (" + unit + ")", left + width / 2, top + height + 32);
    context.textAlign = "left";
  }

  /* The box under the pointer, or the nearest one; of several the shortest. */
  at(x, y) {
    const [from, , span] = this.view;
    const ns = from + ((x - this.field.left) / this.field.width) * span;
    const near = (NEAR * span) / this.field.width;
    const lane = this.lanes.find(({ top }) => y >= top && y < top + BOX);
    let best = null;
    for (let n = lane ? lane.first : 0; lane && n < lane.end; n++) {
      const length = this.boxes.length[n];
      const away = Math.max(this.starts[n] - ns, ns - this.starts[n] - length, 0);
      if (away > near) continue;
      if (!best || away < best.away || (away === best.away && length < best.length)) best = { n, lane, away, length };
    }
    return best;
  }

  hover(event) {
    const scale = this.node.clientWidth / this.place[2];
    const box = event.buttons ? null : this.at(this.place[0] + event.offsetX / scale, this.place[1] + event.offsetY / scale);
    this.tip.hidden = !box;
    if (!box) return;
    const { n, lane, length } = box;
    const [name, group] = this.boxes.names[this.boxes.name[n]];
    const [unit, size] = unitOf(this.whole[2]);
    const start = (this.starts[n] / size).toFixed(Math.log10(size)) + " " + unit;
    this.tip.textContent = [name, "start: " + start, "duration: " + duration(length), lane.process + ", " + lane.lane, this.boxes.classes[group][0]].join("\n");
    const room = this.stage.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = Math.max(0, Math.min(room, this.node.offsetLeft + event.offsetX + 12)) + "px";
    this.tip.style.top = this.node.offsetTop + event.offsetY + 16 + "px";
  }
}

for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg");
  const table = tables[figure.querySelector("figcaption a").hash.slice(1)];
  const { x, y, width, height } = svg.viewBox.baseVal;
  const whole = [x, y, width, height];
  if (table.boxes) new Timeline(figure, svg, table.boxes);
  else if (table.points) new Points(figure, svg, whole, table);
  else if (table.values) new Fields(figure, svg, whole, table);
  else new Plot(figure, svg, svg, whole, LARGEST);
}
