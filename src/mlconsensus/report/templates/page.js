"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  // All text goes through textContent: names are data, whatever they are made of.
  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "style") made.style.setProperty("--v", value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  // Light and dark: as the system says, until the reader says else.
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : system.matches;
  };
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  system.addEventListener("change", nameTheme);
  nameTheme();

  // Where a wide table or chart scrolls, the keyboard can scroll it too.
  const reach = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth + 1) {
        const caption = box.querySelector("caption, svg");
        box.tabIndex = 0;
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", caption.textContent.slice(0, 100) && caption.tagName === "CAPTION" ? caption.textContent : "Chart");
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      }
    }
  };
  addEventListener("resize", reach);

  // Tables: search, sort, and the first rows until more are asked for.
  for (const box of document.querySelectorAll(".table")) {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const status = box.querySelector(".status");
    const field = box.querySelector("input");
    const few = Number(table.dataset.shown);
    const what = box.dataset.rows;
    const texts = rows.map((row) => row.cells[0].textContent.toLowerCase());
    let all = false;

    const show = () => {
      body.querySelectorAll("tr.reasons").forEach((row) => row.remove());
      body.querySelectorAll(".why[aria-expanded=true]").forEach((button) => button.setAttribute("aria-expanded", "false"));
      const wanted = field ? field.value.trim().toLowerCase() : "";
      let found = 0;
      for (const row of body.rows) {
        const matches = texts[row.dataset.at].includes(wanted);
        found += matches;
        row.hidden = !matches || !(all || found <= few);
      }
      const visible = all ? found : Math.min(found, few);
      status.replaceChildren();
      if (wanted) {
        const count = found ? `${found.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${what}` : `none of the ${rows.length.toLocaleString("en")} ${what} is called that`;
        status.append(make("span", {}, visible < found ? `${count} found, the first ${visible} shown` : found ? `${count} found` : count));
      } else if (rows.length > few) {
        status.append(make("span", {}, `${visible.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${what} shown`));
      }
      if (found > few) {
        const button = make("button", { type: "button" }, all ? "Show fewer" : "Show all");
        button.addEventListener("click", () => { all = !all; show(); status.querySelector("button").focus(); });
        status.append(button);
      }
      reach();
    };

    const value = (row, column) => {
      const cell = row.cells[column];
      return cell.dataset.v ?? cell.textContent;
    };
    const compare = (a, b) => {
      const [x, y] = [Number(a), Number(b)];
      if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
      return collator.compare(a, b);
    };
    table.querySelectorAll("thead th").forEach((heading, column) => {
      const button = heading.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const number = heading.classList.contains("num");
        const before = heading.getAttribute("aria-sort");
        const order = before ? (before === "ascending" ? "descending" : "ascending") : number ? "descending" : "ascending";
        table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        rows.sort((a, b) => sign * compare(value(a, column), value(b, column)) || a.dataset.at - b.dataset.at);
        body.replaceChildren(...rows);
        show();
      });
    });
    if (field) field.addEventListener("input", show);
    show();
  }

  // Explanations: one click on an instance.
  const figure = (value, digits = 4) => value === null ? "∞" : value.toFixed(digits).replace("-", "−");
  const signed = (value) => value === null ? "∞" : (value > 0 ? "+" : "") + figure(value);
  const push = (value, most) => {
    const length = most > 0 ? Math.min(Math.abs(value ?? 0) / most, 1) : 0;
    const side = (own) => make("span", {}, ...(own && length ? [make("i", { style: length })] : []));
    return make("span", { class: "push", "aria-hidden": "true" }, side(value < 0), side(value >= 0));
  };
  const changes = { added: "added", dropped: "dropped", first: "put first" };
  const row = (name, label, said, value, vote, most, kind = "") => make(
    "tr", kind ? { class: kind } : {},
    make("th", { scope: "row" }, make("bdi", {}, name)),
    make("td", {}, make("bdi", {}, label)),
    make("td", { class: "num" }, said),
    make("td", { class: "num" }, ...(most ? [push(value, most)] : []), kind || most ? signed(value) : figure(value)),
    make("td", { class: "num" }, vote),
  );
  const explain = ([label, change, scale, others, [score, vote, baseline, remainder, rest, total], parts]) => {
    const names = data.explanations.names;
    const most = Math.max(...parts.map((part) => Math.abs(part[3])), Math.abs(rest), 1e-9);
    const lines = parts.map(([model, own, said, value, voted]) => row(
      names[model], names[own], said === null ? "missing" : String(Number(said.toFixed(3))), value, own === label ? signed(voted) : "", most,
    ));
    if (others) lines.push(row(`${others.toLocaleString("en")} other predictions`, "", "", rest, "", most, "rest"));
    if (baseline !== 0) lines.push(row("start value", "", "", baseline, "", 0, "rest"));
    if (remainder) lines.push(row("floor at 0", "", "", remainder, "", 0, "rest"));
    lines.push(row(scale === "score" ? "score" : "sum of log-odds", "", "", total, figure(vote), 0));
    const caption = make("caption", {}, make("strong", {}, make("bdi", {}, names[label])), ` ${changes[change]}: `,
      make("strong", {}, figure(score)), ` by ${data.method}, ${figure(vote)} by voting`);
    const heads = ["Model", "Label", "Prediction", scale === "score" ? "Contribution" : "Contribution (log-odds)", "In voting"];
    const head = make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", ...(at > 1 ? { class: "num" } : {}) }, text)));
    return make("div", { class: "reason scroll" }, make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...lines)));
  };
  const instances = document.getElementById("instances");
  instances.addEventListener("click", (event) => {
    const button = event.target.closest(".why");
    if (!button) return;
    const line = button.closest("tr");
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      line.nextElementSibling.remove();
      return;
    }
    const cell = make("td", { colspan: line.cells.length }, ...data.explanations.reasons[line.dataset.at].map(explain));
    line.after(make("tr", { class: "reasons" }, cell));
    reach();
  });

  // Heat maps: what is under the pointer, in words.
  for (const svg of document.querySelectorAll("svg.heat")) {
    const [left, top, size, count] = svg.dataset.frame.split(" ").map(Number);
    const names = data[svg.dataset.names];
    const matrix = data.matrices[svg.dataset.names];
    const readout = svg.closest("figure").querySelector(".readout");
    const cursor = document.createElementNS(svg.namespaceURI, "rect");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("width", size);
    cursor.setAttribute("height", size);
    const point = (event) => {
      const scale = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
      const j = Math.floor((event.offsetX * scale - left) / size);
      const i = Math.floor((event.offsetY * scale - top) / size);
      if (i < 0 || j < 0 || i >= count || j >= count || i === j) {
        cursor.remove();
        return;
      }
      cursor.setAttribute("x", left + j * size - 0.5);
      cursor.setAttribute("y", top + i * size - 0.5);
      svg.append(cursor);
      readout.replaceChildren(make("bdi", {}, names[i]), " and ", make("bdi", {}, names[j]), `: ${figure(matrix[i][j], 2)}`);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => cursor.remove());
  }

  // What rests under a pointer, a finger opens: in a line below.
  document.addEventListener("pointerup", (event) => {
    const about = event.pointerType === "touch" && event.target.closest("[title]");
    if (!about) return;
    const box = about.closest(".table, figure, li, p") ?? about.parentElement;
    const line = box.querySelector(":scope > .told") ?? box.appendChild(make("p", { class: "told", role: "status" }));
    line.textContent = `${about.textContent.trim()}: ${about.title}`;
  });

  // Where in the page the reader is.
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.id);
      if (entry.isIntersecting) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-20% 0px -75% 0px" });
  document.querySelectorAll("main section").forEach((section) => watch.observe(section));
  reach();
})();
