// Sorting, folding and saving. The page is complete without any of it.
"use strict";
(function () {
  const SHOWN = 25;

  // --- sort: a button over each header; the header remembers its direction through aria-sort.
  // The words stay outside of it: browsers do not print buttons in headers they repeat.
  function value(cell, kind) {
    if (kind === "text") return cell.textContent.trim();
    return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
  }

  function compare(kind, sign) {
    return function (a, b) {
      if (kind === "text") return sign * a.value.localeCompare(b.value, undefined, { numeric: true });
      // Numbers that were not measured stay last in either direction.
      if (isNaN(a.value) || isNaN(b.value)) return isNaN(a.value) - isNaN(b.value);
      return a.value === b.value ? 0 : sign * (a.value < b.value ? -1 : 1);
    };
  }

  function sort(table, header) {
    const kind = header.dataset.sort;
    const now = header.getAttribute("aria-sort");
    const first = kind === "text" ? "ascending" : "descending";
    const next = now === null ? first : now === "ascending" ? "descending" : "ascending";
    table.querySelectorAll("thead th").forEach((th) => th.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", next);
    const body = table.tBodies[0];
    Array.from(body.rows)
      .map((row) => ({ row: row, value: value(row.cells[header.cellIndex], kind) }))
      .sort(compare(kind, next === "ascending" ? 1 : -1))
      .forEach((item) => body.appendChild(item.row));
  }

  document.querySelectorAll("table.sortable").forEach((table) => {
    table.querySelectorAll("th[data-sort]").forEach((header) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-label", "Sort by " + header.textContent.trim());
      button.addEventListener("click", () => sort(table, header));
      header.append(button);
    });
  });

  // --- fold: a long table shows its first rows until asked for all
  document.querySelectorAll("table.long").forEach((table) => {
    const count = table.tBodies[0].rows.length;
    if (count <= SHOWN) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "unfold";
    const label = (folded) => {
      button.textContent = folded ? "Show all " + count + " rows" : "Show the first " + SHOWN + " rows";
      button.setAttribute("aria-expanded", String(!folded));
    };
    table.classList.add("folded");
    label(true);
    button.addEventListener("click", () => label(table.classList.toggle("folded")));
    table.parentElement.after(button);
  });

  // --- save: a picture becomes a file that stands alone, its colours written into it
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size",
    "font-family", "font-weight", "text-anchor", "transform", "vector-effect"];

  function standing(svg) {
    const copy = svg.cloneNode(true);
    const from = [svg, ...svg.querySelectorAll("*")];
    const to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      // As attributes: the page's policy allows no inline style, not even in a copy.
      STYLES.forEach((name) => {
        const value = style.getPropertyValue(name);
        if (value && value !== "none" || name === "fill") to[i].setAttribute(name, value);
      });
    });
    const box = svg.getBoundingClientRect();
    const left = 70, right = 20, top = 50, bottom = 60;
    const [w, h] = [box.width + left + right, box.height + top + bottom];
    copy.setAttribute("x", left);
    copy.setAttribute("y", top);
    copy.setAttribute("width", box.width);
    copy.setAttribute("overflow", "visible");
    const outer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    outer.setAttribute("viewBox", "0 0 " + w + " " + h);
    outer.setAttribute("width", w);
    outer.setAttribute("height", h);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    paper.setAttribute("width", "100%");
    paper.setAttribute("height", "100%");
    paper.setAttribute("fill", getComputedStyle(svg.closest("figure")).backgroundColor);
    outer.append(paper, copy);
    return new XMLSerializer().serializeToString(outer);
  }

  document.querySelectorAll("figure[data-figure]").forEach((figure) => {
    const svg = figure.querySelector("svg");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = "Download this figure (SVG)";
    button.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([standing(svg)], { type: "image/svg+xml" }));
      const link = document.createElement("a");
      link.href = address;
      link.download = figure.dataset.figure + ".svg";
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
    figure.querySelector("figcaption").after(button);
  });
})();
