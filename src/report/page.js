// The report's own script: theme, interactive figures, copying and downloads. Asks the network for nothing.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const property = name => getComputedStyle(root).getPropertyValue(name).trim();

  // ---- light and dark: the screen's wish until the reader presses the button
  const button = document.getElementById("theme");
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const is_dark = () => root.dataset.theme ? root.dataset.theme === "dark" : wish.matches;
  const remembered = { // a browser may forbid it for files: then it lasts until the page is left
    get: () => { try { return sessionStorage.getItem("theme"); } catch { return null; } },
    set: theme => { try { sessionStorage.setItem("theme", theme); } catch { /* as said */ } },
  };
  const show_theme = () => {
    button.textContent = is_dark() ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(is_dark()));
    button.setAttribute("aria-label", is_dark() ? "Switch to light colors" : "Switch to dark colors");
  };
  if (["light", "dark"].includes(remembered.get())) root.dataset.theme = remembered.get();
  show_theme();

  // ---- interactive figures
  const family = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const drawn = new Map(); // the place of a figure -> its data

  const translucent = (color, alpha) => {
    const part = i => parseInt(color.slice(i, i + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${alpha})`;
  };

  function themed_trace(trace, gap) {
    const { role, colorIndex, ...rest } = trace;
    if (role === "heatmap") {
      const scale = [];
      for (let i = 0; i < 16; ++i) scale.push([i / 15, property(`--heat-${i}`)]);
      return { ...rest, colorscale: scale, ...(gap && { ygap: gap }) };
    }
    const color = property(`--series-${colorIndex}`);
    if (role === "band") return { ...rest, fillcolor: translucent(color, 0.18), line: { ...rest.line, color } };
    const error_y = rest.error_y && { ...rest.error_y, color };
    return { ...rest, line: { ...rest.line, color }, marker: { ...rest.marker, color }, ...(error_y && { error_y }) };
  }

  // Rows that the legend needs below the figure, so that the figure itself keeps its height.
  function legend_rows(data, width) {
    let rows = 0, used = Infinity;
    for (const trace of data) {
      if (trace.showlegend === false || !trace.name) continue;
      const needed = 56 + 7.2 * trace.name.length;
      if (used + needed > width) { ++rows; used = 0; }
      used += needed;
    }
    return rows;
  }

  // Numbers in the cells of a heatmap, where they fit, each readable on its color.
  function cell_numbers(trace, cell) {
    const longest = Math.max(...trace.text.flat().map(text => text.length), 1);
    const size = Math.min(13, (cell - 5) / longest / 0.58);
    if (size < 12) return [];
    return trace.text.flatMap((row, r) => row.map((text, c) => ({
      x: c, y: r, text, showarrow: false, name: "cell",
      font: { family, size, color: property(trace.z[r][c] === null ? "--quiet" : `--heat-text-${trace.z[r][c]}`) },
    })));
  }

  const longest_name = 36; // of a row or a column, in letters: "ℓ1.5 mirror descent with momentum"
  const shorten = (text, length) => text.length > length ? text.slice(0, length - 1) + "…" : text;
  // A name too long for its axis goes on in a second line.
  const wrapped = (text, length) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
      if (lines.at(-1) && letters([longer]) > length) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
    return lines.join("<br>");
  };
  const letters = texts => Math.max(...texts.map(text => text.replace(/<[^>]*>/g, "").length), 1);

  // How the cells and names of a heatmap share the width. On a narrow screen the name of a row stands above it, whole,
  // and the cells have all of the width; cells too narrow for their numbers make the figure wider, and it scrolls.
  function heatmap_room(spec, width, narrow) {
    const trace = spec.data[0], columns = Math.max(trace.x.length, 1);
    const names = spec.layout.yaxis.ticktext, above = narrow && letters(names) > 6;
    const left = above ? 6 : 20 + 7 * Math.min(letters(names), longest_name) + (spec.layout.yaxis.title.text ? 46 : 0);
    const number = Math.max(...trace.text.flat().map(text => text.length), 1);
    // More columns than a reader compares one by one have no numbers in them.
    const least = columns <= 12 ? 12 * 0.58 * number + 5 : 4;
    const needed = Math.ceil(left + columns * least + 10);
    const inner = Math.max(width, needed), cell = (inner - left - 10) / columns;
    const gap = above ? 24 : 2, pitch = (narrow ? 30 : 40) + (above ? 24 : 2);
    const turned = 7.2 * letters(spec.layout.xaxis.ticktext) > cell;
    return { above, left, inner, cell, gap, pitch, turned };
  }

  const row_names = (spec, room) => !room.above ? [] : spec.layout.yaxis.ticktext.map((text, r) => ({
    x: 0, xref: "paper", xanchor: "left", y: r - 0.5, yanchor: "middle", text, showarrow: false, name: "row",
    font: { family, size: 12.5, color: property("--text") },
  }));

  // Powers of ten alone, unless there are hardly any.
  const decade_ticks = range => {
    const decades = Math.abs(range[1] - range[0]);
    return decades < 1.6 ? null : Math.max(1, Math.ceil(decades / 7));
  };
  // Nothing between whole numbers. Plotly has ten ticks at most, so those of a longer axis are whole anyway.
  const whole_ticks = range => Math.abs(range[1] - range[0]) < 10 ? 1 : null;
  function tidy_ticks(place) {
    const changes = {};
    for (const name of ["xaxis", "yaxis"]) {
      const axis = place._fullLayout[name], whole = drawn.get(place).layout[name].whole;
      if (!axis || (axis.type !== "log" && !whole)) continue;
      const wanted = axis.type === "log" ? decade_ticks(axis.range) : whole_ticks(axis.range);
      if ((place.layout[name].dtick ?? null) === wanted) continue;
      changes[`${name}.dtick`] = wanted;
      changes[`${name}.tickmode`] = wanted === null ? "auto" : "linear"; // which would stay as it was
    }
    if (Object.keys(changes).length > 0) Plotly.relayout(place, changes);
  }

  function layout_of(spec, place) {
    const narrow = place.clientWidth < 560;
    const heatmap = spec.data[0] && spec.data[0].role === "heatmap";
    const rows = spec.layout.showlegend ? legend_rows(spec.data, place.clientWidth - 40) : 0;
    const room = heatmap && heatmap_room(spec, place.clientWidth, narrow);
    const below = heatmap && 34 + (room.turned ? 7 * Math.min(letters(spec.layout.xaxis.ticktext), longest_name) : 16);
    const square = spec.layout.yaxis.scaleanchor; // then the plot is about as high as it is wide
    const height = heatmap ? 46 + room.pitch * spec.data[0].y.length + below
                           : (square ? Math.min(place.clientWidth, 560) : narrow ? 330 : 420) + 24 * rows;
    const y_letters = Math.max(12, Math.floor((height - (heatmap ? 46 + below : 110 + 24 * rows)) / 7.4));
    const x_letters = Math.max(20, Math.floor((place.clientWidth - 70) / 8.2));
    const axis = ({ whole, ...own }, length) => ({ gridcolor: property("--grid"), linecolor: property("--frame"), tickcolor: property("--frame"),
                           showline: !heatmap, ...own, title: { ...own.title, text: wrapped(own.title.text, length) }, ...(narrow && !own.tickvals && { nticks: 6 }),
                           ...(own.ticktext && { ticktext: own.ticktext.map(text => shorten(text, longest_name)) }) });
    const heat_axes = heatmap && {
      width: room.inner, autosize: false,
      xaxis: { ...axis(spec.layout.xaxis, x_letters), tickangle: room.turned ? -90 : 0 },
      yaxis: { ...axis(spec.layout.yaxis, y_letters), ...(room.above && { showticklabels: false, title: { text: "" }, automargin: false }) },
      margin: { l: room.left, r: 10, t: room.above ? 40 : 34, b: below },
      // Frames about cells, which may be less high than their rows.
      shapes: spec.layout.shapes.map(shape => {
        const middle = (shape.y0 + shape.y1) / 2, half = (room.pitch - room.gap) / room.pitch / 2;
        return { ...shape, y0: middle - half, y1: middle + half, line: { ...shape.line, color: property("--mark") } };
      }),
    };
    return {
      ...spec.layout,
      height, autosize: true, uirevision: "kept",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family, size: 13, color: property("--text") },
      margin: { l: 56, r: narrow ? 10 : 24, t: 34, b: 48 },
      xaxis: axis(spec.layout.xaxis, x_letters), yaxis: axis(spec.layout.yaxis, y_letters),
      shapes: (spec.layout.shapes || []).map(shape => ({ ...shape, line: { ...shape.line, color: property("--mark") } })),
      annotations: heatmap ? [...cell_numbers(spec.data[0], room.cell), ...row_names(spec, room)] : [],
      legend: { orientation: "h", x: 0, xanchor: "left", y: 0, yanchor: "bottom", yref: "container", bgcolor: "rgba(0,0,0,0)" },
      hoverlabel: { bgcolor: property("--background"), bordercolor: property("--frame"),
                    font: { family, size: 13, color: property("--text") }, align: "left", namelength: -1 },
      hovermode: "closest",
      // A finger on a figure scrolls the page; the buttons above it zoom.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: property("--quiet"), activecolor: property("--accent") },
      ...heat_axes,
    };
  }

  function traces_of(spec, place) {
    const heatmap = spec.data[0] && spec.data[0].role === "heatmap";
    const gap = heatmap && heatmap_room(spec, place.clientWidth, place.clientWidth < 560).gap;
    return spec.data.map(trace => themed_trace(trace, gap));
  }

  function draw(figure) {
    const place = figure.querySelector(".plot");
    if (!place || drawn.has(place)) return Promise.resolve();
    const spec = JSON.parse(figure.querySelector("script.plotly").textContent);
    drawn.set(place, spec);
    const still = figure.querySelector(".static");
    place.hidden = false;
    still.classList.add("replaced");
    const failed = error => { // the static drawing is as good as it was
      place.hidden = true;
      still.classList.remove("replaced");
      console.error(error);
    };
    try {
      return Plotly.newPlot(place, traces_of(spec, place), layout_of(spec, place), {
        responsive: true, displaylogo: false, scrollZoom: false,
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
        toImageButtonOptions: { filename: figure.dataset.name, scale: 2 },
      }).then(() => {
        tidy_ticks(place);
        place.on("plotly_relayout", () => tidy_ticks(place));
      }).catch(failed);
    } catch (error) {
      failed(error);
      return Promise.resolve();
    }
  }

  function redraw() {
    for (const [place, spec] of drawn)
      if (place.data) Plotly.react(place, traces_of(spec, place), layout_of(spec, place)).then(() => tidy_ticks(place));
  }

  const figures = [...document.querySelectorAll("figure")];
  if (window.Plotly && "IntersectionObserver" in window) {
    const observer = new IntersectionObserver(entries => {
      for (const entry of entries)
        if (entry.isIntersecting) {
          observer.unobserve(entry.target);
          draw(entry.target);
        }
    }, { rootMargin: "400px" });
    figures.forEach(figure => observer.observe(figure));
    let width = innerWidth;
    addEventListener("resize", () => { // legends and heights depend on the width
      if (innerWidth === width) return;
      width = innerWidth;
      redraw();
    });
  }

  const change_theme = () => { show_theme(); redraw(); };
  wish.addEventListener("change", change_theme);
  button.addEventListener("click", () => {
    root.dataset.theme = is_dark() ? "light" : "dark";
    remembered.set(root.dataset.theme);
    change_theme();
  });

  // ---- paper: everything is open, and the static drawings are printed
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("main details:not([open])")];
    opened.forEach(one => { one.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach(one => { one.open = false; }); opened = []; });

  // On a small screen the contents would push the report off it.
  if (matchMedia("(max-width: 40rem)").matches)
    document.querySelectorAll("nav.contents details").forEach(one => { one.open = false; });

  // ---- copy and download
  const say = (button, word) => {
    const before = button.textContent;
    button.textContent = word;
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  document.querySelectorAll(".copy").forEach(button => button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch { // not allowed here: by the selection, as a reader would
      const selection = getSelection();
      selection.selectAllChildren(code);
      if (!document.execCommand("copy")) return;
      selection.removeAllRanges();
    }
    say(button, "Copied");
  }));

  // The drawing with what a file of its own needs: the strip with the title, and the colors of dark screens.
  function svg_file(figure) {
    const svg = figure.querySelector(".static svg").cloneNode(true);
    const box = svg.dataset.whole.split(" ");
    svg.setAttribute("viewBox", svg.dataset.whole);
    svg.setAttribute("width", box[2]);
    svg.setAttribute("height", box[3]);
    svg.removeAttribute("data-whole");
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = JSON.parse(document.getElementById("dark-style").textContent);
    svg.querySelector("desc").after("\n", style);
    return new XMLSerializer().serializeToString(svg) + "\n";
  }
  const kinds = { svg: "image/svg+xml", csv: "text/csv", tex: "application/x-tex" };
  document.querySelectorAll(".save").forEach(button => button.addEventListener("click", () => {
    const kind = button.dataset.kind;
    const owner = button.closest("[data-name]");
    const content = kind === "svg" ? svg_file(owner) : JSON.parse(owner.querySelector("script.files").textContent)[kind];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: kinds[kind] + ";charset=utf-8" }));
    link.download = `${owner.dataset.name}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }));
})();
