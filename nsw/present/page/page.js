/* What a table of the page can do with JavaScript: sort, filter, all rows, copy as CSV, and tell what a number is. */
const STEP = 500; // rows added at a time: a browser lays out no 20,000 at once
const FIRST = 20; // as without JavaScript, and on paper
const FOLDED = 5; // on paper of tables behind the answer
const WIDE = 28; // characters of a text from which it may break
const FEW = 8; // rows that nobody filters
const tables = JSON.parse(document.getElementById("data").textContent);
const words = (packed, row) => (Array.isArray(packed) ? packed[row] : packed.d[packed.i[row]]);

const plain = (value) => {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 1e5) return (Math.sign(value) * Math.round(size)).toLocaleString("en-US");
  const rounded = Number(value.toPrecision(6));
  return size < 1e-4 ? rounded.toExponential() : String(rounded);
};
const textOf = (column, row) => (column.x ? words(column.x, row) : plain(column.v[row]));
const valueOf = (column, row) => (column.v ? column.v[row] : words(column.x, row));

const element = (name, text, made) => {
  const node = Object.assign(document.createElement(name), made);
  if (text !== null) node.textContent = text;
  return node;
};

/* The text of a cell that no spreadsheet works out as a formula. */
const cell = (value) => {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[\s\ufffd]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) ? "'" + value : value;
  return /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
};

const compare = (a, b) => {
  const none = (value) => value === null || value === undefined || value === "-" || value === "";
  if (none(a) || none(b)) return none(a) - none(b);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
};

class Sheet {
  constructor(root, table) {
    Object.assign(this, { root, table, order: null, only: null, chosen: new Set(), sorted: null, down: false, most: FIRST });
    this.body = root.querySelector("tbody");
    this.heads = [...root.querySelectorAll("thead th")];
    this.heads.forEach((head, at) => {
      const button = element("button", head.textContent, { type: "button" });
      button.addEventListener("click", () => this.sort(at));
      head.replaceChildren(button);
    });
    this.tools();
    root.addEventListener("mouseover", (event) => this.hover(event.target.closest("td")));
  }

  tools() {
    const bar = element("div", null, { className: "tools" });
    const named = (this.root.querySelector("caption") || this.root).textContent;
    this.input = element("input", null, { type: "search", placeholder: "filter" });
    this.input.setAttribute("aria-label", "filter the rows of " + named);
    this.input.addEventListener("input", () => this.filter(this.input.value));
    const copy = element("button", "copy as CSV", { type: "button" });
    copy.addEventListener("click", () => this.copy(copy));
    this.more = element("button", "", { type: "button" });
    this.more.addEventListener("click", () => { this.most += STEP; this.render(); });
    this.count = element("span", "", { className: "aside" });
    this.count.setAttribute("role", "status");
    bar.append(this.more, this.input, copy, this.count);
    this.input.hidden = this.table.n < FEW;
    this.printed = this.root.querySelector(".printed") || element("p", "", { className: "printed" });
    this.root.append(this.printed, bar);
    const told = this.root.querySelector(".more");
    if (told) told.remove();
    this.tell(this.table.n);
  }

  rows() {
    if (this.order) return this.order;
    const wanted = (this.only === null ? this.input.value : "").toLowerCase();
    const columns = this.table.d;
    const holds = this.only === null
      ? (row) => !wanted || columns.some((column) => textOf(column, row).toLowerCase().includes(wanted))
      : (row) => this.isOf(this.only, row);
    this.order = [...Array(this.table.n).keys()].filter(holds);
    if (this.sorted !== null) {
      const column = columns[this.sorted];
      const sign = this.down ? -1 : 1;
      this.order.sort((a, b) => sign * compare(valueOf(column, a), valueOf(column, b)) || a - b);
    }
    return this.order;
  }

  isOf(cases, row) {
    return this.table.d.some((column) => column.x && cases.has(words(column.x, row)));
  }

  /* Mark the rows of cases; of a long table behind the answer show them alone. */
  choose(cases) {
    this.chosen = cases;
    const first = [...Array(this.table.n).keys()].find((row) => this.isOf(cases, row));
    if (first === undefined) return;
    if (this.root.closest(".source")) return void this.filter([...cases].join(", "), cases);
    this.most = Math.max(this.most, this.rows().indexOf(first) + 1);
    this.render();
  }

  sort(at) {
    /* numbers begin with the largest */
    this.down = this.sorted === at ? !this.down : this.table.c[at][2] === 1;
    this.sorted = at;
    this.heads.forEach((head, n) => {
      if (n === at) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.fresh();
  }

  filter(text, only = null) {
    this.input.value = text;
    this.only = only;
    this.fresh();
  }

  fresh() {
    this.order = null;
    this.most = FIRST;
    this.render();
  }

  render() {
    const shown = this.rows().slice(0, this.most);
    this.body.replaceChildren(...shown.map((row) => {
      const line = element("tr", null, { id: this.root.id + "-" + row, className: this.isOf(this.chosen, row) ? "chosen" : "" });
      this.table.d.forEach((column, at) => {
        const text = textOf(column, row);
        const cell = element("td", text, { className: this.table.c[at][2] ? "n" : text.length > WIDE ? "w" : "" });
        cell.dataset.head = this.table.c[at][0];
        line.append(cell);
      });
      return line;
    }));
    this.tell(this.rows().length);
  }

  tell(matching) {
    const left = matching - Math.min(matching, this.most);
    this.more.hidden = left === 0;
    this.more.textContent = "show " + Math.min(left, STEP).toLocaleString("en-US") + " more";
    const all = this.table.n.toLocaleString("en-US") + (this.table.n === 1 ? " row" : " rows");
    const printed = Math.min(matching, this.root.closest(".source") ? FOLDED : FIRST);
    this.printed.textContent = printed === this.table.n ? "" : printed + " of " + all + " are printed.";
    this.count.textContent = matching === this.table.n ? all : matching.toLocaleString("en-US") + " of " + all;
  }

  hover(td) {
    if (!td || td.title || !td.parentNode.id) return;
    const row = Number(td.parentNode.id.slice(this.root.id.length + 1));
    const at = [...td.parentNode.children].indexOf(td);
    const column = this.table.d[at];
    if (!column) return;
    const value = column.v ? column.v[row] : textOf(column, row);
    td.title = [value, this.table.c[at][1], "from " + this.root.dataset.source].filter((part) => part !== null).join("\n");
  }

  async copy(button) {
    const lines = [this.table.c.map((column) => cell(column[0]))];
    for (const row of this.rows()) lines.push(this.table.d.map((column) => cell(valueOf(column, row))));
    const text = lines.map((line) => line.join(",")).join("\n") + "\n";
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      const area = element("textarea", text, {});
      document.body.append(area);
      area.select();
      button.textContent = document.execCommand("copy") ? "copied" : "not allowed here";
      area.remove();
    }
    setTimeout(() => { button.textContent = "copy as CSV"; }, 2000);
  }
}

const sheets = new Map();
for (const root of document.querySelectorAll(".sheet")) sheets.set(root.id, new Sheet(root, tables[root.id]));

const open = (node) => {
  for (let above = node; above; above = above.parentElement) if (above.tagName === "DETAILS") above.open = true;
};

/* A link opens its place; that of a sentence also marks the rows of its cases. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  const place = link.hash.slice(1);
  const sheet = sheets.get(place) || sheets.get(place.replace(/-\d+$/, ""));
  const { case: name, cases } = link.dataset;
  if (sheet && (name || cases)) sheet.choose(new Set(cases ? JSON.parse(cases) : [name]));
  open(document.getElementById(place));
});
addEventListener("hashchange", () => open(document.getElementById(location.hash.slice(1))));
open(document.getElementById(location.hash.slice(1)));

/* What is wider than its frame has a hint that it scrolls there. */
const frames = new ResizeObserver((entries) => {
  for (const { target } of entries) target.toggleAttribute("data-scrolls", target.scrollWidth > target.clientWidth + 1);
});
for (const frame of document.querySelectorAll(".wide, figure")) frames.observe(frame);
