/* What a plot can do with JavaScript: it is zoomed and moved by buttons, keys, wheel and pointer, and saved as PNG. */
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
